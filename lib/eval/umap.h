/*
 * UMAP [McInnes, Healy and Melville 2018] from the nearest neighbours of every row: a graph of rows, and positions at which rows are near
 * that are neighbours.
 *
 *     p_ij   = exp(-max(0, d_ij - rho_i) / sigma_i), with sigma_i such that sum_j p_ij = log2(K); rho_i is the least distance that is not 0
 *     w_ij   = p_ij + p_ji - p_ij p_ji                                           how sure it is that i and j are neighbours
 *     q_ij   = 1 / (1 + A |y_i - y_j|^(2 B))                                     the same on the map
 *
 * sigma is searched as in umap-learn, step by step, and has its least value, a thousandth of a mean distance. So the weights are those of
 * umap-learn, and of scanpy, but for the rounding of float32.
 *
 * On the map, the cross-entropy of q against w goes down by stochastic gradients: a pair is attracted in proportion to its weight, and
 * each time SAMPLES
 * random rows are pushed away. A and B fit a least distance of 0.1, as in umap-learn. igraph 0.10.2 has an earlier form
 * of the method, whose maps are worse than those of DrL.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * The graph w: each pair of rows of which one is a neighbour of the other, once.
 * neighbour [n, k]  the nearest rows of each row, without itself; k < n
 * distance [n, k]   their distances, rising
 * K                 neighbours that log2 counts, at least 2: k here on the map; umap-learn and scanpy count the row itself, so k + 1
 * end [n k, 2], weight [n k]  out: the pairs, by their first row; those whose weight float32 cannot tell from 0 are left out
 * Returns the number of pairs.
 */
size_t umap_graph(uint32_t *end, double *weight, const uint32_t *neighbour, const double *distance, size_t n, size_t k, size_t K);

/*
 * xy [n, 2]         in: where rows begin, spread over about 20; out: the map
 * neighbour, distance [n, k]  as above
 * One thread: the result is a function of the input and the seed.
 */
void umap_rows(float *xy, const uint32_t *neighbour, const double *distance, size_t n, size_t k, uint32_t seed);
