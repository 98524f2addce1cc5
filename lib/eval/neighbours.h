/*
 * The nearest neighbours of every row, by Euclidean distance. The search is exact: all distances come from matrix products of blocks of
 * rows in float32, and those of the rows that are kept are computed again in float64.
 */
#ifndef NEIGHBOURS_H
#define NEIGHBOURS_H

#include <stddef.h>
#include <stdint.h>

/*
 * x [n, d]      rows, finite
 * neighbour [n, k]  out: the k nearest rows of each row without itself, the nearest first; of equal distances the lower row is first
 * distance [n, k]   out: their distances
 * k < n. BLAS must be set to one thread. The result does not depend on the number of threads.
 */
void nearest_neighbours(const float *x, size_t n, size_t d, size_t k, int threads, uint32_t *neighbour, double *distance);

/*
 * The same among the rows of another matrix.
 * q [m, d]      rows, finite
 * neighbour, distance [m, k]  out: of each row of q, the k nearest rows of x
 * k <= n
 */
void nearest_rows(
	const float *q, size_t m, const float *x, size_t n, size_t d, size_t k, int threads, uint32_t *neighbour, double *distance);

#endif
