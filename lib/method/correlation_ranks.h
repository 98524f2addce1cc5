/*
 * Average ranks of the columns, as integers. The value of a gene in a cell is L_max - position, or 0 if it is absent. r' is the doubled
 * average rank of a value minus the doubled average rank of the value 0. So r' is a whole number, and 0 if the gene is absent.
 *
 * The screen multiplies y = r' sqrt(n / D), each gene in steps of its own: q = y / step, rounded, at most CORRELATION_Q. It reads the q in
 * order of (chunk of cells, gene, cell).
 */
#ifndef CORRELATION_RANKS_H
#define CORRELATION_RANKS_H

#include "method/correlation_columns.h"

enum {
	CORRELATION_CHUNK = 512, /* the screen adds up chunks of so many cells */
	CORRELATION_Q = 2047,    /* CORRELATION_CHUNK products of two are less than 2^31 */
};

/* Two cells of a gene. If a chunk has an odd number of them, the last one comes twice, with 0 as the second q. */
struct correlation_entry {
	uint16_t cell[2]; /* in the chunk */
	uint32_t q;       /* of the first in the low half, of the second in the high one */
};

struct correlation_ranks {
	uint32_t *r;  /* [genes, max_len + 1] r' of a gene by position; r[0] = 0: absent */
	double *D;    /* [genes] n sum r'^2 - S^2, exact but for the rounding to double; 0: constant */
	int64_t *S;   /* [genes] sum r' */
	double *M;    /* [genes] S / sqrt(D) */
	double *wide; /* [genes] sqrt(1 + M^2): the norm of y */
	double *step; /* [genes] */
	double *lost; /* [genes] the norm of y - step q */
	struct correlation_entry *entry;
	uint64_t *chunk; /* [chunks] the first entry of each chunk */
	uint32_t *start; /* [chunks, genes + 1] where the entries of each gene start in the chunk */
	uint32_t chunks, genes;
};

void correlation_ranks_init(struct correlation_ranks *k, const struct correlation_columns *x);
void correlation_ranks_release(struct correlation_ranks *k);

#endif
