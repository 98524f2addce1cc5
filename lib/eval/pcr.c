#include "eval/pcr.h"

#include "eval/pca.h"

#define ROWS 1024 /* that are added at once */

/* Sums of all rows minus x[0] [d], and of each group [groups, d]: equal columns are 0 then, without a rounding error. */
static void add_up(const float *x, size_t n, size_t d, const uint32_t *group, double *mean, double *sum)
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < d; j++) {
			double v = (double)x[i * d + j] - (double)x[j];
			mean[j] += v / (double)n;
			sum[group[i] * d + j] += v;
		}
}

/* The sum over the groups of n_g (mean of the component in g)^2, the component being w [d, k] column c. */
static double between(const struct pca *p, size_t c, const double *mean, const double *sum, const double *size, size_t groups)
{
	double square = 0;
	for (size_t g = 0; g < groups; g++) {
		double at = 0;
		for (size_t j = 0; j < p->d; j++)
			at += (sum[g * p->d + j] / size[g] - mean[j]) * p->w[j * p->k + c];
		square += size[g] * at * at;
	}
	return square;
}

int pcr_share(const float *x, size_t n, size_t d, const uint32_t *group, size_t groups, size_t components, int threads, double *share,
	struct error *e)
{
	struct pca p;
	double *mean = xcalloc(d, sizeof *mean), *sum = xcalloc(groups * d, sizeof *sum), *size = xcalloc(groups, sizeof *size);
	double *rows = xmalloc(ROWS * d * sizeof *rows), explained = 0, total = 0;
	size_t k = components < d ? components : d;
	pca_init(&p, d);
	add_up(x, n, d, group, mean, sum);
	for (size_t i = 0; i < n; i++)
		size[group[i]]++;
	for (size_t from = 0; from < n; from += ROWS) {
		size_t m = n - from < ROWS ? n - from : ROWS;
		for (size_t i = 0; i < m; i++)
			for (size_t j = 0; j < d; j++)
				rows[i * d + j] = (double)x[(from + i) * d + j] - (double)x[j] - mean[j];
		pca_add(&p, rows, m, threads);
	}
	int bad = pca_solve(&p, k < n ? k : n, e);
	for (size_t c = 0; !bad && c < p.k; c++) {
		total += p.variance[c];
		explained += between(&p, c, mean, sum, size, groups) / (double)(n - 1);
	}
	*share = total > 0 ? fmin(explained / total, 1) : NAN;
	pca_release(&p);
	free_all(mean, sum, size, rows);
	return bad;
}
