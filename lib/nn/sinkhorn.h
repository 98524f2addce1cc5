/*
 * Sinkhorn's scaling of a positive matrix [Sinkhorn & Knopp 1967; Cuturi 2013], and its derivative:
 *     W_jk = u_j s_jk v_k,   G rows and K columns, so that every row sums to K and every column to G (their mean is 1)
 * An iteration scales the rows, then the columns. After few of them the columns are exact, the rows nearly so. With one column, scaled rows
 * would all be 1: then only the column is scaled, once.
 */
#pragma once

#include <stddef.h>

struct sinkhorn {
	size_t G, K, iterations;
	double *s; /* [G, K] > 0, from the caller */
	double *ds; /* [G, K] its gradient, from sinkhorn_back */
	double *u; /* [iterations, G] of every iteration */
	double *v; /* [iterations + 1, K] the first are 1 */
	double *du, *dv; /* [G], [2, K] scratch */
};

void sinkhorn_init(struct sinkhorn *x, size_t G, size_t K, size_t iterations);
void sinkhorn_release(struct sinkhorn *x); /* accepts a zeroed struct */
/* Find u and v. */
void sinkhorn_forward(struct sinkhorn *x);
/* Column k of W, into w [G]. */
void sinkhorn_column(const struct sinkhorn *x, size_t k, double *w);
/* dw [G] is the gradient of column k, the one of all others is 0. Writes ds. */
void sinkhorn_back(struct sinkhorn *x, size_t k, const double *dw);
