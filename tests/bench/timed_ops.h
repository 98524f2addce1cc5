/* What the training benchmarks share: the timed ops of encoders, and numbers at random. */
#pragma once

#include "floors.h"

TIMED(embed,
	(struct ops * o, void *y, real *stat, const real *w, const real *p, const real *t0, const void *more, const real *ga,
		const real *be, const struct seq *s, size_t C, double eps, const struct dropout *d),
	(inner, y, stat, w, p, t0, more, ga, be, s, C, eps, d))
TIMED(embed_back,
	(struct ops * o, real *dw, real *dp, real *dt, real *dg, real *db, void *dy, const real *stat, const real *w, const real *p,
		const real *t0, const void *more, const real *ga, const struct seq *s, size_t V, size_t P, size_t C, uint32_t pad,
		const struct dropout *d),
	(inner, dw, dp, dt, dg, db, dy, stat, w, p, t0, more, ga, s, V, P, C, pad, d))
TIMED(linear, (struct ops * o, void *y, void *pre, const void *x, const real *W, const real *b, size_t T, size_t K, size_t N, enum act act),
	(inner, y, pre, x, W, b, T, K, N, act))
TIMED(linear_back,
	(struct ops * o, void *dx, real *dW, real *db, void *dy, const void *x, const real *W, const void *y, const void *pre, size_t T,
		size_t K, size_t N, enum act act, int add),
	(inner, dx, dW, db, dy, x, W, y, pre, T, K, N, act, add))
TIMED(attention, (struct ops * o, void *y, real *lse, const void *qkv, const struct seq *s, size_t C, size_t NH, const struct dropout *d),
	(inner, y, lse, qkv, s, C, NH, d))
TIMED(attention_back,
	(struct ops * o, void *dqkv, const void *dy, const void *y, const real *lse, const void *qkv, const struct seq *s, size_t C,
		size_t NH, const struct dropout *d),
	(inner, dqkv, dy, y, lse, qkv, s, C, NH, d))
TIMED(norm,
	(struct ops * o, void *y, void *r, real *stat, const void *a, const void *x, const real *ga, const real *be, const struct seq *s,
		size_t T, size_t C, double eps, const struct dropout *d),
	(inner, y, r, stat, a, x, ga, be, s, T, C, eps, d))
TIMED(norm_back,
	(struct ops * o, void *da, void *dx, real *dg, real *db, real *dbias, const void *dy, const void *r, const real *stat,
		const real *ga, const struct seq *s, size_t T, size_t C, const struct dropout *d),
	(inner, da, dx, dg, db, dbias, dy, r, stat, ga, s, T, C, d))
TIMED(sumsq, (struct ops * o, double *sum, const real *g, size_t n), (inner, sum, g, n))
TIMED(adamw, (struct ops * o, real *p, const real *g, real *m, real *v, size_t n, const double *norm2, const struct adamw_args *a),
	(inner, p, g, m, v, n, norm2, a))
TIMED(free, (struct ops * o, void *p), (inner, p)) /* these two: a backend keeps packed weights behind the table */
TIMED(params_changed, (struct ops * o, const real *p, size_t n), (inner, p, n))

static uint32_t rng(uint32_t n)
{
	static uint32_t x = 1;
	x = x * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)x * n >> 32);
}
