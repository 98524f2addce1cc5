/*
 * The dependency graph of CorrMask (Algorithm 1) from a sample of cells.
 *     X[i, g] = L_max - position of gene g in cell i, 0 where it is absent
 *     C = corr(rank(X)), average ranks for ties: global Spearman
 *     neighbours of u: the N_neigh genes with the largest |C|; of these, |C| >= rho_min and >= M_min cells with both
 *     weight: Spearman over the cells that have both; an edge stands when either end has the other as a neighbour
 *
 * How it is made fast and yet exact: doubled ranks are integers, and the zeros of a column share one rank, so r' = doubled rank
 * - that of the zeros is a sparse non-negative integer matrix, and
 *     C_uv = (n sum r'_u r'_v - S_u S_v) / sqrt(D_u D_v),    S = sum r',  D = n sum r'^2 - S^2.
 * A float32 screen computes every pair: 64 genes u at a time as a dense panel of a few hundred cells, against the sparse columns
 * of all rarer genes v (a pair costs the cells of its rarer gene). Sums go over fixed chunks, so the error is at most
 *     |c - C| <= (chunk + n / chunk + 8) 2^-24 sqrt((1 + M_u^2)(1 + M_v^2)),    M = S / sqrt(D),
 * and every pair that could still be among the N_neigh largest of one of its genes within that bound is computed again in integers,
 * in the pass that counts the cells with both. So edges depend on no tile, thread or machine.
 */
#ifndef SPEARMAN_H
#define SPEARMAN_H

#include "corpus.h"
#include "graph.h"

struct spearman_params {
	uint32_t neighbours;    /* N_neigh */
	uint32_t min_overlap;   /* M_min */
	uint32_t min_cells;     /* genes in fewer cells are left out */
	uint32_t top_genes;     /* only the genes with the largest column sums of X; 0: all */
	double rho_min;
	int positive;           /* drop edges of negative weight */
};

/* The sample as columns: kept genes in falling order of the cells that have them. */
struct columns {
	uint32_t n;             /* cells */
	uint32_t max_len;
	uint32_t genes;
	uint32_t *token;        /* [genes] */
	uint64_t *offset;       /* [genes + 1] */
	uint32_t *cell;         /* [offset[genes]] ascending within a gene */
	uint16_t *pos;          /* [offset[genes]] 1 ... max_len */
};

/* -1 with e set when there are more cells than the integers hold (10^6), or a cell has a token twice. */
int columns_init(struct columns *x, const struct corpus *c, uint32_t vocab, const struct spearman_params *p, struct error *e);
void columns_release(struct columns *x);        /* accepts a zeroed struct */

struct spearman_stats {
	uint64_t pairs;         /* unique pairs computed again in integers */
	double screen_s, exact_s;
};

/* Edges in order of (u, v), malloced. x is only read. */
struct edge *spearman_edges(const struct columns *x, const struct spearman_params *p, size_t *n, struct spearman_stats *stats);

#endif
