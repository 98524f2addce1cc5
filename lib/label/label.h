/*
 * Labels: the values of a column as class numbers. Classes are identified by name, so streams may have different category tables.
 * Categorical, text and whole-number columns can hold labels.
 */
#ifndef LABEL_H
#define LABEL_H

#include "stream/block.h"
#include "base/classes.h"

struct labels {
	const struct column_spec *spec;
	int col, missing; /* the column, and its NAME.missing companion or -1 */
	uint32_t *known; /* categorical: [ncategory] class of a code, MISSING_CODE until it occurs */
	struct classes *classes; /* borrowed, shared by the streams of one run */
};

/* Read labels from column `name` of streams with header h. -1 with e set: no such column, or it holds floats or lists. h and c must
 * outlive l. */
int labels_init(struct labels *l, const struct header *h, const char *name, struct classes *c, const char *file, struct error *e);
void labels_release(struct labels *l); /* accepts a zeroed struct */

/* Class of one row; MISSING_CODE if the value is missing or empty. */
uint32_t labels_at(struct labels *l, const struct block *b, size_t row);

#endif
