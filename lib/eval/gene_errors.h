/*
 * How well the expression of each gene is predicted, over many cells, in memory that grows with the genes and not with the cells [BMFM-RNA,
 * gene-level errors]. y is the expression, m its prediction if the gene is expressed, a the logit that it is not; the gated prediction is 0 where
 * a > 0, and m elsewhere.
 */
#pragma once

#include "eval/sketch.h"

struct gene_sums {
	uint64_t n, expressed, logits;
	double y, gated, gated_expressed, ungated_expressed; /* sums of y, and of |prediction - y| */
	struct sketch logit, value; /* of all pairs, class 1: y is 0; of the pairs with y not 0 */
};

/* What a gene without a pair, or without an expressed one, does not have is NaN. */
struct gene_score {
	uint64_t n, expressed; /* pairs of a cell and this gene; those with y not 0 */
	double zero_fraction; /* 1 - expressed / n */
	double auc, auc_error; /* of a against y = 0, by how much it can be wrong; NaN: all are expressed, or none, or there is no a */
	double mean, mean_expressed; /* of y over all pairs, and over those with y not 0 */
	double mae, mae_expressed,
		mae_expressed_ungated; /* mean |prediction - y|: gated over all and the expressed; m over the expressed */
	double null, null_expressed; /* mean |mean - y|, mean |mean_expressed - y| over the expressed */
	double null_error; /* by how much either null can be wrong */
	double rescaled,
		rescaled_ungated; /* mae_expressed, mae_expressed_ungated / mean_expressed; 1 for a gene that is always gated to 0 */
};

struct gene_errors {
	size_t n;
	struct gene_sums *of; /* [n] genes */
};

void gene_errors_init(struct gene_errors *x, size_t genes);
/* Add a pair, gene < x->n. All numbers are finite; a may be NaN, which means that there is none and m is the prediction. Threads may add to
 * different genes. */
void gene_errors_add(struct gene_errors *x, size_t gene, double y, double m, double a);
void gene_errors_score(struct gene_errors *x, size_t gene, struct gene_score *s);
void gene_errors_release(struct gene_errors *x); /* accepts a zeroed struct */
