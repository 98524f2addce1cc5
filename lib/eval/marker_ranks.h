/*
 * How like the mean row of each class is a row, by ranks? Spearman's correlation over marker features: for each class and each other class, the
 * ten whose mean is higher by the most standard deviations (Cohen's d). Ranks within a row do not change with its depth, and hardly with the
 * platform, where the weights of a regression do.
 */
#pragma once

#include "base/sparse.h"

struct marker_ranks {
	size_t k, m, d; /* classes, markers, features */
	uint32_t *at; /* [d] the number of a marker, m of other features */
	double *type; /* [m, k] ranks in the mean row of a class, less their mean, divided by their norm */
	float *mean, *variance; /* [k, d] of the classes; one array */
	float *sd; /* [d] standard deviation within them */
	uint8_t *marker; /* [k, d] 1: one of the ten that are higher in the class than in some other class */
};

struct marker_rank {
	double value; /* becomes its rank */
	size_t at;
};

/* Of rows row[0..n) of x, whose values are > 0; those with y < k are used, and every class is among them. weight [x->n]: NULL: all are equal. */
void marker_ranks_fit(
	struct marker_ranks *r, const struct sparse *x, const uint32_t *row, size_t n, const uint32_t *y, const float *weight, size_t k);
/* Mean and variance [k, d] of the features in each class, 0 at first (row NULL: all rows; y NULL: they are one class); cells [k] out: the sum of
 * the weights. NaN: a class has no row. */
void class_moments(const struct sparse *x, const uint32_t *row, size_t n, const uint32_t *y, const float *weight, size_t k, double *mean,
	double *variance, double *cells);
/* m, at, type and marker by mean and variance: ends the other functions that fill a struct. */
void marker_ranks_settle(struct marker_ranks *r);
/* Rows will lack the features of which keep [d] is 0: they are no markers. */
void marker_ranks_keep(struct marker_ranks *r, const uint8_t *keep);
void marker_ranks_release(struct marker_ranks *r); /* accepts a zeroed struct */
/* correlation [k]: 0 of a row or class whose markers are all equal. own [m]: scratch. */
void marker_ranks_correlation(const struct marker_ranks *r, const struct sparse_row *x, struct marker_rank *own, double *correlation);
