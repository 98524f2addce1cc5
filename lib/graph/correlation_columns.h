/*
 * A sample of cells as columns, one for each gene: which cells have the gene, and at which position.
 */
#pragma once

#include "graph/corpus.h"

#define CORRELATION_CELLS_MAX 1000000u /* sums of products of doubled ranks are at most 4 n^3 < 2^63 */
#define CORRELATION_PART 65536u /* so that a cell's number in it is two bytes */

/* The genes are in falling order of the cells that have them. */
struct correlation_columns {
	uint32_t n; /* cells */
	uint32_t max_len;
	uint32_t genes;
	uint32_t parts; /* of CORRELATION_PART cells */
	uint32_t *token; /* [genes] */
	uint64_t *offset; /* [genes, parts] and the end: where the entries of a gene start in each part */
	uint16_t *cell; /* of each entry, in the part, ascending */
	uint16_t *pos; /* of each entry, 1 ... max_len */
};

/*
 * Take the genes of at least min_cells cells; of these, the top_genes with the largest sums over all cells of L_max - position (0: all).
 * vocab: rows of the vocabulary. -1 with e set: more than CORRELATION_CELLS_MAX cells, or a cell that has a token twice.
 */
int correlation_columns_init(
	struct correlation_columns *x, const struct corpus *c, uint32_t vocab, uint32_t min_cells, uint32_t top_genes, struct error *e);

/* Where the entries of gene j start, and those of the gene before it end. */
static inline uint64_t correlation_column(const struct correlation_columns *x, uint32_t j)
{
	return x->offset[(size_t)j * x->parts];
}

void correlation_columns_release(struct correlation_columns *x); /* accepts a zeroed struct */
