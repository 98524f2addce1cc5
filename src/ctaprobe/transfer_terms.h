/*
 * ctaprobe transfer --ontology: labels of unequal detail. A label is coarse if two or more finest labels of the reference lie below its term: a cell with
 * it is of any of the classes below. All other labels are classes. One with a single finest label below it means the rest of its term: a cell with it need not be of the
 * finer type. Labels of the same term are one class. A label without a term is a class of its own.
 */
#pragma once

#include "cli_embeddings.h"
#include "eval/finest.h"

struct detail {
	size_t k, labels; /* classes, from 0 on; the coarse labels have the numbers from k on */
	uint8_t *under; /* [labels, k] 1: the class is the label, or lies below the coarse label */
	size_t coarse_cells; /* of the reference */
	struct holds holds; /* the terms that can be answers */
	uint8_t *in; /* of holds */
	char **id, **name; /* [holds.n] of terms; of a class without a term: its name */
	uint32_t *size; /* [holds.n] classes */
};

/* The terms of the classes c of d, by the file path. The numbers in d->y change, and c keeps only the finest. Warns of labels without a term, dies if all
 * are. */
void detail_init(struct detail *t, const char *path, struct classes *c, struct embeddings *d, const char *label);
void detail_release(struct detail *t); /* accepts a zeroed struct */

/* The columns of the answers. */
struct term_columns {
	int id, name, classes;
	uint64_t cells, sum; /* with an answer or any class, and the classes of these answers */
};
void term_columns_add(struct term_columns *to, struct header *h, const struct detail *t);
/* Row i of out. p [t->k]: probabilities; NULL: the cell has none. */
void term_put(struct term_columns *to, struct block *out, size_t i, const struct detail *t, const double *p, double threshold);

/*
 * The cells that coverage is measured on: counted [n], 1 or 0. Cells with fine labels alone would be easier or harder than all cells of their group, so
 * whole groups count: those in which at most a share `most` of the cells have a coarse label. Without such a group, or without groups (NULL), the cells with fine
 * labels count. Returns the number of the groups that count whole.
 */
size_t detail_counted(
	const struct detail *t, const uint32_t *y, const uint32_t *group, size_t n, size_t groups, double most, uint8_t *counted);
