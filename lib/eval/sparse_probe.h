/*
 * Logistic regression on rows of few values, such as log-normalised counts of all genes:
 *     min over W, b of   sum_i v_i (-log softmax(W x_i + b)[y_i])  +  penalty / 2 |W|^2,   v_i: weights, whose sum is 1
 * A row may say less: that its class is one of a set S. It adds -log of the sum of softmax over S (hierarchical cross-entropy). The objective is
 * then no longer convex.
 * Features are taken as they are: divided by their standard deviations, rare genes get the weight of common ones, and cells of another study
 * are told apart less well (docs/experiments/transfer.md). The intercept b is not penalised. Features of fewer
 * than three rows have the weight 0. One thread, so that several fits can run side by side; 4 n k bytes beside the rows.
 */
#pragma once

#include "base/error.h"
#include "base/sparse.h"

struct sparse_probe {
	size_t k, d, stride; /* classes; features; numbers of a feature in w, a multiple of 8 */
	float *w; /* [d, stride] */
	float *b; /* [stride] */
};

/* Fit on rows row[0..n) of x; y [x->n]: the class, < k, every class occurs among them; k + j: a class c with under[j k + c] = 1, of which there is
 * one. under may be NULL if there is no such row. weight [x->n] > 0, of any sum; NULL: all are equal. n >= 1, k >= 2, penalty > 0. Values beyond
 * 1e4 or weights that differ by more than 1e6 lose the digits of float32. -1 with e set
 * when W is not finite. */
int sparse_probe_fit(struct sparse_probe *p, const struct sparse *x, const uint32_t *row, size_t n, const uint32_t *y, size_t k,
	const float *weight, const uint8_t *under, double penalty, struct error *e);
void sparse_probe_release(struct sparse_probe *p); /* accepts a zeroed struct */

/* Rows will lack the features of which keep [d] is 0. */
void sparse_probe_keep(struct sparse_probe *p, const uint8_t *keep);
/* logit [p->stride] of a row, of which the first k count. */
void sparse_probe_logits(const struct sparse_probe *p, const struct sparse_row *x, float *logit);

/*
 * The means of classes: how unlike all of them is a row?
 *     1 - max over classes of cos(x - m, m_c - m),   m: mean of all rows, m_c: of those of class c
 */
struct centroids {
	size_t k, d, stride;
	float *w; /* [d, stride] m_c - m, divided by their norms */
	float *b; /* [stride] - w m */
	float *mean; /* [d] m */
	double square; /* |m|^2 */
};
void centroids_fit(
	struct centroids *c, const struct sparse *x, const uint32_t *row, size_t n, const uint32_t *y, const float *weight, size_t k);
void centroids_release(struct centroids *c); /* accepts a zeroed struct */
void centroids_keep(struct centroids *c, const uint8_t *keep); /* likewise */
double centroids_distance(const struct centroids *c, const struct sparse_row *x);
