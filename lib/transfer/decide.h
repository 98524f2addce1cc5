/*
 * What is said of a cell. This is the one place that says it: calibration measures these decisions on held-out cells, and whatever is
 * written, counted or reported of cells is taken from them. For the logits z [k] and the distance f of a cell (method_score)
 *     p = softmax(z / T)                                     T: temperature
 *     class = argmax z, the first of equal ones
 *     set = {class} and all c with 1 - p_c <= most_missed
 *     strange = 2 - P_far(f) - P_unsure(1 - p_class)         P: conformal_p among the held-out cells
 *     likeness = P_strange(strange)                          among those that were predicted to be of the class
 *     unlike = strange > most
 *     unknown = unlike, if the rule calls such cells unknown
 *     term = finest_answer(p, finest)                        of labels of unequal detail
 *
 * strange is the sum of two shares, of the held-out cells that are nearer to their reference than the cell is to its own, and of those that
 * are surer of their class. Over the seven largest classes of lung and of blood cells, each left out of the reference in turn (new donors,
 * 50 components), the sum told their cells with a mean AUROC of .82 and .78, the distance alone .75 and .72, the probability alone .81 and
 * .73.
 *
 * It is compared with cells that were predicted to be of the same class, as classes differ: with all cells together those of rare classes set the
 * limit of the distance, and of B and myeloid cells that were left out, 0 and .12 were found at a rate of .05, instead of .33 and .78.
 */
#pragma once

#include "eval/conformal.h"
#include "transfer/detail.h"

/* All numbers that a decision needs. */
struct rule {
	size_t k; /* classes */
	const struct detail *detail; /* or NULL */
	int calls_unknown; /* 0: unlike cells have their class, too */
	double temperature, most_missed;
	double finest; /* threshold of terms, with detail */
	struct conformal far, unsure; /* of all held-out cells, shortened: distance, 1 - probability of the predicted class */
	struct limit {
		struct conformal strange; /* of the cells predicted to be of a class, shortened after `most` was found */
		double most; /* stranger cells are unlike them */
	} * limit; /* [k + 1] the last one: of all cells */
	size_t *of; /* [k] which limit a class has: its own, or the last one if too few cells were predicted to be of it */
};

struct decision {
	uint32_t class; /* < k */
	double probability, likeness; /* of the class, 0 to 1; p-value: small if the cell is unlike the held-out ones */
	int unlike, unknown; /* less like the reference than its held-out cells, but for a share; and is called unknown */
	size_t term; /* of rule.detail->holds; holds.n: any class */
	double *p; /* [k] the caller's: probabilities of all classes */
	uint8_t *in_set; /* [k] the caller's: 1 for the classes that the cell may be of */
};

/* Of a cell with these logits [k], of which one is finite, and this distance. */
void transfer_decide(const struct rule *r, const double *logit, double far, struct decision *d);
/* For the calibration of r: class, p and probability alone; 1 - probability, and strange, as they are compared. */
void decide_class(const struct rule *r, const double *logit, struct decision *d);
double rule_unsure(double probability);
double rule_strange(const struct rule *r, double far, double unsure);
void rule_release(struct rule *r); /* accepts a zeroed struct */
