/*
 * Regressions of the counts of many genes on the same features x [n, d], float32, for cells with a size s, such as the counts of a panel of genes:
 *     Poisson   min over w, b of   1/n sum_i (mu_i - y_i log mu_i) + penalty / 2 |w|^2,   log mu_i = log s_i + b + w x_i
 *     ridge     min over w, b of   1/n sum_i (log(1 + y_i) - b - w x_i)^2 + penalty |w|^2
 * for each gene. The features should be standardised. The mean count that ridge regression expects is exp(b + w x) - 1 times the factor of the
 * gene that makes it right over the cells of the fit.
 */
#pragma once

#include "base/error.h"

struct count_regression {
	size_t d, genes;
	int ridge; /* 0: Poisson */
	float *w; /* [d + 1, genes], the intercepts last */
	double *factor; /* [genes], of ridge */
};

/* y [n, genes] counts; s [n] > 0. -1 with e set if there is no solution. */
int count_regression_fit(struct count_regression *r, int ridge, const float *x, size_t n, size_t d, const float *y, size_t genes,
	const double *s, double penalty, struct error *e);
/* mu [n, genes] out: expected counts of other cells. */
void count_regression_predict(const struct count_regression *r, const float *x, size_t n, const double *s, float *mu);
void count_regression_release(struct count_regression *r); /* accepts a zeroed struct */
