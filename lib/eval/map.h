/*
 * A map of cells: positions in the plane at which near rows are near, by UMAP [McInnes, Healy and
 * Melville 2018], which begins at about the first two principal components.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * x [n, d]   rows, finite; n > 0
 * k          neighbours of a row (Euclidean distance; at most n - 1 are used): two rows are joined if one is a neighbour of the other
 * xy [n, 2]  out: positions
 * BLAS must be set to one thread. The result does not depend on the number of threads.
 */
void map_rows(float *xy, const float *x, size_t n, size_t d, size_t k, uint32_t seed, int threads);
