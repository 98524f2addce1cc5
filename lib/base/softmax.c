#include "base/softmax.h"

#include <math.h>

/* glibc's libmvec has it for several values at once, with errors up to 4 units in the last place. Only for loops that are omp simd. */
#if defined __x86_64__ && defined __GLIBC__ && !defined __clang__
#pragma omp declare simd notinbranch
extern double exp(double);
#endif

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

double softmax_fast(double *z, size_t n)
{
	double top = z[0], sum = 0;
	_Pragma("omp simd reduction(max : top)") for (size_t i = 0; i < n; i++) top = z[i] > top ? z[i] : top;
	_Pragma("omp simd") for (size_t i = 0; i < n; i++) z[i] = exp(z[i] - top);
	for (size_t i = 0; i < n; i++)
		sum += z[i];
	_Pragma("omp simd") for (size_t i = 0; i < n; i++) z[i] /= sum;
	return top + log(sum);
}
