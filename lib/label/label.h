/*
 * Labels: the values of a column as class numbers. Classes are identified by name, so streams may have different category tables.
 * Categorical, text and whole-number columns can hold labels.
 *
 * This is the one place that says which values are no label: a missing or empty one, and words that say so (label_is_none). A cell without
 * a label is of no class; a cell without a group, such as a donor, is left out wherever groups keep cells apart.
 */
#pragma once

#include "stream/block.h"
#include "base/classes.h"

#define LABEL_IDS "in pandas, .astype(\"Int64\").astype(str) makes such a column of ids" /* floats, where an id is missing */

enum label_rule {
	LABEL_WORDS_ASIDE, /* "unknown", "nan" ... are no label */
	LABEL_WORDS_KEPT, /* they are labels as any other (--keep-unknown-labels) */
	LABEL_VALUES /* the values as written, of any column, of which nobody says that they are labels */
};

struct labels {
	const struct column_spec *spec;
	int col, missing; /* the column, and its NAME.missing companion or -1 */
	uint32_t *known; /* categorical: [ncategory] class of a code, MISSING_CODE until it occurs, and for words that are no label */
	struct classes *classes; /* borrowed, shared by the streams of one run */
	enum label_rule rule;
	/* of the values so far: */
	uint64_t cells, empty, aside; /* with a label; without a value; with a word that is no label */
	struct classes word; /* these words */
	uint64_t *word_cells; /* [word.n] */
	uint8_t *seen; /* [classes] does this column have it? */
	size_t word_cap, seen_cap, distinct, numbers; /* distinct: classes that this column has; numbers: those that are numbers */
};

/* Does this text say that there is no label: "unknown", "NaN", "<NA>", "not assigned", "-" ... in any case, whatever stands between the words? */
int label_is_none(const char *s, size_t n);

/* -1 with e set if `name` is the name of a column that streams themselves have, and h has one of obs that was called so too. */
int labels_name_check(const struct header *h, const char *name, const char *file, struct error *e);

/* Read labels from column `name` of streams with header h. -1 with e set: no such column, or it holds floats or lists, or (unless rule is
 * LABEL_VALUES) labels_name_check refuses it. h and c must outlive l. */
int labels_init(struct labels *l, const struct header *h, const char *name, struct classes *c, enum label_rule rule, const char *file,
	struct error *e);
void labels_release(struct labels *l); /* accepts a zeroed struct */

/* Class of one row; MISSING_CODE if it has no label. */
uint32_t labels_at(struct labels *l, const struct block *b, size_t row);
/* The same of a value that was read elsewhere and is shared by n cells; n 0: missing. l needs classes and rule only. */
uint32_t labels_name(struct labels *l, const char *s, size_t n, uint64_t cells);

/* -1 with e set if the values so far are numbers or ids of cells, and no labels. whole: these are all. */
int labels_check(const struct labels *l, int whole, const char *column, const char *file, struct error *e);
/* Why cells have no label: "unknown 30, nan 1, no value 5" (malloced). "": all have one. */
char *labels_aside(const struct labels *l);
