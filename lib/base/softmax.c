#include "base/softmax.h"

#include <math.h>

size_t softmax_argmax(const double *z, size_t n)
{
	size_t best = 0;
	for (size_t i = 1; i < n; i++)
		if (z[i] > z[best])
			best = i;
	return best;
}

double softmax_log_sum(const double *z, size_t n, const uint32_t *set)
{
	double top = -INFINITY, sum = 0;
	for (size_t i = 0; i < n; i++)
		if (!set || set[i / 32] >> i % 32 & 1)
			top = fmax(top, z[i]);
	for (size_t i = 0; i < n && isfinite(top); i++)
		if (!set || set[i / 32] >> i % 32 & 1)
			sum += exp(z[i] - top);
	return isfinite(top) ? top + log(sum) : top;
}

double softmax(double *z, size_t n)
{
	double top = z[softmax_argmax(z, n)], sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += z[i] = exp(z[i] - top);
	for (size_t i = 0; i < n; i++)
		z[i] /= sum;
	return top + log(sum);
}
