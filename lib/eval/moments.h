/* Mean and variance of the features of some rows. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Of rows row[0..n) of x [.., d]: mean [d], variance [d], divided by n. n >= 1. */
static inline void moments(const float *x, size_t d, const uint32_t *row, size_t n, double *mean, double *variance)
{
	for (size_t j = 0; j < d; j++)
		mean[j] = variance[j] = 0;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < d; j++)
			mean[j] += (double)x[row[i] * d + j];
	for (size_t j = 0; j < d; j++)
		mean[j] /= (double)n;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < d; j++) {
			double v = (double)x[row[i] * d + j] - mean[j];
			variance[j] += v * v;
		}
	for (size_t j = 0; j < d; j++)
		variance[j] /= (double)n;
}
