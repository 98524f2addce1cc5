/*
 * Calibration of a rule (decide.h) on cells that their method has not seen, and what the rule says of these cells: a promise for new cells
 * is a measurement of the decisions themselves. Of G groups that were held out, such as donors, a share 1 - miss of the cells of a new one
 * is promised if the decisions are right for
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
static inline int measured_keeps(const struct measured *m)
{
	return m->sum >= m->needed - 1e-9 * (double)m->groups;
}
/* The fewest groups that can promise it; wanted < 1. */
size_t measured_groups(double wanted);

struct calibrated {
	struct rule rule;
	struct shift shift; /* of the held-out cells, and of the new ones that were added */
	struct of_class {
		double held, covered,
			right; /* held-out cells of the class; shares of them whose set has it, and that were predicted; NaN: there are none */
		double cells, unlike; /* new cells that were added, predicted to be of the class */
		double share; /* of the class among the new cells (calibrated_mix) */
	} * of; /* [k] */
	size_t cells, groups; /* groups: cells, if there are none */
	size_t whole; /* groups that coverage is measured on; 0: with coarse labels, none counts whole */
	struct measured coverage, known; /* known: cells that are not unlike, of the class of which this holds least */
	double right; /* share of the held-out cells that are predicted rightly */
	double expected_covered, expected_right; /* of new cells (calibrated_mix) */
	struct unlike_shares {
		size_t groups;
		double mean, total,
			between; /* of the shares of unlike cells in the groups: mean, variance, and that without the sampling of cells */
	} unlike;
};

/* groups: numbers of d->group. coverage: share of the cells whose set has their class; unknown: share of the cells of a class that may be
 * unlike it. -1 with e set: no held-out cell has a class that its method knew. */
int transfer_calibrate(struct calibrated *c, const struct held_out *h, const struct detail *t, size_t groups, double coverage,
	double unknown, struct error *e);
/* coverage, known, unlike and the held-out cells of each class by the rule as it is now. transfer_calibrate ends with it. */
void transfer_measure(struct calibrated *c, const struct held_out *h, size_t groups);
/* Of n cells of a new group like those that were held out the share of unlike cells exceeds this limit with a probability of
 * SHIFT_FALSE_ALARM, as Student's t of the shares has it. NaN: too few groups. */
double unlike_limit(const struct unlike_shares *u, double n);
/* Cell i of d is a new one, for which this was decided. */
void calibrated_add(struct calibrated *c, const struct decision *of, const struct embeddings *d, size_t i);
/*
 * After the last new cell: the shares of the classes among the new cells, from the logits [n, k] that the method gives them. Predictions
 * alone lean to the classes that are frequent in the reference; the shares s maximise the likelihood of the cells, by EM from those of the
 * held-out cells, r [Saerens et al. 2002]:
 *     s_c = mean over cells of   (p_c s_c / r_c) / sum_b (p_b s_b / r_b)
 * With these shares, the coverage and the accuracy of the held-out cells of each class say what is expected of the new ones.
 */
void calibrated_mix(struct calibrated *c, const double *logit, size_t n);
void calibrated_release(struct calibrated *c); /* accepts a zeroed struct */
