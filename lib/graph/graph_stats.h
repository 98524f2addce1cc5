/*
 * Analysis of a dependency graph by igraph: components, Leiden modules, layout. And GraphML.
 */
#pragma once

#include "graph/graph.h"

/*
 * Leiden communities [Traag et al. 2019] of the genes that have neighbours: modularity at this resolution with weights |weight|,
 * from singletons until nothing improves. module [g->n] out: 0, 1, ... in falling order of size (ties: the lower token first), -1
 * for genes without neighbours. Returns how many, or -1 with e set: all weights are 0, so that no module is better than another.
 */
int graph_modules(const struct graph *g, double resolution, uint32_t seed, int32_t *module, struct error *e);

/* Positions of the genes in a drawing [Fruchterman and Reingold 1991], with weights |weight|; time grows with the square of the genes.
 * xy [g->n, 2] out: NaN for genes without neighbours. */
int graph_layout(const struct graph *g, uint32_t seed, float *xy, struct error *e);

struct graph_stats {
	uint64_t linked, edges, negative;
	uint32_t components, largest; /* of the genes with neighbours */
	uint32_t degree[7]; /* of these: least, 5 %, 25 %, median, 75 %, 95 %, most */
	double mean_degree;
};
int graph_stats(const struct graph *g, struct graph_stats *s, struct error *e);

/*
 * The genes with neighbours as GraphML: vertices with token, gene, symbol and name, and one number for each of the nmodule arrays under its
 * name; edges with the weight under its name, the overlap (or count) and their further numbers. A number that is not known is left out.
 */
void graph_graphml(const struct graph *g, const struct vocab *v, const struct graph_weight *weight, char *const *name,
	int32_t *const *module, size_t nmodule, FILE *f);
