/*
 * A map of cells: positions in the plane at which near rows are near, from the graph of nearest neighbours, by igraph.
 *     MAP_UMAP  UMAP [McInnes, Healy and Melville 2018], which begins at about the first two principal components
 *     MAP_DRL   DrL [Martin et al. 2011, OpenOrd], as scanpy's draw_graph(layout="drl")
 */
#ifndef MAP_H
#define MAP_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum map_method { MAP_UMAP, MAP_DRL };

/*
 * x [n, d]   rows, finite; n > 0
 * k          neighbours of a row (Euclidean distance; at most n - 1 are used): two rows are joined if one is a neighbour of the other
 * xy [n, 2]  out: positions
 * BLAS must be set to one thread. The result does not depend on the number of threads. -1 with e set: igraph failed (out of memory).
 */
int map_rows(float *xy, const float *x, size_t n, size_t d, enum map_method method, size_t k, uint32_t seed, int threads, struct error *e);

#endif
