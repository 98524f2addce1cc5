/*
 * Counts blocks to tokens blocks: the genes of each cell in the order of rank.h, cut to a length, with the special tokens around them.
 *
 *     encoder_init, encoder_header, encoder_match     once
 *     encoder_start, encoder_finish                   for each block of counts
 *
 * Ties. Genes of equal count stand in the order of their medians, so the place of a gene tells its median. The tie of a token is the
 * number of its count among the distinct counts of the cell, from 1, the highest count first; special tokens have 0. Column `tie` is for
 * readers that draw an order of equal counts (ties.h); column `rank` is the position that the model takes, one for all genes of a tie.
 *
 * STYLE_BMFM, for models that read values: all genes of the cell, the highest count first, ties by token; their counts beside them; and which
 * genes were measured (stream/panels.h): those that the counts' panels say, or all genes of the counts.
 */
#pragma once

#include "base/threads.h"
#include "encode/rank.h"
#include "genes/gene_match.h"
#include "stream/counts.h"
#include "stream/panels.h"

#include <stdatomic.h>

enum { STYLE_AUTO = -1, STYLE_V1, STYLE_V2, STYLE_BMFM, STYLES };
struct style {
	const char *word; /* of --vocab-style */
	size_t max_len; /* usual; SIZE_MAX: cells are whole */
	int special; /* its special tokens are so many of enum token, or BMFM's */
	int around; /* some stand around the genes */
	int counted; /* genes have counts, and no medians */
};
extern const struct style styles[];

enum ties { TIES_MEDIAN, TIES_RANDOM, TIES_GROUP };

#define TIE_MAX 65535 /* ties are u16 */

struct encoder_options {
	/* STYLE_V2: <cls> before, <eos> after the genes; STYLE_BMFM: [CLS] and [SEP]. STYLE_AUTO: BMFM if the vocabulary begins with [UNK],
	 * V2 if it has <cls> and <eos> */
	int style;
	long long max_len; /* most tokens of a cell, special ones included; 0: 2,048 for V1, 4,096 for V2; BMFM: 0, cells are whole */
	long long cls; /* STYLE_BMFM: tokens before the genes, 1 to CLS_MAX; 0: 1 */
	int ties; /* enum ties: TIES_RANDOM adds the column tie, TIES_GROUP the column rank, which is below max_len */
	int value; /* add the column value: log_norm of the count (stream/counts.h), 0 for special tokens */
	int canonical; /* the caller made the counts: genes ascend without repeats, n_counts is the sum. Not checked */
	int threads;
};

struct encoder {
	struct encoder_options o;
	struct counts_columns in; /* columns of the counts */
	char *name; /* of their stream, for messages */
	struct rank_table table;
	size_t max_len;
	uint32_t first[CLS_MAX]; /* [nfirst] tokens before the genes */
	size_t nfirst, room; /* room: special tokens of a cell */
	int64_t eos; /* -1: none */
	int narrow; /* tokens are u16 */
	int counted; /* keep the counts */
	int token, value, tie, count, panel; /* columns of the tokens stream; all but token: -1 without; tie: or rank */
	int *map; /* for each column of the tokens, the column of the counts */
	struct panels measured; /* of the counts: n 0: all genes are of one file */
	int measured_by; /* column of the counts: the panel of a cell; -1: none */
	uint32_t *panel_of; /* [measured.n] their numbers among the panels of the tokens */

	uint64_t cells, kept, tokens, full; /* cells read, cells written, tokens written, cells of max_len tokens */
	atomic_ullong known, all; /* counts of genes with a token; of all genes */
	atomic_ullong cut, lost; /* cells with more genes than fit; tokens of these that are left out */
	int enough; /* set between blocks: encoder_count needs no more */
	size_t expressed, matched; /* genes with a count in some cell, after encoder_count; those with a token */

	/* of one block */
	const struct block *block; /* NULL: none is being encoded */
	struct pool_loop loop;
	void *out; /* tokens of row r: out[start[r] + room r ...], u16 or u32 */
	float *score;
	uint16_t *tie_of;
	uint32_t *count_of;
	size_t *length; /* [rows] tokens */
	uint32_t *row; /* rows to keep */
	size_t out_cap, score_cap, tie_cap, count_cap, length_cap, row_cap;
	atomic_size_t wrong; /* first row with a count above n_counts; rows of the block: none */
	struct encoder_scratch *scratch; /* [threads] */
};

/* For vocabulary v, called `vocab_name` in messages. -1 with e set if it lacks a token that V2 needs, or
 * if ties are wanted of more than TIE_MAX tokens. */
int encoder_init(struct encoder *enc, const struct encoder_options *o, const struct vocab *v, const char *vocab_name, struct error *e);
void encoder_release(struct encoder *enc); /* accepts a zeroed struct */

/* The header of the tokens stream (h is zeroed or released before) for a counts stream with header `counts`, called `name` in messages:
 * the columns of cells and the provenance are the same; lists other than gene and count are left out. -1 with e set if it is no counts
 * stream, or if a column has the name of a new one already. */
int encoder_header(
	struct encoder *enc, struct header *h, const struct header *counts, const char *name, const struct vocab *v, struct error *e);

/* Which token each gene of the counts is: t->from are their genes, t->to is the vocabulary, in which every gene has a median, but for STYLE_BMFM. */
int encoder_match(struct encoder *enc, const struct gene_tables *t, struct gene_matched *m, struct error *e);
/* After it: what the header h of encoder_header says beside the columns. */
void encoder_describe(struct encoder *enc, struct header *h);

/* Begin to encode the cells of block b, on other threads if there are some. b must stay as it is until encoder_finish. That waits, and
 * appends the cells to `out`, which has the header of encoder_header. -1 with e set if a count is above n_counts. */
void encoder_start(struct encoder *enc, const struct block *b);
int encoder_finish(struct encoder *enc, struct block *out, struct error *e);

/* After a block: how many genes any cell has (`expressed`), and how many of these have a token (`matched`). */
void encoder_count(struct encoder *enc);
