/*
 * Groups of cells, such as donors or batches: the one-hot covariate of a model of counts. The model directory has their names in groups.tsv:
 * the column's name in the first line, then one group a line, in the order of the rows of encoder.groups.weight. A cell without a value, or
 * of a group that the model does not know, has no covariate: its one-hot vector is 0.
 */
#pragma once

#include "label/label.h"

struct groups {
	char *column; /* NULL: no covariate */
	struct classes classes; /* the first n are the model's; others are of cells that were read later */
	size_t n;
	uint64_t unknown; /* cells so far that groups_at gave no group */
};

/* Read MODEL/groups.tsv. If there is no such file, g->column is NULL. -1 with e set. Zero g before. */
int groups_load(struct groups *g, const char *dir, struct error *e);
/* The text of groups.tsv (malloced). */
char *groups_print(const struct groups *g);
void groups_release(struct groups *g); /* accepts a zeroed struct */

/* Group of one row, whose labels were opened with g->classes: below g->n, or ROW_NONE. */
uint32_t groups_at(struct groups *g, struct labels *l, const struct block *b, size_t row);
