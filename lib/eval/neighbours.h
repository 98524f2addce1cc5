/*
 * The nearest neighbours of every row, by Euclidean distance. The search is exact for all finite rows: which rows are the nearest is decided
 * by squared distances in float64, sum_j ((q_j - x_j) / scale_j)^2, and of equal ones the lower row is first.
 *
 * Matrix products in float32 only say which pairs need no such sum. For rows a, b about a common mean, of d values, rounded to float32,
 *     |a - b|^2 >= (|a|^2 + |b|^2) (1 - (1.2 d + 16) u) - 2 float32(a . b) - d 2^-120,    u = 2^-24,
 * as a product of d values in any order has an error of at most 1.2 d u |a| |b| [Higham 2002, section 3.1; d < 2^21] and rounding a and b
 * moves the distance by at most 4.2 u (|a|^2 + |b|^2). A pair is passed over only if this is above the k-th smallest sum so far.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * x [n, d]      rows, finite
 * neighbour [n, k]  out: the k nearest rows of each row without itself, the nearest first
 * distance [n, k]   out: their distances
 * k < n. BLAS must be set to one thread. The result does not depend on the number of threads.
 */
void nearest_neighbours(const float *x, size_t n, size_t d, size_t k, int threads, uint32_t *neighbour, double *distance);

/*
 * The same among the rows of another matrix.
 * q [m, d]      rows, finite
 * scale [d]     > 0; NULL: 1
 * neighbour, distance [m, k]  out: of each row of q, the k nearest rows of x
 * 0 < k <= n
 */
void nearest_rows(const float *q, size_t m, const float *x, size_t n, size_t d, const double *scale, size_t k, int threads,
	uint32_t *neighbour, double *distance);
