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

double softmax(double *z, size_t n)
{
	double top = z[softmax_argmax(z, n)], sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += z[i] = exp(z[i] - top);
	for (size_t i = 0; i < n; i++)
		z[i] /= sum;
	return top + log(sum);
}
