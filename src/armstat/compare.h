/* The table that armstat compare reads: values in long form, one a line, with the columns that say what a value is of. */
#ifndef COMPARE_H
#define COMPARE_H

#include "base/classes.h"
#include "base/error.h"

/* Lists of columns (NULL: none). A key of several columns is one key: their fields with KEY_GAP between. */
enum { COMPARE_ARM, COMPARE_PAIR, COMPARE_WITHIN, COMPARE_CLUSTER, COMPARE_DRAW, COMPARE_KEYS };
#define KEY_GAP '\x1f'

struct value {
	uint32_t key[COMPARE_KEYS]; /* 0 for a key without columns */
	uint32_t source, line; /* of the line */
	double value; /* NaN: missing */
};

struct values {
	char **column[COMPARE_KEYS]; /* [columns[key]] names, owned */
	size_t columns[COMPARE_KEYS];
	char **metric; /* [metrics] names of the columns of values, owned. Of several ones, the name is the last field of COMPARE_WITHIN */
	size_t metrics;

	struct classes key[COMPARE_KEYS]; /* in order of first appearance */
	struct value *value; /* [n] in order of the lines */
	size_t n, cap;
	uint32_t sources;
};

/* Add the lines of a table: a line of column names, then fields between tabs (or commas), plain or gzip; path "-" is standard input. NA, NaN or
 * nothing is a missing value. -1 with e set: a column is missing or named twice, a line has another number of fields, a value is no finite
 * number. */
int values_read(struct values *v, const char *path, struct error *e);
void values_release(struct values *v);

/* Field i of a key: its bytes, *n of them. */
const char *key_field(const char *key, size_t i, size_t *n);

#endif
