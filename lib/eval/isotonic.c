#include "eval/isotonic.h"

#include "base/error.h"

struct pool {
	double mean;
	size_t n; /* points */
};

void isotonic_fit(double *fit, const double *x, const double *y, size_t n)
{
	FREED struct pool *p = xcalloc(n + 1, sizeof *p);
	size_t k = 0, at = 0;
	for (size_t i = 0, j; i < n; i = j) {
		double sum = 0;
		for (j = i; j < n && x[j] == x[i]; j++)
			sum += y[j];
		p[k++] = (struct pool){sum / (double)(j - i), j - i};
		for (; k > 1 && p[k - 2].mean >= p[k - 1].mean; k--) {
			double a = (double)p[k - 2].n, b = (double)p[k - 1].n;
			p[k - 2].mean = (a * p[k - 2].mean + b * p[k - 1].mean) / (a + b);
			p[k - 2].n += p[k - 1].n;
		}
	}
	for (size_t i = 0; i < k; i++)
		for (size_t j = 0; j < p[i].n; j++)
			fit[at++] = p[i].mean;
}
