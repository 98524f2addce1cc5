/*
 * The order in which cells are fed to training: epochs, windowed shuffle, global batches, shards.
 *
 * Epoch e permutes the blocks of the input by Philox(seed, e), joins them to windows of `window` blocks, and permutes
 * the rows inside each window by Philox(seed, e, window). Global batch k of the epoch is rows [k n b, (k + 1) n b) of that
 * order for n shards of batch b; shard r has its rows r, r + n, ... Nothing else is kept, so any batch is reached by
 * reading one window; memory is one window.
 *
 * Cells differ in length, and in training all shards wait for the one with the most to do. With `balance` the rows of a global
 * batch are dealt out by length L: the longest n first, one a shard, then the next n, the longest of them to the shard that
 * has the least so far, and so on, by a cost of L (1024 + L) [linear layers and attention of a transformer of width 256]. What
 * a shard has got stays in the batch's order. The global batches are the same with and without.
 */
#ifndef FEED_H
#define FEED_H

#include "stream.h"

struct feed {
	/* set by the caller */
	struct stream *in;              /* before its first read */
	const struct header *want;      /* columns to gather, a subset of the input's; borrowed */
	uint32_t seed;
	uint64_t epochs, batch, shards, shard, window;
	const char *balance;            /* ragged column of want whose lengths are balanced, or NULL; want then has a scalar U32 column
	                                 * "batch_row", which gets the row's number in the global batch */

	/* set by feed_init */
	uint64_t rows;                  /* an epoch */
	uint64_t per_epoch, steps;      /* global batches an epoch, and in all */

	/* private */
	int *map;
	size_t nblock;
	uint32_t *order;                /* [nblock] blocks of this epoch */
	struct block *block;            /* [window] of the current window */
	struct place { uint32_t block, row; } *place;   /* [nplace] rows of the window in order */
	size_t nplace, place_cap;
	uint64_t epoch, win;            /* current window ... */
	uint64_t first, nrow;           /* ... its first row in the epoch's order, and how many rows it has */
	int loaded, ordered;
	uint64_t next;                  /* global step that feed_next gives next */
	uint32_t *row;                  /* scratch */
	size_t row_cap;
	struct block all;               /* balance: the global batch, and scratch to deal it out */
	int *same;
	struct load { uint64_t cost; uint32_t at; } *cell, *pile;
	size_t cell_cap;
};

/* Index the input (spooling it when it cannot seek) and count. -1 with e set. */
int feed_init(struct feed *f, struct error *e);
void feed_release(struct feed *f);          /* accepts a zeroed struct; leaves in open */

/* Make `step` (counted over all epochs, from 0) the next one. */
void feed_seek(struct feed *f, uint64_t step);

/* This shard's rows of the next global batch into b, laid out as f->want (no rows when the last batch ends before this shard).
 * 1, 0 after the last, -1 with e set. Sets *epoch and *step. */
int feed_next(struct feed *f, struct block *b, uint64_t *epoch, uint64_t *step, struct error *e);

#endif
