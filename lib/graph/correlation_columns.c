#include "graph/correlation_columns.h"

#include "base/sort.h"

enum { SLICE = 8192 }; /* cells that one thread takes at a time; a part is a whole number of them */

struct gene_sum {
	uint32_t token, cells;
	uint64_t sum; /* of the column of X */
};

COMPARE(by_sum_down, struct gene_sum, ORDER(b->sum, a->sum) ?: ORDER(a->token, b->token))

COMPARE(by_cells_down, struct gene_sum, ORDER(b->cells, a->cells) ?: ORDER(a->token, b->token))

/* The end of slice i. */
static uint32_t slice_end(const struct corpus *c, uint32_t i)
{
	return c->n - i * SLICE < SLICE ? c->n : (i + 1) * SLICE;
}

/* Kept genes first, in falling order of cells. count [slices, vocab]: cells of each slice of the corpus that have the gene. */
static struct gene_sum *choose_frequent_genes(
	const struct corpus *c, uint32_t vocab, uint32_t min_cells, uint32_t top_genes, uint32_t *count, uint32_t slices, uint32_t *kept)
{
	struct gene_sum *g = xcalloc(vocab, sizeof *g);
#pragma omp parallel for schedule(dynamic)
	for (uint32_t i = 0; i < slices; i++) {
		uint64_t *sum = xcalloc(vocab, sizeof *sum);
		uint32_t *mine = count + (size_t)i * vocab;
		for (uint32_t j = i * SLICE; j < slice_end(c, i); j++)
			for (uint32_t k = 0; k < c->cell[j].n; k++) {
				uint32_t t = corpus_token(c, j, k);
				mine[t]++;
				sum[t] += c->max_len - (k + 1);
			}
#pragma omp critical
		for (uint32_t t = 0; t < vocab; t++) {
			g[t].cells += mine[t];
			g[t].sum += sum[t];
		}
		free(sum);
	}
	uint32_t n = 0;
	for (uint32_t t = 0; t < vocab; t++) {
		g[t].token = t;
		if (g[t].cells && g[t].cells >= min_cells)
			g[n++] = g[t];
	}
	qsort(g, n, sizeof *g, by_sum_down);
	if (top_genes && n > top_genes)
		n = top_genes;
	qsort(g, n, sizeof *g, by_cells_down);
	*kept = n;
	return g;
}

int correlation_columns_init(
	struct correlation_columns *x, const struct corpus *c, uint32_t vocab, uint32_t min_cells, uint32_t top_genes, struct error *e)
{
	if (c->n > CORRELATION_CELLS_MAX)
		return error_set(e, "%u cells, expected at most %u", c->n, CORRELATION_CELLS_MAX);
	*x = (struct correlation_columns){.n = c->n, .max_len = c->max_len, .parts = c->n / CORRELATION_PART + 1};
	uint32_t slices = c->n / SLICE + 1, *count = xcalloc((size_t)slices * vocab, sizeof *count);
	struct gene_sum *g = choose_frequent_genes(c, vocab, min_cells, top_genes, count, slices, &x->genes);
	x->token = xcalloc(x->genes, sizeof *x->token);
	x->offset = xcalloc((size_t)x->genes * x->parts + 1, sizeof *x->offset);
	/* at [slices, vocab]: index of a slice's next entry. Slices are in order, so entries are in order of the cells. */
	uint64_t *at = xcalloc((size_t)slices * vocab, sizeof *at), to = 0;
	memset(at, 0xff, (size_t)slices * vocab * sizeof *at);
	for (uint32_t j = 0; j < x->genes; j++) {
		x->token[j] = g[j].token;
		for (uint32_t i = 0; i < slices; i++) {
			if (i % (CORRELATION_PART / SLICE) == 0)
				x->offset[(size_t)j * x->parts + i / (CORRELATION_PART / SLICE)] = to;
			at[(size_t)i * vocab + g[j].token] = to;
			to += count[(size_t)i * vocab + g[j].token];
		}
	}
	x->offset[(size_t)x->genes * x->parts] = to;
	free_all(g, count);
	x->cell = xlarge(to, sizeof *x->cell);
	x->pos = xlarge(to, sizeof *x->pos);
#pragma omp parallel for schedule(dynamic)
	for (uint32_t i = 0; i < slices; i++)
		for (uint32_t j = i * SLICE; j < slice_end(c, i); j++)
			for (uint32_t k = 0; k < c->cell[j].n; k++) {
				uint64_t *next = &at[(size_t)i * vocab + corpus_token(c, j, k)];
				if (*next == UINT64_MAX)
					continue;
				x->cell[*next] = (uint16_t)(j % CORRELATION_PART);
				x->pos[(*next)++] = (uint16_t)(k + 1);
			}
	free(at);
	for (size_t j = 0; j < (size_t)x->genes * x->parts; j++)
		for (uint64_t k = x->offset[j] + 1; k < x->offset[j + 1]; k++)
			if (x->cell[k] == x->cell[k - 1]) {
				size_t cell = j % x->parts * CORRELATION_PART + x->cell[k];
				error_set(e, "cell %llu: token %u twice", (unsigned long long)c->cell[cell].cell, x->token[j / x->parts]);
				correlation_columns_release(x);
				return -1;
			}
	return 0;
}

void correlation_columns_release(struct correlation_columns *x)
{
	free_all(x->token, x->offset, x->cell, x->pos);
	*x = (struct correlation_columns){0};
}
