/* The CPU backend's linear layers: product, bias, activation. */
#include "nn/ops_cpu.h"

#include <math.h>
#include <string.h>

static inline real gelu(real x)
{
	return (real)0.5 * x * erfc_fast(-x * (real)M_SQRT1_2);
}

static inline real gelu_slope(real x)
{
	return (real)0.5 * erfc_fast(-x * (real)M_SQRT1_2) + x * exp_fast((real)-0.5 * x * x) * (real)0.3989422804014327;
}

static void bias_row(real *y, const real *b, size_t N, enum act act)
{
	if (act == ACT_RELU)
		SIMD for (size_t i = 0; i < N; i++)
		{
			real v = y[i] + (b ? b[i] : 0);
			y[i] = v < 0 ? 0 : v; /* so written, NaN stays NaN */
		}
	else if (b)
		SIMD for (size_t i = 0; i < N; i++) y[i] += b[i];
	if (act == ACT_TANH)
		for (size_t i = 0; i < N; i++)
			y[i] = (real)tanh(y[i]);
}

void cpu_linear(
	struct ops *o, void *y0, void *pre0, const void *x0, const real *W, const real *b, size_t T, size_t K, size_t N, enum act act)
{
	struct cpu *c = (struct cpu *)o;
	const real *x = x0;
	real *y = y0, *pre = pre0;
	size_t R = chunk_rows(T);
	PARALLEL_FOR
	for (size_t k = 0; k < chunks(T, R); k++) {
		size_t t0 = k * R, t1 = min_size(T, t0 + R);
		real *z = (pre ? pre : y) + t0 * N;
		gemm_nt(t1 - t0, N, K, 1, x + t0 * K, K, W, K, 0, z, N);
		for (size_t t = t0; t < t1; t++, z += N) {
			bias_row(z, b, N, act);
			if (act == ACT_GELU)
				SIMD for (size_t i = 0; i < N; i++) y[t * N + i] = gelu(z[i]);
		}
	}
}

static void act_row_back(real *dy, const real *y, const real *pre, size_t N, enum act act)
{
	switch (act) {
	case ACT_NONE:
		break;
	case ACT_RELU:
		SIMD for (size_t i = 0; i < N; i++) dy[i] = y[i] > 0 ? dy[i] : 0;
		break;
	case ACT_GELU:
		SIMD for (size_t i = 0; i < N; i++) dy[i] *= gelu_slope(pre[i]);
		break;
	case ACT_TANH:
		SIMD for (size_t i = 0; i < N; i++) dy[i] *= 1 - y[i] * y[i];
		break;
	}
}

/* Tokens of a part of a sum over all T; depends on T alone. */
static size_t part_rows(size_t T)
{
	return chunks(T, min_size(WPARTS, chunks(T, WROWS)));
}

void bias_back(struct cpu *c, real *db, const real *dy, size_t T, size_t N)
{
	if (!T)
		return;
	size_t R = part_rows(T), parts = chunks(T, R), across = chunks(N, WTILE);
	real *part = shared(c, parts * N);
	PARALLEL_FOR
	for (size_t job = 0; job < parts * across; job++) {
		size_t t0 = job / across * R, n0 = job % across * WTILE, n = min_size(WTILE, N - n0);
		real *b = part + job / across * N + n0;
		memset(b, 0, n * sizeof *b);
		add_parts(b, dy + t0 * N + n0, min_size(R, T - t0), N, n);
	}
	add_parts(db, part, parts, N, N);
}

/*
 * dW [N,K] += dy^T x, db [N] += sum of dy (db may be NULL). A job computes one tile of dW for one part of the tokens. The number of parts
 * depends on T alone, and the parts are added in order.
 */
static void weight_back(struct cpu *c, real *dW, real *db, const real *dy, const real *x, size_t T, size_t K, size_t N)
{
	size_t across = chunks(K, WTILE), tiles = chunks(N, WTILE) * across;
	size_t R = part_rows(T), parts = chunks(T, R), size = N * (K + 1);
	real *part = shared(c, parts * size);
	PARALLEL_FOR
	for (size_t job = 0; job < parts * tiles; job++) {
		size_t t0 = job / tiles * R, n = min_size(R, T - t0), tile = job % tiles;
		size_t n0 = tile / across * WTILE, n1 = min_size(N, n0 + WTILE), k0 = tile % across * WTILE, k1 = min_size(K, k0 + WTILE);
		real *w = part + job / tiles * size, *b = w + N * K;
		gemm_tn(n1 - n0, k1 - k0, n, 1, dy + t0 * N + n0, N, x + t0 * K + k0, K, 0, w + n0 * K + k0, K);
		if (db && !k0) {
			memset(b + n0, 0, (n1 - n0) * sizeof *b);
			add_parts(b + n0, dy + t0 * N + n0, n, N, n1 - n0);
		}
	}
	PARALLEL_FOR
	for (size_t n = 0; n < N; n++)
		add_parts(dW + n * K, part + n * K, parts, size, K);
	if (db)
		add_parts(db, part + N * K, parts, size, N);
}

void cpu_linear_back(struct ops *o, void *dx0, real *dW, real *db, void *dy0, const void *x0, const real *W, const void *y0,
	const void *pre0, size_t T, size_t K, size_t N, enum act act, int add)
{
	struct cpu *c = (struct cpu *)o;
	const real *x = x0, *y = y0, *pre = pre0;
	real *dx = dx0, *dy = dy0;
	size_t R = chunk_rows(T);
	if (dx || act != ACT_NONE) {
		PARALLEL_FOR
		for (size_t k = 0; k < chunks(T, R); k++) {
			size_t t0 = k * R, t1 = min_size(T, t0 + R);
			for (size_t t = t0; t < t1 && act != ACT_NONE; t++)
				act_row_back(dy + t * N, y ? y + t * N : NULL, pre ? pre + t * N : NULL, N, act);
			if (dx)
				gemm_nn(t1 - t0, K, N, 1, dy + t0 * N, N, W, K, add, dx + t0 * K, K);
		}
	}
	if (dW && T)
		weight_back(c, dW, db, dy, x, T, K, N);
}
