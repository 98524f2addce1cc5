#include "risk/risk_cells.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 2048, TILE = 256 };

static void push(struct risk_cells *c, size_t at, uint32_t gene, double value)
{
	grow(c->gene, c->cap_gene, at + 1);
	grow(c->value, c->cap_value, at + 1);
	c->gene[at] = gene;
	c->value[at] = (float)value;
	c->sum[gene] += value;
}

/* Columns of the stream; total is -1 for tokens. */
struct columns {
	int item, count, total;
	uint32_t nspecial;
};

static int find_columns(struct columns *k, const struct stream *in, struct error *e)
{
	const struct header *h = stream_header(in);
	const char *name = stream_name(in);
	*k = (struct columns){.count = -1, .total = -1, .nspecial = (uint32_t)h->vocab.nspecial};
	if (strcmp(h->kind, "counts") && strcmp(h->kind, "tokens"))
		return error_set(e, "%s: a %s stream, expected counts or tokens", name, h->kind);
	if (!h->vocab.n)
		return error_set(e, "%s: no table of genes in the header", name);
	if (strcmp(h->kind, "tokens") == 0)
		return (k->item = header_need(h, "token", U32, RAGGED, name, e)) < 0 ? -1 : 0;
	if ((k->item = header_need(h, "gene", U32, RAGGED, name, e)) < 0 ||
		(k->count = header_need(h, "count", U32, RAGGED, name, e)) < 0 ||
		(k->total = header_need(h, "n_counts", U64, SCALAR, name, e)) < 0)
		return -1;
	if (h->col[k->count].type != U32 || h->col[k->count].group != h->col[k->item].group)
		return error_set(e, "%s: columns gene and count do not have the layout of a counts stream", name);
	return 0;
}

static void add_block(struct risk_cells *c, const struct block *b, const struct columns *k)
{
	const uint64_t *offset = b->group[b->header->col[k->item].group].offset;
	for (size_t row = 0; row < b->rows; row++) {
		size_t at = c->n ? c->end[c->n - 1] : 0;
		uint32_t position = 0;
		for (uint64_t i = offset[row]; i < offset[row + 1]; i++) {
			uint32_t gene = block_id(b, k->item, i);
			if (gene < k->nspecial)
				continue;
			double value = LONGEST - (double)++position;
			if (k->count >= 0)
				value = log1p(1e4 * ((const uint32_t *)b->col[k->count].data)[i] /
					(double)((const uint64_t *)b->col[k->total].data)[row]);
			if (value > 0)
				push(c, at++, gene, value);
		}
		grow(c->end, c->cap_end, c->n + 1);
		c->end[c->n++] = at;
	}
}

int risk_cells_read(struct risk_cells *c, struct stream *in, struct error *e)
{
	struct columns k;
	struct block b = {0};
	int got;
	if (find_columns(&k, in, e))
		return -1;
	c->sum = xcalloc(stream_header(in)->vocab.n, sizeof *c->sum);
	while ((got = stream_read(in, &b, e)) > 0)
		add_block(c, &b, &k);
	block_release(&b);
	return got;
}

void risk_cells_release(struct risk_cells *c)
{
	free(c->end);
	free(c->gene);
	free(c->value);
	free(c->sum);
	*c = (struct risk_cells){0};
}

struct ranked {
	double sum;
	uint32_t gene;
};

static int by_sum_down(const void *a, const void *b)
{
	const struct ranked *p = a, *q = b;
	if (p->sum != q->sum)
		return p->sum < q->sum ? 1 : -1;
	return (p->gene > q->gene) - (p->gene < q->gene);
}

/* 1 for genes whose values differ between cells. */
static uint8_t *find_varying(const struct risk_cells *c, size_t vocab)
{
	uint8_t *varies = xcalloc(vocab, 1);
	uint64_t *present = xcalloc(vocab, sizeof *present);
	float *first = xcalloc(vocab, sizeof *first);
	for (uint64_t i = 0; i < (c->n ? c->end[c->n - 1] : 0); i++) {
		uint32_t g = c->gene[i];
		if (!present[g]++)
			first[g] = c->value[i];
		varies[g] |= c->value[i] < first[g] || c->value[i] > first[g];
	}
	for (size_t g = 0; g < vocab; g++)
		varies[g] |= present[g] && present[g] < c->n;
	free(present);
	free(first);
	return varies;
}

static uint32_t *choose_genes(const struct risk_cells *c, size_t vocab, uint32_t most, uint32_t *n)
{
	struct ranked *r = xcalloc(vocab, sizeof *r);
	uint8_t *varies = find_varying(c, vocab);
	uint32_t found = 0;
	for (size_t g = 0; g < vocab; g++)
		if (varies[g])
			r[found++] = (struct ranked){c->sum[g], (uint32_t)g};
	qsort(r, found, sizeof *r, by_sum_down);
	*n = found < most ? found : most;
	uint32_t *gene = xcalloc(*n, sizeof *gene);
	for (uint32_t i = 0; i < *n; i++)
		gene[i] = r[i].gene;
	free(varies);
	free(r);
	return gene;
}

/* The lower triangle of sigma: sums of squares and products around the means. */
static void accumulate(const struct risk_cells *c, size_t vocab, const uint32_t *gene, uint32_t n, double *sigma)
{
	int64_t *place = xcalloc(vocab, sizeof *place); /* of a gene among the chosen ones, from 1 */
	double *tile = xmalloc((size_t)TILE * n * sizeof *tile), *mean = xcalloc(n, sizeof *mean);
	for (uint32_t i = 0; i < n; i++) {
		place[gene[i]] = i + 1;
		mean[i] = c->sum[gene[i]] / (double)c->n;
	}
	for (uint64_t cell = 0, at = 0; cell < c->n;) {
		int rows = 0;
		for (; rows < TILE && cell < c->n; rows++, cell++) {
			double *x = tile + (size_t)rows * n;
			for (uint32_t i = 0; i < n; i++)
				x[i] = -mean[i];
			for (; at < c->end[cell]; at++)
				if (place[c->gene[at]])
					x[place[c->gene[at]] - 1] += (double)c->value[at];
		}
		cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, (int)n, rows, 1, tile, (int)n, 1, sigma, (int)n);
	}
	free(place);
	free(tile);
	free(mean);
}

void risk_cells_covariance(const struct risk_cells *c, size_t vocab, uint32_t most, uint32_t **gene, uint32_t *n, double **sigma)
{
	*gene = choose_genes(c, vocab, most, n);
	size_t p = *n;
	double *s = *sigma = xcalloc(p * p, sizeof *s);
	accumulate(c, vocab, *gene, *n, s);
	for (size_t j = 0; j < p; j++)
		for (size_t i = j; i < p; i++)
			s[i * p + j] = s[j * p + i] /= (double)c->n - 1;
}
