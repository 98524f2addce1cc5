/*
 * scembed --screen K --towards EMB: which deletions move a cell most towards a state, without deleting. With x the mean of the genes' states and
 * s the mean vector of the state, the deletion of gene j changes cos(x, s) by about
 *     -d cos / dg_j + sum over tokens t behind j of (d cos / dv_t) . ahead_t
 * where g_j is the presence of its token, v_t the vectors of tokens and ahead_t what they change by one place further ahead (nn/input.h).
 * Position vectors of neighbours differ much, and the norm bends: the gradient d cos / dv_t is therefore the mean of that of the cell and
 * that of the cell with all tokens one place ahead, as in the trapezoidal rule. These are two backward passes a cell. The K genes with the largest expected shift are written beside the tokens, for scperturb --delete screened.
 */
#include "scembed.h"

#include "cli.h"
#include "cells/copies.h"
#include "nn/input.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct best {
	double shift;
	uint32_t id;
};

struct screen {
	size_t k, C, special;
	double *state, norm; /* [C] the vector to move to */
	int token, screened, expected, token_group, group; /* columns of the output */
	struct best *best; /* [tokens of a cell] */
	uint32_t *range;
	float *v, *ahead, *dv, *x, *dx, *presence, *shift; /* shift [T] */
	size_t best_cap, range_cap, v_cap, ahead_cap, dv_cap, x_cap, dx_cap, presence_cap, shift_cap;
};

/* The mean of the vectors of a stream of embeddings. */
static void read_state(struct screen *s, const char *path)
{
	struct error e;
	struct block b = {0};
	uint64_t cells = 0;
	int got, x = -1;
	struct stream *in = stream_open(path, &e);
	if (!in)
		die("--towards: %s", e.msg);
	const struct header *h = stream_header(in);
	if (header_kind(h, "embedding", path, &e) || (x = header_need(h, "x", F32, FIXED, path, &e)) < 0)
		die("--towards: %s", e.msg);
	s->C = h->col[x].n;
	s->state = xcalloc(s->C, sizeof *s->state);
	while ((got = stream_read(in, &b, &e)) > 0) {
		if (copies_refuse(&b, path, &e))
			die("--towards: %s", e.msg);
		for (size_t i = 0; i < b.rows; i++) {
			const float *row = (const float *)b.col[x].data + i * s->C;
			int finite = 1;
			for (size_t j = 0; j < s->C; j++)
				finite &= isfinite(row[j]) != 0;
			for (size_t j = 0; finite && j < s->C; j++)
				s->state[j] += (double)row[j];
			cells += (uint64_t)finite;
		}
	}
	if (got < 0)
		die("--towards: %s", e.msg);
	for (size_t j = 0; j < s->C; j++) {
		s->state[j] /= (double)cells;
		s->norm += s->state[j] * s->state[j];
	}
	s->norm = sqrt(s->norm);
	if (!cells || !(s->norm > 0))
		die("--towards: %s: no vector, or their mean is 0: expected embeddings of cells of the state", path);
	block_release(&b);
	stream_free(in);
}

void screen_open(struct run *r, const char *path, size_t k, const struct header *h, const char *name)
{
	struct screen *s = r->screen = xcalloc(1, sizeof *s);
	s->k = k;
	s->special = h->vocab.nspecial;
	for (int i = 0; i < 2; i++)
		if (header_find(h, i ? "tie" : "rank") >= 0)
			die("%s: --screen needs tokens that scperturb can perturb: expected tokens made without --ties", name);
	read_state(s, path);
}

void screen_header(struct run *r, struct header *h, const char *name)
{
	static const char *const made[] = {"gene", "expected"};
	struct screen *s = r->screen;
	for (size_t i = 0; i < sizeof made / sizeof *made; i++)
		if (header_find(h, made[i]) >= 0)
			die("%s: has a column '%s', which the screen needs", name, made[i]);
	if (s->C != model_config(r->model)->hidden_size)
		die("--towards: vectors of %zu numbers, but the model has %u: expected embeddings by this model", s->C,
			model_config(r->model)->hidden_size);
	if (model_config(r->model)->value.kind != VALUE_NONE)
		die("--screen: the model reads values of the genes, which scperturb cannot perturb yet");
	s->token = header_add_ragged(h, "token", id_type(h->vocab.n), "token");
	s->screened = header_add_ragged(h, "gene", id_type(h->vocab.n), "gene");
	s->expected = header_add_ragged(h, "expected", F32, "gene");
	s->token_group = h->col[s->token].group;
	s->group = h->col[s->screened].group;
}

/* cos(x, state), and its gradient. */
static void cosine_back(const struct screen *s, const float *x, float *dx)
{
	double xs = 0, xx = 0;
	for (size_t j = 0; j < s->C; j++) {
		xs += (double)x[j] * s->state[j];
		xx += (double)x[j] * (double)x[j];
	}
	for (size_t j = 0; j < s->C; j++)
		dx[j] = (float)((s->state[j] - xs * (double)x[j] / xx) / (sqrt(xx) * s->norm));
}

/* The first and last genes of each cell: special tokens stand before and behind them. */
static void fill_ranges(struct screen *s, const struct batch *p)
{
	grow(s->range, s->range_cap, 2 * p->ncell);
	for (size_t i = 0; i < p->ncell; i++) {
		uint32_t from = p->offset[i], to = p->offset[i + 1];
		while (from < to && p->id[from] < s->special)
			from++;
		while (to > from && p->id[to - 1] < s->special)
			to--;
		s->range[2 * i] = from;
		s->range[2 * i + 1] = to;
	}
}

/* Half of what the gradient s->dv says of the places of later tokens. */
static void add_places(struct screen *s, const struct batch *p)
{
	for (size_t i = 0; i < p->ncell; i++) {
		double behind = 0;
		for (size_t t = p->offset[i + 1]; t-- > p->offset[i];) {
			s->shift[t] += (float)behind;
			for (size_t c = 0; c < s->C; c++)
				behind += (double)s->dv[t * s->C + c] * (double)s->ahead[t * s->C + c] / 2;
		}
	}
}

static void compute(struct run *r, const struct batch *p, int layer)
{
	struct screen *s = r->screen;
	struct error e;
	size_t T = p->offset[p->ncell];
	grow(s->v, s->v_cap, T * s->C);
	grow(s->dv, s->dv_cap, T * s->C);
	grow(s->presence, s->presence_cap, T);
	grow(s->x, s->x_cap, p->ncell * s->C);
	grow(s->dx, s->dx_cap, p->ncell * s->C);
	grow(s->ahead, s->ahead_cap, T * s->C);
	grow(s->shift, s->shift_cap, T);
	memset(s->shift, 0, T * sizeof *s->shift);
	must(input_vectors(r->model, p, s->v, &e), &e);
	must(input_ahead(r->model, p, s->ahead, &e), &e);
	for (int place = 0; place < 2; place++) {
		for (size_t k = 0; place && k < T * s->C; k++)
			s->v[k] += s->ahead[k];
		must(input_forward(r->model, p, s->v, &(struct input_to){.range = s->range, .layer = layer}, s->x, NULL, &e), &e);
		for (size_t i = 0; i < p->ncell; i++)
			cosine_back(s, s->x + i * s->C, s->dx + i * s->C);
		must(input_backward(r->model, s->dx, s->dv, s->presence, &e), &e);
		for (size_t t = 0; t < T; t++)
			s->shift[t] -= s->presence[t] / 2;
		add_places(s, p);
	}
}

static int by_shift(const void *a, const void *b)
{
	const struct best *x = a, *y = b;
	if (x->shift != y->shift)
		return x->shift > y->shift ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

static void write_row(struct run *r, const struct batch *p, size_t i, size_t row)
{
	struct screen *s = r->screen;
	struct block *b = &r->out;
	uint64_t *offset = b->group[s->token_group].offset, at = offset[row];
	size_t n = 0, length = p->offset[i + 1] - p->offset[i];
	block_set_items(b, s->token_group, at + length);
	for (size_t t = 0; t < length; t++)
		block_set_id(b, s->token, at + t, p->id[p->offset[i] + t]);
	offset[row + 1] = at + length;
	grow(s->best, s->best_cap, length);
	for (uint32_t t = s->range[2 * i]; t < s->range[2 * i + 1]; t++)
		if (p->id[t] >= s->special)
			s->best[n++] = (struct best){(double)s->shift[t], p->id[t]};
	qsort(s->best, n, sizeof *s->best, by_shift);
	n = n < s->k ? n : s->k;
	offset = b->group[s->group].offset;
	at = offset[row];
	block_set_items(b, s->group, at + n);
	for (size_t t = 0; t < n; t++) {
		block_set_id(b, s->screened, at + t, s->best[t].id);
		((float *)b->col[s->expected].data)[at + t] = (float)s->best[t].shift;
	}
	offset[row + 1] = at + n;
	r->empty += s->range[2 * i] == s->range[2 * i + 1];
}

void screen_rows(struct run *r, size_t first, size_t n, int layer)
{
	struct screen *s = r->screen;
	const struct batch *p = &r->packed.b;
	fill_ranges(s, p);
	if (p->offset[n])
		compute(r, p, layer);
	for (size_t i = 0; i < n; i++)
		write_row(r, p, i, first + i);
}

void screen_release(struct run *r)
{
	struct screen *s = r->screen;
	if (!s)
		return;
	free(s->state);
	free(s->best);
	free(s->range);
	free(s->v);
	free(s->dv);
	free(s->x);
	free(s->dx);
	free(s->presence);
	free(s->ahead);
	free(s->shift);
	free(s);
}
