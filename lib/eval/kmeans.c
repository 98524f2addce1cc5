#include "eval/kmeans.h"

#include "base/error.h"
#include "base/rng.h"
#include "base/threads.h"

#include <cblas.h>

enum { STARTS = 10, ITERATIONS = 300, ROWS = 256 };

struct clusters {
	const double *x; /* [n, d] minus the mean */
	size_t n, d, k;
	double *centre; /* [k, d] */
	double *half; /* [k] half of its squared length */
	size_t next; /* while it is seeded: centres so far */
	double *product; /* [threads, ROWS, k] */
	double *nearest; /* [n] squared distance from the nearest centre */
	uint32_t *member; /* [n] */
};

static double squared(const double *a, const double *b, size_t d)
{
	double sum = 0;
	for (size_t j = 0; j < d; j++)
		sum += (a[j] - b[j]) * (a[j] - b[j]);
	return sum;
}

/* The newest centre may be nearer. */
static void meet_centre(void *arg, size_t block, int thread)
{
	const struct clusters *s = arg;
	(void)thread;
	for (size_t i = block * ROWS; i < s->n && i < (block + 1) * ROWS; i++)
		s->nearest[i] = fmin(s->nearest[i], squared(s->x + i * s->d, s->centre + (s->next - 1) * s->d, s->d));
}

static size_t blocks(const struct clusters *s)
{
	return (s->n + ROWS - 1) / ROWS;
}

/* k-means++: each next centre is a row, drawn in proportion to its squared distance from the nearest one. */
static void seed_centres(struct clusters *s, struct rng *r, int threads)
{
	size_t at = rng_below(r, (uint32_t)s->n);
	for (size_t i = 0; i < s->n; i++)
		s->nearest[i] = INFINITY;
	for (s->next = 0; s->next < s->k;) {
		memcpy(s->centre + s->next++ * s->d, s->x + at * s->d, s->d * sizeof *s->x);
		pool_for(threads, blocks(s), meet_centre, s);
		double sum = 0;
		for (size_t i = 0; i < s->n; i++)
			sum += s->nearest[i];
		double left = rng_unit(r) * sum;
		for (at = 0; at + 1 < s->n && (left -= s->nearest[at]) >= 0;)
			at++;
	}
}

static void assign(void *arg, size_t block, int thread)
{
	const struct clusters *s = arg;
	size_t from = block * ROWS, m = s->n - from < ROWS ? s->n - from : ROWS;
	double *product = s->product + (size_t)thread * ROWS * s->k;
	cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)m, (int)s->k, (int)s->d, 1, s->x + from * s->d, (int)s->d, s->centre,
		(int)s->d, 0, product, (int)s->k);
	for (size_t i = 0; i < m; i++) {
		const double *p = product + i * s->k;
		uint32_t best = 0;
		for (uint32_t c = 1; c < s->k; c++)
			best = p[c] - s->half[c] > p[best] - s->half[best] ? c : best;
		s->member[from + i] = best;
		s->nearest[from + i] = squared(s->x + (from + i) * s->d, s->centre + best * s->d, s->d);
	}
}

/* Assign all rows; the sum of squares. */
static double assign_all(struct clusters *s, int threads)
{
	double sum = 0;
	for (size_t c = 0; c < s->k; c++)
		s->half[c] = cblas_ddot((int)s->d, s->centre + c * s->d, 1, s->centre + c * s->d, 1) / 2;
	pool_for(threads, blocks(s), assign, s);
	for (size_t i = 0; i < s->n; i++)
		sum += s->nearest[i];
	return sum;
}

/* The centres become the means of their rows; one without rows stays. */
static void move_centres(struct clusters *s, double *sum, size_t *size)
{
	memset(sum, 0, s->k * s->d * sizeof *sum);
	memset(size, 0, s->k * sizeof *size);
	for (size_t i = 0; i < s->n; i++) {
		size[s->member[i]]++;
		cblas_daxpy((int)s->d, 1, s->x + i * s->d, 1, sum + s->member[i] * s->d, 1);
	}
	for (size_t c = 0; c < s->k; c++)
		for (size_t j = 0; size[c] && j < s->d; j++)
			s->centre[c * s->d + j] = sum[c * s->d + j] / (double)size[c];
}

/* Rows minus their mean, in an order in which the first `begin` are drawn at random; place [n] is where each row lies. */
static double *centred(const float *x, size_t n, size_t d, size_t begin, uint32_t seed, uint32_t *place)
{
	struct rng r = rng_at(seed, RNG_KMEANS, STARTS, 0);
	double *mean = xcalloc(d, sizeof *mean), *y = xlarge(n * d, sizeof *y);
	size_t drawn = 0, others = begin;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < d; j++)
			mean[j] += (double)x[i * d + j] / (double)n;
	for (size_t i = 0; i < n; i++) {
		int first = begin == n || rng_below(&r, (uint32_t)(n - i)) < begin - drawn;
		size_t at = first ? drawn++ : others++;
		place[i] = (uint32_t)at;
		for (size_t j = 0; j < d; j++)
			y[at * d + j] = (double)x[i * d + j] - mean[j];
	}
	free(mean);
	return y;
}

/* Lloyd's iterations; the sum of squares. */
static double descend(struct clusters *s, double *sum, size_t *size, int threads)
{
	double before, now = assign_all(s, threads);
	int step = 0;
	do {
		before = now;
		move_centres(s, sum, size);
		now = assign_all(s, threads);
	} while (now < before && ++step < ITERATIONS);
	return now;
}

double kmeans(const float *x, size_t n, size_t d, size_t k, size_t begin, uint32_t seed, int threads, uint32_t *member)
{
	begin = begin > k ? begin : k;
	begin = begin < n ? begin : n;
	uint32_t *place = xmalloc(n * sizeof *place);
	double *y = centred(x, n, d, begin, seed, place), *sum = xmalloc(k * d * sizeof *sum), *least = xmalloc(k * d * sizeof *least),
	       best = INFINITY;
	size_t *size = xmalloc(k * sizeof *size);
	struct clusters s = {y, begin, d, k, .centre = xmalloc(k * d * sizeof *s.centre), .half = xmalloc(k * sizeof *s.half),
		.product = xmalloc((size_t)threads * ROWS * k * sizeof *s.product), .nearest = xmalloc(n * sizeof *s.nearest),
		.member = xmalloc(n * sizeof *s.member)};
	for (uint32_t start = 0; start < STARTS; start++) {
		struct rng r = rng_at(seed, RNG_KMEANS, start, 0);
		seed_centres(&s, &r, threads);
		double now = descend(&s, sum, size, threads);
		if (now < best) {
			best = now;
			memcpy(least, s.centre, k * d * sizeof *least);
		}
	}
	memcpy(s.centre, least, k * d * sizeof *least);
	s.n = n;
	best = begin < n ? descend(&s, sum, size, threads) : assign_all(&s, threads);
	for (size_t i = 0; i < n; i++)
		member[i] = s.member[place[i]];
	free_all(place, y, sum, least, size, s.centre, s.half, s.product, s.nearest, s.member);
	return best;
}
