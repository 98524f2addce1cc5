/*
 * Blocks of a stream as packed batches (struct batch): cells end to end, masked positions as indices into them. Values that the model
 * cannot use are found here, because here the message can name the cell.
 */
#pragma once

#include "stream/ties.h"
#include "stream/counts.h"
#include "stream/panels.h"
#include "nn/model.h"

/* The columns of a masked stream. In a tokens stream, the columns that it lacks are -1. */
struct masked_columns {
	int cell, epoch, step; /* u64, u32, u32 */
	int input, input_group; /* ids; "token" in a tokens stream */
	int rank; /* u16 position of each input; -1: its place in the cell */
	int tie; /* u16 beside the tokens: draw an order of equal ties; -1: none; of a tokens stream */
	/* u16 position in the cell, -1: the whole cell is the target; id to predict; of counts: target is the list of masked genes */
	int position, target, masked_group;
	int value; /* f32, beside target: the number to predict; of tokens, beside the input: its value; -1: none */
	int input_value; /* f32, beside input: its value; -1: none */
	int count; /* u32, beside input; -1: none */
	int plain; /* a tokens stream: without masks */
	int batch_row; /* u32 number in the global batch; -1: row i of shard s has number s + i * shards */
	int panel; /* u32 number of the genes that were measured; -1: all genes */
	struct panels panels;
};

/* They find the columns of a stream, called `name` in messages; -1 with e set. */
int masked_columns(struct masked_columns *c, const struct header *h, const char *name, struct error *e);
int tokens_columns(struct masked_columns *c, const struct header *h, const char *name, struct error *e);
/* The same of counts, "gene" being the input; and of a masked-counts or, with `plain`, a counts stream. */
int counts_columns(struct masked_columns *c, const struct header *h, int plain, const char *name, struct error *e);
void masked_columns_release(struct masked_columns *c); /* accepts a zeroed struct */

struct packed {
	struct batch b; /* points into the arrays below and into the block; without goals */
	struct goal masked; /* the masked positions, the masks of counts or the whole cells, for the heads that predict them */
	uint32_t *offset, *id, *rank, *mask, *target, *key, *count;
	real *value, *cell; /* of the input; [cells, vocabulary] targets of whole cells */
	struct tie_order order;
	size_t offset_cap, id_cap, rank_cap, mask_cap, target_cap, key_cap, count_cap, value_cap, cell_cap;
};

/*
 * Pack rows [from, to) of a block; p->masked has tokens, and values if there is a column of them, or whole cells: a number for every gene of
 * the vocabulary, 0 for those without a count and NaN for those that were not measured; and which genes are in the input. limit: positions
 * of the model; a longer cell is an error, naming the cell and both numbers. A row's key is its number in the global batch: its batch_row, or
 * shard + i * shards for row i. -1 with e set; p is valid until the next call.
 */
int batch_masked(struct packed *p, const struct masked_columns *c, const struct block *b, size_t from, size_t to, size_t limit,
	uint32_t shard, uint32_t shards, const char *name, struct error *e);

/* The same for a tokens stream, without masks; with counts or values beside the tokens, these are the input's values. A gene that a cell has
 * twice and a special token among genes are errors. With `cut`, cells longer than limit keep their first tokens, and <eos> (token `eos`,
 * UINT32_MAX: none) at the end if they had it there. Tokens with the column tie get the order that maskgen --seed 1 gives them in
 * epoch 0. */
int batch_tokens(struct packed *p, const struct masked_columns *c, const struct block *b, size_t from, size_t to, size_t limit, int cut,
	uint32_t eos, const char *name, struct error *e);

/*
 * The same for counts, of a masked-counts or a counts stream: id, count and value = log(1 + count), which is 0 for masked genes; p->masked
 * has the mask. Genes that are not in increasing order are errors.
 */
int batch_counts(
	struct packed *p, const struct masked_columns *c, const struct block *b, size_t from, size_t to, const char *name, struct error *e);

void packed_release(struct packed *p); /* accepts a zeroed struct */
