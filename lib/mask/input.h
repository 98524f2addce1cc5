/*
 * The input of a model that reads values, and its targets, from tokens with their counts [BMFM-RNA]. There are two objectives.
 *
 * The whole cell (plan.cell). The genes that the masks choose are left out of the input, but one gene stays in any case. All genes of the cell
 * are targets.
 * Values. The fields of the chosen tokens are hidden: the value, the gene, or both. A share of them stays visible, and is predicted too.
 *
 * A value is log_norm of the count (stream/counts.h). In the input the divisor is the sum over the genes that are left in it,
 * before it is cut; in the targets it is the sum over the whole cell. The value of a special token, and of a hidden one, is -(id + 1).
 *
 * The genes of the input are in random order. Then zeros, genes without a count in the cell that were
 * measured, are put between them or after them:
 *     ZEROS_RANDOM   after the others, up to max_len tokens, drawn uniformly
 *     ZEROS_BATCH    one in ten tokens is a zero, until one kind is used up, then the rest; genes that another cell of the shard's batch has
 *                    come first, in random order, then all others
 * A fifth of the cells gets none. A cell of fewer than two genes gets 128 zeros in any case, but one without tokens gets none. At last the
 * genes are cut, so that the cell has at most max_len tokens. All draws are Philox(seed, cell, epoch).
 */
#pragma once

#include "mask/mask.h"
#include "stream/counts.h"
#include "stream/panels.h"

enum zeros { ZEROS_NONE, ZEROS_RANDOM, ZEROS_BATCH };
enum { FIELD_VALUE = 1, FIELD_GENE = 2 }; /* both: 3 */

struct input_plan {
	int cell; /* the objective: 1 the whole cell, 0 values */
	int fields; /* of the objective of values: those that are hidden */
	double hidden; /* the share of the chosen tokens whose fields are hidden */
	enum zeros zeros;
	uint32_t max_len; /* special tokens included; <= MASK_ROW_MAX, which is no limit but that of the stream */
	const struct panels *panels; /* borrowed; n 0: all genes were measured */
};

/* A cell, borrowed. */
struct counted_cell {
	uint64_t cell;
	uint32_t epoch;
	uint32_t n; /* <= MASK_ROW_MAX: special tokens, genes in any order without repeats, special tokens */
	const uint32_t *token, *count; /* [n] */
	uint32_t panel;
};

/* What the model gets, and is to predict. [n] arrays live until the next call. */
struct masked_cell {
	uint32_t n; /* tokens of the input */
	const uint32_t *input;
	const float *value; /* [n] */
	uint32_t targets;
	const uint16_t *position; /* [targets] of values, ascending; NULL: of the whole cell */
	const uint32_t *target; /* [targets] genes, of the whole cell ascending */
	const float *target_value; /* [targets] */
	uint32_t chosen; /* genes left out, or tokens chosen to be predicted */
	uint32_t structural; /* of them: by the graph */
	const uint32_t *tokens; /* what the masks were chosen from, and which places: for the audit; [seen], [chosen] */
	uint32_t seen;
	const uint16_t *places;
};

struct inputs; /* the scratch of one thread */
struct inputs *inputs_new(const struct input_plan *p, const struct mask_plan *mask); /* both borrowed */
void inputs_free(struct inputs *x); /* NULL is fine */

/* Before the cells of a batch: forget the genes of the last one, and note those of each cell. Only for ZEROS_BATCH. */
void inputs_start(struct inputs *x);
void inputs_note(struct inputs *x, const uint32_t *token, const uint32_t *count, uint32_t n);

/* Make the input of a cell. Masks are chosen by m, with the cell's rate and lambda. -1 with e set (without a name of the stream) if the cell is
 * of a panel that the header does not have, max_len has no room for a gene, a special token stands between genes, or a gene occurs twice. */
int inputs_make(struct inputs *x, struct masked_cell *out, struct masker *m, const struct counted_cell *c, double rate, double lambda,
	struct error *e);
