/*
 * The theory for every feature of a covariance matrix as the target, predicted from all others.
 *
 * With the target's row and column left out of Sigma, S = q^2 Sigma + q r D and M = (S + kappa)^-1, the formulas of risk_finite become sums over
 * the eigenvalues of S. A principal minor of a matrix differs from the whole by rank one:
 *     M = [ N - N e e' N / e'N e ] without the target's row and column, N = (whole S + kappa)^-1, e the target's unit vector
 * so one eigendecomposition for each ratio serves all targets. This is exact.
 */
#ifndef RISK_GENES_H
#define RISK_GENES_H

#include "base/error.h"

#include <stdint.h>

struct risk_genes {
	/* set by the caller */
	uint32_t p;
	const double *sigma; /* [p, p] symmetric */
	double rows; /* n, before rows whose target is not masked are left out */
	size_t nrate;
	const double *rate; /* [nrate] between 0 and 1 */
	int threads;

	/* out: shares of the variance of the target */
	double *explained; /* [p] by the best linear prediction; the risk of predicting the mean */
	double *risk; /* [nrate, p] excess over the best linear prediction */
};

/* -1 with e set if sigma is not positive definite. BLAS must run on one thread. Memory: 4 p^2 numbers for each thread. */
int risk_genes_run(struct risk_genes *g, struct error *e);
void risk_genes_release(struct risk_genes *g); /* what the caller set stays */

#endif
