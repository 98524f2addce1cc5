/*
 * Average ranks of the columns, as integers. The value of a gene in a cell is L_max - position, or 0 if it is absent. r' is the doubled
 * average rank of a value minus the doubled average rank of the value 0. So r' is a whole number, and 0 if the gene is absent.
 */
#ifndef CORRELATION_RANKS_H
#define CORRELATION_RANKS_H

#include "method/correlation_columns.h"

enum { CORRELATION_CHUNK = 512 }; /* the screen adds up chunks of so many cells */

struct correlation_ranks {
	uint32_t *r;     /* [genes, max_len + 1] r' of a gene by position; r[0] = 0: absent */
	double *D;       /* [genes] n sum r'^2 - S^2, exact but for the rounding to double; 0: constant */
	int64_t *S;      /* [genes] sum r' */
	double *M;       /* [genes] S / sqrt(D) */
	double *wide;    /* [genes] sqrt(1 + M^2) */
	float *y;        /* [entries] r' sqrt(n / D), used by the screen */
	uint32_t *chunk; /* [genes, chunks + 1] where each chunk of cells starts in a gene's column */
	uint32_t chunks;
};
void correlation_ranks_init(struct correlation_ranks *k, const struct correlation_columns *x);
void correlation_ranks_release(struct correlation_ranks *k);

#endif
