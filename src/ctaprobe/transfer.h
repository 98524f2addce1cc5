/* The parts of ctaprobe transfer: transfer.c has the options and the streams, transfer_method.c what predicts and how it is calibrated,
 * transfer_shift.c whether new cells are like the reference, transfer_verdict.c what is promised, transfer_other.c cells that are left out or are in two streams. */
#pragma once

#include "fitted.h"
#include "transfer_terms.h"

#include "cells/expressed.h"
#include "eval/conformal.h"
#include "eval/marker_ranks.h"
#include "eval/sparse_probe.h"

#define BETWEEN " | " /* classes of a set, as text */

struct method_options {
	size_t nearest; /* so many neighbours vote; 0: logistic regression */
	double inverse_penalty; /* of embeddings */
	int as_given; /* the features of the regression are not standardised */
	int threads;
	uint32_t seed; /* of the cells that are drawn from a large reference */
	const char *label; /* in messages */
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
	uint32_t *back;
};

/* Of rows row[0..n) of d, rising; d must outlive m. start: a method of most of them, from whose weights the regression begins, so that it needs fewer iterations; or NULL. Dies
 * with `what` in the message. o, c must outlive m. */
void method_fit(struct method *m, const struct embeddings *d, const uint32_t *row, size_t n, const struct classes *c,
	const struct method_options *o, const struct method *start, const char *what);
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

/* Sums over cells that were predicted to be of each class. */
struct sums {
	size_t k, d;
	double *x; /* [k, d] features */
	double *square, *depth, *n; /* [k] |x|^2, log of the depth, cells */
};

/*
 * Do new cells differ from the reference more than its groups, such as donors, differ from each other? Of each group that was held out, the mean features
 * of the cells that were predicted to be of a class are compared with those of all other groups. The distance of the group is the root mean square over its
 * cells, without what the sampling of cells adds to it. Its logarithm has the mean m and the standard deviation s over n groups; with that of the new
 * cells, l,
 *     t = (l - m) / (s sqrt(1 + 1 / n))
 * A new group like them has about Student's distribution with n - 1 degrees of freedom; several groups together are nearer.
 */
#define SHIFT_FALSE_ALARM 0.05 /* share of new groups like those of the reference that are called different */
struct spread {
	size_t n;
	double mean, sd; /* of the logarithms of distances of n groups; NaN: too few */
};
struct shift {
	size_t k;
	struct spread *of; /* [k + 1] of each class, and of all */
	double limit; /* of t; NaN: too few groups */
	struct sums reference, new;
};
struct unseen;
/* guess [u->n]: predicted classes. u->group is there. */
void shift_init(struct shift *s, const struct unseen *u, const uint32_t *guess);
void shift_add(struct shift *s, uint32_t guess, const struct embeddings *d, size_t i); /* a new cell, cell i of d */
double shift_of(const struct shift *s, size_t c); /* t of class c; k: of all */
double depth_ratio(const struct shift *s, size_t c); /* of class c: depth of new cells over that of the reference, of means of logarithms */
void shift_release(struct shift *s); /* accepts a zeroed struct */

/* The median of depth [n]; NaN: n is 0. */
double median_depth(const uint64_t *depth, size_t n);
/* Thin the counts of d to a share of their molecules, and leave out cells that have none then. */
void thin_reference(struct embeddings *d, double share, uint32_t seed);

/* What the rows of --report say of the promises, of the shift and of each class. */
struct verdict {
	const char *unit; /* column of groups, NULL: none */
	size_t units, whole; /* whole: those that coverage is measured on */
	double coverage, unknown; /* that were asked for */
	int coverage_promised, unknown_promised; /* by so many units */
	double reference_depth, new_depth, thinned; /* medians, before the reference was thinned to this share; 0: embeddings */
	size_t genes, by_symbol, all_genes; /* shared; of those: matched by symbol; of the reference */
	size_t few; /* units that have cells of few_of, which are too few to promise unknown; few_of NULL: of all classes */
	const char *few_of;
	const struct shift *shift;
};
/*
 * How the scores of cells that the method has not seen become probabilities, sets and p-values.
 *
 * How strange a cell is: the sum of two shares, of the unseen cells that are nearer to their reference than it is to its own, and of those that are
 * surer of their class. Over the seven largest classes of lung and of blood cells, each left out of the reference in turn (new donors, 50 components),
 * the sum told their cells with a mean AUROC of .82 and .78, the distance alone .75 and .72, the probability alone .81 and .73.
 *
 * It is compared with cells that were predicted to be of the same class, as classes differ: with all cells together those of rare classes set the
 * limit of the distance, and of B and myeloid cells that were left out, 0 and .12 were found at a rate of .05, instead of .33 and .78.
 */
struct calibrated {
	double temperature;
	double most_missed; /* a class is in the set of a cell if 1 - its probability is at most this */
	size_t k; /* classes */
	struct conformal far, unsure; /* of all cells: distance, 1 - probability of the predicted class */
	struct conformal *strange; /* [k + 1] of the cells predicted to be of each class; the last one of all cells */
	double *most_strange; /* [k + 1] a cell that is stranger is unknown */
	size_t *of; /* [k] which of them a class has: its own, or the last one if too few cells were predicted to be of it */
	int coverage_promised, unknown_promised;
	size_t few, few_of; /* not promised: the fewest groups that were predicted to be of a class, and the class; k: all groups */
	size_t cells, groups;
	size_t whole; /* groups that coverage is measured on */
	double finest; /* threshold of finest_answer, with u->detail */
	struct shift shift;
};

/* Cells that the method has not seen: logit [n, k], far [n], y [n] < k (of coarse labels: from k on); group [n] < groups, or NULL: each cell is one. */
struct unseen {
	const double *logit, *far;
	const uint32_t *y, *group;
	size_t n, k, groups;
	const struct embeddings *cells; /* row[i] is cell i; NULL: it is row i */
	const uint32_t *row;
	const struct detail *detail; /* or NULL */
};

/* coverage, unknown: shares of cells. Cells whose class the method did not know (logit -INFINITY) are left out; dies if all are. */
void calibrate(struct calibrated *c, const struct unseen *u, double coverage, double unknown, const char *name);
/* How strange a cell is that is so far, and whose class has this probability. */
double calibrated_strange(const struct calibrated *c, double far, double probability);
void calibrated_release(struct calibrated *c); /* accepts a zeroed struct */

/* The digests of the values of the cells, sorted; malloced. Is cell i of d among them? Cells of few counts are not told apart, and are not. */
uint64_t *digests(const struct embeddings *d);
int is_among(const uint64_t *sorted, size_t n, const struct embeddings *d, size_t i);
/* Say it of classes that are numbers, as clusters are, and of names that look like sets. */
void warn_names(const struct classes *c, const char *label);

/* Cells that the method has learned from look surer than others do: die if most of `other` are cells of the reference, the stream `path`. */
void refuse_shared(const struct embeddings *reference, const struct embeddings *other, const char *path);
/* Leave out the cells of d whose class is not one of the first `classes`, those of the reference `path`. Dies if none is left. */
void drop_unknown(struct embeddings *d, size_t classes, const char *path);

struct reference {
	struct embeddings d, other; /* the reference, and the cells of --calibration */
	struct classes classes, groups;
	uint64_t *cells; /* [labels] of the reference: of the classes, then of coarse labels */
	struct detail detail; /* with --ontology; else its labels are the classes */
	uint8_t *untested; /* [classes] never held out while others of it were there */
	uint64_t *digest; /* [digests] of its cells, before they were thinned */
	size_t digests;
	double depth, new_depth, thinned; /* medians of counts; the share of the reference's molecules that is kept */
	size_t genes, by_symbol; /* shared; of those: matched by symbol */
	struct method_options method;
};

struct held_out {
	const struct embeddings *d;
	double *logit, *far; /* [d->n, classes], [d->n] */
	uint32_t *fold; /* [d->n]; NULL with --calibration */
};

/* A row NAME:CLASS of the report. */
void measured_class(const char *name, const char *class, double value);
/* Report the promises, with the share of the cells of each class that were held out with the class in their set (NaN: none were). Those from unit to unknown_promised are given. */
void report_verdict(const struct calibrated *c, const struct held_out *h, const struct reference *r, struct verdict *v);

/* New cells, some at a time. */
struct gathered {
	struct embeddings d; /* of the cells that have values */
	struct expressed expressed; /* of counts */
	int x, cell; /* columns; x -1: counts */
	size_t bytes;
	uint8_t *there; /* [rows of the output] */
	size_t there_cap;
};

void gathered_init(struct gathered *g, const struct stream *in, const struct reference *r);
void gathered_release(struct gathered *g);
void gather(struct gathered *g, const struct block *b, size_t before,
	const char *name); /* before: rows of the output that are not written yet */
/* The next block, of a stream that was indexed to be read twice, or not. 0: the end. Dies on errors. */
int next_block(struct stream *in, struct block *b);
/* Compare the depth of the reference with that of the new cells, and thin it if it is much deeper. */
void match_depth(struct reference *r, struct stream *in, uint32_t seed);
