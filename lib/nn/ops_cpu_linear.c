/* The CPU backend's linear layers: product, bias, activation. */
#include "nn/cpu_act.h"
#include "nn/ops_cpu.h"

/*
 * How a product of T rows and N columns is cut. Many rows are cut into chunks, each with all columns. A wide layer on few rows (the genes of a
 * batch of cells) is cut into columns: each chunk of rows would pack all weights again.
 */
struct cut {
	size_t rows, columns, across; /* of a job; jobs side by side */
	size_t jobs;
};

static struct cut cut_product(size_t T, size_t N)
{
	int wide = N >= WIDE && N >= 2 * T;
	struct cut k = {.rows = wide ? T : chunk_rows(T), .columns = wide ? WTILE : N};
	k.across = chunks(N, k.columns);
	k.jobs = T ? k.across * chunks(T, k.rows) : 0;
	return k;
}

void cpu_linear(
	struct ops *o, void *y0, void *pre0, const void *x0, const real *W, const real *b, size_t T, size_t K, size_t N, enum act act)
{
	struct cpu *c = (struct cpu *)o;
	const real *x = x0;
	real *y = y0, *pre = pre0;
	struct cut cut = cut_product(T, N);
	PARALLEL_FOR
	for (size_t k = 0; k < cut.jobs; k++) {
		size_t t0 = k / cut.across * cut.rows, t1 = min_size(T, t0 + cut.rows);
		size_t n0 = k % cut.across * cut.columns, n = min_size(N - n0, cut.columns);
		real *z = (pre ? pre : y) + t0 * N + n0;
		gemm_nt(t1 - t0, n, K, 1, x + t0 * K, K, W + n0 * K, K, 0, z, N);
		for (size_t t = t0; t < t1; t++, z += N) {
			bias_row(z, b ? b + n0 : NULL, n, act);
			if (act == ACT_GELU)
				SIMD for (size_t i = 0; i < n; i++) y[t * N + n0 + i] = gelu(z[i]);
		}
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
 * dW [N,K] += dy^T x, db [N] += sum of dy (db may be NULL). A job computes one tile of dW for one part of the tokens; tiles of a wide layer
 * are longer, and if there is one part they are added to dW at once. The number of parts depends on T alone, and the parts are added in order.
 */
static void weight_back(struct cpu *c, real *dW, real *db, const real *dy, const real *x, size_t T, size_t K, size_t N)
{
	size_t KT = N >= WIDE ? 4 * WTILE : WTILE, across = chunks(K, KT), tiles = chunks(N, WTILE) * across;
	size_t R = part_rows(T), parts = chunks(T, R), size = N * (K + 1);
	int direct = N >= WIDE && parts == 1;
	real *part = shared(c, parts * size);
	PARALLEL_FOR
	for (size_t job = 0; job < parts * tiles; job++) {
		size_t t0 = job / tiles * R, n = min_size(R, T - t0), tile = job % tiles;
		size_t n0 = tile / across * WTILE, n1 = min_size(N, n0 + WTILE), k0 = tile % across * KT, k1 = min_size(K, k0 + KT);
		real *w = part + job / tiles * size, *b = w + N * K;
		if (direct)
			gemm_tn(n1 - n0, k1 - k0, n, 1, dy + n0, N, x + k0, K, 1, dW + n0 * K + k0, K);
		else
			gemm_tn(n1 - n0, k1 - k0, n, 1, dy + t0 * N + n0, N, x + t0 * K + k0, K, 0, w + n0 * K + k0, K);
		if (db && !k0) {
			memset(b + n0, 0, (n1 - n0) * sizeof *b);
			add_parts(b + n0, dy + t0 * N + n0, n, N, n1 - n0);
		}
	}
	PARALLEL_FOR
	for (size_t n = 0; n < (direct ? 0 : N); n++)
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
	struct cut cut = cut_product(T, K);
	if (act != ACT_NONE) {
		PARALLEL_FOR
		for (size_t k = 0; k < chunks(T, R); k++)
			for (size_t t = k * R; t < min_size(T, (k + 1) * R); t++)
				act_row_back(dy + t * N, y ? y + t * N : NULL, pre ? pre + t * N : NULL, N, act);
	}
	PARALLEL_FOR
	for (size_t k = 0; k < (dx ? cut.jobs : 0); k++) {
		size_t t0 = k / cut.across * cut.rows, t1 = min_size(T, t0 + cut.rows);
		size_t k0 = k % cut.across * cut.columns, n = min_size(K - k0, cut.columns);
		gemm_nn(t1 - t0, n, N, 1, dy + t0 * N, N, W + k0, K, add, dx + t0 * K + k0, K);
	}
	if (dW && T)
		weight_back(c, dW, db, dy, x, T, K, N);
}
