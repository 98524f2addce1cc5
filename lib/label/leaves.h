/*
 * The classes that a model of an ontology tells apart: the leaves of the ontology, when it is pruned to what was observed. A label that is no
 * leaf means all leaves under it.
 *
 * Pruning: terms without children that were not observed are deleted, again and again, until each is an observed one. So what stays are the
 * observed terms and all their ancestors. Probabilities of leaves add up to those of the terms above:  P(v) = sum of p over the leaves under v.
 */
#pragma once

#include "label/ontology.h"

struct leaves {
	const struct ontology *o; /* borrowed */
	size_t n; /* leaves */
	uint32_t *term; /* [n] their terms, ascending, so in the order of their ids */
	uint8_t *kept; /* [o->n] 1: the term is in the pruned ontology */
	size_t words; /* 32-bit words of a set of leaves */
	uint32_t *set; /* [o->n, words] bit k % 32 of word k / 32: leaf k lies under the term, or is it; 0 where it is not kept */
};

/* observed [o->n]: 1 for a term that occurs. */
void leaves_init(struct leaves *l, const struct ontology *o, const uint8_t *observed);
/* Those of a model, which must be its classes label [n], by id and in this order. -1: they are not, and the message ends with "a class" or "the n
 * classes". l is released by the caller in any case. */
int leaves_of(struct leaves *l, const struct ontology *o, char *const *label, size_t n, struct error *e);
void leaves_release(struct leaves *l); /* accepts a zeroed struct */

static inline const uint32_t *leaves_under(const struct leaves *l, uint32_t term)
{
	return l->set + (size_t)term * l->words;
}

/* P(v) [o->n] of all terms, from the probabilities p [n] of the leaves. A term that is not kept has 0. */
void leaves_sum(const struct leaves *l, const double *p, double *sum);

/*
 * Go down from the top: to the root with the largest P, from there to the child with the largest P, and so on to a leaf. Ties go to the
 * lower id. path [o->n] out: the terms. Returns how many; the last is the leaf. sum: of leaves_sum. only: TERM_NONE, or a leaf's term: then
 * the way goes to this leaf, through the likeliest terms above it.
 */
size_t leaves_descend(const struct leaves *l, const double *sum, uint32_t only, uint32_t *path);
