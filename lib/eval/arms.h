/*
 * Differences between arms, with intervals, tests and corrections, from tables in long form: a value a line, with the columns that say what it
 * is of. The values are sorted by group, arm and pair; so those of an arm in a group are a run, and two runs are merged by their pairs.
 */
#pragma once

#include "base/classes.h"
#include "base/error.h"
#include "eval/paired.h"

/* Lists of columns (NULL: none). A key of several columns is one key: their fields with KEY_GAP between. */
enum { ARMS_BY, ARMS_PAIR, ARMS_WITHIN, ARMS_CLUSTER, ARMS_DRAW, ARMS_KEYS };
#define KEY_GAP '\x1f'

struct value {
	uint32_t key[ARMS_KEYS]; /* 0 for a key without columns */
	uint32_t source, line; /* of the line */
	double value; /* NaN: missing */
};

struct values {
	char **column[ARMS_KEYS]; /* [columns[key]] names, owned */
	size_t columns[ARMS_KEYS];
	char **metric; /* [metrics] names of the columns of values, owned. Of several ones, the name is the last field of ARMS_WITHIN */
	size_t metrics;

	struct classes key[ARMS_KEYS]; /* in order of first appearance */
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

/* A row of the output. */
struct row {
	uint32_t arm, reference, group;
	struct difference d;
	double corrected;
};

struct study {
	struct values v; /* read by the caller */
	size_t *start; /* [groups, arms + 1] where the run of an arm in a group begins in v.value */
	uint32_t (*pair)[2]; /* [pairs] arm, reference; NULL: the means of all arms, no differences */
	size_t pairs;
	double share; /* pairs are splits of the same cells: size of test by training part; 0: they are not */
	const struct value *same[2]; /* two pairs with the same values in both arms; NULL: none */
	struct row *row; /* [rows] */
	size_t rows, cap;
};

/* Sort the values. Returns i > 0 if values i - 1 and i are of one pair of one arm; 0: no two are. */
size_t arms_sort(struct study *s);
/* Add the rows of s->pair within each group. */
void arms_compare(struct study *s);
/* Holm's correction of p over all rows. */
void arms_correct(struct study *s);
/* Fields of a group's key: the columns ARMS_WITHIN, and the name of the value if there are several. */
size_t arms_fields(const struct study *s);
void arms_release(struct study *s); /* and its values */
