/*
 * Principal components of n rows of d features, by the eigenvectors of their covariance in float64. Memory is that of the covariance,
 * 8 d^2 bytes. The result does not depend on the number of threads.
 */
#pragma once

#include "base/error.h"

struct pca {
	size_t d, n; /* features, rows added so far */
	double *gram; /* [d, d] sum of products, lower triangle */
	size_t k; /* components, after pca_solve */
	double *w; /* [d, k] unit vectors; of each, the entry of largest size is positive */
	double *variance; /* [k] of the components, with n - 1; falling */
	double total; /* variance of all features together */
};

void pca_init(struct pca *p, size_t d);
void pca_release(struct pca *p); /* accepts a zeroed struct */

/* Add rows x [n, d] from which the features' means over all rows are subtracted. BLAS must be set to one thread. */
void pca_add(struct pca *p, const double *x, size_t n, int threads);

/* Compute the first k components, k <= d; the covariance is destroyed. -1 with e set if LAPACK fails. n >= 2. */
int pca_solve(struct pca *p, size_t k, struct error *e);
