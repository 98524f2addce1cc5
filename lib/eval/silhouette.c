#include "eval/silhouette.h"

#include "base/error.h"
#include "base/sort.h"
#include "base/threads.h"

#include <cblas.h>

#define ROWS 512 /* a block of rows meets another one in one matrix product */
#define LANES 16 /* distances that are computed at once */
#define NEAR 1e-6 /* squared distances below this share of |x|^2 + |y|^2 come from differences: others have ten digits */

/* Rows in the order of label and batch: the cells of one label and batch are a run of rows. */
struct sorted {
	const double *x; /* [n, d] minus the mean */
	const double *square; /* [n] squared lengths */
	size_t n, d;
	const uint32_t *row; /* [n] of the caller */
	size_t runs, labels, most; /* most: runs of one label */
	const size_t *run; /* [runs + 1] first row of each; the last is n */
	const size_t *first; /* [labels + 1] first run of each label; the last is `runs` */
	const uint32_t *label; /* [runs] of a run */
	const uint32_t *at; /* [n] run of a row */
	size_t blocks, round; /* of rows; see meet */
	const uint32_t *wanted; /* [m] rows whose widths are wanted, NULL: all */
	size_t m; /* without `wanted`, n */
	double *rows; /* [threads, ROWS, d] of `wanted` */
	double *product; /* [threads, ROWS, ROWS] */
	double *to_label; /* [m, labels] distances from a wanted row to the rows of a label, together */
	double *to_run; /* [m, most] the same to the runs of its own label */
	double *by_label, *by_batch;
};

static double distance(const double *x, const double *y, size_t d)
{
	double sum = 0;
	for (size_t j = 0; j < d; j++)
		sum += (x[j] - y[j]) * (x[j] - y[j]);
	return sqrt(sum);
}

/* Products of row i with `wide` rows from `from` become distances. */
static void make_distances(const struct sorted *s, size_t i, size_t from, size_t wide, double *product)
{
	const double own = s->square[i], *other = s->square + from;
	for (size_t at = 0; at < wide; at += LANES) {
		size_t lanes = wide - at < LANES ? wide - at : LANES;
		double squared[LANES];
		int near = 0;
		for (size_t l = 0; l < lanes; l++) {
			double both = own + other[at + l];
			squared[l] = both - 2 * product[at + l];
			near |= squared[l] < NEAR * both;
			product[at + l] = sqrt(fmax(squared[l], 0));
		}
		for (size_t l = 0; near && l < lanes; l++)
			if (squared[l] < NEAR * (own + other[at + l]))
				product[at + l] = distance(s->x + i * s->d, s->x + (from + at + l) * s->d, s->d);
	}
}

/* The distances from row i, wanted number w, to rows of run r are `sum` more. */
static void silhouette_add(const struct sorted *s, size_t w, size_t i, size_t r, double sum)
{
	size_t label = s->label[r];
	s->to_label[w * s->labels + label] += sum;
	if (s->label[s->at[i]] == label)
		s->to_run[w * s->most + (r - s->first[label])] += sum;
}

static double sum_of(const double *v, size_t n)
{
	double part[LANES] = {0}, sum = 0;
	size_t i = 0;
	for (; i + LANES <= n; i += LANES)
		for (size_t l = 0; l < LANES; l++)
			part[l] += v[i + l];
	for (; i < n; i++)
		part[0] += v[i];
	for (size_t l = 0; l < LANES; l++)
		sum += part[l];
	return sum;
}

/* Make the products of row i, wanted number w, with the n rows from b distances, and add them to its sums. */
static void silhouette_add_row(const struct sorted *s, size_t w, size_t i, size_t b, size_t n, double *d)
{
	make_distances(s, i, b, n, d);
	for (size_t j = 0; j < n;) {
		size_t r = s->at[b + j], end = s->run[r + 1] - b < n ? s->run[r + 1] - b : n;
		silhouette_add(s, w, i, r, sum_of(d + j, end - j));
		j = end;
	}
}

/* Add the distances between the rows a..a + m - 1 and b..b + n - 1 to the sums of both; if these are the same rows, once. */
static void add_blocks(const struct sorted *s, size_t a, size_t m, size_t b, size_t n, double *product)
{
	double column[ROWS] = {0};
	cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)m, (int)n, (int)s->d, 1, s->x + a * s->d, (int)s->d, s->x + b * s->d,
		(int)s->d, 0, product, ROWS);
	for (size_t i = 0; i < m; i++) {
		double *d = product + i * ROWS;
		silhouette_add_row(s, a + i, a + i, b, n, d);
		for (size_t j = 0; a != b && j < n; j++)
			column[j] += d[j];
		if (a == b || (i + 1 < m && s->at[a + i + 1] == s->at[a + i]))
			continue;
		for (size_t j = 0; j < n; j++) { /* the run of row a + i ends */
			silhouette_add(s, b + j, b + j, s->at[a + i], column[j]);
			column[j] = 0;
		}
	}
}

/*
 * Pair number i of a round in which each block meets one other block: in round r of a tournament of k blocks, k even, block k - 1 meets
 * r, and r + i meets r - i, modulo k - 1. So the pairs of a round share no row, and each row gets its sums in the order of the rounds.
 * In the last round each block meets itself.
 */
static void meet(void *arg, size_t i, int thread)
{
	const struct sorted *s = arg;
	size_t k = s->blocks + s->blocks % 2, a = i, b = i;
	if (s->round + 1 < k) {
		a = i ? (s->round + i) % (k - 1) : k - 1;
		b = (s->round + k - 1 - i) % (k - 1);
	}
	if (a >= s->blocks || b >= s->blocks) /* an odd number: one block has no other */
		return;
	size_t m = s->n - a * ROWS < ROWS ? s->n - a * ROWS : ROWS, n = s->n - b * ROWS < ROWS ? s->n - b * ROWS : ROWS;
	add_blocks(s, a * ROWS, m, b * ROWS, n, s->product + (size_t)thread * ROWS * ROWS);
}

/* A block of wanted rows meets all rows. */
static void meet_all(void *arg, size_t block, int thread)
{
	const struct sorted *s = arg;
	size_t first = block * ROWS, m = s->m - first < ROWS ? s->m - first : ROWS;
	double *rows = s->rows + (size_t)thread * ROWS * s->d, *product = s->product + (size_t)thread * ROWS * ROWS;
	for (size_t i = 0; i < m; i++)
		memcpy(rows + i * s->d, s->x + s->wanted[first + i] * s->d, s->d * sizeof *rows);
	for (size_t b = 0; b < s->n; b += ROWS) {
		size_t n = s->n - b < ROWS ? s->n - b : ROWS;
		cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)m, (int)n, (int)s->d, 1, rows, (int)s->d, s->x + b * s->d,
			(int)s->d, 0, product, ROWS);
		for (size_t i = 0; i < m; i++)
			silhouette_add_row(s, first + i, s->wanted[first + i], b, n, product + i * ROWS);
	}
}

static double silhouette_width(double a, double b)
{
	return a > 0 || b > 0 ? (b - a) / fmax(a, b) : 0;
}

/* The widths of row i, wanted number w, from its sums, to number `to` of the caller. */
static void take_widths(const struct sorted *s, size_t w, size_t i, size_t to)
{
	const size_t *first = s->first, *run = s->run, own = s->at[i], label = s->label[own];
	const double *to_label = s->to_label + w * s->labels, *to_run = s->to_run + w * s->most;
	size_t cells = run[first[label + 1]] - run[first[label]], batches = first[label + 1] - first[label], same = run[own + 1] - run[own];
	double a = cells > 1 ? to_label[label] / (double)(cells - 1) : 0, b = INFINITY;
	for (size_t l = 0; l < s->labels; l++)
		if (l != label)
			b = fmin(b, to_label[l] / (double)(run[first[l + 1]] - run[first[l]]));
	s->by_label[to] = s->labels < 2 ? NAN : cells > 1 ? silhouette_width(a, b) : 0;
	if (!s->by_batch)
		return;
	a = same > 1 ? to_run[own - first[label]] / (double)(same - 1) : 0;
	b = INFINITY;
	for (size_t r = first[label]; r < first[label + 1]; r++)
		if (r != own)
			b = fmin(b, to_run[r - first[label]] / (double)(run[r + 1] - run[r]));
	s->by_batch[to] = batches < 2 || batches == cells ? NAN : same > 1 ? silhouette_width(a, b) : 0;
}

/* ---- the order of the rows ---- */

struct key {
	uint32_t label, batch, row;
};

COMPARE(by_cell_key, struct key, ORDER(a->label, b->label) ?: ORDER(a->batch, b->batch) ?: ORDER(a->row, b->row))

/* Fill row [n], at [n], run [n + 1], first [n + 1] and of [n], the label of a run. */
static void sort_rows(struct sorted *s, const uint32_t *label, const uint32_t *batch, uint32_t *row, uint32_t *at, size_t *run,
	size_t *first, uint32_t *of)
{
	FREED struct key *key = xmalloc(s->n * sizeof *key);
	for (uint32_t i = 0; i < s->n; i++)
		key[i] = (struct key){label[i], batch ? batch[i] : 0, i};
	qsort(key, s->n, sizeof *key, by_cell_key);
	for (size_t i = 0; i < s->n; i++) {
		int new_label = !i || key[i].label != key[i - 1].label;
		if (new_label)
			first[s->labels++] = s->runs;
		if (new_label || key[i].batch != key[i - 1].batch) {
			of[s->runs] = (uint32_t)s->labels - 1;
			run[s->runs++] = i;
		}
		at[i] = (uint32_t)s->runs - 1;
		row[i] = key[i].row;
	}
	first[s->labels] = s->runs;
	run[s->runs] = s->n;
	for (size_t l = 0; l < s->labels; l++)
		s->most = first[l + 1] - first[l] > s->most ? first[l + 1] - first[l] : s->most;
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

/* Fill `wanted` [m] with the numbers, in order, of the caller's rows `of`. */
static void number_rows(const struct sorted *s, const uint32_t *of, uint32_t *wanted)
{
	FREED uint32_t *place = xmalloc(s->n * sizeof *place);
	for (uint32_t i = 0; i < s->n; i++)
		place[s->row[i]] = i;
	for (size_t w = 0; w < s->m; w++)
		wanted[w] = place[of[w]];
}

static void add_all(struct sorted *s, int threads)
{
	size_t rounds = s->blocks + s->blocks % 2;
	if (s->wanted)
		pool_for(threads, (s->m + ROWS - 1) / ROWS, meet_all, s);
	for (; !s->wanted && s->round < rounds; s->round++)
		pool_for(threads, s->round + 1 < rounds ? rounds / 2 : s->blocks, meet, s);
}

void silhouettes(const float *x, size_t n, size_t d, const uint32_t *label, const uint32_t *batch, const uint32_t *of, size_t m,
	int threads, double *by_label, double *by_batch)
{
	struct sorted s = {.n = n,
		.d = d,
		.blocks = (n + ROWS - 1) / ROWS,
		.by_label = by_label,
		.by_batch = batch ? by_batch : NULL,
		.m = of ? m : n};
	uint32_t *row = xmalloc((3 * n + s.m) * sizeof *row), *at = row + n, *run_label = at + n, *wanted = run_label + n;
	size_t *run = xmalloc(2 * (n + 1) * sizeof *run), *first = run + n + 1;
	double *square = xmalloc(n * sizeof *square), *own;
	s.row = row;
	s.at = at;
	s.label = run_label;
	s.run = run;
	s.first = first;
	s.square = square;
	sort_rows(&s, label, batch, row, at, run, first, run_label);
	s.x = own = take_rows(&s, x, square);
	if (of) {
		number_rows(&s, of, wanted);
		s.wanted = wanted;
		s.rows = xmalloc((size_t)threads * ROWS * d * sizeof *s.rows);
	}
	s.product = xmalloc((size_t)threads * ROWS * ROWS * sizeof *s.product);
	s.to_label = xcalloc(s.m * s.labels, sizeof *s.to_label);
	s.to_run = xcalloc(s.m * s.most, sizeof *s.to_run);
	add_all(&s, threads);
	for (size_t w = 0; w < s.m; w++)
		take_widths(&s, w, of ? wanted[w] : w, of ? w : row[w]);
	free_all(s.rows, s.product, s.to_label, s.to_run, own, square, row, run);
}
