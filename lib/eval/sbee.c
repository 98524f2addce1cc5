#include "eval/sbee.h"

#include "base/error.h"
#include "base/threads.h"

#define SENSITIVITY 0.15
#define LEAST 1e-10 /* of a share */
#define ROWS 64

struct work {
	const float *x;
	size_t n, d, k, batches;
	const uint32_t *neighbour, *label, *batch;
	const float *y; /* [n, d] the rows of x in the order of their class, and in each class as in x: so memory is read in order */
	const uint32_t *row, *of_batch; /* [n] of y: row of x, and batch */
	const size_t *first; /* [labels + 1] of a class in y */
	const uint32_t *of; /* [m] rows that are scored */
	size_t m;
	const double *cells; /* [labels, batches] */
	double *own, *other; /* [threads, n] distances */
	double *near; /* [threads, batches] */
	double *score; /* [n] */
};

/* The element of rank r of v [n], by Hoare's selection; v is reordered so that no element before it is larger. */
static double ranked(double *v, size_t n, size_t r)
{
	size_t low = 0, high = n - 1;
	while (low < high) {
		double pivot = v[low + (high - low) / 2];
		size_t i = low, j = high;
		for (;;) {
			while (v[i] < pivot)
				i++;
			while (v[j] > pivot)
				j--;
			if (i >= j)
				break;
			double t = v[i];
			v[i++] = v[j];
			v[j--] = t;
		}
		if (r <= j)
			high = j;
		else
			low = j + 1;
	}
	return v[r];
}

static double median(double *v, size_t n)
{
	double high = ranked(v, n, n / 2), low = -INFINITY;
	for (size_t i = 0; n % 2 == 0 && i < n / 2; i++)
		low = fmax(low, v[i]);
	return n % 2 ? high : (low + high) / 2;
}

static double distance(const float *a, const float *b, size_t d)
{
	double part[8] = {0}, sum = 0;
	size_t j = 0;
	for (; j + 8 <= d; j += 8)
		for (size_t l = 0; l < 8; l++) {
			double v = (double)a[j + l] - (double)b[j + l];
			part[l] += v * v;
		}
	for (; j < d; j++)
		part[0] += ((double)a[j] - (double)b[j]) * ((double)a[j] - (double)b[j]);
	for (size_t l = 0; l < 8; l++)
		sum += part[l];
	return sqrt(sum);
}

/* u / v of a row; NaN if one of them is 0 or there is no other cell. */
static double ratio(const struct work *w, uint32_t i, double *own, double *other)
{
	size_t m = 0, n = 0, c = w->label[i];
	for (size_t at = w->first[c]; at < w->first[c + 1]; at++) {
		if (i == w->row[at])
			continue;
		double d = distance(w->x + (size_t)i * w->d, w->y + at * w->d, w->d);
		if (w->of_batch[at] == w->batch[i])
			own[m++] = d;
		else
			other[n++] = d;
	}
	double u = m ? median(own, m) : 0, v = n ? median(other, n) : u;
	return u > 0 && v > 0 ? u / v : NAN;
}

static double entropy(double p)
{
	return p * log2(p);
}

/* 1 - the Jensen-Shannon distance of near [batches] and all [batches], counts. */
static double alike(const double *near, const double *all, size_t batches)
{
	double sum_near = 0, sum_all = 0, divergence = 0;
	for (size_t b = 0; b < batches; b++) {
		sum_near += fmax(near[b], LEAST);
		sum_all += fmax(all[b], LEAST);
	}
	for (size_t b = 0; b < batches; b++) {
		double p = fmax(near[b], LEAST) / sum_near, q = fmax(all[b], LEAST) / sum_all;
		divergence += (entropy(p) + entropy(q)) / 2 - entropy((p + q) / 2);
	}
	return 1 - sqrt(fmax(divergence, 0));
}

static void score_rows(void *arg, size_t block, int thread)
{
	const struct work *w = arg;
	double *near = w->near + (size_t)thread * w->batches;
	for (size_t at = block * ROWS; at < w->m && at < (block + 1) * ROWS; at++) {
		uint32_t i = w->of[at];
		size_t c = w->label[i], size = w->first[c + 1] - w->first[c], k = size - 1 < w->k ? size - 1 : w->k;
		memset(near, 0, w->batches * sizeof *near);
		near[w->batch[i]]++;
		for (size_t j = 0; j < k; j++) {
			uint32_t other = w->neighbour[(size_t)i * w->k + j];
			near[w->batch[other]] += w->label[other] == c;
		}
		double r = ratio(w, i, w->own + (size_t)thread * w->n, w->other + (size_t)thread * w->n);
		double far = exp(-(1 - fmin(r, 1)) / SENSITIVITY), mixed = alike(near, w->cells + c * w->batches, w->batches);
		w->score[i] = isnan(r) || mixed + far <= 0 ? 0 : 2 * mixed * far / (mixed + far);
	}
}

void sbee(double *score, const float *x, size_t n, size_t d, const uint32_t *neighbour, size_t k, const uint32_t *label, size_t labels,
	const uint32_t *batch, size_t batches, const uint32_t *of, size_t m, int threads)
{
	struct work w = {x, n, d, k, batches, neighbour, label, batch};
	size_t *first = xcalloc(labels + 2, sizeof *first), slots = (size_t)threads * n;
	uint32_t *row = xmalloc(2 * n * sizeof *row), *of_batch = row + n;
	float *y = xlarge(n * d, sizeof *y);
	double *cells = xcalloc(labels * batches, sizeof *cells), *sum = xcalloc(labels * batches, sizeof *sum);
	double *scored = xcalloc(labels * batches, sizeof *scored);
	for (size_t i = 0; i < n; i++) {
		first[label[i] + 2]++;
		cells[label[i] * batches + batch[i]]++;
	}
	for (size_t c = 1; c <= labels; c++)
		first[c + 1] += first[c];
	for (uint32_t i = 0; i < n; i++) {
		size_t at = first[label[i] + 1]++;
		row[at] = i;
		of_batch[at] = batch[i];
		memcpy(y + at * d, x + i * d, d * sizeof *y);
	}
	w.y = y;
	w.row = row;
	w.of_batch = of_batch;
	w.of = of ? of : row;
	w.m = of ? m : n;
	w.first = first;
	w.cells = cells;
	w.own = xmalloc(2 * slots * sizeof *w.own);
	w.other = w.own + slots;
	w.near = xmalloc((size_t)threads * batches * sizeof *w.near);
	w.score = xmalloc(n * sizeof *w.score);
	pool_for(threads, (w.m + ROWS - 1) / ROWS, score_rows, &w);
	for (size_t at = 0; at < w.m; at++) {
		uint32_t i = w.of[at];
		sum[label[i] * batches + batch[i]] += w.score[i];
		scored[label[i] * batches + batch[i]]++;
	}
	for (size_t c = 0; c < labels; c++) {
		size_t seen = 0;
		score[c] = 0;
		for (size_t b = 0; b < batches; b++)
			if (scored[c * batches + b] > 0) {
				score[c] += sum[c * batches + b] / scored[c * batches + b];
				seen++;
			}
		score[c] /= (double)seen;
	}
	free_all(first, row, y, cells, sum, scored, w.own, w.near, w.score);
}
