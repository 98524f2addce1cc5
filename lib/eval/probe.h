/*
 * Logistic regression as a probe of embeddings: scikit-learn's LogisticRegression objective (L2, intercept not penalised),
 *     min over W, b of   1/(2C) |W|^2 + sum_i -log softmax(W x_i + b)[y_i]              K > 2 classes
 *                        1/(2C) |w|^2 + sum_i log(1 + exp(-s_i (w x_i + b))), s_i = +-1  K = 2
 * minimised by L-BFGS (libLBFGS) in float64. Rows are summed in fixed slices, so the result does not depend on the threads.
 */
#pragma once

#include "base/error.h"

#define PROBE_TOL 1e-4 /* of genes, and of transfer */
#define PROBE_TOL_CELL 1e-5 /* of ctaprobe cells, times the training cells */

struct probe_options {
	double c; /* inverse strength of the penalty, > 0 */
	double tol; /* stop when no entry of the gradient exceeds this */
	int max_iter;
	int standardize; /* penalise weights of z-scores (population sd; constant features are left alone) */
	int threads; /* at least 1 */
	const struct probe *start; /* begin at the weights of this probe of as many classes and features; NULL: at 0 */
};

struct probe {
	size_t k, d; /* classes, features */
	size_t rows; /* rows of w: k, or 1 when k = 2 (then for class 1; class 0 has logit 0) */
	double *w; /* [rows, d] for features as given, standardised or not */
	double *b; /* [rows] */
	int iterations, converged;
	double gradient; /* largest entry of the gradient at the end */
};

/* Fit on rows row[0..n) of x [.., d]; y [..] is indexed like x, y < k, and every class occurs. k >= 2, n >= 1. x is finite.
 * BLAS must be set to one thread. p is zeroed or released before. No convergence is not an error:
 * see p->converged. -1 with e set when libLBFGS refuses or the objective is not finite. */
int probe_fit(struct probe *p, const float *x, size_t d, const uint32_t *row, size_t n, const uint32_t *y, size_t k,
	const struct probe_options *o, struct error *e);
void probe_release(struct probe *p); /* accepts a zeroed struct */

/* logit [k] of one row x [d]. */
void probe_logits(const struct probe *p, const float *x, double *logit);
