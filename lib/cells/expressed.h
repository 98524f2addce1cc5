/*
 * Cells of a counts stream as rows of log-normalised expression:
 *     log(1 + 10^4 count / total),   total: the sum over the features of the cell
 * The features are genes that two streams share, so that cells of other panels of genes are normalised alike.
 */
#pragma once

#include "base/sparse.h"
#include "genes/gene_match.h"
#include "stream/block.h"

struct expressed {
	int gene, count; /* columns */
	uint32_t *feature; /* [genes of the stream] row of the vocabulary of the features, EXPRESSED_NOT: it is none */
	size_t shared; /* genes that are features */
	struct gene_matched matched; /* how the genes of the stream match `genes`, or, if these are its own, the genes of `with` */
	uint32_t *column; /* scratch of expressed_pack */
	uint64_t *some;
	size_t column_cap, some_cap;
};
#define EXPRESSED_NOT UINT32_MAX

/* For a counts stream with header h. Features: genes of `genes` that `with` has too (genes/gene_match.h); they are numbered as in `genes`.
 * -1 with e set: another stream, or ids that name different genes. The names are for messages. */
int expressed_init(struct expressed *x, const struct header *h, const char *name, const struct vocab *genes, const struct vocab *with,
	const char *with_name, struct error *e);
void expressed_release(struct expressed *x); /* accepts a zeroed struct */

/* Add row r of a block to `to`. Returns the molecules of its features; 0: it has none, and nothing is added. */
uint64_t expressed_add(const struct expressed *x, const struct block *b, size_t r, struct sparse *to);
/* The same as a packed row. */
uint64_t expressed_pack(struct expressed *x, const struct block *b, size_t r, struct sparse *to);

/* What the rows of x, packed and all of a stream, would have shown with a share p of their molecules (cells/thin.h), 0 < p < 1. total
 * [x->n]: the molecules that are left of each row, out; 0: none. cell [x->n]; before: thin_before of the stream */
void expressed_thin(struct sparse *x, uint64_t *total, const uint64_t *cell, uint32_t seed, uint32_t before, double p);
