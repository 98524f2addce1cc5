/*
 * Masked batches: the cells of the loader's batches become the blocks of a masked or masked-counts stream (man scstream.5).
 * Several batches are masked at the same time, each by one thread, and are returned in order. The masks of a cell depend on the plan, the
 * epoch, the cell's number, and the rate and lambda of its global batch, but not on threads or shards. For MASK_COLUMNS they depend on the
 * number of the global batch instead of the cell's.
 *
 *     struct masking m = {.plan = &plan, .rate = rate, .loader = &loader, .header = &header, .threads = 2};
 *     masking_init(&m);
 *     while ((got = masking_next(&m, &b, e)) > 0)
 *             stream_write(out, &b->block, e);
 *     masking_release(&m);
 */
#pragma once

#include "mask/audit.h"
#include "mask/input.h"
#include "mask/mask_schedule.h"
#include "stream/ties.h"

/* The columns of the input stream that are used. */
struct masking_columns {
	char *const *keep; /* [nkeep] scalar and fixed columns that are copied */
	size_t nkeep;
	const char *groups; /* i32 column beside token: the module of each token; NULL: none */
	int runs; /* for MASK_RUNS: the tokens need the column tie */
	int value; /* the model is to predict values: the tokens need the column count, or the columns rank and value */
	int cell; /* the whole cell: the tokens need the column count */
	int fields; /* of value, with counts: hidden fields (mask/input.h) */
	int unmeasured; /* of cell: genes that were not measured are zeros, so the panels are left out */
	int balance; /* the loader balances shards, so a masked stream has the column batch_row */
	int counts; /* the input is a counts stream, for MASK_COLUMNS; else a tokens stream */
};

/* Are the values of these tokens the input, for these objectives? They are then made from the counts. */
int masking_counted(const struct header *in, const struct masking_columns *c);

/*
 * want: the columns to load from a stream with header `in` (its file is `name`). out: the header of the masked stream, a copy of `in` but
 * for its kind and columns: cell, epoch, step, batch_row (balance), the kept ones, and the lists: input, rank (where the tokens have it),
 * position, target and (value) value, or for counts gene, count and masked. With values as input they are input, input_value, and of values
 * position, target and, if values are hidden, value; of whole cells panel, target and value. Tokens with the column tie get a new order of
 * equal counts in every epoch (ties.h), but for MASK_RUNS. -1 with e set if a column is missing or cannot be kept. The caller always
 * releases both headers.
 */
int masking_headers(struct header *want, struct header *out, const struct header *in, const struct masking_columns *c, const char *name,
	struct error *e);

struct masked_batch {
	struct block block; /* the masked stream's, one row a cell of this shard */
	uint64_t epoch, step;
	double rate, lambda; /* of the global batch */
	uint64_t tokens; /* special ones included; for counts: cells x genes */
	uint64_t masked; /* of them */
	struct audit audit; /* without masking.audit only the rates of plan.graph (audit_rates) */

	/* private */
	struct block in;
	struct error error;
	int failed;
};

struct masking {
	/* set by the caller; pointers are borrowed */
	const struct mask_plan *plan;
	struct mask_schedule rate, lambda;
	struct loader *loader; /* loads `want` of masking_headers */
	const struct header *header; /* `out` of masking_headers */
	const char *groups; /* as in masking_columns */
	const struct graph *audit; /* audit the masks with this graph; NULL: no audit */
	const struct input_plan *plan_input; /* the input has values (masking_counted); NULL: tokens alone, or counts */
	int threads;

	/* private */
	struct masking_worker *worker; /* [threads] */
	struct masked_batch *batch; /* [nbatch]; those in [at, n) are masked and not yet returned */
	size_t nbatch, n, at;
	int *map; /* columns of want -> header */
	int token, group, tie; /* columns of want: token or gene; group, tie: -1 without */
	int cell, epoch, step; /* columns of header */
	int rank_from, rank; /* columns of want and header; -1 without */
	int value_from, value; /* the same */
	int input, position, target; /* columns of header; MASK_COLUMNS: gene, masked, none; position of whole cells: -1 */
	int count, panel, total, input_value; /* with values as input: columns of want, -1 without; of header */
	int token_list, input_list, masked_list; /* their ragged groups */
};

void masking_init(struct masking *m);
void masking_release(struct masking *m);

/* The next batch in order: 1 and *b, which is valid until the next call; 0 after the last one; -1 with e set. */
int masking_next(struct masking *m, const struct masked_batch **b, struct error *e);
