/*
 * Scores of predicted terms of a hierarchy, in which a term can have several parents. A(v) are v and all terms above it, without those that have no
 * parent: these say nothing.
 *     exact     the predicted term is the true one
 *     finer     the true one lies above the predicted one
 *     coarser   the predicted one lies above the true one
 *     wrong     neither
 *     precision = sum |A(p) and A(t)| / sum |A(p)|,  recall = sum |A(p) and A(t)| / sum |A(t)|,  f1 = their harmonic mean
 *                                                                    [Kiritchenko et al. 2005; sums over the cells]
 *     distance  fewest steps from p up to a common ancestor and down to t
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct hierarchy {
	size_t n; /* terms */
	const uint32_t *at, *parent; /* the parents of term i are parent[at[i]] .. parent[at[i + 1]]; there is no cycle */
};

struct hierarchy_scores {
	double exact, finer, coarser, wrong; /* shares of the cells */
	double precision, recall, f1; /* NaN where no cell has a term with a parent */
	double distance; /* mean over the cells whose terms have a common ancestor; NaN: none */
	uint64_t apart; /* cells whose terms have none */
};

/*
 * truth, predicted [cells] terms, cells > 0. settled [cells] out, may be NULL: the predicted term, but the true one where this is it or
 * lies above it. So a prediction that says more than the label counts as right [the rule of scTab, Fischer et al. 2024].
 */
void hierarchy_score(struct hierarchy_scores *s, const struct hierarchy *h, const uint32_t *truth, const uint32_t *predicted, size_t cells,
	uint32_t *settled);
