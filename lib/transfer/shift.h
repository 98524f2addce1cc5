/*
 * Do new cells differ from the reference more than its groups, such as donors, differ from each other? Of each group that was held out, the
 * mean features of the cells that were predicted to be of a class are compared with those of all other groups. The distance of the group is
 * the root mean square over its cells, without what the sampling of cells adds to it. Its logarithm has the mean m and the standard
 * deviation s over n groups; with that of the new cells, l,
 *     t = (l - m) / (s sqrt(1 + 1 / n))
 * A new group like them has about Student's distribution with n - 1 degrees of freedom; several groups together are nearer.
 */
#pragma once

#include "cells/embeddings.h"

#define SHIFT_FALSE_ALARM 0.05 /* share of new groups like those of the reference that are called different */

/* Sums over the cells that were predicted to be of each class. */
struct sums {
	size_t k, d;
	double *x; /* [k, d] features */
	struct sums_of {
		double square, depth, n; /* |x|^2, log of the depth, cells */
	} * of; /* [k] */
};

struct spread {
	size_t n;
	double mean, sd; /* of the logarithms of distances of n groups; NaN: too few */
};

struct shift {
	size_t k;
	struct spread *of; /* [k + 1] of each class, and of all */
	double limit; /* of t; NaN: too few groups */
	struct sums reference, new; /* x of the reference is rounded to float */
};

/* Held-out cells row[0..n) of d, predicted to be of classes guess [n] < k, in groups group [n] < groups. */
void shift_init(struct shift *s, const struct embeddings *d, const uint32_t *row, const uint32_t *guess, const uint32_t *group, size_t n,
	size_t groups, size_t k);
void shift_add(struct shift *s, uint32_t guess, const struct embeddings *d, size_t i); /* a new cell, cell i of d */
double shift_of(const struct shift *s, size_t c); /* t of class c; k: of all */
double shift_unseen(
	const struct shift *s); /* a distance of so many times that of a group, by the mean logarithm, does not reach the limit */
double shift_depth_ratio(
	const struct shift *s, size_t c); /* of class c: depth of new cells over that of the reference, of means of logarithms */
void shift_room(struct shift *s, size_t k, size_t d); /* zeroed, for k classes and d features */
/* New cells lack the features of which keep [d] is 0, and have this share of the molecules. */
void shift_keep(struct shift *s, const uint8_t *keep, double share);
void shift_release(struct shift *s); /* accepts a zeroed struct */
