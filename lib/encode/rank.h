/*
 * Rank value encoding [Theodoris et al. 2023, Methods]: the genes of a cell in order of expression relative to the gene's median, highest
 * first. medians.h computes the medians, ranksort.h sorts.
 *     s_g = (x_g / n) * 1e4 / m_g       x_g count, n all counts of the cell, m_g non-zero median of the corpus
 * The factor 1e4 / n is the same for all genes of a cell and cannot change the order, so the key is x_g / m_g, in double precision. Ties go
 * to the lower vocabulary index, so the order is unique.
 */
#pragma once

#include "base/error.h"

#define RANK_UNKNOWN UINT32_MAX

/* How the genes of an input become tokens. */
struct rank_table {
	size_t n; /* genes of the input's table */
	uint32_t *token; /* [n] vocabulary index, or RANK_UNKNOWN */
	double *median; /* [n] of that token, > 0; infinite without a token, so that the key is 0 */
	int shared; /* some genes have the same token: their counts are added */
	double least, most; /* median; most = 0: no gene has a token */
};

/* token [n] as above, median [V] of the vocabulary; NULL: all are 1. */
void rank_table_init(struct rank_table *t, const uint32_t *token, size_t n, const double *median);
void rank_table_release(struct rank_table *t); /* accepts a zeroed struct */

struct rank_cell { /* scratch of one thread, and the result of rank_encode */
	size_t n;
	uint32_t *token; /* [n] largest key first */
	uint32_t *count; /* [n]; only with `counts` */
	uint32_t *gene, *x; /* [cap] genes and counts after adding those of one token */
	uint32_t *item, *other; /* [cap] sort items */
	uint64_t *pair; /* [cap] */
	size_t cap;
};
void rank_cell_release(struct rank_cell *c); /* accepts a zeroed struct */

/*
 * Order one cell.
 * gene, count [n]      counts of genes < t->n; zeros are left out
 * repeats              a gene may occur more than once
 * counts               fill c->count too
 * The result is in c->token and c->count, c->n of them. Returns the sum of the counts of genes without a token.
 */
uint64_t rank_encode(
	struct rank_cell *c, const struct rank_table *t, const uint32_t *gene, const uint32_t *count, size_t n, int repeats, int counts);
