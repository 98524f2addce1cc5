/*
 * Undirected graphs by igraph: the only room that knows it. Vertices are numbered from 0 without gaps. Drawing and communities depend on
 * the order
 * of the edges, on `seed`, and on nothing else. Functions return -1 with e set if igraph failed (out of memory).
 */
#pragma once

#include "base/error.h"

struct network {
	uint32_t n; /* vertices */
	size_t m; /* edges */
	uint32_t *end; /* [m, 2] */
};

/*
 * Leiden communities [Traag et al. 2019]: modularity at this resolution, from singletons until nothing improves.
 * weight [m]: at least 0, and not all 0. member [n] out: 0, 1, ... in no order. Returns how many.
 */
int network_leiden(const struct network *g, const double *weight, double resolution, uint32_t seed, uint32_t *member, struct error *e);

/*
 * Two partitions a, b [n] < n of n > 0 items, as scikit-learn scores them: the mutual information divided by the mean of both entropies,
 * and the
 * adjusted Rand index. Both are 1 for equal partitions.
 */
int network_agreement(const uint32_t *a, const uint32_t *b, size_t n, double *nmi, double *ari, struct error *e);

/* Positions in the plane [Fruchterman and Reingold 1991]; time grows with n squared. weight [m]: at least 0; below 0.01 is 0.01. xy [n,
 * 2] out. */
int network_springs(const struct network *g, const double *weight, uint32_t seed, float *xy, struct error *e);

/* The connected component of each vertex, member [n] out < *components. strong: edges lead from end[0] to end[1], and the components are strong ones. */
int network_members(const struct network *g, int strong, uint32_t *member, uint32_t *components, struct error *e);
