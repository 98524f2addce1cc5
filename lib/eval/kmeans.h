/*
 * k-means by Lloyd's iterations from k-means++ [Arthur and Vassilvitskii 2007]. Which minimum is found depends on where it starts, so it
 * starts ten times, and the clusters of the least sum of squares count.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * x [n, d]    rows, finite
 * k           clusters, 0 < k <= n
 * begin       rows, drawn at random, on which it starts ten times; the best of the ten then goes on with all rows. n: all rows from the start
 * member [n]  out, < k; a cluster may be empty if rows are equal
 * Returns the sum of the squared distances of the rows from the means of their clusters. BLAS must be set to one thread. The result is a
 * function of x, k, begin and the seed, not of the number of threads.
 */
double kmeans(const float *x, size_t n, size_t d, size_t k, size_t begin, uint32_t seed, int threads, uint32_t *member);
