/* Vectors of a stream of embeddings. */
#pragma once

#include <math.h>
#include <stddef.h>

/* Is x [d] the embedding of a cell without tokens, all NaN? */
static inline int embedding_missing(const float *x, size_t d)
{
	size_t j = 0;
	while (j < d && isnan(x[j]))
		j++;
	return d && j == d;
}

/* The cosine of x and y [d], of sums in double; NaN if one is 0 in all places. */
static inline double embedding_cosine(const float *x, const float *y, size_t d)
{
	double xy = 0, xx = 0, yy = 0;
	for (size_t j = 0; j < d; j++) {
		xy += (double)x[j] * (double)y[j];
		xx += (double)x[j] * (double)x[j];
		yy += (double)y[j] * (double)y[j];
	}
	return xy / sqrt(xx * yy);
}
