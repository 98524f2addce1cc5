/* The parts of ctaprobe transfer: transfer.c has the options and the streams, transfer_method.c what predicts and how it is calibrated,
 * transfer_other.c the cells of --calibration. */
#ifndef TRANSFER_H
#define TRANSFER_H

#include "fitted.h"

#include "eval/conformal.h"
#include "eval/sparse_probe.h"

struct method_options {
	size_t nearest; /* so many neighbours vote; 0: logistic regression */
	double inverse_penalty; /* of embeddings */
	int as_given; /* the features of the regression are not standardised */
	int threads;
	const char *label; /* in messages */
};

/* What predicts classes, of some cells of the reference. */
struct method {
	const struct method_options *o;
	const struct classes *c;
	size_t n, d;
	struct fitted probe;
	float *own; /* [n, d] the cells, NULL if they are all of the reference */
	const float *x; /* [n, d] the cells ... */
	uint32_t *y; /* [n] ... and their classes */
	struct sparse_probe genes; /* of counts, instead of probe and x, of the classes in back [genes.k] */
	struct centroids centroids;
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
	size_t cells, groups;
};

/* Cells that the method has not seen: logit [n, k], far [n], y [n] < k; group [n] < groups, or NULL: each cell is one. */
struct unseen {
	const double *logit, *far;
	const uint32_t *y, *group;
	size_t n, k, groups;
};

/* coverage, unknown: shares of cells. Cells whose class the method did not know (logit -INFINITY) are left out; dies if all are. */
void calibrate(struct calibrated *c, const struct unseen *u, double coverage, double unknown, const char *name);
/* How strange a cell is that is so far, and whose class has this probability. */
double calibrated_strange(const struct calibrated *c, double far, double probability);
void calibrated_release(struct calibrated *c); /* accepts a zeroed struct */

/* Cells that the method has learned from look surer than others do: die if most of `other` are cells of the reference, the stream `path`. */
void refuse_shared(const struct embeddings *reference, const struct embeddings *other, const char *path);
/* Leave out the cells of d whose class is not one of the first `classes`, those of the reference `path`. Dies if none is left. */
void drop_unknown(struct embeddings *d, size_t classes, const char *path);

#endif
