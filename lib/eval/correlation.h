/* Correlation of two lists of n numbers, in float64. NaN if n < 2 or one list is constant. */
#pragma once

#include <stddef.h>

double correlation_pearson(const double *x, const double *y, size_t n);
double correlation_spearman(const double *x, const double *y, size_t n); /* Pearson's of the ranks; equal values share their mean rank */
