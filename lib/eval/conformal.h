/*
 * Conformal prediction: a threshold of a score from cells that a model has not seen, with a promise for new cells.
 *
 * A score says how strange a cell is, such as 1 - the probability of its true class. Cells of one group, such as a donor, are alike, so new
 * cells of a new donor are like those of another donor, not like all others. Each of the G groups counts as one, whatever its number of cells:
 *     mass(s) = sum_g (share of the cells of g with a score <= s)
 *     t = the smallest score with mass(t) >= (1 - miss) (G + 1)
 * If the groups of old and new cells are exchangeable, a new cell has a score <= t with a probability of at least 1 - miss [Lee, Barber,
 * Willett 2024, hierarchical conformal prediction]. Where each cell is a group, this is split conformal prediction [Papadopoulos et al. 2002].
 * G groups can promise 1 - miss <= G / (G + 1) at most. Beyond that, t is the smallest score with mass(t) >= (1 - miss) G, without a promise.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct conformal {
	size_t n, groups;
	double *score; /* [n] rising */
	double *mass; /* [n + 1] of the scores before this one */
};

/* score [n], not NaN; infinite: stranger than any other. group [n]: < groups, each has a cell; NULL: each cell is one. n >= 1. */
void conformal_init(struct conformal *c, const double *score, const uint32_t *group, size_t n, size_t groups);
/* Leave so many of the scores: of each of CONFORMAL_MOST equal parts of the cells the last one. The p-value of a cell rises by at most the share of a part. */
enum { CONFORMAL_MOST = 200 };
void conformal_shorten(struct conformal *c);
void conformal_release(struct conformal *c); /* accepts a zeroed struct */

/* 1 if so many groups are enough for a coverage of 1 - miss, else 0. */
int conformal_promised(const struct conformal *c, double miss);

/* The threshold t. 0 <= miss < 1 */
double conformal_threshold(const struct conformal *c, double miss);

/* The smallest miss for which a cell with this score is above the threshold, so to speak its p-value:
 *     (1 + sum_g share of g with a score >= s) / (G + 1) */
double conformal_p(const struct conformal *c, double score);
