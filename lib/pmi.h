/*
 * The PMI graph [CorrMask, appendix A.2, after Levine et al. 2021]: genes that stand side by side more often than chance.
 *     NPMI(u, v) = log(P(u, v) / (P(u) P(v))) / -log P(u, v)
 * P(u, v) is the share of the adjacent pairs (t_i, t_i+1), in either order, that are {u, v}; P(u) the share of the tokens that
 * are u. NPMI is 1 for genes that are never seen apart, 0 for independent ones.
 */
#ifndef PMI_H
#define PMI_H

#include "corpus.h"
#include "graph.h"

struct pmi_params {
	double tau;             /* least NPMI of an edge */
	uint32_t min_count;     /* least number of times side by side */
};

/* Edges in order of (u, v), malloced: weight = NPMI, overlap = times side by side. Memory: 64 MiB a thread beside the edges. */
struct edge *pmi_edges(const struct corpus *c, uint32_t vocab, const struct pmi_params *p, size_t *n);

#endif
