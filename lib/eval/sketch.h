/*
 * Many numbers of two classes in the memory of a few: bins that do not overlap, in order. It is exact until a sketch has had 2 bins different
 * numbers; then neighbouring bins are joined, so that each holds a small share of either class. What was joined counts as tied. So the area under
 * the ROC curve is known up to half the share of pairs that lie in one bin, and that share is known. Results depend on the order of the numbers
 * only within these bounds.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sketch_bin {
	float low, high; /* its smallest and largest number */
	uint32_t n[2]; /* how many of each class */
	double sum; /* of its numbers */
};

struct sketch {
	struct sketch_bin *bin; /* [n], in no order until it is read */
	uint32_t n, cap;
};

/* Add a number, not NaN, of class 0 or 1. bins >= 4: the sketch keeps less than 2 bins of them, of 24 bytes. */
void sketch_add(struct sketch *s, size_t bins, float x, int class);

/* P(a number of class 1 is above one of class 0) + P(equal) / 2, the area under the ROC curve; NaN without one of the classes.
 * *error: by how much it can be wrong. Puts the bins into order. */
double sketch_auc(struct sketch *s, double *error);

/* Sum of |x - c| over all numbers; *error: by how much it can be wrong, since only the sum is known of the bin around c. */
double sketch_deviation(struct sketch *s, double c, double *error);

void sketch_release(struct sketch *s); /* accepts a zeroed struct */
