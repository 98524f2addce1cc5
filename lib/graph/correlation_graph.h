/*
 * The dependency graph of CorrMask (Algorithm 1) from a sample of cells.
 *     X[i, g] = L_max - position of gene g in cell i, 0 where it is absent
 *     C = corr(rank(X)), average ranks for ties: global Spearman
 *     neighbours of u: the N_neigh genes with the largest |C|; of these, |C| >= rho_min and >= M_min cells with both
 *     weight: Spearman over the cells that have both; u and v have an edge if v is a neighbour of u or u of v
 *
 * Why it is exact and fast: doubled ranks are integers, and all zeros of a column have the same rank. So r' = doubled rank - doubled rank of
 * the zeros is a sparse matrix of integers >= 0, and
 *     C_uv = (n sum r'_u r'_v - S_u S_v) / sqrt(D_u D_v),    S = sum r',  D = n sum r'^2 - S^2.
 * A screen (correlation_screen.h) computes all pairs with an error bound. Every pair that can be an edge within this bound is
 * computed again in integers, when the cells with both genes are counted. So the edges do not depend on tiles, threads or the machine.
 */
#pragma once

#include "graph/correlation_columns.h"
#include "graph/graph.h"

struct correlation_params {
	uint32_t neighbours; /* N_neigh */
	uint32_t min_overlap; /* M_min */
	double rho_min;
	int positive; /* drop edges of negative weight */
};

struct correlation_stats {
	uint64_t pairs; /* unique pairs computed again in integers */
	double screen_s, exact_s;
};

/* Edges in order of (u, v), malloced. x is only read. */
struct edge *correlation_edges(
	const struct correlation_columns *x, const struct correlation_params *p, size_t *n, struct correlation_stats *stats);
