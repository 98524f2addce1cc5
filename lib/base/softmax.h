/* Softmax and argmax of a row of logits, in float64. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* z [n] becomes exp(z_i) / sum_j exp(z_j), n >= 1. Returns log sum_j exp(z_j). */
double softmax(double *z, size_t n);
/* The same in less time, with errors of a few units in the last place: for an optimum that is sought, not where equal values count. */
double softmax_fast(double *z, size_t n);

/* Index of the largest of z [n], n >= 1; ties go to the first. */
size_t softmax_argmax(const double *z, size_t n);

/* log sum exp(z_i) over the i < n whose bit i % 32 of set[i / 32] is 1; set NULL: over all. Exact however far the z are apart; -inf for none. */
double softmax_log_sum(const double *z, size_t n, const uint32_t *set);
