/* A table of two by two counts: is a group richer in something than the rest? */
#pragma once

#include <stdint.h>

struct contingency {
	double p; /* Fisher's exact test, two-sided: all tables of the same margins that are at most as likely as this one */
	double odds_ratio; /* a d / (b c); infinite if b or c is 0, NaN if a row or a column is empty */
	double low, high; /* its 95 % interval, exp(log(odds ratio) +- z sqrt(1/a + 1/b + 1/c + 1/d)) [Woolf 1955]; NaN if a count is 0 */
};

/* The table  a b / c d:  a of the group have it, b do not; of the rest c have it and d do not. */
void contingency_test(struct contingency *t, uint64_t a, uint64_t b, uint64_t c, uint64_t d);
