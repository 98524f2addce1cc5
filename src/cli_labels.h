/* Shared by the tools with a column of labels or of groups, such as donors: which values are none (label/label.h), what is said of them,
 * and the option. */
#pragma once

#include "cli_stream.h"
#include "label/label.h"

extern int keep_unknown_labels;
/* The row of every table with such a column: {KEEP_UNKNOWN_LABELS} */
#define KEEP_UNKNOWN_LABELS \
	0, "keep-unknown-labels", OPT_FLAG, &keep_unknown_labels, NULL, \
		"'unknown', 'nan', 'NA', 'unassigned' and such words are labels, and groups, as any other: see corrmask(7)", .changes = 1
enum label_rule label_rule(void);

/* Open a column of labels or groups, or die. */
void labels_open(struct labels *l, const struct header *h, const char *column, struct classes *c, const char *file);
/*
 * After the values of a stream were read: die if they are no labels or there are none, and say how many cells have none, why, and what
 * becomes of them ("are left out"). These are rows of --report: set_aside:no_label (no value), set_aside:unknown_label,
 * set_aside:unknown_label:WORD.
 */
void labels_read(const struct labels *l, const char *column, const char *file, const char *what);
/* The same of a column whose values need not be labels, such as that of scsample --cap. */
void labels_say(const struct labels *l, const char *column, const char *file, const char *what);
/* The same of groups: row set_aside:no_group. */
void groups_read(const struct labels *l, const char *column, const char *file, const char *what);
/* Groups whose names differ in case, or in blanks around them, become one, under the first name. of [lists][n]: the groups of cells. */
void groups_join(struct classes *c, uint32_t **of, const size_t *n, int lists, const char *column, const char *file);
/* The rows, at the end (cli_report). */
void labels_report(void);
