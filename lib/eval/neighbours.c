#include "eval/neighbours.h"

#include "base/error.h"
#include "base/threads.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 128  /* a block of rows ... */
#define TILE 2048 /* ... meets so many others in one matrix product */
#define SPARE 8   /* rows kept beyond k, as the float32 distances may swap rows that are almost equally far */

struct near {
	double distance; /* squared, but for a constant of the row */
	uint32_t row;
};

struct search {
	const float *q;      /* [m, d] whose neighbours are searched */
	const float *x;      /* [n, d] among these. Both are minus the mean of x: smaller numbers lose fewer digits */
	const float *square; /* [n] squared lengths */
	size_t m, n, d, k;
	size_t most;       /* rows of x that can be neighbours: n, or n - 1 if q is x */
	float *product;    /* [threads, ROWS, TILE] */
	struct near *heap; /* [threads, ROWS, k + SPARE] the farthest first */
	uint32_t *neighbour;
	double *distance;
};

static int farther(const struct near *a, const struct near *b)
{
	return a->distance > b->distance || (a->distance == b->distance && a->row > b->row);
}

static int by_distance(const void *a, const void *b)
{
	return farther(a, b) - farther(b, a);
}

/* Replace the farthest of the heap h [m]. */
static void replace_first(struct near *h, size_t m, struct near v)
{
	size_t i = 0, c;
	while ((c = 2 * i + 1) < m) {
		c += c + 1 < m && farther(&h[c + 1], &h[c]);
		if (!farther(&h[c], &v))
			break;
		h[i] = h[c];
		i = c;
	}
	h[i] = v;
}

static double exact(const struct search *s, size_t a, size_t b)
{
	double sum = 0;
	for (size_t j = 0; j < s->d; j++) {
		double v = (double)s->q[a * s->d + j] - (double)s->x[b * s->d + j];
		sum += v * v;
	}
	return sqrt(sum);
}

static void keep_nearest(const struct search *s, size_t row, struct near *heap, size_t kept)
{
	for (size_t i = 0; i < kept; i++)
		heap[i].distance = exact(s, row, heap[i].row);
	qsort(heap, kept, sizeof *heap, by_distance);
	for (size_t i = 0; i < s->k; i++) {
		s->neighbour[row * s->k + i] = heap[i].row;
		s->distance[row * s->k + i] = heap[i].distance;
	}
}

static void search_rows(void *arg, size_t block, int thread)
{
	const struct search *s = arg;
	size_t from = block * ROWS, rows = s->m - from < ROWS ? s->m - from : ROWS;
	size_t kept = s->k + SPARE < s->most ? s->k + SPARE : s->most;
	int self = s->q == s->x;
	float *product = s->product + (size_t)thread * ROWS * TILE;
	struct near *heap = s->heap + (size_t)thread * ROWS * (s->k + SPARE);
	for (size_t i = 0; i < rows * kept; i++)
		heap[i] = (struct near){INFINITY, UINT32_MAX};
	for (size_t at = 0; at < s->n; at += TILE) {
		size_t width = s->n - at < TILE ? s->n - at : TILE;
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)width, (int)s->d, -2, s->q + from * s->d, (int)s->d,
			s->x + at * s->d, (int)s->d, 0, product, TILE);
		for (size_t i = 0; i < rows; i++)
			for (size_t j = 0; j < width; j++) {
				struct near v = {(double)(s->square[at + j] + product[i * TILE + j]), (uint32_t)(at + j)};
				if (!(self && at + j == from + i) && farther(&heap[i * kept], &v))
					replace_first(heap + i * kept, kept, v);
			}
	}
	for (size_t i = 0; i < rows; i++)
		keep_nearest(s, from + i, heap + i * kept, kept);
}

/* Rows of y minus the mean row of x [n, d]. */
static float *centred(const float *y, size_t m, const float *x, size_t n, size_t d)
{
	float *out = xmalloc(m * d * sizeof *out);
	double *mean = xcalloc(d, sizeof *mean);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < d; j++)
			mean[j] += (double)x[i * d + j] / (double)n;
	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < d; j++)
			out[i * d + j] = (float)((double)y[i * d + j] - mean[j]);
	free(mean);
	return out;
}

static void search(struct search *s, int threads)
{
	float *square = xmalloc(s->n * sizeof *square);
	for (size_t i = 0; i < s->n; i++)
		square[i] = cblas_sdot((int)s->d, s->x + i * s->d, 1, s->x + i * s->d, 1);
	s->square = square;
	s->product = xmalloc((size_t)threads * ROWS * TILE * sizeof *s->product);
	s->heap = xmalloc((size_t)threads * ROWS * (s->k + SPARE) * sizeof *s->heap);
	pool_for(threads, (s->m + ROWS - 1) / ROWS, search_rows, s);
	free(s->product);
	free(s->heap);
	free(square);
}

void nearest_neighbours(const float *x, size_t n, size_t d, size_t k, int threads, uint32_t *neighbour, double *distance)
{
	float *y = centred(x, n, x, n, d);
	struct search s = {.q = y, .x = y, .m = n, .n = n, .d = d, .k = k, .most = n - 1, .neighbour = neighbour, .distance = distance};
	search(&s, threads);
	free(y);
}

void nearest_rows(
	const float *q, size_t m, const float *x, size_t n, size_t d, size_t k, int threads, uint32_t *neighbour, double *distance)
{
	float *y = centred(x, n, x, n, d), *r = centred(q, m, x, n, d);
	struct search s = {.q = r, .x = y, .m = m, .n = n, .d = d, .k = k, .most = n, .neighbour = neighbour, .distance = distance};
	search(&s, threads);
	free(y);
	free(r);
}
