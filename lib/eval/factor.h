/*
 * The factor R of a QR factorisation of a tall matrix, row by row: X = Q R. Memory is that of R and of some rows. R has the singular values
 * of X, and without the loss of digits of X^T X.
 */
#pragma once

#include "base/error.h"

struct factor {
	size_t p; /* columns of X */
	size_t n; /* rows added so far */
	double *r; /* [p, p] column-major, upper triangle, once factor_end was called; row i has any sign */
	double *chunk; /* rows that are not in r yet, column-major */
	double *t;
	size_t filled;
};

void factor_init(struct factor *f, size_t p);
void factor_release(struct factor *f); /* accepts a zeroed struct */
void factor_add(struct factor *f, const double *x); /* add one row x [p] */
void factor_end(struct factor *f); /* complete r */

static inline double factor_at(const struct factor *f, size_t i, size_t j)
{
	return f->r[j * f->p + i];
}

/* Singular values of rows from..p-1 and columns 1..d of R, the largest first. s [d]; u [d, d] and vt [d, d] column-major, or both NULL.
 * If column 0 of X is 1, then from = 0 gives the singular values of the columns, and from = 1 those of the columns minus their means. */
int factor_svd(const struct factor *f, size_t from, size_t d, double *s, double *u, double *vt, struct error *e);

/* Effective rank of n singular values s >= 0: the entropy H = - sum p log p of p = s / sum s [Roy and Vetterli 2007 take exp(H)].
 * NaN if all are 0. */
double factor_entropy(const double *s, size_t n);
