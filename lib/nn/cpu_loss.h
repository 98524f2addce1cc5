/*
 * The cross-entropy of the decoder on the CPU, of logits that exist one tile at a time. A job has some rows and one of VGROUPS ranges of the
 * vocabulary. For each row it keeps the largest logit and the sum of exponentials; at the end these are combined over the ranges.
 */
#pragma once

#include "nn/ops_cpu.h"

struct tops {
	size_t N;
	real *top, *part; /* [VGROUPS, N] */
	real *at; /* [N] the target's logit */
	real *end; /* behind them */
};

static inline size_t tops_size(size_t N)
{
	return (2 * VGROUPS + 1) * N;
}

static inline struct tops tops_at(real *memory, size_t N)
{
	return (struct tops){N, memory, memory + VGROUPS * N, memory + 2 * VGROUPS * N, memory + tops_size(N)};
}

/* Before the first tile of a job: range g, rows from r0. */
static inline void tops_start(const struct tops *t, size_t g, size_t r0, size_t rows)
{
	for (size_t i = g * t->N + r0; i < g * t->N + r0 + rows; i++) {
		t->top[i] = -(real)INFINITY;
		t->part[i] = 0;
	}
}

/* s += b; padded with -inf to a multiple of STEP */
static inline void logit_row(real *s, const real *b, size_t n)
{
	SIMD for (size_t j = 0; j < n; j++) s[j] += b[j];
	for (size_t j = n; j < round_up(n, STEP); j++)
		s[j] = -(real)INFINITY;
}

/* A tile of logits, rows at distance VTILE, of n tokens from v0. It is overwritten. */
static inline void tops_add(const struct tops *t, real *z, const uint32_t *target, size_t g, size_t r0, size_t rows, size_t v0, size_t n)
{
	real *m = t->top + g * t->N + r0, *l = t->part + g * t->N + r0;
	for (size_t i = 0; i < rows; i++) {
		real *s = z + i * VTILE;
		if (target[r0 + i] - v0 < n)
			t->at[r0 + i] = s[target[r0 + i] - v0];
		real top = row_max(s, round_up(n, STEP), l[i] > 0 ? m[i] : s[0]), add = soft_row(s, NULL, round_up(n, STEP), top);
		l[i] = l[i] * exp_fast(m[i] - top) + add;
		m[i] = top;
	}
}

/* Add the losses and the hits to sum, and set lse [N]. */
static inline void tops_finish(const struct tops *t, double *sum, real *lse, const uint32_t *target)
{
	double loss = 0, hits = 0;
	size_t N = t->N;
	for (size_t i = 0; i < N; i++) {
		real m = t->top[i], l = 0;
		for (size_t g = 1; g < VGROUPS; g++)
			m = t->top[g * N + i] > m ? t->top[g * N + i] : m;
		for (size_t g = 0; g < VGROUPS; g++)
			l += t->part[g * N + i] * exp_fast(t->top[g * N + i] - m);
		lse[i] = m + (real)log(l);
		if (target[i] != ROW_NONE) {
			loss += lse[i] - t->at[i];
			hits += t->at[i] >= m;
		}
	}
	sum[0] += loss;
	sum[1] += hits;
}

/* A row of logits, of n tokens from v0, becomes its gradient. */
static inline void loss_row_back(real *s, uint32_t target, real lse, const real *scale, size_t v0, size_t n)
{
	soft_row(s, NULL, round_up(n, STEP), lse);
	if (target == ROW_NONE)
		memset(s, 0, n * sizeof *s);
	else if (target - v0 < n)
		s[target - v0] -= 1;
	SIMD for (size_t j = 0; j < (scale ? n : 0); j++) s[j] *= *scale;
}
