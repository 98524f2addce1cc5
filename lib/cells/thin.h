/*
 * Binomial thinning: what a cell would have shown at a lower depth. Each molecule is kept with probability P, independently of all others, so that
 * the kept counts and those of the rest are binomial, and independent where the counts are Poisson [Neufeld et al. 2023, count splitting].
 */
#pragma once

#include "base/rng.h"
#include "stream/header.h"

/*
 * Which parts of the molecules the cells of a stream are, by its provenance: a number for each sequence of scsample --thin and --thin
 * --complement, in order, larger for a longer one; 0: all. It is a part of the key of the draws, as draws that were made before would not
 * be independent of what is left.
 */
uint32_t thin_before(const struct header *h);

/* The draws of a cell: thin_draw is called for its counts in order. domain: RNG_THIN, RNG_THIN_REFERENCE */
static inline struct rng thin_at(uint32_t seed, enum rng_domain domain, uint64_t cell, uint32_t before)
{
	return rng_at(seed, domain, cell, before);
}

/* How many of n molecules are kept: Binomial(n, p), 0 < p < 1. */
uint64_t thin_draw(struct rng *r, uint64_t n, double p);
