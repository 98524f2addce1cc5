/*
 * The float32 screen of all pairs of genes: which pairs can be among the N_neigh strongest of one of their genes?
 *
 * It takes 64 genes u at a time as a dense panel of 512 cells, and multiplies it with the sparse columns of all genes v that are in fewer
 * cells. The cost of a pair is the number of cells of its rarer gene. Memory is the bottleneck: so the panel holds bfloat16, and the entries
 * of the columns, 4 bytes each, are in the order in which they are read (correlation_ranks.h).
 *
 * Sums go over fixed chunks of cells. With M = S / sqrt(D), and e_u the norm of what bfloat16 loses of y_u, the error is at most
 *     |c - C| <= ((chunk + n / chunk + 8) 2^-24 + 2^-15) sqrt((1 + M_u^2)(1 + M_v^2)) + e_u sqrt(1 + M_v^2)
 * A pair is dropped only if no value of C within that bound could make it an edge.
 */
#ifndef CORRELATION_SCREEN_H
#define CORRELATION_SCREEN_H

#include "method/correlation_ranks.h"

struct correlation_pair {
	uint32_t u, v; /* columns, u < v: u is in at least as many cells */
};

/*
 * The pairs that may have |C| >= rho_min and be among the `neighbours` largest |C| of u or of v, in order of (u, v), malloced; n: how many.
 * No such pair is missing. There can be others, and which ones depends on the threads.
 */
struct correlation_pair *correlation_screen(
	const struct correlation_columns *x, const struct correlation_ranks *k, uint32_t neighbours, double rho_min, size_t *n);

#endif
