/* A mixture of two normal distributions on a line, by the rules of scikit-learn's GaussianMixture(n_components=2) with its defaults. */
#ifndef MIXTURE_H
#define MIXTURE_H

#include "base/error.h"

#include <stddef.h>

struct mixture {
	double weight[2], mean[2], variance[2]; /* mean[0] <= mean[1] */
	size_t iterations;
	int converged; /* the mean log likelihood changed by less than 1e-3 within 100 iterations */
};

/*
 * Fit x [n], no NaN, n >= 2. Expectation maximisation starts from the two clusters of the smallest sum of squares, which are found exactly;
 * 1e-6 is added to the variances. -1 with e set: fewer than two different values.
 */
int mixture_fit(struct mixture *m, const double *x, size_t n, struct error *e);

/* The probability that v is of component 0, the one with the smaller mean. */
double mixture_first(const struct mixture *m, double v);

#endif
