/*
 * Calibration of a rule (decide.h) on cells that their method has not seen, and what the rule says of these cells: a promise for new cells is a measurement of
 * the decisions themselves. Of G groups that were held out, such as donors, a share 1 - miss of the cells of a new one is promised if the decisions are right for
 *     sum_g (share of the cells of g) >= (1 - miss) (G + 1)                  [eval/conformal.h]
 */
#pragma once

#include "transfer/decide.h"
#include "transfer/method.h"
#include "transfer/shift.h"

/* Cells that their method has not seen. */
struct held_out {
	const struct embeddings *d;
	size_t k; /* classes */
	double *logit, *far; /* [d->n, k], [d->n] */
	size_t unfinished; /* folds whose probe did not converge */
};

/* Each fold of d by a method of the others: fold [d->n] < folds. whole: the method of all, and its options and classes. -1 with e set: a fit fails. */
int hold_out(
	struct held_out *h, const struct embeddings *d, const struct method *whole, const uint32_t *fold, size_t folds, struct error *e);
/* Other cells than those of the method. */
void hold_out_others(struct held_out *h, const struct embeddings *d, const struct method *whole);
void held_out_release(struct held_out *h); /* accepts a zeroed struct */

/* A share that was asked for, and what the decisions give. */
struct measured {
	double wanted, needed, sum; /* 1 - miss; of the shares, summed over the groups: the least that promises it, and what it is */
	size_t groups;
	size_t of; /* the class whose cells these are; k: all */
};
int measured_keeps(const struct measured *m);
/* The fewest groups that can promise it; wanted < 1. */
size_t measured_groups(double wanted);

struct calibrated {
	struct rule rule;
	struct shift shift; /* of the held-out cells, and of the new ones that were added */
	struct new_cells {
		double cells, unlike;
	} * new; /* [k] new cells that were added, by predicted class */
	size_t cells, groups; /* groups: cells, if there are none */
	size_t whole; /* groups that coverage is measured on; 0: with coarse labels, none counts whole */
	double *covered; /* [k] share of the held-out cells of a class whose set has it; NaN: there are none */
	struct measured coverage, known; /* known: cells that are not unlike, of the class of which this holds least */
};

/* groups: numbers of d->group. coverage: share of the cells whose set has their class; unknown: share of the cells of a class that may be unlike it. -1 with e set:
 * no held-out cell has a class that its method knew. */
int transfer_calibrate(struct calibrated *c, const struct held_out *h, const struct detail *t, size_t groups, double coverage,
	double unknown, struct error *e);
/* coverage, known and covered by the rule as it is now. transfer_calibrate ends with it. */
void transfer_measure(struct calibrated *c, const struct held_out *h, size_t groups);
/* Cell i of d is a new one, for which this was decided. */
void calibrated_add(struct calibrated *c, const struct decision *of, const struct embeddings *d, size_t i);
void calibrated_release(struct calibrated *c); /* accepts a zeroed struct */
