/*
 * Positions in the plane for the vertices of an undirected graph, such that joined vertices are near: the DrL layout [Martin, Brown,
 * Klavans and Boyack 2011, OpenOrd] with igraph's default parameters.
 */
#ifndef LAYOUT_H
#define LAYOUT_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/*
 * xy [n, 2]      out: positions
 * ends [m, 2]    the vertices of every edge, < n; each pair once
 * weight [m]     > 0, or NULL: 1
 * Vertices without edges have positions too. -1 with e set: igraph failed (out of memory).
 */
int layout_graph(float *xy, size_t n, const uint32_t *ends, const float *weight, size_t m, uint32_t seed, struct error *e);

#endif
