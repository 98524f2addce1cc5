/*
 * Labels of unequal detail. A label is coarse if two or more finest labels of the reference lie below its term: a cell with it is of any of
 * the classes below. All other labels are classes. One with a single finest label below it means the rest of its term: a cell with it need
 * not be of the finer type. Labels of the same term are one class. A label without a term is a class of its own.
 */
#pragma once

#include "base/classes.h"
#include "cells/embeddings.h"
#include "eval/finest.h"

struct detail {
	size_t k, labels; /* classes, from 0 on; the coarse labels have the numbers from k on */
	uint8_t *under; /* [labels, k] 1: the class is the label, or lies below the coarse label */
	size_t coarse_cells; /* of the reference */
	size_t all, without; /* labels as given; those without a term */
	char *listed, *same; /* for messages, or NULL: some of these labels; those whose term another label has */
	struct holds holds; /* the terms that can be answers */
	uint8_t *in; /* of holds */
	char **id, **name; /* [holds.n] of terms; of a class without a term: its name */
	uint32_t *size; /* [holds.n] classes */
};

/* The terms of the classes c of d, which are those of column `label`, by an ontology. The numbers in d->y change, and c keeps only the
 * finest. -1 with e set: the file is none, or no label has a term. */
int detail_init(struct detail *t, const char *path, struct classes *c, struct embeddings *d, const char *label, struct error *e);
void detail_release(struct detail *t); /* accepts a zeroed struct */

/*
 * The cells that coverage is measured on: counted [n], 1 or 0. Cells with fine labels alone would be easier or harder than all cells of
 * their group, so whole groups count: those in which at most a share `most` of the cells have a coarse label. Without such a group, or
 * without groups (NULL), the cells with fine labels count. Returns the number of the groups that count whole.
 */
size_t detail_counted(
	const struct detail *t, const uint32_t *y, const uint32_t *group, size_t n, size_t groups, double most, uint8_t *counted);
