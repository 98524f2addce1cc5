/*
 * The gene dependency graph: compressed rows over the vocabulary, and its stream.
 */
#pragma once

#include "stream/stream.h"

struct graph {
	uint32_t n; /* vocabulary rows, special tokens included */
	uint64_t *offset; /* [n + 1] */
	uint32_t *neighbour; /* [offset[n]] ascending within a row; every edge is in both rows */
	float *weight; /* [offset[n]] local Spearman rho, or NPMI */
	uint32_t *overlap; /* [offset[n]] cells with both genes, or number of times that they are adjacent */
	float *pooled; /* [offset[n]] correlation over all cells; NULL: not known */
	int32_t *module; /* [n] -1: none; NULL: not read */
};

struct edge {
	uint32_t u, v; /* tokens, u < v */
	float weight;
	uint32_t overlap;
	float pooled;
};

/* The graph of m edges in order of (u, v), over n vocabulary rows. pooled: the edges have it. */
void graph_build(struct graph *g, uint32_t n, const struct edge *edge, size_t m, int pooled);

/* Gene u becomes gene to[u] of n; edges of genes with to[u] >= n are dropped. g has no modules. */
void graph_renumber(struct graph *g, const uint32_t *to, uint32_t n);

/*
 * A control: the genes with neighbours change places at random, so edges, weights and the number of neighbours of a gene keep
 * nothing of which genes depend on each other. The permutation is Philox(seed); g has no modules.
 */
void graph_shuffle(struct graph *g, uint32_t seed);

/* Add the columns of a graph stream to a header that has none: those for `weight`, pooled if it is not 0, and nmodule columns of modules. */
void graph_columns(struct header *h, const char *weight, int pooled, char *const *name, size_t nmodule);
int graph_write(const struct graph *g, int32_t *const *module, size_t nmodule, struct stream *out, struct error *e);

/* Read a whole graph stream whose weights are in column `weight`: "rho" (with "overlap") or "npmi" (with "count"), see graph_weight.
 * module (may be NULL): name of a column of modules to read. -1 with e set: not a graph, another kind of weight, rows that are not the
 * vocabulary in order, neighbours out of order, a special token with neighbours, an edge that is not in the rows of both its genes, a weight
 * that is not finite. */
int graph_read(struct graph *g, struct stream *in, const char *weight, const char *module, struct error *e);
const char *graph_weight(const struct header *h); /* "npmi" if there is such a column, else "rho" */
const char *graph_overlap(const char *weight); /* the column beside it: "count" of "npmi", else "overlap" */
void graph_release(struct graph *g); /* accepts a zeroed struct */

/* XXH3-128 of edges, weights and modules, 32 hex digits. */
void graph_digest(const struct graph *g, char hex[33]);

/* Position of edge (u, v) in neighbour and weight, or -1. */
int64_t graph_find(const struct graph *g, uint32_t u, uint32_t v);
