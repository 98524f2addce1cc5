/*
 * A map of cells: positions in the plane at which near rows are near. It is the DrL layout [Martin et al. 2011, OpenOrd], by igraph, of the
 * graph of nearest neighbours, as scanpy's draw_graph(layout="drl").
 */
#ifndef MAP_H
#define MAP_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/*
 * x [n, d]   rows, finite; n > 0
 * k          neighbours of a row (Euclidean distance; at most n - 1 are used): two rows are joined if one is a neighbour of the other
 * xy [n, 2]  out: positions
 * BLAS must be set to one thread. The result does not depend on the number of threads. -1 with e set: igraph failed (out of memory).
 */
int map_rows(float *xy, const float *x, size_t n, size_t d, size_t k, uint32_t seed, int threads, struct error *e);

#endif
