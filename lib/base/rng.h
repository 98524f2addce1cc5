/*
 * Counter-based random numbers: Philox4x32-10 [Salmon et al. 2011] from Random123. A draw is a pure function of
 * (seed, domain, a, b, index), never of a shared generator, so results do not depend on threads, order or shards.
 * Key = (seed, domain); counter = (index, b, low half of a, high half of a).
 */
#pragma once

#include <Random123/philox.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* What a draw is for. Every use has its own number, so that no two uses share random numbers. The numbers never change. */
enum rng_domain {
	RNG_SAMPLE = 1, /* which cells belong to a sample: depgraph, scsample (a = cell) */
	RNG_SHUFFLE_BLOCKS, /* maskgen: order of blocks (a = epoch) */
	RNG_SHUFFLE_ROWS, /* maskgen: order of rows in a window (a = epoch, b = window) */
	RNG_MASK, /* maskgen: masks of one cell (a = cell, b = epoch) */
	RNG_RATE, /* maskgen: rate of one global batch (a = batch, b = epoch) */
	RNG_DROPOUT, /* sctrain: dropout; struct dropout in nn/ops.h has the counter */
	RNG_INIT, /* sctrain: initial weights (a = tensor) */
	RNG_SIM, /* scsim (a = cell or module, b = purpose) */
	RNG_FOLD, /* folds of a cross-validation */
	RNG_TEST,
	RNG_BOOTSTRAP, /* units of a replicate (a = replicate) */
	RNG_COLUMNS, /* maskgen: genes that a global batch hides (a = batch, b = epoch) */
	RNG_PROBE, /* maskgen: target and masks of a probe (a = cell, b = epoch) */
	RNG_EXCHANGE, /* depgraph: genes that change places */
	RNG_TIES, /* maskgen, scembed: order of the genes of equal count (a = cell, b = epoch) */
	RNG_MAP, /* screduce map: rows that are pushed away (a = epoch) */
	RNG_INPUT, /* maskgen: order, zeros and hidden fields of a cell whose values are the input (a = cell, b = epoch) */
	RNG_PERTURB = 30, /* scperturb: control sets (a = cell, b = the set) */
	RNG_STATES, /* scperturb shift: random states (a = cell) */
	RNG_THIN, /* scsample --thin: molecules (a = cell, b = how the cells were thinned before) */
	RNG_ROWS, /* ctaprobe transfer: cells of a large reference that are learned from (a = cell of the reference); order of a pass of the fit (a = pass, b = 1) */
	RNG_KMEANS, /* where k-means begins (a = start) */
	RNG_EIGEN, /* where a search for eigenvectors begins */
	RNG_NEIGHBOURS, /* rows that begin as centres, and whose neighbours are searched twice (a = 0, 1) */
	RNG_STRATA, /* cells of a sample that has every group */
	RNG_THIN_REFERENCE, /* ctaprobe transfer: molecules of the reference (a = cell, b = as for RNG_THIN) */
	RNG_HALVES, /* depgraph: donors of halves (a = the halves), of states (a = the deal, b = 1) */
};

/* Four 32-bit words at a counter. */
static inline void rng_block(uint32_t seed, uint32_t domain, const uint32_t ctr[4], uint32_t out[4])
{
	philox4x32_ctr_t c = {{ctr[0], ctr[1], ctr[2], ctr[3]}};
	philox4x32_key_t k = {{seed, domain}};
	c = philox4x32(c, k);
	for (int i = 0; i < 4; i++)
		out[i] = c.v[i];
}

/* A short sequence of draws for one (seed, domain, a, b): up to 2^34 words. */
struct rng {
	uint32_t seed, domain, ctr[4], word[4];
	unsigned left; /* unused words of word[] */
};

static inline struct rng rng_at(uint32_t seed, enum rng_domain domain, uint64_t a, uint32_t b)
{
	struct rng r = {.seed = seed, .domain = (uint32_t)domain, .ctr = {0, b, (uint32_t)a, (uint32_t)(a >> 32)}};
	return r;
}

static inline uint32_t rng_u32(struct rng *r)
{
	if (!r->left) {
		rng_block(r->seed, r->domain, r->ctr, r->word);
		r->ctr[0]++;
		r->left = 4;
	}
	return r->word[4 - r->left--];
}

static inline uint64_t rng_u64(struct rng *r)
{
	uint64_t hi = rng_u32(r);
	return hi << 32 | rng_u32(r);
}

/* Uniform in [0, n), n > 0, without bias (Lemire 2019). */
static inline uint32_t rng_below(struct rng *r, uint32_t n)
{
	uint64_t m = (uint64_t)rng_u32(r) * n;
	if ((uint32_t)m < n)
		for (uint32_t t = -n % n; (uint32_t)m < t;)
			m = (uint64_t)rng_u32(r) * n;
	return (uint32_t)(m >> 32);
}

/* SHUFFLE(r, p, n): the n items of p change places at random, the last one first [Fisher and Yates]. */
#define SHUFFLE(r, p, n) \
	do { \
		for (size_t i_ = (n); i_ > 1; i_--) { \
			const uint32_t k_ = rng_below((r), (uint32_t)i_); \
			const __typeof__(*(p)) t_ = (p)[i_ - 1]; \
			(p)[i_ - 1] = (p)[k_]; \
			(p)[k_] = t_; \
		} \
	} while (0)

/* order [n]: 0, 1, ... n - 1 at random, by the same from the inside out */
static inline void rng_order(struct rng *r, uint32_t *order, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = rng_below(r, i + 1);
		order[i] = order[k];
		order[k] = i;
	}
}

/* Uniform in [0, 1), 53 bits. */
static inline double rng_unit(struct rng *r)
{
	return (double)(rng_u64(r) >> 11) * 0x1p-53;
}

/* Standard normal (Box-Muller, one of the pair). */
static inline double rng_normal(struct rng *r)
{
	double u = 1 - rng_unit(r), v = rng_unit(r);
	return sqrt(-2 * log(u)) * cos(6.283185307179586477 * v);
}
