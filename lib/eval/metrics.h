/*
 * Scores of a classification, by scikit-learn's rules, from a confusion matrix.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct metrics {
	size_t k;
	uint64_t n; /* cells scored */
	uint64_t *confusion; /* [k, k] row: true class, column: predicted */
	/* from here on: filled by metrics_score */
	double accuracy;
	double balanced_accuracy; /* mean recall over the classes that occur */
	double macro_f1; /* mean over the classes that occur or are predicted */
	double weighted_f1; /* mean weighted by how often a class occurs */
	uint64_t *support, *predicted; /* [k] cells of the class, cells predicted as it */
	double *f1; /* [k] 2TP / (2TP + FP + FN), 0 if that is 0/0 */
};

void metrics_init(struct metrics *m, size_t k);
void metrics_release(struct metrics *m); /* accepts a zeroed struct */

/* Add n cells: truth[i] and predicted[i] < k. */
void metrics_add(struct metrics *m, const uint32_t *truth, const uint32_t *predicted, size_t n);

/* Fill the scores from the counts. With n = 0 they are NaN. */
void metrics_score(struct metrics *m);

/*
 * Mean F1 of the rarest classes by frequency[k], a third of those that occur in m, rounded, at least 1 (ties: lower class). NaN if none
 * occurs. chosen [k], may be NULL: set to 1 for the classes used, else to 0.
 */
double metrics_rare_f1(const struct metrics *m, const uint64_t *frequency, uint8_t *chosen);
