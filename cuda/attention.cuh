/*
 * What both tensor core kernels of attention share (attention_mma.cu for sm_80 and later, attention_wgmma.cu for sm_90a): which rows a block
 * owns, rows of a quad of lanes, the decisions of dropout in memory.
 */
#pragma once

#include "mma.cuh"

#define LOG2E 1.44269504f

enum {
	PAIR = 2 * TILE_SIZE, /* bytes: K and V, or Q and dY; or 128 rows of one of them */
};

template <int D> constexpr float SCALE = D == 16 ? 0.25f : D == 32 ? 0.176776695f : 0.125f; /* 1 / sqrt(D) */

/* Is the word's low (high) half a decision to keep? */
static __device__ __forceinline__ bool kept(uint32_t word, int high, uint32_t threshold)
{
	return high ? word >= threshold << 16 : word << 16 >= threshold << 16;
}

static __device__ __forceinline__ float quad_max(float x)
{
	x = fmaxf(x, __shfl_xor_sync(WARP_ALL, x, 1));
	return fmaxf(x, __shfl_xor_sync(WARP_ALL, x, 2));
}

static __device__ __forceinline__ float quad_sum(float x)
{
	x += __shfl_xor_sync(WARP_ALL, x, 1);
	return x + __shfl_xor_sync(WARP_ALL, x, 2);
}

struct where { /* what a block works on */
	uint32_t t0, len; /* the cell */
	uint32_t from; /* the block's first row in it */
	uint32_t cell, key, head; /* key: the cell's for dropout */
	uint32_t lane, row0; /* row0: the warp's first of the block's rows */
};

struct cells { /* of struct seq */
	const uint32_t *tile, *offset, *pos, *cell, *key;
};

/* The heads of a tile are neighbours, and the list begins with the longest cells: the last blocks to run are short ones. Past its end: len 0.
 * `rows`: those of a warp. */
static __device__ __forceinline__ struct where where_am_i(const struct cells &c, uint32_t NH, uint32_t rows)
{
	struct where w = {};
	uint32_t t = c.tile[blockIdx.x / NH];
	if (t == ROW_NONE)
		return w;
	uint32_t b = c.cell[t];
	w.t0 = c.offset[b];
	w.len = c.offset[b + 1] - w.t0;
	w.from = c.pos[t];
	w.cell = b;
	w.key = c.key[b];
	w.head = blockIdx.x % NH;
	w.lane = threadIdx.x % 32;
	w.row0 = threadIdx.x / 32 * rows;
	return w;
}

/*
 * The decisions of dropout, a bit each, 1 to keep: 128 queries, then the next 32 keys (TILE_THREADS words). Which bit is whose, the kernels
 * say. A cell's words begin where those of any cells before it, of as many tokens, must have ended; so the places depend on nothing but `steps`.
 */
struct decisions {
	uint32_t *word;
	uint32_t steps; /* of 32 keys: room for the longest cell, a multiple of 4 */
};

/* Those of the 128 queries from `query` on and the keys from `key` on; both are multiples of what belongs together. */
static __device__ __forceinline__ uint32_t *decisions_at(
	const struct decisions &d, const struct where &w, uint32_t NH, uint32_t query, uint32_t key)
{
	const size_t row = w.t0 / BLOCK_ROWS + w.cell + query / BLOCK_ROWS;
	return d.word + ((row * NH + w.head) * d.steps + key / 32) * TILE_THREADS;
}

static inline struct cells cells_of(const struct seq *s)
{
	return (struct cells){s->tile, s->offset, s->pos, s->cell, s->key};
}

static inline uint32_t keep_steps(size_t T, size_t longest)
{
	return blocks(longest < T ? longest : T, BLOCK_ROWS) * (BLOCK_ROWS / 32);
}

static inline struct decisions decisions_of(const struct dropout *d, size_t T)
{
	return d ? (struct decisions){(uint32_t *)d->keep, keep_steps(T, d->longest)} : (struct decisions){NULL, 0};
}
