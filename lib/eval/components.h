/* Principal components of the genes that vary most among sparse cells, such as those of a reference. A reference that is kept has all of a struct. */
#pragma once

#include "base/error.h"
#include "base/sparse.h"

enum { COMPONENTS = 50 }; /* of a reference, at most */

struct components {
	size_t d, k, g, q; /* features, classes, genes, components */
	uint32_t *at; /* [d] number of a feature among the genes, g: it is none */
	double *centre, *w; /* [g] mean of the genes; [g, q] of cells less that */
	double *types; /* [k, q] mean of each class */
};

/* Rows row[0..n) of x, or the first n (row NULL); BLAS must be set to one thread. The 1000 genes of the largest variance above `least`; then q <= g
 * components, of unit length, from each step-th row. -1 with e set: LAPACK fails. */
void components_choose(struct components *c, const struct sparse *x, const uint32_t *row, size_t n, double least);
int components_solve(
	struct components *c, const struct sparse *x, const uint32_t *row, size_t n, size_t step, size_t q, int threads, struct error *e);
/* Rows on the components, [n, q]. Malloced. */
float *components_project(const struct components *c, const struct sparse *x, const uint32_t *row, size_t n);
/* Both, of the rows with y < k of row[0..n) of x; y [x->n], every class is among them. w is such that the covariance within classes is the identity; all
 * is rounded to float. -1 with e set: LAPACK fails; c is released then. */
int components_fit(struct components *c, const struct sparse *x, const uint32_t *row, size_t n, const uint32_t *y, size_t k, int threads,
	struct error *e);
void components_keep(struct components *c, const uint8_t *keep); /* new cells will lack the genes of which keep [d] is 0 */
void components_release(struct components *c); /* accepts a zeroed struct */
