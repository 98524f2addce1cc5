#include "eval/mixture.h"

#include "eval/ranksum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ITERATIONS = 100 };
#define TOLERANCE 1e-3
#define VARIANCE_ADDED 1e-6
#define TINY (10 * 2.220446049250313e-16)

static double log_density(const struct mixture *m, int k, double v)
{
	double d = v - m->mean[k];
	return log(m->weight[k]) - 0.5 * (log(2 * M_PI * m->variance[k]) + d * d / m->variance[k]);
}

/* log(exp(a) + exp(b)) */
static double log_sum(double a, double b)
{
	double most = fmax(a, b);
	return most + log(exp(a - most) + exp(b - most));
}

double mixture_first(const struct mixture *m, double v)
{
	double a = log_density(m, 0, v), b = log_density(m, 1, v);
	return exp(a - log_sum(a, b));
}

/* Weights, means and variances from the probability of component 0 for each value. */
static void maximise(struct mixture *m, const double *x, const double *first, size_t n)
{
	for (int k = 0; k < 2; k++) {
		double total = TINY, sum = 0, square = 0;
		for (size_t i = 0; i < n; i++) {
			double w = k ? 1 - first[i] : first[i];
			total += w;
			sum += w * x[i];
		}
		m->mean[k] = sum / total;
		for (size_t i = 0; i < n; i++) {
			double w = k ? 1 - first[i] : first[i];
			square += w * (x[i] - m->mean[k]) * (x[i] - m->mean[k]);
		}
		m->variance[k] = square / total + VARIANCE_ADDED;
		m->weight[k] = total;
	}
	double total = m->weight[0] + m->weight[1];
	m->weight[0] /= total;
	m->weight[1] /= total;
}

/* How many of the sorted values are in the lower of two clusters with the smallest sum of squares. */
static size_t split(const double *sorted, size_t n)
{
	double mean = 0, sum = 0, best = -1;
	size_t at = 0;
	for (size_t i = 0; i < n; i++)
		mean += sorted[i] / (double)n;
	for (size_t i = 1; i < n; i++) {
		sum += sorted[i - 1] - mean;
		double between = sum * sum * (1 / (double)i + 1 / (double)(n - i));
		if (sorted[i] > sorted[i - 1] && between > best) {
			best = between;
			at = i;
		}
	}
	return at;
}

int mixture_fit(struct mixture *m, const double *x, size_t n, struct error *e)
{
	double *first = xmalloc(2 * n * sizeof *first), *sorted = first + n, last = -INFINITY;
	*m = (struct mixture){0};
	memcpy(sorted, x, n * sizeof *x);
	ranksum_sort(sorted, n);
	size_t at = split(sorted, n);
	if (!at) {
		free(first);
		return error_set(e, "all %zu values are equal: a mixture of two distributions needs two values", n);
	}
	for (size_t i = 0; i < n; i++)
		first[i] = x[i] < sorted[at];
	maximise(m, x, first, n);
	while (m->iterations++ < ITERATIONS && !m->converged) {
		double likelihood = 0;
		for (size_t i = 0; i < n; i++) {
			double a = log_density(m, 0, x[i]), b = log_density(m, 1, x[i]), both = log_sum(a, b);
			likelihood += both / (double)n;
			first[i] = exp(a - both);
		}
		maximise(m, x, first, n);
		m->converged = fabs(likelihood - last) < TOLERANCE;
		last = likelihood;
	}
	m->iterations--;
	if (m->mean[0] > m->mean[1]) {
		struct mixture o = *m;
		for (int k = 0; k < 2; k++) {
			m->weight[k] = o.weight[1 - k];
			m->mean[k] = o.mean[1 - k];
			m->variance[k] = o.variance[1 - k];
		}
	}
	free(first);
	return 0;
}
