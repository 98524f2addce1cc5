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
	const float *x;      /* [n, d] rows minus their mean: smaller numbers lose fewer digits */
	const float *square; /* [n] squared lengths */
	size_t n, d, k;
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
		double v = (double)s->x[a * s->d + j] - (double)s->x[b * s->d + j];
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
	size_t from = block * ROWS, rows = s->n - from < ROWS ? s->n - from : ROWS;
	size_t kept = s->k + SPARE < s->n - 1 ? s->k + SPARE : s->n - 1;
	float *product = s->product + (size_t)thread * ROWS * TILE;
	struct near *heap = s->heap + (size_t)thread * ROWS * (s->k + SPARE);
	for (size_t i = 0; i < rows * kept; i++)
		heap[i] = (struct near){INFINITY, UINT32_MAX};
	for (size_t at = 0; at < s->n; at += TILE) {
		size_t width = s->n - at < TILE ? s->n - at : TILE;
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)width, (int)s->d, -2, s->x + from * s->d, (int)s->d,
			s->x + at * s->d, (int)s->d, 0, product, TILE);
		for (size_t i = 0; i < rows; i++)
			for (size_t j = 0; j < width; j++) {
				struct near v = {(double)(s->square[at + j] + product[i * TILE + j]), (uint32_t)(at + j)};
				if (at + j != from + i && farther(&heap[i * kept], &v))
					replace_first(heap + i * kept, kept, v);
			}
	}
	for (size_t i = 0; i < rows; i++)
		keep_nearest(s, from + i, heap + i * kept, kept);
}

/* Subtract the mean row. */
static float *centred(const float *x, size_t n, size_t d)
{
	float *y = xmalloc(n * d * sizeof *y);
	double *mean = xcalloc(d, sizeof *mean);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < d; j++)
			mean[j] += (double)x[i * d + j] / (double)n;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < d; j++)
			y[i * d + j] = (float)((double)x[i * d + j] - mean[j]);
	free(mean);
	return y;
}

void nearest_neighbours(const float *x, size_t n, size_t d, size_t k, int threads, uint32_t *neighbour, double *distance)
{
	float *y = centred(x, n, d), *square = xmalloc(n * sizeof *square);
	for (size_t i = 0; i < n; i++)
		square[i] = cblas_sdot((int)d, y + i * d, 1, y + i * d, 1);
	struct search s = {.x = y, .square = square, .n = n, .d = d, .k = k, .neighbour = neighbour, .distance = distance};
	s.product = xmalloc((size_t)threads * ROWS * TILE * sizeof *s.product);
	s.heap = xmalloc((size_t)threads * ROWS * (k + SPARE) * sizeof *s.heap);
	pool_for(threads, (n + ROWS - 1) / ROWS, search_rows, &s);
	free(s.product);
	free(s.heap);
	free(square);
	free(y);
}
