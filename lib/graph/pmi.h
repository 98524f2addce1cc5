/*
 * The PMI graph [CorrMask, appendix A.2, after Levine et al. 2021]: genes that are adjacent more often than by chance.
 *     NPMI(u, v) = log(P(u, v) / (P(u) P(v))) / -log P(u, v)
 * P(u, v) is the share of the adjacent pairs (t_i, t_i+1) that are {u, v}, in either order. P(u) is the share of the tokens that are u.
 * NPMI is about 1 for genes that always occur as a pair (above 1 in short cells, which have one pair fewer than tokens). Independent genes
 * have log 2 / -log P(u, v), not 0, because both orders count.
 */
#pragma once

#include "graph/corpus.h"
#include "graph/graph.h"

struct pmi_params {
	double tau; /* smallest NPMI of an edge */
	uint32_t min_count; /* smallest number of times that two genes are adjacent */
	int threads;
};

/* Edges in order of (u, v), malloced: weight = NPMI, overlap = number of times adjacent. Memory: 64 MiB per thread, and the edges. */
struct edge *pmi_edges(const struct corpus *c, uint32_t vocab, const struct pmi_params *p, size_t *n);
