/*
 * The loader of training: the order of the cells, in epochs, global batches and shards.
 *
 * Epoch e permutes the blocks of the input by Philox(seed, e). Every `window` consecutive blocks of that order are a window, and the
 * rows of a window are permuted by Philox(seed, e, window). Global batch k of the epoch is rows [k n b, (k + 1) n b) of the
 * resulting order, for n shards of batch b; shard r takes its rows r, r + n, ... There is no other state, so
 * one window is read to start at any batch. Memory is one window.
 *
 * Cells differ in length, and every training step waits for the shard with the most work. With `balance` the rows of a global batch
 * are therefore distributed by length. The rows are sorted by length, longest first, and taken in groups of n, one row for each shard. The
 * longest row of a group goes to the shard with the smallest load so far, the next one to the second smallest, and so on. A row of
 * L tokens has the load L (1024 + L) [linear layers and attention of a transformer of width 256]. A shard keeps its rows in the
 * order of the batch. The rows of a global batch are the same with and without `balance`.
 */
#ifndef LOADER_H
#define LOADER_H

#include "stream/stream.h"

struct loader {
	/* set by the caller */
	struct stream *in; /* before its first read */
	const struct header *want; /* columns to load, a subset of the input's; borrowed */
	uint32_t seed;
	uint64_t epochs, batch, shards, shard, window;
	/* ragged column of want whose lengths are balanced, or NULL. If given, want has a scalar U32 column "batch_row" for the row's
	 * number in the global batch */
	const char *balance;

	/* set by loader_init */
	uint64_t rows; /* an epoch */
	uint64_t per_epoch, steps; /* global batches an epoch, and in all */

	/* private */
	int *map;
	size_t nblock;
	uint32_t *order; /* [nblock] blocks of this epoch */
	struct block *block; /* [window] of the current window */
	struct place {
		uint32_t block, row;
	} * place; /* [nplace] rows of the window in order */
	size_t nplace, place_cap;
	uint64_t epoch, win; /* current window */
	uint64_t first, nrow; /* its first row in the order of the epoch, and its number of rows */
	int loaded, ordered; /* the window is in memory; order is that of epoch */
	uint64_t next; /* step of the next batch */
	uint32_t *row; /* scratch */
	size_t row_cap;
	struct block all; /* balance: the global batch */
	int *same; /* balance: a map from want to want */
	struct loader_cost {
		uint64_t cost;
		uint32_t at; /* row of the batch, or shard */
	} * cell, *shard_load;
	size_t cell_cap;
};

/* Index the input and count its rows. Input that cannot seek is first copied to a temporary file. -1 with e set. */
int loader_init(struct loader *l, struct error *e);
void loader_release(struct loader *l); /* accepts a zeroed struct; leaves in open */

/* Continue at `step`, which is counted over all epochs from 0. */
void loader_seek(struct loader *l, uint64_t step);

/* Load this shard's rows of the next global batch into b, which has the layout l->want. (The last batch can be too short for this shard:
 * then there are no rows.) Sets *epoch and *step. 1, -1 with e set, or 0 after the last batch: then the digest of the input has been
 * compared (stream_check). */
int loader_next(struct loader *l, struct block *b, uint64_t *epoch, uint64_t *step, struct error *e);

#endif
