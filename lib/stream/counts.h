/* The columns of a counts stream: for each cell n_counts, and the lists gene and count. And what log-normalised expression is. */
#pragma once

#include "stream/block.h"

struct counts_columns {
	int gene, count, total, group; /* total: n_counts */
};

/* Log-normalised expression, log(1 + 10,000 count / divisor). The divisor of a cell is n_counts, as scanpy has it, or 1 + the sum of the counts
 * that are in the list [BMFM-RNA]. */
static inline float log_norm(uint32_t count, double divisor)
{
	return (float)log1p((double)count / divisor * 1e4);
}

/* Find the columns of h. -1 with e set if it is not the header of a counts stream; `name` is the stream for messages. */
int counts_find(struct counts_columns *c, const struct header *h, const char *name, struct error *e);

/* Genes of items [from, end) of the block: a pointer into the block, or u16 values copied to *wide. */
const uint32_t *counts_genes(
	const struct counts_columns *c, const struct block *b, uint64_t from, uint64_t end, uint32_t **wide, size_t *cap);

/* Is the sum of the counts of row r larger than its n_counts? *sum is that sum. And the message (-1): `before` is the number of rows before the
 * block. */
int counts_wrong(const struct counts_columns *c, const struct block *b, size_t r, uint64_t *sum);
int counts_error(const struct counts_columns *c, const struct block *b, size_t r, const char *name, uint64_t before, struct error *e);
