/*
 * The screen of all pairs of genes: which pairs can be among the N_neigh strongest of one of their genes?
 *
 * It takes a panel of genes u as a dense matrix of 512 cells, and multiplies it with the sparse columns of the genes v that are in fewer
 * cells (correlation_kernel.h). The cost of a pair is the number of cells of its rarer gene. The panel has ranks of 8 bits, which
 * the second-level cache delivers in time, the columns ranks of 14 bits. A pair is dropped only if no value of C within the
 * error of this rounding could make it an edge.
 */
#pragma once

#include "graph/candidates.h"
#include "graph/correlation_ranks.h"

/*
 * The pairs that may have |C| >= rho_min and be among the `neighbours` largest |C| of u or of v, in order of (u, v), malloced; n: how many. They are columns:
 * u is in at least as many cells as v.
 * No such pair is missing. There can be others.
 */
struct gene_pair *correlation_screen(const struct correlation_ranks *k, uint32_t neighbours, double rho_min, size_t *n);
