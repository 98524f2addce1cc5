/* Names of classes and their numbers 0, 1, 2 ... in order of first appearance. */
#pragma once

#include "base/strmap.h"

struct classes {
	size_t n, cap;
	char **name; /* [n], owned */
	struct strmap number; /* of each name */
};

/* Number of the class with this name (n bytes, none of them NUL). A new name is added. */
uint32_t classes_add(struct classes *c, const char *name, size_t n);
void classes_release(struct classes *c); /* accepts a zeroed struct */

/* Class numbers in order of their names (byte order): order[k] is the k-th. Malloced. */
uint32_t *classes_sorted(const struct classes *c);
uint32_t *classes_ranks(const struct classes *c); /* the place of each in this order; malloced */

/* Renumber the classes of c and of the lists v[t] [n[t]] in order of their names. Classes that are in no list are dropped. */
void classes_settle(struct classes *c, uint32_t **v, const size_t *n, int lists);

/* Of n items with the numbers a [n] and b [n] < m: a becomes the number of the pair among the pairs that occur, in order of a, then of b.
 * Returns how many these are. */
size_t classes_cross(uint32_t *a, const uint32_t *b, size_t m, size_t n);
