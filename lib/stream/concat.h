/*
 * Join several streams of one kind. The result has the union of their columns and categories; cells are renumbered 0, 1, ... in order.
 * Lists (ragged columns) and vectors (fixed) must be the same in all streams. If a stream lacks a scalar column, its rows get missing
 * values: missing code, NaN, empty text, or, for whole numbers, 1 in a companion column NAME.missing. A column of obs that has other types in some
 * streams gets one as h5tok gives it: doubles for 64-bit integers and doubles, else text, with such a companion. The index of obs keeps a name that is
 * the same in all streams. The panels of measured genes (panels.h) are those of all streams.
 */
#pragma once

#include "stream/block.h"

struct concat_input {
	const struct header *header; /* borrowed */
	const char *name; /* borrowed */
	int *map; /* [ncol of the union] column of the input, or -1 */
	uint32_t **code; /* [ncol]: categorical columns whose codes change: [ncategory of the input] new code; else NULL */
	uint32_t *panel; /* [npanel] their numbers in the union (panels.h); NULL: no input has any */
	size_t npanel;
};

struct concat {
	struct header header; /* the union; owned */
	size_t n;
	struct concat_input *input; /* [n] */
	int cell, panel; /* panel: -1 without */
	uint64_t cells; /* renumbered so far */
};

/* Join n headers; name[i] is the file for messages. *warning (malloced or NULL): a difference that is not an error. -1 with e set when
 * kinds, vocabularies, lists, label names or the type of a column differ. */
int concat_init(struct concat *c, const struct header *const *h, const char *const *name, size_t n, char **warning, struct error *e);
void concat_release(struct concat *c); /* accepts a zeroed struct */

/* Convert a block of input i into `out`, which is reset first. Blocks must come in order, because cells are numbered here. -1 with e set if
 * a cell is of a panel that its header does not have. */
int concat_block(struct concat *c, size_t i, const struct block *in, struct block *out, struct error *e);
