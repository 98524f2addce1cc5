/*
 * Average ranks of the columns, as integers. The value of a gene in a cell is L_max - position, or 0 if it is absent. r' is the doubled
 * average rank of a value minus the doubled average rank of the value 0. So r' is a whole number, and 0 if the gene is absent.
 *
 * The screen multiplies rounded ranks. y = r' sqrt(n / D) is at most CORRELATION_Q steps of a size of its own for each gene; q is y in
 * steps, rounded, and coarse q the same in steps that are CORRELATION_COARSE times as long. C is the covariance of two y, which have a
 * standard deviation of 1 / sqrt(n). For y = z + d with z = step q, by Cauchy and Schwarz,
 *     |C_uv - sum (z_u - mean z_u) (z_v - mean z_v)| <= |d_u| + (1 + |d_u|) |d_v|.
 */
#pragma once

#include "graph/correlation_columns.h"

enum {
	CORRELATION_CHUNK = 512, /* the screen adds up chunks of so many cells */
	CORRELATION_COARSE = 64,
	CORRELATION_Q =
		255 * CORRELATION_COARSE, /* a coarse q is a byte; CORRELATION_CHUNK products of a q and a coarse one are less than 2^31 */
};

/* Two cells of a gene. If a chunk has an odd number of them, the last one comes twice, with 0 as the second q. */
struct correlation_entry {
	uint16_t cell[2]; /* in the chunk */
	uint32_t q; /* of the first in the low half, of the second in the high one */
};

struct correlation_ranks {
	uint32_t *r; /* [genes, max_len + 1] r' of a gene by position; r[0] = 0: absent */
	double *D; /* [genes] n sum r'^2 - S^2, exact but for the rounding to double; 0: constant */
	int64_t *S; /* [genes] sum r' */
	struct correlation_rounding {
		double step, mean, lost; /* in y; mean is times sqrt(n), lost is |d| */
	} * fine, *coarse; /* [genes] */
	struct correlation_entry *entry; /* and one more, as kernels read two at a time */
	uint64_t *chunk; /* [chunks] the first entry of each chunk */
	uint32_t *start; /* [chunks, genes + 1] where the entries of each gene start in the chunk */
	uint32_t chunks, genes;
};

static inline uint8_t correlation_coarse(uint32_t q)
{
	return (uint8_t)((q + CORRELATION_COARSE / 2) / CORRELATION_COARSE);
}

void correlation_ranks_init(struct correlation_ranks *k, const struct correlation_columns *x);
void correlation_ranks_release(struct correlation_ranks *k);
