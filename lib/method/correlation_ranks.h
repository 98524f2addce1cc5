/*
 * Average ranks of the columns, as integers. The value of a gene in a cell is L_max - position, or 0 if it is absent. r' is the doubled
 * average rank of a value minus the doubled average rank of the value 0. So r' is a whole number, and 0 if the gene is absent.
 *
 * The screen reads y = r' sqrt(n / D) chunk by chunk, so its entries are in order of (chunk of cells, gene, cell). An entry is
 *
 *      31                            9             0
 *     +------------------------------+-------------+
 *     | leading bits of y as a float | cell        |   cell: its number in the chunk
 *     +------------------------------+-------------+
 *
 * The sign, which is 0, is left out. What is lost of y is less than 2^-15 of it.
 */
#ifndef CORRELATION_RANKS_H
#define CORRELATION_RANKS_H

#include "method/correlation_columns.h"

#include <string.h>

enum { CORRELATION_CHUNK = 512 }; /* the screen adds up chunks of so many cells */

struct correlation_ranks {
	uint32_t *r;     /* [genes, max_len + 1] r' of a gene by position; r[0] = 0: absent */
	double *D;       /* [genes] n sum r'^2 - S^2, exact but for the rounding to double; 0: constant */
	int64_t *S;      /* [genes] sum r' */
	double *M;       /* [genes] S / sqrt(D) */
	double *wide;    /* [genes] sqrt(1 + M^2): the norm of y */
	double *lost;    /* [genes] the norm of what correlation_half loses of y */
	uint32_t *entry; /* [entries] */
	uint64_t *chunk; /* [chunks] the first entry of each chunk */
	uint32_t *start; /* [chunks, genes + 1] where the entries of each gene start in the chunk */
	uint32_t chunks;
};
void correlation_ranks_init(struct correlation_ranks *k, const struct correlation_columns *x);
void correlation_ranks_release(struct correlation_ranks *k);

static inline uint32_t correlation_entry(float y, uint32_t cell)
{
	uint32_t b;
	memcpy(&b, &y, 4);
	return (b << 1 & ~(CORRELATION_CHUNK - 1u)) | cell % CORRELATION_CHUNK;
}

static inline float correlation_y(uint32_t entry)
{
	float y;
	entry = (entry & ~(CORRELATION_CHUNK - 1u)) >> 1;
	memcpy(&y, &entry, 4);
	return y;
}

/* y of an entry, rounded to a bfloat16 (the upper half of a float). */
static inline uint16_t correlation_half(uint32_t entry)
{
	return (uint16_t)((((entry & ~(CORRELATION_CHUNK - 1u)) >> 1) + 0x8000) >> 16);
}

#endif
