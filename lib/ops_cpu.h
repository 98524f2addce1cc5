/*
 * What the files of the CPU backend share: its threads, their scratch, and how work is cut into chunks.
 */
#ifndef OPS_CPU_H
#define OPS_CPU_H

#include <omp.h>
#include <stdlib.h>

#include "ops.h"

#ifndef OPS_CPU_TILES /* tests make them small, so that small inputs have several */
enum {
	ROWS = 256,     /* rows of a chunk, when there are enough of them */
	ROWS_MIN = 32,
	QTILE = 48,     /* attention tile: queries x keys, multiples of MR and of STEP */
	KTILE = 192,
	QGROUP = 4,     /* tiles of queries that share a tile of keys while it is in cache */
	WTILE = 256,    /* of a weight's gradient: WTILE x WTILE for each of at most WPARTS parts of WROWS tokens or more */
	WPARTS = 8,
	WROWS = 1024,
	VGROUPS = 8,    /* ranges of the vocabulary with their own partial dh */
	VTILE = 512,    /* logits made at once: ROWS x VTILE */
	FLAT = 1 << 16, /* elements of a chunk in elementwise ops */
};
#endif

struct cpu {
	struct ops o;
	int threads;
	real **own;      /* [threads] scratch of each thread */
	size_t own_cap;
	real *shared;    /* scratch that outlives a chunk: partial sums */
	size_t shared_cap;
};

#define PARALLEL_FOR _Pragma("omp parallel for schedule(dynamic) num_threads(c->threads)")

/* Scratch of at least n reals for every thread; it only grows. Taken by own(c) inside the loop. */
static inline void own_need(struct cpu *c, size_t n)
{
	if (n <= c->own_cap)
		return;
	for (int i = 0; i < c->threads; i++) {
		free(c->own[i]);
		c->own[i] = xlarge(n, sizeof(real));
	}
	c->own_cap = n;
}

static inline real *own(const struct cpu *c)
{
	return c->own[omp_get_thread_num()];
}

static inline real *shared(struct cpu *c, size_t n)
{
	if (n > c->shared_cap) {
		free(c->shared);
		c->shared = xlarge(n, sizeof(real));
		c->shared_cap = n;
	}
	return c->shared;
}

static inline size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

static inline size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

static inline size_t chunks(size_t n, size_t size)
{
	return (n + size - 1) / size;
}

/* Rows of a chunk: at least eight chunks where there are rows for it, since a small batch wants all cores too. */
static inline size_t chunk_rows(size_t T)
{
	size_t r = round_up(T / 8, 16);
	return r < ROWS_MIN ? ROWS_MIN : r > ROWS ? ROWS : r;
}

/* See ops.h. */
void cpu_attention(struct ops *o, void *y, real *lse, const void *qkv, const struct seq *s, size_t C, size_t NH,
	const struct dropout *d);
void cpu_attention_back(struct ops *o, void *dqkv, const void *dy, const void *y, const real *lse, const void *qkv,
	const struct seq *s, size_t C, size_t NH, const struct dropout *d);

#endif
