/*
 * sBEE [Myradov et al. 2026], as scib-metrics 0.6.1 has it: how well batches are mixed within the classes. The score of a cell is the
 * harmonic mean of
 *     exp(-(1 - min(1, u / v)) / .15)    u, v the median distances to the cells of its class in its own and in other batches, v = u if
 *                                        there are none of others
 *     1 - D                              D the Jensen-Shannon distance (base 2) of the batches of its class near it from those of the
 *                                        whole class
 * near: its k neighbours and the cell itself, or as many of them as the class has cells. A cell with u or v 0, such as the only one of its
 * class and batch, has score 0. Mean over the cells of each class and batch, over the batches of a class, over the classes.
 * Time grows with the scored cells times those of their class.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * x [n, d]          rows, finite
 * neighbour [n, k]  the nearest rows of each row, without itself, the nearest first
 * label [n] < labels, batch [n] < batches; each class has a cell
 * of [m]            rows that are scored, of each class and batch at least one, for the means; NULL: all n
 * score [labels]    out: of each class. It does not depend on the number of threads.
 */
void sbee(double *score, const float *x, size_t n, size_t d, const uint32_t *neighbour, size_t k, const uint32_t *label, size_t labels,
	const uint32_t *batch, size_t batches, const uint32_t *of, size_t m, int threads);
