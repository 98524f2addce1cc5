/*
 * Binomial thinning: what a cell would have shown at a lower depth. Each molecule is kept with probability P, independently of all others, so that
 * the kept counts and those of the rest are binomial, and independent where the counts are Poisson [Neufeld et al. 2023, count splitting].
 */
#ifndef THIN_H
#define THIN_H

#include "base/rng.h"

#include <stdint.h>

/* The draws of a cell: thin_draw is called for its counts in order. */
static inline struct rng thin_at(uint32_t seed, uint64_t cell)
{
	return rng_at(seed, RNG_THIN, cell, 0);
}

/* How many of n molecules are kept: Binomial(n, p), 0 < p < 1. */
uint64_t thin_draw(struct rng *r, uint64_t n, double p);

#endif
