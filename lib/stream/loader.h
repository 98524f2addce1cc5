/*
 * The loader of training: the order of the cells, in epochs, global batches and shards.
 *
 * Epoch e permutes the blocks of the input by Philox(seed, e). Every `window` consecutive blocks of that order are a window, and the
 * rows of a window are permuted by Philox(seed, e, window). Global batch k of the epoch is rows [k n b, (k + 1) n b) of the
 * resulting order, for n shards of batch b; shard r takes its rows r, r + n, ... There is no other state, so
 * one window is read to start at any batch. Memory is one window.
 *
 * The rows of a window are in all of its blocks, so every shard decodes everything. With L lanes it does not. The order of the blocks, as
 * one list of rows, is cut into L lanes of equal length (the first R mod L of R rows are longer by one). Each lane has windows of its own, of
 * window / L blocks (1 at least), shuffled by Philox(seed, e, lane, window). Row i of the order of the epoch is row i div L of lane i mod L. So the
 * global batches depend on L, and not on n; and if n divides L, shard r reads the lanes r, r + n, ... only: L / n lanes, 1 / n of the blocks,
 * and one block more for each lane that begins inside one. (Otherwise it reads 1 / gcd(n, L) of them.) One lane is the order above.
 *
 * Cells differ in length, and every training step waits for the shard with the most work. With `balance` the rows of a global batch
 * are therefore distributed by length. The rows are sorted by length, longest first, and taken in groups of n, one row for each shard. The
 * longest row of a group goes to the shard with the smallest load so far, the next one to the second smallest, and so on. A row of
 * L tokens has the load L (1024 + L) [linear layers and attention of a transformer of width 256]. A shard keeps its rows in the
 * order of the batch. The rows of a global batch are the same with and without `balance`. All lengths are needed, so each shard reads
 * all lanes.
 *
 * Shard r checks the digests of the streams r, r + n, ... of those that are read as one (stream_check_share). Each block that is read
 * has its own checksum.
 */
#pragma once

#include "stream/stream.h"

#define LOADER_LANES 65536

struct loader {
	/* set by the caller */
	struct stream *in; /* before its first read */
	const struct header *want; /* columns to load, a subset of the input's; borrowed */
	uint32_t seed;
	uint64_t epochs, batch, shards, shard, window;
	uint64_t lanes; /* up to LOADER_LANES; 0 is 1 */
	/* ragged column of want whose lengths are balanced, or NULL. If given, want has a scalar U32 column "batch_row" for the row's
	 * number in the global batch */
	const char *balance;

	/* set by loader_init */
	uint64_t rows; /* an epoch */
	uint64_t per_epoch, steps; /* global batches an epoch, and in all */
	uint64_t decoded; /* blocks that were read so far, again and again in every epoch; without the check of the digests */

	/* private */
	int *map;
	size_t nblock;
	uint32_t *order; /* [nblock] blocks of this epoch */
	uint64_t span; /* blocks in a window of a lane */
	struct loader_lane {
		size_t from; /* place in `order` of its first block */
		uint64_t skip; /* rows of that block that are of the lane before */
		uint64_t rows;
		uint64_t win; /* current window */
		uint64_t first, nrow; /* its first row in the lane, and its number of rows */
		int loaded; /* the window is in memory */
		struct block *block; /* [span] of the window; NULL if this shard has not read the lane */
		struct loader_place {
			uint32_t block, row;
		} * place; /* [nplace] rows of the window in order */
		size_t nplace, place_cap;
	} * lane; /* [lanes] */
	uint64_t epoch; /* of `order` */
	int ordered; /* there is an order */
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
