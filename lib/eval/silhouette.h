/*
 * Silhouette widths [Rousseeuw 1987] by Euclidean distance, of all cells, as scikit-learn's silhouette_samples.
 *     s_i = (b_i - a_i) / max(a_i, b_i)
 * a_i is the mean distance of cell i to the other cells of its class, b_i the least of its mean distances to the cells of another class.
 * s is 0 for the only cell of a class, and if a and b are 0.
 *
 * Time grows with m n d for the widths of m of n rows, memory is 8 bytes for each value of x, and for each wanted row and label or batch.
 * Distances are computed block by block (of all rows, once for both), |x|^2 + |y|^2 - 2 x.y by matrix products in float64, and from the
 * differences where that would lose digits.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * x [n, d]      rows, finite
 * label [n]     classes
 * batch [n]     or NULL
 * of [m]        rows whose widths are wanted; NULL: all n
 * by_label [m]  out: widths of the cells by label; NaN if all have one label
 * by_batch [m]  out, NULL if batch is: of each cell, the width by batch among the cells of its label alone; NaN if they have one batch, or
 *               each has its own
 * BLAS must be set to one thread. The result does not depend on the number of threads.
 */
void silhouettes(const float *x, size_t n, size_t d, const uint32_t *label, const uint32_t *batch, const uint32_t *of, size_t m,
	int threads, double *by_label, double *by_batch);
