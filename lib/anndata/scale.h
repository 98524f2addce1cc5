/*
 * Are fractions counts, such as SoupX or an aligner makes, or normalised values? Seen from the values of some cells:
 *     normalised    the values of a cell are 1, 2, 3, ... times a fraction of its own, or all cells have the same sum
 *     log           the same is true of exp(v) - 1, 2^v - 1 or 10^v - 1
 */
#ifndef SCALE_H
#define SCALE_H

#include "anndata/countmat.h"

enum { SCALE_CELLS = 100 }; /* the first ones are looked at */

struct scale {
	double *value[SCALE_CELLS]; /* those of a cell, without zeros */
	size_t n[SCALE_CELLS], cap[SCALE_CELLS];
};

void scale_add(struct scale *s, uint64_t cell, double v); /* cells from SCALE_CELLS on are passed over */
void scale_release(struct scale *s); /* accepts a zeroed struct */

/* What the values are, as a text (malloced): "normalised (...)" or "log-transformed (...)". NULL: nothing speaks against counts. */
char *scale_of(const struct scale *s);

/* The same of a matrix that was opened, in *text. -1 with e set if it cannot be read. Not for LAYOUT_ENTRIES. */
int scale_of_matrix(struct countmat *m, char **text, struct error *e);

#endif
