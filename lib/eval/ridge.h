/*
 * Ridge regression with an intercept that is not penalised, the objective of scikit-learn's Ridge:
 *     min over w, b of   sum_i (y_i - w x_i - b)^2 + alpha |w|^2
 * One QR factorisation of [1, x, y] and one singular value decomposition (LAPACK, float64) serve all alpha.
 */
#pragma once

#include "base/error.h"

struct ridge {
	size_t d;
	double *s, *vt, *c; /* [d] singular values of the centred features, [d, d] column-major V^T, [d] U^T y */
	double *mean, *scale; /* [d] features are (x - mean) * scale */
	double intercept; /* mean of y */
	double *w, b; /* [d] after ridge_solve: for features as given */
};

/* Prepare rows row[0..n) of x [.., d]; y [..] is indexed like x. n >= 2, all values are finite. standardize: penalise the weights of
 * z-scores (population sd; a constant feature has the weight 0 either way). r is zeroed or released before. -1 with e set if LAPACK fails. */
int ridge_init(struct ridge *r, const float *x, size_t d, const uint32_t *row, size_t n, const double *y, int standardize, struct error *e);
void ridge_release(struct ridge *r); /* accepts a zeroed struct */

void ridge_solve(struct ridge *r, double alpha); /* alpha > 0 */
double ridge_predict(const struct ridge *r, const float *x);
