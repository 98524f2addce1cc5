/*
 * Are probabilities what they say? Of cells that a model calls a class with probability .8, are 8 of 10 right?
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * The temperature T for which softmax(logit / T) has the smallest loss -log p(y), between 1/16 and 16 [Guo et al. 2017].
 * logit [n, k]; -INFINITY: a class that the model does not know, and cells of such a class are left out. y [n] < k.
 * 1 if no cell is left.
 */
double temperature_fit(const double *logit, const uint32_t *y, size_t n, size_t k);

#define CALIBRATION_BINS 10

/*
 * confidence [n]: the probability of the predicted class. right [n]: is it the true one?
 * Bins are (0, .1], (.1, .2], ...; 0 is in the first [scikit-learn's calibration_curve].
 */
struct calibration {
	uint64_t cells[CALIBRATION_BINS];
	double confidence[CALIBRATION_BINS], accuracy[CALIBRATION_BINS]; /* means of the bin; NaN without a cell */
	double error; /* expected calibration error: sum_b cells_b / n |accuracy_b - confidence_b|; NaN without a cell */
};
void calibration_measure(struct calibration *c, const double *confidence, const uint8_t *right, size_t n);

#define RISK_GRID 100

/*
 * Risk by coverage [Geifman and El-Yaniv 2017]: if only the cells of at least some confidence get a class, what share is wrong?
 * risk [RISK_GRID] out: the share of errors among the first ceil(n (i + 1) / RISK_GRID) cells by falling confidence; of cells of equal
 * confidence that are only in part among them, each counts with the mean of all of them. Returns the mean of the risk over all n such numbers of
 * cells: the area under the curve. n >= 1.
 */
double risk_coverage(const double *confidence, const uint8_t *right, size_t n, double risk[RISK_GRID]);
