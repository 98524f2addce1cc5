#include "eval/silhouette.h"

#include "base/error.h"
#include "base/threads.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 128 /* a block of rows ... */
#define TILE 1024 /* ... meets so many others in one matrix product */
#define LANES 16 /* distances that are computed at once */
#define NEAR 1e-6 /* squared distances below this share of |x|^2 + |y|^2 come from differences: others have ten digits */

/* Rows in the order of label and batch: the cells of one label and batch are a run of rows. */
struct sorted {
	const double *x; /* [n, d] minus the mean */
	const double *square; /* [n] squared lengths */
	size_t n, d;
	const uint32_t *row; /* [n] of the caller */
	size_t runs, labels;
	const size_t *run; /* [runs + 1] first row of each; the last is n */
	const size_t *first; /* [labels + 1] first run of each label; the last is `runs` */
	double *product; /* [threads, ROWS, TILE] */
	double *sum; /* [threads, ROWS, runs] distances from a row to the rows of a run */
	double *by_label, *by_batch;
};

static double distance(const double *x, const double *y, size_t d)
{
	double sum = 0;
	for (size_t j = 0; j < d; j++)
		sum += (x[j] - y[j]) * (x[j] - y[j]);
	return sqrt(sum);
}

/* The distances from row i to the rows from..to-1, together. product: of row i with them. */
static double distances(const struct sorted *s, size_t i, size_t from, size_t to, const double *product)
{
	double sum[LANES] = {0}, all = 0;
	for (; from < to; from += LANES, product += LANES) {
		size_t lanes = to - from < LANES ? to - from : LANES;
		double squared[LANES] = {0}, both[LANES] = {0};
		int near = 0;
		for (size_t l = 0; l < lanes; l++) {
			both[l] = s->square[i] + s->square[from + l];
			squared[l] = both[l] - 2 * product[l];
			near |= squared[l] < NEAR * both[l];
		}
		for (size_t l = 0; l < LANES; l++)
			sum[l] += sqrt(fmax(squared[l], 0));
		for (size_t l = 0; near && l < lanes; l++)
			if (squared[l] < NEAR * both[l])
				sum[l] += distance(s->x + i * s->d, s->x + (from + l) * s->d, s->d) - sqrt(fmax(squared[l], 0));
	}
	for (size_t l = 0; l < LANES; l++)
		all += sum[l];
	return all;
}

static double width(double a, double b)
{
	return a > 0 || b > 0 ? (b - a) / fmax(a, b) : 0;
}

/* The widths of row i, which is in run `own` of label `label`, from its sums of distances to the runs. */
static void take_widths(const struct sorted *s, size_t i, size_t label, size_t own, const double *sum)
{
	double a = 0, b = INFINITY, batch_a = 0, batch_b = INFINITY;
	const size_t *first = s->first, *run = s->run;
	size_t cells = run[first[label + 1]] - run[first[label]], batches = first[label + 1] - first[label], same = run[own + 1] - run[own];
	for (size_t l = 0; l < s->labels; l++) {
		double all = 0;
		size_t n = run[first[l + 1]] - run[first[l]];
		for (size_t r = first[l]; r < first[l + 1]; r++)
			all += sum[r];
		if (l == label)
			a = n > 1 ? all / (double)(n - 1) : 0;
		else
			b = fmin(b, all / (double)n);
	}
	s->by_label[s->row[i]] = s->labels < 2 ? NAN : cells > 1 ? width(a, b) : 0;
	if (!s->by_batch)
		return;
	for (size_t r = first[label]; r < first[label + 1]; r++)
		if (r == own)
			batch_a = same > 1 ? sum[r] / (double)(same - 1) : 0;
		else
			batch_b = fmin(batch_b, sum[r] / (double)(run[r + 1] - run[r]));
	s->by_batch[s->row[i]] = batches < 2 || batches == cells ? NAN : same > 1 ? width(batch_a, batch_b) : 0;
}

/* Add the distances of `rows` rows from `from` to `wide` rows from `at`, run by run. */
static void add_tile(const struct sorted *s, size_t from, size_t rows, size_t at, size_t wide, double *product, double *sum)
{
	size_t end = at + wide, low = 0, high = s->runs;
	cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)wide, (int)s->d, 1, s->x + from * s->d, (int)s->d,
		s->x + at * s->d, (int)s->d, 0, product, TILE);
	while (high - low > 1) { /* the run of the first row */
		size_t middle = low + (high - low) / 2;
		*(s->run[middle] <= at ? &low : &high) = middle;
	}
	for (size_t r = low; r < s->runs && s->run[r] < end; r++) {
		size_t a = s->run[r] > at ? s->run[r] : at, b = s->run[r + 1] < end ? s->run[r + 1] : end;
		for (size_t i = 0; i < rows; i++)
			sum[i * s->runs + r] += distances(s, from + i, a, b, product + i * TILE + (a - at));
	}
}

static void measure_rows(void *arg, size_t block, int thread)
{
	const struct sorted *s = arg;
	size_t from = block * ROWS, rows = s->n - from < ROWS ? s->n - from : ROWS, own = 0, label = 0;
	double *product = s->product + (size_t)thread * ROWS * TILE, *sum = s->sum + (size_t)thread * ROWS * s->runs;
	memset(sum, 0, rows * s->runs * sizeof *sum);
	for (size_t at = 0; at < s->n; at += TILE)
		add_tile(s, from, rows, at, s->n - at < TILE ? s->n - at : TILE, product, sum);
	for (size_t i = 0; i < rows; i++) {
		while (s->run[own + 1] <= from + i)
			own++;
		while (s->first[label + 1] <= own)
			label++;
		take_widths(s, from + i, label, own, sum + i * s->runs);
	}
}

/* ---- the order of the rows ---- */

struct key {
	uint32_t label, batch, row;
};

static int by_key(const void *a, const void *b)
{
	const struct key *x = a, *y = b;
	if (x->label != y->label)
		return x->label < y->label ? -1 : 1;
	if (x->batch != y->batch)
		return x->batch < y->batch ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

/* Fill row [n], run [n + 1] and first [n + 1]. */
static void sort_rows(struct sorted *s, const uint32_t *label, const uint32_t *batch, uint32_t *row, size_t *run, size_t *first)
{
	struct key *key = xmalloc(s->n * sizeof *key);
	for (uint32_t i = 0; i < s->n; i++)
		key[i] = (struct key){label[i], batch ? batch[i] : 0, i};
	qsort(key, s->n, sizeof *key, by_key);
	for (size_t i = 0; i < s->n; i++) {
		int new_label = !i || key[i].label != key[i - 1].label;
		if (new_label)
			first[s->labels++] = s->runs;
		if (new_label || key[i].batch != key[i - 1].batch)
			run[s->runs++] = i;
		row[i] = key[i].row;
	}
	first[s->labels] = s->runs;
	run[s->runs] = s->n;
	free(key);
}

/* Rows of x in order, minus their mean, and their squared lengths. */
static double *take_rows(const struct sorted *s, const float *x, double *square)
{
	double *mean = xcalloc(s->d, sizeof *mean), *y = xlarge(s->n * s->d, sizeof *y);
	for (size_t i = 0; i < s->n; i++)
		for (size_t j = 0; j < s->d; j++)
			mean[j] += (double)x[i * s->d + j] / (double)s->n;
	for (size_t i = 0; i < s->n; i++) {
		square[i] = 0;
		for (size_t j = 0; j < s->d; j++) {
			double v = y[i * s->d + j] = (double)x[s->row[i] * s->d + j] - mean[j];
			square[i] += v * v;
		}
	}
	free(mean);
	return y;
}

void silhouettes(
	const float *x, size_t n, size_t d, const uint32_t *label, const uint32_t *batch, int threads, double *by_label, double *by_batch)
{
	struct sorted s = {.n = n, .d = d, .by_label = by_label, .by_batch = batch ? by_batch : NULL};
	uint32_t *row = xmalloc(n * sizeof *row);
	size_t *run = xmalloc((n + 1) * sizeof *run), *first = xmalloc((n + 1) * sizeof *first);
	double *square = xmalloc(n * sizeof *square), *own;
	sort_rows(&s, label, batch, row, run, first);
	s.row = row;
	s.run = run;
	s.first = first;
	s.x = own = take_rows(&s, x, square);
	s.square = square;
	s.product = xmalloc((size_t)threads * ROWS * TILE * sizeof *s.product);
	s.sum = xmalloc((size_t)threads * ROWS * s.runs * sizeof *s.sum);
	pool_for(threads, (n + ROWS - 1) / ROWS, measure_rows, &s);
	free(s.product);
	free(s.sum);
	free(own);
	free(square);
	free(row);
	free(run);
	free(first);
}
