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
