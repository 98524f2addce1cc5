/* The objectives of sctrain cells: label.c and number.c. */
#ifndef CELLS_H
#define CELLS_H

#include "sctrain.h"

struct label_options {
	const char *column;
	int balanced; /* class weights */
	double focal; /* 0: cross-entropy */
	int own; /* its loss is its own, not that of all columns */
};

/* name: of the head; NULL: the only one. */
struct objective *label_add(struct objectives *list, const char *name, const struct label_options *options);
struct objective *number_add(struct objectives *list, const char *column);

#endif
