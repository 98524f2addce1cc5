/*
 * Bootstrap of the scores of a classification. Cells of one donor are not independent, so whole units (donors, or single cells) are drawn
 * with replacement, as many as there are. The draws depend on the seed and the number of units alone: two models that are tested on the
 * same cells have the same draws, so their replicates can be subtracted.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { BOOTSTRAP_ACCURACY, BOOTSTRAP_BALANCED, BOOTSTRAP_MACRO_F1, BOOTSTRAP_SCORES };

/*
 * truth, predicted [n] < k; unit [n] < units, every unit has a cell.
 * value [replicates, BOOTSTRAP_SCORES] out: the scores of each replicate (metrics.h). Their quantiles .025 and .975 are a 95 % interval.
 * Draws of few donors vary too little for that [Rao and Wu 1988 rescale them, too], so with fewer units than cells each draw is further
 * from the score of all cells than it was, by the factor t / z G / (G - 1): the quantile of Student's t with clusters_df over that of the
 * normal, and the jackknife's standard error of G units over that of a bootstrap. All are NaN below CLUSTERS_DF_MIN.
 */
void bootstrap_scores(double *value, size_t replicates, const uint32_t *truth, const uint32_t *predicted, const uint32_t *unit, size_t n,
	size_t k, size_t units, uint32_t seed);

/* The quantile q of v [n], interpolated as numpy.quantile does; v is sorted. n >= 1, no NaN. */
double bootstrap_quantile(double *v, size_t n, double q);
