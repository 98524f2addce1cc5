/*
 * scperturb screen: which deletions move a cell most towards a state, without deleting. With x the mean of the genes' states and
 * s the mean vector of the state, the deletion of gene j changes cos(x, s) by about
 *     -d cos / dg_j + sum over tokens t behind j of (d cos / dv_t) . ahead_t
 * where g_j is the presence of its token, v_t the vectors of tokens and ahead_t what they change by one place further ahead (nn/input.h).
 * Position vectors of neighbours differ much, and the norm bends: both derivatives are therefore the mean of those of the cell and those of the
 * cell with all tokens one place ahead, as in the trapezoidal rule. These are two backward passes a cell. The K genes with the largest
 * expected shift are written beside the tokens, for scperturb apply --delete screened.
 */
#include "scperturb.h"
#include "cli.h"

#include "base/sort.h"

#include "cli_inference.h"
#include "cells/copies.h"
#include "nn/input.h"

static const char *towards;
static long long genes = 100;

static struct option_def options[] = {
	{0, "Screen", OPT_GROUP},
	{0, "towards", OPT_INPUT, &towards, "EMB", "embeddings of cells whose mean represents the state to move to"},
	{0, "top", OPT_INT, &genes, "K", "number of genes listed per cell (default 100)", 1, 65535, .changes = 1},
	{0},
};

struct cli screen_cli = {.name = "scperturb screen",
	.operands = "[FILE...]",
	.summary = "List the genes of each cell whose deletion should move it most towards a state.",
	.options = options,
	.shared = inference_options,
	.common = CLI_STREAM_OUT | CLI_DEVICE | CLI_THREADS};

struct screen {
	size_t C, special;
	double *state, norm; /* [C] the vector to move to */
	char *how; /* the options of the scembed that made its embeddings */
	int token, screened, expected, token_group, group; /* columns of the output */
	struct ranked *best; /* [tokens of a cell] */
	uint32_t *range;
	float *v, *ahead, *dv, *x, *dx, *presence, *shift; /* shift [T] */
	size_t best_cap, range_cap, v_cap, ahead_cap, dv_cap, x_cap, dx_cap, presence_cap, shift_cap;
};

static void must_towards(int bad)
{
	if (bad)
		die("--towards: %s", failure.msg);
}

/* The mean of the vectors of a stream of embeddings. */
static void read_state(struct screen *s)
{
	RELEASED(block_release) struct block b = {0};
	uint64_t cells = 0;
	int got, x = -1;
	RELEASED(stream_free_at) struct stream *in = stream_open(towards, &failure);
	must_towards(!in);
	const struct header *h = stream_header(in);
	must_towards(header_kind(h, STREAM_EMBEDDING, towards, &failure) || (x = header_need(h, "x", F32, FIXED, towards, &failure)) < 0);
	s->how = xstrdup(header_made_by(h, "scembed"));
	s->C = h->col[x].n;
	s->state = xcalloc(s->C, sizeof *s->state);
	while ((got = stream_read(in, &b, &failure)) > 0) {
		must_towards(copies_refuse(&b, towards, &failure));
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
	must_towards(got < 0);
	for (size_t j = 0; j < s->C; j++) {
		s->state[j] /= (double)cells;
		s->norm += s->state[j] * s->state[j];
	}
	s->norm = sqrt(s->norm);
	if (!cells || !(s->norm > 0))
		die("--towards: %s: no vector, or their mean is 0: expected embeddings of cells of the state", towards);
}

/* Are the embeddings of the state means of genes by this model and layer? Options that change nothing but rounding, or long cells, may differ. */
static int same_embedding(const struct screen *s, const struct inference *r)
{
	int theirs = LAYER_USUAL, mean = 0, same = 0;
	char *text = xstrdup(s->how), *rest, *word = strtok_r(text, " ", &rest);
	for (; word; word = strtok_r(NULL, " ", &rest)) {
		const char *value = strtok_r(NULL, " ", &rest);
		if (!value)
			break;
		if (strcmp(word, "--model") == 0)
			same = strcmp(value, strchr(r->identity, ' ') + 1) == 0;
		else if (strcmp(word, "--emb-layer") == 0)
			theirs = atoi(value);
		else if (strcmp(word, "--pool") == 0)
			mean = strcmp(value, "mean") == 0;
		else if (strcmp(word, "--of") == 0 ? strcmp(value, "cells") : strcmp(word, "--max-len") && strcmp(word, "--precision"))
			break;
	}
	same = same && !word && mean && theirs == r->layer;
	free(text);
	return same;
}

static void screen_make_header(const struct inference *r, struct header *h)
{
	static const char *const made[] = {"gene", "expected"};
	struct screen *s = r->of;
	const struct model_config *c = model_config(r->model);
	header_derive(h, STREAM_TOKENS, stream_header(r->in));
	for (size_t i = 0; i < sizeof made / sizeof *made; i++)
		if (header_find(h, made[i]) >= 0)
			die("%s: has a column '%s', which the screen needs", r->name, made[i]);
	if (s->C != c->hidden_size)
		die("--towards: vectors of %zu numbers, but the model has %u: expected embeddings by this model", s->C, c->hidden_size);
	if (!same_embedding(s, r))
		die("--towards: %s was embedded by another model, or another way: '%s', expected '--emb-layer %lld --pool mean %s'",
			towards, s->how, r->layer, r->identity);
	if (c->value.kind != VALUE_NONE)
		die("the model in %s reads values of the genes, which scperturb cannot perturb yet", asked.model);
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

static void compute(struct inference *r, const struct batch *p)
{
	struct screen *s = r->of;
	size_t T = p->offset[p->ncell];
	grow(s->v, s->v_cap, T * s->C);
	grow(s->dv, s->dv_cap, T * s->C);
	grow(s->presence, s->presence_cap, T);
	grow(s->x, s->x_cap, p->ncell * s->C);
	grow(s->dx, s->dx_cap, p->ncell * s->C);
	grow(s->ahead, s->ahead_cap, T * s->C);
	grow(s->shift, s->shift_cap, T);
	memset(s->shift, 0, T * sizeof *s->shift);
	must(input_vectors(r->model, p, s->v, &failure));
	must(input_ahead(r->model, p, s->ahead, &failure));
	for (int place = 0; place < 2; place++) {
		for (size_t k = 0; place && k < T * s->C; k++)
			s->v[k] += s->ahead[k];
		must(input_forward(r->model, p, s->v, &(struct input_to){.range = s->range, .layer = (int)r->layer}, s->x, NULL, &failure));
		for (size_t i = 0; i < p->ncell; i++)
			cosine_back(s, s->x + i * s->C, s->dx + i * s->C);
		must(input_backward(r->model, s->dx, s->dv, s->presence, &failure));
		for (size_t t = 0; t < T; t++)
			s->shift[t] -= s->presence[t] / 2;
		add_places(s, p);
	}
}

static void write_row(struct inference *r, const struct batch *p, size_t i, size_t row)
{
	struct screen *s = r->of;
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
			s->best[n++] = (struct ranked){(double)s->shift[t], p->id[t]};
	qsort(s->best, n, sizeof *s->best, compare_ranked_down);
	n = n < (size_t)genes ? n : (size_t)genes;
	offset = b->group[s->group].offset;
	at = offset[row];
	block_set_items(b, s->group, at + n);
	for (size_t t = 0; t < n; t++) {
		block_set_id(b, s->screened, at + t, s->best[t].at);
		((float *)b->col[s->expected].data)[at + t] = (float)s->best[t].value;
	}
	offset[row + 1] = at + n;
	r->empty += s->range[2 * i] == s->range[2 * i + 1];
}

static void screen_rows(struct inference *r, size_t first, size_t n)
{
	const struct batch *p = &r->packed.b;
	fill_ranges(r->of, p);
	if (p->offset[n])
		compute(r, p);
	for (size_t i = 0; i < n; i++)
		write_row(r, p, i, first + i);
}

int scperturb_screen(int argc, char **argv)
{
	static struct screen s;
	static struct inference r = {.of = &s, .layer = LAYER_USUAL};
	struct header h = {0};
	cli_init(&screen_cli, argc, argv);
	if (!towards)
		usage_error("--towards EMB is needed: embeddings of cells of the state to move to");
	inference_open(&r, &screen_cli, INFERENCE_GRADIENTS);
	const struct header *in = stream_header(r.in);
	s.special = in->vocab.nspecial;
	for (int i = 0; i < 2; i++)
		if (header_list(in, i ? "tie" : "rank") >= 0)
			die("%s: scperturb cannot perturb these tokens: expected tokens made without --ties", r.name);
	read_state(&s);
	inference_load(&r, NULL);
	screen_make_header(&r, &h);
	inference_run(&r, &h, screen_rows, NULL);
	inference_report(&r, "cells have no gene: nothing was screened");
	return 0;
}
