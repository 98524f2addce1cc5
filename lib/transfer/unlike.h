/*
 * Which clusters of new cells are most unlike the reference? This orders them and tests nothing: one is always the first. Of a cluster whose mean is u,
 * most of whose cells are predicted to be of class c, whose mean is m_c in the reference,
 *     distance = (|u - m_c - s|^2 - noise) / min_b |m_c - m_b|^2       |x|^2 = sum_j x_j^2 / (sd_j^2 + .01)
 *     level    = sum over the markers j of c of u_j - s_j, over that of m_cj
 *     outside  = mean over its cells and their 15 neighbours of min_b (x - m_b - s)' W^-1 (x - m_b - s),   W: covariance within classes
 * the last on components of the reference.
 * s_j is the shift of the study, the median over classes of how far the mean of the new cells that are predicted to be of a class is from that of the
 * reference; noise is what the sampling of the cells adds; sd: within classes. The clusters are ordered by the sum of three ranks: the far ones, those
 * of a low level and those outside come first. docs/experiments/transfer.md says how often cells of a type that the reference lacks were among them.
 */
#pragma once

#include "eval/components.h"
#include "eval/marker_ranks.h"

enum { UNLIKE_GENES = 8, UNLIKE_NEAREST = 2 };

struct unlike_genes {
	size_t n;
	uint32_t at[UNLIKE_GENES]; /* features */
};

struct unlike_cluster {
	uint32_t id; /* of the caller's clusters, or of k-means */
	size_t cells;
	uint32_t class, nearest[UNLIKE_NEAREST]; /* most predicted; the nearest by |u - m_b - s|, of a reference of two classes or more */
	double distance, level, outside, ranks; /* ranks: their sum, large if unlike */
	/* of the markers of the class: below half of its level, the furthest first; the others, the furthest above other classes first; any
	 * features above the class, the furthest first; all by the distance above */
	struct unlike_genes lacks, has, more;
};

struct unlike {
	size_t n, k, rows; /* clusters with cells, classes, cells */
	struct unlike_cluster *of; /* [n] the most unlike first */
	uint32_t *place; /* [rows] of the cluster of a cell in `of`; MISSING_CODE: in none */
	uint32_t *cells; /* [n, k] cells that are predicted to be of each class */
};

/*
 * r, c: of the reference. class [x->n] < r->k: predicted of the cells x. cluster [x->n] < clusters or MISSING_CODE: the caller's; NULL: k-means
 * on the components, of about 30 cells each, at most 300. BLAS must be set to one thread. The list does not depend on the number of threads.
 */
void unlike_list(struct unlike *u, const struct marker_ranks *r, const struct components *c, const struct sparse *x, const uint32_t *class,
	const uint32_t *cluster, size_t clusters, uint32_t seed, int threads);
void unlike_release(struct unlike *u); /* accepts a zeroed struct */
