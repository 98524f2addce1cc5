/*
 * Labels: values of a column as class numbers 0, 1, 2 ... in order of first appearance, by name, so that streams with
 * different category tables agree. Categorical, text and whole-number columns can name classes.
 */
#ifndef LABEL_H
#define LABEL_H

#include "block.h"

struct classes {
	size_t n, cap;
	char **name;            /* [n], owned */
	void *tree;             /* names in a search tree */
};

/* Number of the class of this name (n bytes); added when it is new. */
uint32_t classes_add(struct classes *c, const char *name, size_t n);
void classes_release(struct classes *c);                /* accepts a zeroed struct */

/* Class numbers in order of their names (byte order): order[k] is the k-th. Malloced. */
uint32_t *classes_sorted(const struct classes *c);

struct labels {
	const struct column_spec *spec;
	int col, missing;               /* the column, and its NAME.missing companion or -1 */
	uint32_t *known;                /* categorical: [ncategory] class of a code, MISSING_CODE until met */
	struct classes *classes;        /* borrowed, shared by the streams of one run */
};

/* Read labels from column `name` of streams laid out as h. -1 with e set: no such column, or one that names no classes
 * (floats, lists). h and c must outlive l. */
int labels_init(struct labels *l, const struct header *h, const char *name, struct classes *c, const char *file,
		struct error *e);
void labels_release(struct labels *l);                  /* accepts a zeroed struct */

/* Class of one row; MISSING_CODE when it has no value (or an empty one). */
uint32_t label_at(struct labels *l, const struct block *b, size_t row);

/* Value of a scalar number column as a double (whole numbers above 2^53 lose digits). */
double number_at(const struct block *b, int col, size_t row);

/* Index of the companion column "NAME.missing" (u8), or -1. */
int missing_column(const struct header *h, const char *name);

#endif
