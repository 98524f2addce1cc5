/*
 * Perturbed cells (scperturb): what scembed compares with the unperturbed cell. The hidden states of the last row `original` or `truncated`
 * are kept. The tokens of a perturbed row without its own list `gene` must be those of this row without them, in the same order.
 */
#include "scembed.h"

#include "cells/copies.h"
#include "stream/embedding.h"

struct perturbed {
	enum similarity similarity;
	size_t C; /* numbers of a vector */
	int kind, gene, group; /* columns of the input, and the group of gene */
	uint8_t *base_kind; /* [categories] is this a row to compare with? */
	size_t special; /* ids below this are no genes */
	uint32_t *member, stamp; /* [vocabulary] stamp of the row in whose list a gene was last */
	uint32_t *id, *before, *after; /* the base's tokens; places of the compared tokens in it, and in the perturbed cell */
	float *base; /* [tokens, C] its hidden states */
	size_t n, id_cap, base_cap, before_cap, after_cap;
	int has_base;
	uint64_t base_cell;
	float *h; /* [tokens of the batch, C] */
	size_t h_cap;
	int x, x_original, mean, token, cosine, out_group; /* columns of the output, -1: none */
};

static void open_input(struct perturbed *p, const struct header *h, const char *name)
{
	p->kind = header_find(h, "perturbation");
	p->gene = header_find(h, "gene");
	if (p->kind < 0 || p->gene < 0 || h->col[p->kind].type != CATEGORICAL || h->col[p->gene].shape != RAGGED)
		die("%s: not perturbed cells: expected those of scperturb", name);
	p->group = h->col[p->gene].group;
	p->base_kind = xcalloc(h->col[p->kind].ncategory + 1, 1);
	for (size_t i = 0; i < h->col[p->kind].ncategory; i++)
		p->base_kind[i] = base_row_find(h->col[p->kind].category[i]) < BASE_ROWS;
	if (!header_is_id(&h->col[p->gene]))
		die("%s: column 'gene' does not hold ids of genes", name);
	p->special = h->vocab.nspecial;
	p->member = xcalloc(h->vocab.n, sizeof *p->member);
}

static void perturbed_make_header(struct perturbed *p, struct header *h, const struct inference *r)
{
	static const char *const columns[] = {"x", "x_original", "similarity", "token", "cosine"};
	header_derive(h, STREAM_EMBEDDING, stream_header(r->in));
	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
		if (header_find(h, columns[i]) >= 0)
			die("%s: has a column '%s', which the output needs", r->name, columns[i]);
	p->x = p->x_original = p->mean = p->token = p->cosine = -1;
	if (p->similarity == SIMILARITY_NONE) {
		p->x = header_add_fixed(h, "x", F32, (uint32_t)p->C);
		p->x_original = header_add_fixed(h, "x_original", F32, (uint32_t)p->C);
		return;
	}
	p->mean = header_add(h, "similarity", F64);
	if (p->similarity == SIMILARITY_MEAN)
		return;
	p->token = header_add_ragged(h, "token", id_type(h->vocab.n), "token");
	p->cosine = header_add_ragged(h, "cosine", F32, "token");
	p->out_group = h->col[p->token].group;
}

static uint64_t cell_of(const struct inference *r, const struct block *b, size_t row)
{
	return ((const uint64_t *)b->col[r->col.cell].data)[row];
}

/* The cell's tokens [n] and states become the base. */
static void keep_base(struct inference *r, const uint32_t *id, const float *h, size_t n)
{
	struct perturbed *p = r->of;
	grow(p->id, p->id_cap, n);
	grow(p->base, p->base_cap, n * p->C);
	memcpy(p->id, id, n * sizeof *id);
	memcpy(p->base, h, n * p->C * sizeof *h);
	p->n = n;
}

static int compared(const struct perturbed *p, uint32_t id)
{
	return id >= p->special && p->member[id] != p->stamp;
}

/* The tokens that base and cell share: their places in p->before and p->after [returned]. */
static size_t align(struct inference *r, const struct block *b, size_t row, const uint32_t *id, size_t n)
{
	struct perturbed *p = r->of;
	const uint64_t *offset = b->group[p->group].offset;
	size_t i = 0, k = 0, m = 0;
	p->stamp++;
	for (uint64_t g = offset[row]; g < offset[row + 1]; g++)
		p->member[block_id(b, p->gene, g)] = p->stamp;
	grow(p->before, p->before_cap, n);
	grow(p->after, p->after_cap, n);
	for (;; i++, k++) {
		while (i < p->n && !compared(p, p->id[i]))
			i++;
		while (k < n && !compared(p, id[k]))
			k++;
		if (i == p->n || k == n || p->id[i] != id[k])
			break;
		p->before[m] = (uint32_t)i;
		p->after[m++] = (uint32_t)k;
	}
	if (i < p->n || k < n)
		die("%s: cell %" PRIu64
		    ": a perturbed row that differs from the row before it in more than its genes: expected the order of "
		    "scperturb",
			r->name, cell_of(r, b, row));
	return m;
}

/* The mean of m states at[0 .. m) of h, NaN if there are none. */
static void mean_state(float *x, const float *h, const uint32_t *at, size_t m, size_t C)
{
	for (size_t j = 0; j < C; j++) {
		double sum = 0;
		for (size_t i = 0; i < m; i++)
			sum += (double)h[at[i] * C + j];
		x[j] = m ? (float)(sum / (double)m) : NAN;
	}
}

static void write_similarity(struct inference *r, size_t to, const uint32_t *id, const float *h, size_t m)
{
	struct perturbed *p = r->of;
	struct block *out = &r->out;
	double sum = 0;
	uint64_t at = 0;
	if (p->token >= 0) {
		at = out->group[p->out_group].offset[to];
		block_set_items(out, p->out_group, at + m);
		out->group[p->out_group].offset[to + 1] = at + m;
	}
	for (size_t i = 0; i < m; i++) {
		double c = embedding_cosine(p->base + p->before[i] * p->C, h + p->after[i] * p->C, p->C);
		sum += c;
		if (p->token < 0)
			continue;
		block_set_id(out, p->token, at + i, id[p->after[i]]);
		((float *)out->col[p->cosine].data)[at + i] = (float)c;
	}
	((double *)out->col[p->mean].data)[to] = m ? sum / (double)m : NAN;
	r->empty += !m;
}

static void write_means(struct inference *r, size_t to, const float *h, size_t m)
{
	struct perturbed *p = r->of;
	mean_state((float *)r->out.col[p->x].data + to * p->C, h, p->after, m, p->C);
	mean_state((float *)r->out.col[p->x_original].data + to * p->C, p->base, p->before, m, p->C);
	r->empty += !m;
}

/* A row that is compared with itself: both vectors are the mean of all its genes; there is no similarity. */
static void write_base(struct inference *r, const struct block *b, size_t row, size_t to, const uint32_t *id, const float *h, size_t n)
{
	struct perturbed *p = r->of;
	if (b->group[p->group].offset[row] != b->group[p->group].offset[row + 1])
		die("%s: cell %" PRIu64 ": an unperturbed row with perturbed genes", r->name, cell_of(r, b, row));
	keep_base(r, id, h, n);
	p->has_base = 1;
	p->base_cell = cell_of(r, b, row);
	if (p->similarity == SIMILARITY_NONE) {
		write_means(r, to, h, align(r, b, row, id, n));
		return;
	}
	((double *)r->out.col[p->mean].data)[to] = NAN;
	if (p->token >= 0)
		r->out.group[p->out_group].offset[to + 1] = r->out.group[p->out_group].offset[to];
}

static void perturbed_rows(struct inference *r, size_t first, size_t n)
{
	const struct block *b = r->b;
	size_t from = r->from;
	struct perturbed *p = r->of;
	const struct batch *packed = &r->packed.b;
	grow(p->h, p->h_cap, (size_t)packed->offset[n] * p->C);
	must(model_hidden(r->model, packed, (int)r->layer, p->h, &failure));
	for (size_t i = 0; i < n; i++) {
		uint32_t code = ((const uint32_t *)b->col[p->kind].data)[from + i];
		const uint32_t *id = packed->id + packed->offset[i];
		const float *h = p->h + packed->offset[i] * p->C;
		size_t length = packed->offset[i + 1] - packed->offset[i];
		if (code == MISSING_CODE || (!p->base_kind[code] && (!p->has_base || p->base_cell != cell_of(r, b, from + i))))
			die("%s: cell %" PRIu64 ": no unperturbed row of the cell before it: expected the order of scperturb", r->name,
				cell_of(r, b, from + i));
		if (p->base_kind[code]) {
			write_base(r, b, from + i, first + i, id, h, length);
			continue;
		}
		size_t m = align(r, b, from + i, id, length);
		if (p->similarity == SIMILARITY_NONE)
			write_means(r, first + i, h, m);
		else
			write_similarity(r, first + i, id, h, m);
	}
}

void perturbed_run(struct inference *r, enum similarity similarity)
{
	struct perturbed *p = r->of = xcalloc(1, sizeof *p);
	struct header h = {0};
	p->similarity = similarity;
	p->C = model_config(r->model)->hidden_size;
	open_input(p, stream_header(r->in), r->name);
	perturbed_make_header(p, &h, r);
	inference_run(r, &h, perturbed_rows, NULL);
	inference_report(r, "rows have only perturbed tokens: their results are NaN");
}
