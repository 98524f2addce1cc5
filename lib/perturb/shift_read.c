#include "perturb/shift.h"

#include "cells/copies.h"
#include "stream/embedding.h"

struct shift_reader {
	struct stream *s;
	int indexed;
	struct block b;
	struct error *e;
	const char *name;
	const struct header *h;
	const struct states *t;
	struct shifts *r;
	struct shift_names *names;
	int x, x_original, similarity, cell, kind, label, control; /* columns, -1: none */
	struct labels state, *group; /* group: borrowed, or NULL */
	int *kind_of; /* [categories of kind] enum perturb_kind, or PERTURB_KINDS + enum base_row */
	size_t d;

	uint64_t base_cell, last; /* last: the cell of the last record */
	int has_base, chosen; /* chosen: the cell is in the start state, or there are no states */
	uint32_t base_group;
	float *base; /* [d] the row to compare with */
	double *before; /* [K] cosine of the whole cell to each state */
	double *now; /* [K] values of the current row */
	size_t starts; /* cells of the start state */
	size_t ncontrol; /* of the last record */
	int last_kept; /* the last row that is no control became a record */
	char *key;
	size_t key_cap, key_length;
};

static double cosine_to(const float *x, const double *s, double norm, size_t d)
{
	double xs = 0, xx = 0;
	for (size_t j = 0; j < d; j++) {
		xs += (double)x[j] * s[j];
		xx += (double)x[j] * (double)x[j];
	}
	return xs / (sqrt(xx) * norm);
}

static uint64_t cell_at(const struct shift_reader *in, const struct block *b, size_t i)
{
	return ((const uint64_t *)b->col[in->cell].data)[i];
}

/* The vector of row i in column c, or NULL if it is missing, into *to. -1: it is not finite, or 0. */
static int vector_at(const struct shift_reader *in, const struct block *b, int c, size_t i, const float **to)
{
	const float *x = (const float *)b->col[c].data + i * in->d;
	double size = 0;
	*to = NULL;
	if (embedding_missing(x, in->d))
		return 0;
	for (size_t j = 0; j < in->d; j++) {
		if (!isfinite(x[j]))
			return error_set(in->e, "%s: cell %" PRIu64 ": %s[%zu] is %g, expected a finite number", in->name,
				cell_at(in, b, i), in->h->col[c].name, j, (double)x[j]);
		size += (double)x[j] * (double)x[j];
	}
	if (size == 0)
		return error_set(in->e, "%s: cell %" PRIu64 ": all of %s is 0: it has no direction", in->name, cell_at(in, b, i),
			in->h->col[c].name);
	*to = x;
	return 0;
}

static int shift_find_column(const struct header *h, const char *name, enum column_type type, enum column_shape shape)
{
	int c = header_find(h, name);
	return c >= 0 && h->col[c].type == type && h->col[c].shape == shape ? c : -1;
}

static int open_columns(struct shift_reader *in)
{
	const struct header *h = in->h;
	if (header_kind(h, STREAM_EMBEDDING, in->name, in->e))
		return -1;
	in->kind = shift_find_column(h, "perturbation", CATEGORICAL, SCALAR);
	in->label = shift_find_column(h, "perturbed", STR, SCALAR);
	if (in->kind < 0 || in->label < 0)
		return error_set(in->e, "%s: not perturbed cells: expected scperturb ... | scembed ...", in->name);
	in->control = shift_find_column(h, "control", U32, SCALAR);
	in->x = shift_find_column(h, "x", F32, FIXED);
	in->x_original = shift_find_column(h, "x_original", F32, FIXED);
	in->similarity = shift_find_column(h, "similarity", F64, SCALAR);
	if (in->x < 0 && in->similarity < 0)
		return error_set(in->e, "%s: neither vectors x nor similarities: expected those of scembed", in->name);
	in->cell = header_need(h, "cell", U64, SCALAR, in->name, in->e);
	if (in->cell < 0 ||
		(in->t->column && labels_init(&in->state, h, in->t->column, &in->names->states, LABEL_WORDS_KEPT, in->name, in->e)))
		return -1;
	in->d = in->x < 0 ? 0 : h->col[in->x].n;
	if (in->t->column && (in->x < 0 || in->d != in->t->d))
		return error_set(in->e, "%s: vectors of %zu numbers, but the states have %zu: expected those of one model", in->name, in->d,
			in->t->d);
	if (in->x_original >= 0 && h->col[in->x_original].n != in->d)
		return error_set(in->e, "%s: x and x_original have different lengths", in->name);
	return 0;
}

static int name_kinds(struct shift_reader *in)
{
	const struct column_spec *c = &in->h->col[in->kind];
	in->kind_of = xcalloc(c->ncategory + 1, sizeof *in->kind_of);
	for (size_t i = 0; i < c->ncategory; i++) {
		int k = 0;
		while (k < PERTURB_KINDS && strcmp(c->category[i], perturb_name[k]))
			k++;
		if (k == PERTURB_KINDS)
			k += base_row_find(c->category[i]);
		if (k == PERTURB_KINDS + BASE_ROWS)
			return error_set(in->e, "%s: column 'perturbation' has the unknown kind '%.80s'", in->name, c->category[i]);
		in->kind_of[i] = k;
	}
	return 0;
}

/* ---- rows ---- */

/* The name of the state of row i, NULL if it has none. */
static const char *state_at(struct shift_reader *in, const struct block *b, size_t i)
{
	const struct states *t = in->t;
	uint32_t label = labels_at(&in->state, b, i);
	if (label == MISSING_CODE)
		return NULL;
	const char *name = in->names->states.name[label];
	if (!t->shuffle || (strcmp(name, t->name[0]) && strcmp(name, t->name[t->n])))
		return name;
	struct rng rng = rng_at(t->seed, RNG_STATES, cell_at(in, b, i), 0);
	return t->name[rng_u32(&rng) & 1 ? 0 : t->n];
}

static int take_base(struct shift_reader *in, const struct block *b, size_t i, int whole)
{
	const float *x = NULL;
	if (in->x >= 0 && vector_at(in, b, in->x, i, &x))
		return -1;
	if (!whole && (!in->has_base || cell_at(in, b, i) != in->base_cell))
		return error_set(in->e, "%s: cell %" PRIu64 ": a truncated row without the cell before it", in->name, cell_at(in, b, i));
	if (whole) {
		const char *state = in->t->column ? state_at(in, b, i) : NULL;
		in->chosen = !in->t->column || (state && strcmp(state, in->t->name[in->t->n]) == 0);
		if (in->group && in->chosen)
			in->chosen = (in->base_group = labels_at(in->group, b, i)) != MISSING_CODE;
	}
	in->starts += whole && in->chosen;
	in->has_base = in->x < 0 || x;
	in->base_cell = cell_at(in, b, i);
	for (size_t k = 0; whole && x && k < in->t->n; k++)
		in->before[k] = cosine_to(x, in->t->mean + k * in->d, in->t->norm[k], in->d);
	if (x)
		memcpy(in->base, x, in->d * sizeof *x);
	return 0;
}

/* The values of a perturbed row into in->now. 0: it has none; -1: they are wrong. */
static int measure(struct shift_reader *in, const struct block *b, size_t i)
{
	if (in->x < 0) {
		in->now[0] = ((const double *)b->col[in->similarity].data)[i];
		if (isinf(in->now[0]))
			return error_set(in->e, "%s: cell %" PRIu64 ": an infinite similarity", in->name, cell_at(in, b, i));
		return !isnan(in->now[0]);
	}
	const float *x, *before = in->base;
	if (vector_at(in, b, in->x, i, &x) || (in->x_original >= 0 && vector_at(in, b, in->x_original, i, &before)))
		return -1;
	if (!x || !before)
		return 0;
	for (size_t k = 0; k < in->t->n; k++) {
		const double *state = in->t->mean + k * in->d;
		double was = in->x_original < 0 ? in->before[k] : cosine_to(before, state, in->t->norm[k], in->d);
		in->now[k] = cosine_to(x, state, in->t->norm[k], in->d) - was;
	}
	if (!in->t->n)
		in->now[0] = embedding_cosine(x, before, in->d);
	return 1;
}

/* Read the key of the row's set. 1 if the row before has the same one, else 0; -1: it has none. */
static int take_key(struct shift_reader *in, const struct block *b, size_t i, int kind)
{
	size_t n;
	const char *label = block_str(b, in->label, i, &n);
	if (!n || memchr(label, 0, n))
		return error_set(in->e, "%s: cell %" PRIu64 ": a perturbed row without a label in the column 'perturbed'", in->name,
			cell_at(in, b, i));
	int same = in->key_length == n + 1 && in->key[0] == 'a' + kind && memcmp(in->key + 1, label, n) == 0;
	grow(in->key, in->key_cap, n + 1);
	in->key[0] = (char)('a' + kind);
	memcpy(in->key + 1, label, n);
	in->key_length = n + 1;
	return same;
}

static void add_record(struct shift_reader *in, const struct block *b, size_t i)
{
	struct shifts *r = in->r;
	size_t K = r->K;
	uint32_t set = classes_add(&in->names->sets, in->key, in->key_length);
	grow(r->set, r->set_cap, r->n + 1);
	grow(r->group, r->group_cap, r->n + 1);
	grow(r->value, r->value_cap, (r->n + 1) * K);
	r->set[r->n] = set;
	r->group[r->n] = in->base_group;
	memcpy(r->value + r->n * K, in->now, K * sizeof *in->now);
	if (r->controls) {
		grow(r->control, r->control_cap, (r->n + 1) * K);
		for (size_t k = 0; k < K; k++)
			r->control[r->n * K + k] = NAN;
	}
	r->n++;
}

/* A control joins the mean of the last record's. */
static void add_control(struct shift_reader *in)
{
	struct shifts *r = in->r;
	double *mean = r->control + (r->n - 1) * r->K, n = (double)++in->ncontrol;
	for (size_t k = 0; k < r->K; k++)
		mean[k] = n == 1 ? in->now[k] : mean[k] + (in->now[k] - mean[k]) / n;
}

static int read_row(struct shift_reader *in, const struct block *b, size_t i)
{
	uint32_t code = ((const uint32_t *)b->col[in->kind].data)[i];
	if (code == MISSING_CODE)
		return error_set(in->e, "%s: cell %" PRIu64 ": no value in column 'perturbation'", in->name, cell_at(in, b, i));
	int kind = in->kind_of[code];
	if (kind >= PERTURB_KINDS) {
		in->key_length = 0;
		return take_base(in, b, i, kind == PERTURB_KINDS + BASE_ORIGINAL);
	}
	if (cell_at(in, b, i) != in->base_cell)
		return error_set(in->e, "%s: cell %" PRIu64 ": no unperturbed row of the cell before it: expected the order of scperturb",
			in->name, cell_at(in, b, i));
	uint32_t control = in->control < 0 ? 0 : ((const uint32_t *)b->col[in->control].data)[i];
	int same = take_key(in, b, i, kind);
	if (same < 0)
		return -1;
	if (control && !same && in->r->controls)
		return error_set(
			in->e, "%s: cell %" PRIu64 ": a control that does not follow its perturbation", in->name, cell_at(in, b, i));
	if (!in->chosen || (control && !in->last_kept))
		return 0;
	int known = in->has_base ? measure(in, b, i) : 0;
	if (known < 0)
		return -1;
	in->r->missing += !known;
	if (control && known)
		add_control(in);
	if (control)
		return 0;
	in->last_kept = known;
	in->ncontrol = 0;
	if (known)
		add_record(in, b, i);
	return 0;
}

static int check_size(const struct states *t, size_t k, size_t cells, const char *name, struct error *e)
{
	if (cells >= STATE_CELLS_MIN)
		return 0;
	return error_set(e, "%s: state '%s' of column '%s' has %zu cell%s, expected at least %d", name, t->name[k], t->column, cells,
		cells == 1 ? "" : "s", STATE_CELLS_MIN);
}

void shifts_close(struct shift_reader *in)
{
	block_release(&in->b);
	labels_release(&in->state);
	free_all(in->kind_of, in->base, in->before, in->key, in);
}

struct shift_reader *shifts_open(struct shifts *r, struct stream *s, int indexed, const struct states *t, struct labels *group,
	struct shift_names *names, struct error *e)
{
	struct shift_reader *in = xmalloc(sizeof *in);
	*in = (struct shift_reader){.s = s,
		.indexed = indexed,
		.e = e,
		.name = stream_name(s),
		.h = stream_header(s),
		.t = t,
		.r = r,
		.names = names,
		.group = group,
		.base_cell = UINT64_MAX,
		.last = UINT64_MAX};
	if (open_columns(in) || name_kinds(in)) {
		shifts_close(in);
		return NULL;
	}
	*r = (struct shifts){.K = t->n ? t->n : 1, .controls = in->control >= 0};
	in->base = xcalloc(in->d + 1, sizeof *in->base);
	in->before = xcalloc(2 * r->K, sizeof *in->before);
	in->now = in->before + r->K;
	return in;
}

int shifts_next(struct shift_reader *in, struct error *e)
{
	struct shifts *r = in->r;
	in->e = e;
	int got = stream_read(in->s, &in->b, in->e);
	r->rows += got > 0 ? in->b.rows : 0;
	for (size_t i = 0; got > 0 && i < in->b.rows; i++) {
		size_t before = r->n;
		if (read_row(in, &in->b, i))
			return -1;
		r->cells += r->n > before && in->base_cell != in->last;
		in->last = r->n > before ? in->base_cell : in->last;
	}
	return !got && in->t->column && check_size(in->t, in->t->n, in->starts, in->name, e) ? -1 : got;
}

/* ---- states ---- */

static int check_states(struct states *t, const size_t *cells, const char *name, struct error *e)
{
	for (size_t k = 0; k < t->n; k++) {
		double square = 0;
		if (check_size(t, k, cells[k], name, e))
			return -1;
		for (size_t j = 0; j < t->d; j++) {
			t->mean[k * t->d + j] /= (double)cells[k];
			square += t->mean[k * t->d + j] * t->mean[k * t->d + j];
		}
		t->norm[k] = sqrt(square);
		if (!(t->norm[k] > 0))
			return error_set(e, "%s: the mean of state '%s' is 0: it has no direction", name, t->name[k]);
	}
	return 0;
}

/* The row's vector joins the sum of its state. */
static int add_state(struct shift_reader *in, struct states *t, size_t i, size_t *cells)
{
	uint32_t code = in->kind < 0 ? 0 : ((const uint32_t *)in->b.col[in->kind].data)[i];
	if (in->kind >= 0 && (code == MISSING_CODE || in->kind_of[code] != PERTURB_KINDS + BASE_ORIGINAL))
		return 0;
	const char *state = state_at(in, &in->b, i);
	const float *x = NULL;
	if (state && vector_at(in, &in->b, in->x, i, &x))
		return -1;
	size_t k = 0;
	while (k < t->n && (!state || strcmp(state, t->name[k])))
		k++;
	cells[k < t->n ? k : 0] += x && k < t->n;
	for (size_t j = 0; x && k < t->n && j < t->d; j++)
		t->mean[k * t->d + j] += (double)x[j];
	return 0;
}

static int open_states(struct shift_reader *in, const struct states *t)
{
	if (header_kind(in->h, STREAM_EMBEDDING, in->name, in->e))
		return -1;
	if (shift_find_column(in->h, "similarity", F64, SCALAR) >= 0)
		return error_set(in->e, "%s: --state needs vectors, and these are similarities: embed without --similarity", in->name);
	if ((in->x = header_need(in->h, "x", F32, FIXED, in->name, in->e)) < 0 ||
		(in->cell = header_need(in->h, "cell", U64, SCALAR, in->name, in->e)) < 0 ||
		labels_init(&in->state, in->h, t->column, &in->names->states, LABEL_WORDS_KEPT, in->name, in->e) ||
		(in->indexed && stream_index(in->s, in->e)))
		return -1;
	in->kind = shift_find_column(in->h, "perturbation", CATEGORICAL, SCALAR);
	return in->kind >= 0 ? name_kinds(in) : 0;
}

int states_read(struct states *t, struct stream *s, int again, struct shift_names *names, struct error *e)
{
	struct shift_reader in = {.s = s, .indexed = again, .e = e, .name = stream_name(s), .h = stream_header(s), .t = t, .names = names};
	size_t *cells = xcalloc(t->n, sizeof *cells);
	int got = open_states(&in, t) ? -1 : 1;
	if (got > 0) {
		t->d = in.d = in.h->col[in.x].n;
		t->mean = xcalloc(t->n * t->d, sizeof *t->mean);
		t->norm = xcalloc(t->n, sizeof *t->norm);
	}
	while (got > 0 && (got = stream_read(in.s, &in.b, in.e)) > 0)
		for (size_t i = 0; got > 0 && i < in.b.rows; i++)
			got = add_state(&in, t, i, cells) ? -1 : 1;
	if (!got && check_states(t, cells, in.name, e))
		got = -1;
	block_release(&in.b);
	labels_release(&in.state);
	free_all(in.kind_of, cells);
	return got;
}
