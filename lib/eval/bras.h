/*
 * BRAS, silhouettes that score how well batches are mixed [Rautenstrauch and Ohler 2025], as scib-metrics has it since 0.5.6: within each
 * class, by cosine distance,
 *     s_i = (b_i - a_i) / max(a_i, b_i),    score = mean over the classes of the mean of 1 - |s_i| over their cells,
 * a_i the mean distance of cell i to the other cells of its class and batch, b_i that to all cells of its class in other batches. s is 0
 * for the only cell of a class and batch. A row of zeros has distance 1 to all others.
 *
 * The sum of the cosine distances from x to the rows of a group is their number minus x . (the sum of the rows), of unit rows: so time grows
 * with n d.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * x [n, d]        rows, finite
 * label [n] < labels, batch [n] < batches
 * score [labels]  out: of each class; NaN if its cells have one batch, or each has its own
 */
void bras(double *score, const float *x, size_t n, size_t d, const uint32_t *label, size_t labels, const uint32_t *batch, size_t batches);
