/*
 * The gene dependency graph: compressed rows over the vocabulary, and its stream.
 */
#pragma once

#include "stream/stream.h"

enum { GRAPH_VALUES = 5 }; /* most numbers of an edge beside its weight and overlap */

/* What the weights of a graph can be. */
enum { GRAPH_RHO, GRAPH_SCORE, GRAPH_NPMI, GRAPH_WEIGHTS };
struct graph_weight {
	const char *name; /* of the column */
	const char *overlap; /* the column beside it */
	const char *expected; /* message where another graph is given */
	struct graph_value {
		const char *name; /* NULL: no more */
		int whole; /* it is a number of donors, and so on; the others may be NaN */
	} value[GRAPH_VALUES]; /* its further numbers */
};
extern const struct graph_weight graph_weights[];

struct graph {
	uint32_t n; /* vocabulary rows, special tokens included */
	uint64_t *offset; /* [n + 1] */
	uint32_t *neighbour; /* [offset[n]] ascending within a row; every edge is in both rows */
	float *weight; /* [offset[n]] local Spearman rho, NPMI, or the score of graph/within.h */
	uint32_t *overlap; /* [offset[n]] cells with both genes, or number of times that they are adjacent */
	float *value[GRAPH_VALUES]; /* [offset[n]] further numbers of the edges; NULL: not known */
	int32_t *module; /* [n] -1: none; NULL: not read */
};

struct edge {
	uint32_t u, v; /* tokens, u < v */
	float weight;
	uint32_t overlap;
	float value[GRAPH_VALUES];
};

/* The graph of m edges in order of (u, v), over n vocabulary rows, with the first `values` of their further numbers. */
void graph_build(struct graph *g, uint32_t n, const struct edge *edge, size_t m, int values);

/* Gene u becomes gene to[u] of n; edges of genes with to[u] >= n are dropped. g has no modules. */
void graph_renumber(struct graph *g, const uint32_t *to, uint32_t n);

/* Keep the n edges of largest |weight|; of equal ones the lower tokens are first. g has no modules. */
void graph_strongest(struct graph *g, size_t n);

/*
 * A control: the genes with neighbours change places at random, so edges, weights and the number of neighbours of a gene keep
 * nothing of which genes depend on each other. The permutation is Philox(seed); g has no modules.
 */
void graph_shuffle(struct graph *g, uint32_t seed);

/* Add the columns of a graph stream to a header that has none: those for `weight`, of its further numbers those that g knows, and nmodule columns
 * of modules. */
void graph_columns(struct header *h, const struct graph *g, const struct graph_weight *weight, char *const *name, size_t nmodule);
int graph_write(const struct graph *g, int32_t *const *module, size_t nmodule, struct stream *out, struct error *e);

/* Read a whole graph stream with these weights, see graph_weight.
 * module (may be NULL): name of a column of modules to read. -1 with e set: not a graph, another kind of weight, rows that are not the
 * vocabulary in order, neighbours out of order, a special token with neighbours, an edge that is not in the rows of both its genes, a weight
 * that is not finite. */
int graph_read(struct graph *g, struct stream *in, const struct graph_weight *weight, const char *module, struct error *e);
const struct graph_weight *graph_weight(const struct header *h); /* which of them have a column, else rho */
void graph_release(struct graph *g); /* accepts a zeroed struct */

/* XXH3-128 of edges, weights and modules, 32 hex digits. */
void graph_digest(const struct graph *g, char hex[33]);

/* Position of edge (u, v) in neighbour and weight, or -1. */
int64_t graph_find(const struct graph *g, uint32_t u, uint32_t v);
