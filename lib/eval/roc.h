/*
 * Receiver operating characteristic of a score, by scikit-learn's rules: roc_curve with drop_intermediate, and the exact area.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define ROC_GRID 100 /* points of Geneformer's mean curve: fpr = 0, 1/99 ... 1 */

struct roc_item {
	double score; /* not NaN */
	int positive;
};

struct roc {
	uint64_t positive, negative;
	double auc; /* area = P(positive above negative) + P(tie) / 2; NaN if there are no positives or no negatives */
	uint64_t points; /* of the curve, (0, 0) included: Geneformer weights folds by it */
	double tpr[ROC_GRID]; /* the curve at fpr = i / 99, interpolated; tpr[0] is 0 [Geneformer evaluation_utils.py] */
};

/* n items; they are sorted here by falling score. */
void roc_curve(struct roc *r, struct roc_item *item, size_t n);

/* Area for each of k classes against the rest, and their mean [roc_auc_score(multi_class="ovr")]. score [n, k] class probabilities,
 * y [n] < k; each [k] out: NaN for a class that no item has, or every item. NaN if all are. */
double roc_macro(const double *score, const uint32_t *y, size_t n, size_t k, double *each);

/* The mean curve of the k classes against the rest at fpr = i / 99, over the classes that have an area; all NaN if none has. */
void roc_mean(const double *score, const uint32_t *y, size_t n, size_t k, double tpr[ROC_GRID]);
