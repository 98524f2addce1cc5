/* Numbers of rows: a column of whole or real numbers. A value that is NaN, or marked in NAME.missing, is missing. */
#pragma once

#include "stream/block.h"

struct numbers {
	int col, missing; /* the column, and its NAME.missing companion or -1 */
};

/* Read numbers from column `name` of streams with header h. -1 with e set: no such column, or it holds texts or lists. */
int numbers_init(struct numbers *n, const struct header *h, const char *name, const char *file, struct error *e);
/* The number of one row; NaN: it is missing. */
double numbers_at(const struct numbers *n, const struct block *b, size_t row);
