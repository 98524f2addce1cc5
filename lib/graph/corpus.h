/*
 * A random sample of cells in memory: of all cells that were added, the `size` cells with the smallest Philox(seed, cell). The order of
 * the cells does not matter. Special tokens are dropped. Then positions are counted from 1, and a cell is truncated to max_len tokens.
 * Memory grows with the tokens of the sample.
 */
#pragma once

#include "stream/stream.h"

struct corpus_cell {
	uint64_t key, cell;
	uint32_t n; /* tokens */
	void *token; /* [n] u16, or u32 where the vocabulary needs it */
};

struct corpus {
	/* set by the caller */
	uint32_t seed, nspecial, max_len;
	uint64_t size; /* most cells kept; 0: all */
	int wide; /* tokens are u32 */

	/* the sample, and some more cells; corpus_sort drops these and puts it in order of cell */
	uint32_t n;
	struct corpus_cell *cell;
	size_t cap;
	uint64_t seen, tokens; /* cells added in all; tokens kept (after corpus_sort) */
};

/* Add the rows of a tokens block (columns cell and token). -1 with e set if more than 2^31 cells must be kept. */
int corpus_add(struct corpus *c, const struct block *b, int cell_column, int token_column, struct error *e);
void corpus_sort(struct corpus *c); /* after the last add */
void corpus_release(struct corpus *c); /* accepts a zeroed struct */

static inline uint32_t corpus_token(const struct corpus *c, uint32_t i, uint32_t k)
{
	return c->wide ? ((const uint32_t *)c->cell[i].token)[k] : ((const uint16_t *)c->cell[i].token)[k];
}
