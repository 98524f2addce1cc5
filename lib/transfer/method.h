/*
 * What predicts classes. By embeddings: logistic regression, or votes of the nearest cells. By counts: the mean of two probabilities, of a
 * regression on log-normalised genes (eval/sparse_probe.h) and of the correlations of ranks over marker genes (eval/marker_ranks.h),
 * divided by .03.
 */
#pragma once

#include "eval/sparse_probe.h"
#include "transfer/detail.h"
#include "transfer/fitted.h"
#include "transfer/unlike.h"

struct method_options {
	size_t nearest; /* so many neighbours vote; 0: logistic regression */
	double inverse_penalty; /* of embeddings */
	int as_given; /* the features of the regression are not standardised */
	int threads;
	uint32_t seed; /* of the cells that are drawn from a large reference */
	const char *label; /* in messages */
	int components; /* of counts: they are fitted too, unless a fit starts from another one */
	const struct detail *detail; /* labels of unequal detail, of counts; NULL: each class of d->y is one of the method */
};

/* What predicts classes, of some cells of the reference. */
struct method {
	const struct method_options *o;
	const struct classes *c;
	size_t n, d; /* cells that it learned from, features */
	struct fitted probe;
	float *own; /* [n, d] the cells, NULL if they are all of the reference */
	const float *x; /* [n, d] the cells ... */
	uint32_t *y; /* [n] ... and their classes */
	struct sparse_probe genes; /* of counts, instead of probe and x, of the classes in back [genes.k] */
	struct centroids centroids;
	struct marker_ranks ranks;
	struct components components; /* or none */
	uint32_t *back;
	double *lacked; /* [k, k] by method_keep, or NULL: what the mean of a class (row) adds to the logits by the genes that new cells lack */
};

/* Of rows row[0..n) of d, rising; d, o and c must outlive m. start: a method of most of them, from whose weights the regression begins, so
 * that it needs fewer iterations; or NULL. -1 with e set: the rows have too few classes or cells, or the fit fails; m is released then too.
 * A probe that did not converge is no error: see m->probe.p. */
int method_fit(struct method *m, const struct embeddings *d, const uint32_t *row, size_t n, const struct classes *c,
	const struct method_options *o, const struct method *start, struct error *e);
/* Of counts: new cells will lack the genes of which keep [d] is 0. */
void method_keep(struct method *m, const uint8_t *keep);
void method_release(struct method *m); /* accepts a zeroed struct */

/*
 * Of rows row[0..n) of d, which has embeddings or counts as those of m (row NULL: the first n):
 * logit [n, classes]  out: logarithms of probabilities, but for a constant of the row; -INFINITY: no cell of m has the class
 * far [n]             out: how unlike the cells of m the row is. Embeddings: its mean Euclidean distance to the nearest ones; counts: centroids_distance
 *
 * Distances are those of the features as they are: on lung and blood cells of new donors (50 components), the vote of 15 neighbours was right more
 * often (.95, .92) than with standardised components (.89, .80).
 */
void method_score(const struct method *m, const struct embeddings *d, const uint32_t *row, size_t n, double *logit, double *far);
