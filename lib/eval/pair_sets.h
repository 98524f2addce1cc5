/*
 * Do the edges of a graph join members of one known set? The truth are the pairs of n members that share a set; all other pairs are of no set.
 * A pair without an edge has the weight 0.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct pair_sets {
	size_t n; /* members */
	uint64_t *pair; /* [pairs] members u < v that share a set: u << 32 | v, ascending */
	size_t pairs;
	uint8_t *together; /* [n, n] bits: do these two share a set? */
};

/* Set k has the members member[start[k] .. start[k + 1]), ascending, below n. */
void pair_sets_init(struct pair_sets *s, size_t n, const uint64_t *start, const uint32_t *member, size_t sets);
void pair_sets_release(struct pair_sets *s); /* accepts a zeroed struct */

struct pair_edge {
	float weight;
	uint32_t u, v;
	int shared; /* they share a set */
};

/* The largest weights first, then by u and v; each pair is there once at most. Fill `shared`. */
void pair_edges_sort(struct pair_edge *edge, size_t n);
void pair_edges_mark(const struct pair_sets *s, struct pair_edge *edge, size_t n);

struct pair_scores {
	double auroc; /* of the weights, over all pairs; equal weights are half right */
	double fold; /* the share of the edges within a set, over that of all pairs */
	double shared; /* edges within a set */
	double auroc_low, auroc_high, fold_low, fold_high; /* 95 % intervals from a bootstrap of the members */
	/* How often a graph has at least as many edges within a set if its members are permuted, so that it keeps its hubs, and the sets theirs: p of
	 * the hypothesis that graph and sets have nothing to do with each other. NaN without an edge. */
	double p;
};

/* Score edge [n], in order, with `draws` draws for the intervals and for p. */
void pair_sets_score(struct pair_scores *r, const struct pair_sets *s, const struct pair_edge *edge, size_t n, size_t draws, uint32_t seed);
