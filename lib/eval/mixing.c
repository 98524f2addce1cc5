#include "eval/mixing.h"

#include "base/error.h"
#include "base/threads.h"
#include "eval/distribution.h"

#include <math.h>

enum { ROWS = 512 };

/* p [k] of the distances d [k], rising, and beta; returns the entropy. The nearest has the weight 1 before the division, so nothing
 * underflows. */
static double shares(double *p, const double *d, size_t k, double beta)
{
	double sum = 0, mean = 0;
	for (size_t j = 0; j < k; j++) {
		p[j] = exp(-beta * (d[j] - d[0]));
		sum += p[j];
		mean += (d[j] - d[0]) * p[j];
	}
	for (size_t j = 0; j < k; j++)
		p[j] /= sum;
	return log(sum) + beta * (mean / sum);
}

/* The shares of the neighbours at distances d [k]. beta is doubled, or halved, to the first power of two beyond the wanted one, and then
 * found by bisection. scib-metrics begins at 1; beginning near the inverse of the mean distance comes to the same powers of two, at any scale. */
static void find_shares(double *p, const double *d, size_t k, double perplexity)
{
	double low = 0, high = INFINITY, mean = 0;
	int exponent;
	for (size_t j = 0; j < k; j++)
		mean += d[j] / (double)k;
	frexp(mean, &exponent);
	double beta = mean > 0 ? ldexp(1, -exponent) : 1;
	for (int step = 0;; step++) {
		double off = shares(p, d, k, beta) - log(perplexity);
		if (fabs(off) < 1e-5 || step == 50)
			return;
		if (off > 0)
			low = beta;
		else
			high = beta;
		beta = isinf(high) ? 2 * beta : (low + high) / 2;
	}
}

/* The effective number of groups of the neighbours near [k] with the shares p [k]; sum [groups] is 0 before and after. */
static double effective(const double *p, const uint32_t *near, size_t k, const uint32_t *group, double *sum)
{
	double simpson = 0;
	for (size_t j = 0; j < k; j++)
		sum[group[near[j]]] += p[j];
	for (size_t j = 0; j < k; j++) { /* each group is counted where it is met first */
		simpson += sum[group[near[j]]] * sum[group[near[j]]];
		sum[group[near[j]]] = 0;
	}
	return 1 / simpson;
}

struct lisi {
	const uint32_t *neighbour;
	const double *distance;
	size_t n, k;
	double perplexity;
	const struct grouping *by;
	size_t m, most; /* groupings; groups of one */
};

static void lisi_rows(void *arg, size_t block, int thread)
{
	const struct lisi *s = arg;
	FREED double *p = xmalloc(s->k * sizeof *p), *sum = xcalloc(s->most, sizeof *sum);
	(void)thread;
	for (size_t i = block * ROWS; i < s->n && i < (block + 1) * ROWS; i++) {
		find_shares(p, s->distance + i * s->k, s->k, s->perplexity);
		for (size_t g = 0; g < s->m; g++)
			s->by[g].lisi[i] = effective(p, s->neighbour + i * s->k, s->k, s->by[g].group, sum);
	}
}

void mixing_lisi(const struct grouping *by, size_t m, const uint32_t *neighbour, const double *distance, size_t n, size_t k,
	double perplexity, int threads)
{
	struct lisi s = {neighbour, distance, n, k, perplexity, by, m, 1};
	for (size_t g = 0; g < m; g++)
		s.most = by[g].groups > s.most ? by[g].groups : s.most;
	pool_for(threads, (n + ROWS - 1) / ROWS, lisi_rows, &s);
}

double mixing_kbet(const uint32_t *neighbour, size_t n, size_t width, size_t k, const uint32_t *group, size_t groups)
{
	FREED double *expected = xcalloc(groups, sizeof *expected), *count = xmalloc(groups * sizeof *count);
	size_t accepted = 0;
	for (size_t i = 0; i < n; i++)
		expected[group[i]] += (double)k / (double)n;
	for (size_t i = 0; i < n; i++) {
		double x = 0;
		memset(count, 0, groups * sizeof *count);
		count[group[i]]++;
		for (size_t j = 0; j + 1 < k; j++)
			count[group[neighbour[i * width + j]]]++;
		for (size_t g = 0; g < groups; g++)
			x += (count[g] - expected[g]) * (count[g] - expected[g]) / expected[g];
		accepted += chi_squared_tail(x, groups - 1) >= 0.05;
	}
	return (double)accepted / (double)n;
}
