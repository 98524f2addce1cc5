#include "eval/mixing.h"

#include "base/error.h"
#include "eval/distribution.h"

#include <math.h>

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

void mixing_lisi(double *lisi, const uint32_t *neighbour, const double *distance, size_t n, size_t k, const uint32_t *group, size_t groups,
	double perplexity)
{
	FREED double *p = xmalloc(k * sizeof *p), *sum = xcalloc(groups, sizeof *sum);
	for (size_t i = 0; i < n; i++) {
		const uint32_t *near = neighbour + i * k;
		double simpson = 0;
		find_shares(p, distance + i * k, k, perplexity);
		for (size_t j = 0; j < k; j++)
			sum[group[near[j]]] += p[j];
		for (size_t j = 0; j < k; j++) { /* each group is counted where it is met first, and is 0 then, as the next cell needs it */
			simpson += sum[group[near[j]]] * sum[group[near[j]]];
			sum[group[near[j]]] = 0;
		}
		lisi[i] = 1 / simpson;
	}
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
