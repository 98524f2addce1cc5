/*
 * A sample of cells as columns, one for each gene: which cells have the gene, and at which position.
 */
#pragma once

#include "graph/corpus.h"

#define CORRELATION_CELLS_MAX 1000000u /* sums of products of doubled ranks are at most 4 n^3 < 2^63 */

/* The genes are in falling order of the cells that have them. */
struct correlation_columns {
	uint32_t n; /* cells */
	uint32_t max_len;
	uint32_t genes;
	uint32_t *token; /* [genes] */
	uint64_t *offset; /* [genes + 1] */
	uint32_t *cell; /* [offset[genes]] ascending within a gene */
	uint16_t *pos; /* [offset[genes]] 1 ... max_len */
};

/*
 * Take the genes of at least min_cells cells; of these, the top_genes with the largest sums over all cells of L_max - position (0: all).
 * vocab: rows of the vocabulary. -1 with e set: more than CORRELATION_CELLS_MAX cells, or a cell that has a token twice.
 */
int correlation_columns_init(
	struct correlation_columns *x, const struct corpus *c, uint32_t vocab, uint32_t min_cells, uint32_t top_genes, struct error *e);
void correlation_columns_release(struct correlation_columns *x); /* accepts a zeroed struct */
