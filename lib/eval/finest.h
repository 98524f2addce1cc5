/*
 * The finest term that holds the class of a cell. A term holds the classes at or below it. Probabilities of classes add up to probabilities of
 * terms, P(v) = sum of p over the classes of v.
 *
 * The answer at a threshold t is the first term, from those with the fewest classes on, that holds the likeliest class and has P(v) > t.
 * Without one the answer is that the cell can be of any class. The score of a cell is the largest P of an answer, at any threshold, that
 * does not hold its true class. So the answer at t holds it if the score is at most t, and with t = conformal_threshold of the scores of
 * other cells it does so as often as conformal.h says [conformal risk control, Angelopoulos et al. 2024, along an ontology as in
 * scConform].
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct holds {
	size_t n, k; /* terms, classes */
	const uint8_t *in; /* [n, k] 1: the term holds the class; terms by rising number of classes */
};

/* p [k] probabilities. h->n: any class. */
size_t finest_answer(const struct holds *h, const double *p, double threshold);

/* truth [k]: 1 for the true class, or for all that it may be: the answer must hold them all. 0 if every answer does. */
double finest_score(const struct holds *h, const double *p, const uint8_t *truth);
