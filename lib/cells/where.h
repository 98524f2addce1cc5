/*
 * Conditions on the columns of a row: COL=VALUE, COL!=VALUE, COL<NUMBER, <=, >, >=.
 * All must hold, except that several COL=VALUE on one column are alternatives. An empty VALUE, or NA, means "missing".
 * A missing value (missing code, empty text, NaN, or NAME.missing set) satisfies only COL=NA and COL!=VALUE for other VALUEs.
 * COL=NA holds for the text "NA" too.
 */
#pragma once

#include "stream/block.h"

struct condition {
	char *text, *column, *value;
	enum { WHERE_EQ, WHERE_NE, WHERE_LT, WHERE_LE, WHERE_GT, WHERE_GE } op;
	int first; /* EQ: index of the first condition of its alternatives */
	/* bound to a header: */
	int col, missing;
	double number; /* value as a number, NaN if it is not one */
	uint8_t *holds; /* categorical: [ncategory] truth for each code */
	int known; /* categorical: some category equals the value (or it compares numbers) */
};

struct where {
	size_t n;
	struct condition *c;
};

int where_add(struct where *w, const char *text, struct error *e); /* -1: not a condition */
void where_release(struct where *w); /* accepts a zeroed struct */

/* Prepare for rows with header h. If columns have an operator in their names, the one that h has is meant. -1 with e set: no such column, a
 * condition that can be on two columns, a list, or a text that is compared by <, <=, > or >=. */
int where_bind(struct where *w, const struct header *h, const char *file, struct error *e);

/* Set keep[i] to 0 if row i of b does not satisfy the conditions. */
void where_rows(const struct where *w, const struct block *b, uint8_t *keep);
