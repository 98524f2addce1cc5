/*
 * The CPU backend of ops.h: OpenBLAS for the products, OpenMP over fixed chunks, loops that the compiler vectorises.
 *
 * Which thread does a chunk is left to chance; what a chunk is, and the order in which chunks are summed, is not: chunks
 * depend on shapes alone. BLAS runs single-threaded inside the loops. Parallel work is split over rows (forward, input
 * gradients), over tiles of a weight (weight gradients, so each sum over tokens is one chain), over (cell, head)
 * for attention, over vocabulary ranges for the decoder.
 */
#include "ops.h"

#include <assert.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_kernel.h"

void openblas_set_num_threads(int n);

#ifndef OPS_CPU_TILES /* tests make them small, so that small inputs have several */
enum {
	ROWS = 256,     /* rows of a chunk, when there are enough of them */
	ROWS_MIN = 32,
	QTILE = 48,     /* attention tile: queries x keys, multiples of MR and of NR; the scores stay in L1 */
	KTILE = 192,
	WTILE = 128,    /* of a weight's gradient: WTILE x WTILE, each one sum over all tokens */
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
static void own_need(struct cpu *c, size_t n)
{
	if (n <= c->own_cap)
		return;
	for (int i = 0; i < c->threads; i++) {
		free(c->own[i]);
		c->own[i] = aligned_alloc(64, (n * sizeof(real) + 63) / 64 * 64);
		if (!c->own[i])
			c->own[i] = xmalloc(SIZE_MAX); /* dies with the usual message */
	}
	c->own_cap = n;
}

static real *own(const struct cpu *c)
{
	return c->own[omp_get_thread_num()];
}

static real *shared(struct cpu *c, size_t n)
{
	if (n > c->shared_cap) {
		free(c->shared);
		c->shared = xcalloc(n, sizeof(real));
		c->shared_cap = n;
	}
	return c->shared;
}

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Rows of a chunk: at least eight chunks where there are rows for it, since a small batch wants all cores too. */
static size_t chunk_rows(size_t T)
{
	size_t r = (T / 8 + 15) / 16 * 16;
	return r < ROWS_MIN ? ROWS_MIN : r > ROWS ? ROWS : r;
}

static size_t chunks(size_t n, size_t size)
{
	return (n + size - 1) / size;
}

/* ---- memory ---- */

static void *cpu_alloc(struct ops *o, size_t bytes)
{
	void *p = aligned_alloc(64, (bytes + 64) / 64 * 64);
	if (!p)
		p = xmalloc(SIZE_MAX);
	memset(p, 0, bytes);
	return p;
}

static void cpu_free(struct ops *o, void *p)
{
	free(p);
}

static void cpu_zero(struct ops *o, void *p, size_t bytes)
{
	memset(p, 0, bytes);
}

static void cpu_copy(struct ops *o, void *dst, const void *src, size_t bytes)
{
	memmove(dst, src, bytes);
}

static void cpu_copy_act_out(struct ops *o, real *host, const void *dev, size_t n)
{
	memmove(host, dev, n * sizeof(real));
}

static void cpu_copy_act_in(struct ops *o, void *dev, const real *host, size_t n)
{
	memmove(dev, host, n * sizeof(real));
}

static int cpu_sync(struct ops *o, struct error *e)
{
	return 0;
}

static void cpu_params_changed(struct ops *o, const real *p, size_t n)
{
}

static void cpu_destroy(struct ops *o)
{
	struct cpu *c = (struct cpu *)o;
	for (int i = 0; i < c->threads; i++)
		free(c->own[i]);
	free(c->own);
	free(c->shared);
	free(c);
}

/* ---- elementwise ---- */

/* x *= keep of a row of C channels */
static void drop_row(real *y, const real *x, real *keep, size_t C, const struct dropout *d, uint32_t pos, uint32_t cell)
{
	keep_row(keep, 0, C, d, 0, pos, cell);
	SIMD
	for (size_t i = 0; i < C; i++)
		y[i] = x[i] * keep[i];
}

static void cpu_add(struct ops *o, void *y0, const void *x0, const void *z0, size_t n)
{
	struct cpu *c = (struct cpu *)o;
	real *y = y0;
	const real *x = x0, *z = z0;
	PARALLEL_FOR
	for (size_t k = 0; k < chunks(n, FLAT); k++)
		SIMD
		for (size_t i = k * FLAT; i < min_size(n, (k + 1) * FLAT); i++)
			y[i] = x[i] + z[i];
}

static void cpu_gather(struct ops *o, void *y0, const void *x0, const uint32_t *index, size_t N, size_t C)
{
	real *y = y0;
	const real *x = x0;
	for (size_t i = 0; i < N; i++)
		memcpy(y + i * C, x + index[i] * C, C * sizeof(real));
}

static void cpu_scatter(struct ops *o, void *dx0, const void *dy0, const uint32_t *index, size_t N, size_t T, size_t C)
{
	real *dx = dx0;
	const real *dy = dy0;
	memset(dx, 0, T * C * sizeof(real));
	for (size_t i = 0; i < N; i++)
		memcpy(dx + index[i] * C, dy + i * C, C * sizeof(real));
}

static void cpu_drop(struct ops *o, void *y0, const void *x0, const struct seq *s, int per_cell, size_t C, const struct dropout *d)
{
	struct cpu *c = (struct cpu *)o;
	real *y = y0;
	const real *x = x0;
	size_t T = per_cell ? s->B : s->T, R = chunk_rows(T);
	if (!drop_on(d)) {
		memmove(y, x, T * C * sizeof(real));
		return;
	}
	own_need(c, C + KEEP_PAD);
	PARALLEL_FOR
	for (size_t k = 0; k < chunks(T, R); k++)
		for (size_t t = k * R; t < min_size(T, (k + 1) * R); t++)
			drop_row(y + t * C, x + t * C, own(c), C, d, per_cell ? 0 : s->pos[t], s->key[per_cell ? t : s->cell[t]]);
}

/* ---- LayerNorm ---- */

/* y = (r - mean) / std gamma + beta; y may be r */
static void norm_row(real *y, real *stat, const real *r, const real *gamma, const real *beta, size_t C, real eps)
{
	real sum = 0, var = 0;
	SIMD_SUM(sum)
	for (size_t i = 0; i < C; i++)
		sum += r[i];
	real mean = sum / (real)C;
	SIMD_SUM(var)
	for (size_t i = 0; i < C; i++)
		var += (r[i] - mean) * (r[i] - mean);
	real rstd = 1 / (real)sqrt(var / (real)C + eps);
	SIMD
	for (size_t i = 0; i < C; i++)
		y[i] = (r[i] - mean) * rstd * gamma[i] + beta[i];
	stat[0] = mean;
	stat[1] = rstd;
}

/* dr from dy (may be the same); dgamma and dbeta are added to */
static void norm_row_back(real *dr, real *dgamma, real *dbeta, const real *dy, const real *r, const real *stat,
	const real *gamma, size_t C)
{
	real mean = stat[0], rstd = stat[1], m1 = 0, m2 = 0;
	_Pragma("omp simd reduction(+ : m1, m2)")
	for (size_t i = 0; i < C; i++) {
		real g = dy[i] * gamma[i], xhat = (r[i] - mean) * rstd;
		m1 += g;
		m2 += g * xhat;
		dgamma[i] += dy[i] * xhat;
		dbeta[i] += dy[i];
	}
	m1 /= (real)C;
	m2 /= (real)C;
	SIMD
	for (size_t i = 0; i < C; i++)
		dr[i] = rstd * (dy[i] * gamma[i] - m1 - (r[i] - mean) * rstd * m2);
}

static void add_parts(real *out, const real *part, size_t n, size_t stride, size_t C)
{
	for (size_t k = 0; k < n; k++)
		SIMD
		for (size_t i = 0; i < C; i++)
			out[i] += part[k * stride + i];
}

static void cpu_norm(struct ops *o, void *y0, void *r0, real *stat, const void *a0, const void *x0, const real *gamma,
	const real *beta, const struct seq *s, size_t T, size_t C, double eps, const struct dropout *d)
{
	struct cpu *c = (struct cpu *)o;
	const real *a = a0, *x = x0;
	real *y = y0, *r = r0;
	size_t R = chunk_rows(T);
	own_need(c, C + KEEP_PAD);
	PARALLEL_FOR
	for (size_t k = 0; k < chunks(T, R); k++) {
		for (size_t t = k * R; t < min_size(T, (k + 1) * R); t++) {
			const real *at = a + t * C, *xt = x ? x + t * C : NULL;
			real *rt = r + t * C, *keep = own(c);
			if (drop_on(d)) {
				drop_row(rt, at, keep, C, d, s->pos[t], s->key[s->cell[t]]);
				at = rt;
			}
			if (xt)
				SIMD
				for (size_t i = 0; i < C; i++)
					rt[i] = at[i] + xt[i];
			else if (rt != at)
				memcpy(rt, at, C * sizeof(real));
			norm_row(y + t * C, stat + 2 * t, rt, gamma, beta, C, (real)eps);
		}
	}
}

static void cpu_norm_back(struct ops *o, void *da0, void *dx0, real *dgamma, real *dbeta, const void *dy0, const void *r0,
	const real *stat, const real *gamma, const struct seq *s, size_t T, size_t C, const struct dropout *d)
{
	struct cpu *c = (struct cpu *)o;
	const real *dy = dy0, *r = r0;
	real *da = da0, *dx = dx0;
	size_t R = chunk_rows(T), n = chunks(T, R);
	real *part = shared(c, n * 2 * C);
	own_need(c, 2 * (C + KEEP_PAD));
	PARALLEL_FOR
	for (size_t k = 0; k < n; k++) {
		real *dg = part + k * 2 * C, *db = dg + C, *keep = own(c), *tmp = keep + C + KEEP_PAD;
		memset(dg, 0, 2 * C * sizeof(real));
		for (size_t t = k * R; t < min_size(T, (k + 1) * R); t++) {
			real *dr = dx ? dx + t * C : tmp;
			norm_row_back(dr, dg, db, dy + t * C, r + t * C, stat + 2 * t, gamma, C);
			if (da && drop_on(d))
				drop_row(da + t * C, dr, keep, C, d, s->pos[t], s->key[s->cell[t]]);
			else if (da)
				memcpy(da + t * C, dr, C * sizeof(real));
		}
	}
	add_parts(dgamma, part, n, 2 * C, C);
	add_parts(dbeta, part + C, n, 2 * C, C);
}

/* ---- embedding ---- */

static void embed_row(real *e, const real *w, const real *type, const real *p, size_t C)
{
	SIMD
	for (size_t i = 0; i < C; i++)
		e[i] = w[i] + type[i] + p[i];
}

static void cpu_embed(struct ops *o, void *y0, real *stat, const real *word, const real *posw, const real *type,
	const real *gamma, const real *beta, const struct seq *s, size_t C, double eps, const struct dropout *d)
{
	struct cpu *c = (struct cpu *)o;
	real *y = y0;
	size_t R = chunk_rows(s->T);
	own_need(c, C + KEEP_PAD);
	PARALLEL_FOR
	for (size_t k = 0; k < chunks(s->T, R); k++) {
		for (size_t t = k * R; t < min_size(s->T, (k + 1) * R); t++) {
			real *yt = y + t * C;
			embed_row(yt, word + s->id[t] * C, type, posw + s->pos[t] * C, C);
			norm_row(yt, stat + 2 * t, yt, gamma, beta, C, (real)eps);
			if (drop_on(d))
				drop_row(yt, yt, own(c), C, d, s->pos[t], s->key[s->cell[t]]);
		}
	}
}

static void cpu_embed_back(struct ops *o, real *dword, real *dposw, real *dtype, real *dgamma, real *dbeta, void *dy0,
	const real *stat, const real *word, const real *posw, const real *type, const real *gamma,
	const struct seq *s, size_t V, size_t P, size_t C, uint32_t pad, const struct dropout *d)
{
	struct cpu *c = (struct cpu *)o;
	real *dy = dy0;
	size_t T = s->T, R = chunk_rows(T), n = chunks(T, R);
	real *part = shared(c, n * 3 * C);
	own_need(c, 2 * (C + KEEP_PAD));
	PARALLEL_FOR
	for (size_t k = 0; k < n; k++) {
		real *dg = part + k * 3 * C, *db = dg + C, *dt = db + C, *keep = own(c), *e = keep + C + KEEP_PAD;
		memset(dg, 0, 3 * C * sizeof(real));
		for (size_t t = k * R; t < min_size(T, (k + 1) * R); t++) {
			real *g = dy + t * C;
			if (drop_on(d))
				drop_row(g, g, keep, C, d, s->pos[t], s->key[s->cell[t]]);
			embed_row(e, word + s->id[t] * C, type, posw + s->pos[t] * C, C);
			norm_row_back(g, dg, db, g, e, stat + 2 * t, gamma, C);
			SIMD
			for (size_t i = 0; i < C; i++)
				dt[i] += g[i];
		}
	}
	add_parts(dgamma, part, n, 3 * C, C);
	add_parts(dbeta, part + C, n, 3 * C, C);
	add_parts(dtype, part + 2 * C, n, 3 * C, C);
	PARALLEL_FOR
	for (size_t k = 0; k < chunks(V, ROWS); k++)
		for (size_t v = k * ROWS; v < min_size(V, (k + 1) * ROWS); v++)
			for (size_t j = s->start[v]; v != pad && j < s->start[v + 1]; j++)
				add_parts(dword + v * C, dy + s->order[j] * C, 1, 0, C);
	PARALLEL_FOR
	for (size_t p = 0; p < s->L; p++)
		for (size_t b = 0; b < s->B; b++)
			if (s->offset[b] + p < s->offset[b + 1])
				add_parts(dposw + p * C, dy + (s->offset[b] + p) * C, 1, 0, C);
}

/* ---- linear ---- */

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
		SIMD
		for (size_t i = 0; i < N; i++) {
			real v = y[i] + (b ? b[i] : 0);
			y[i] = v < 0 ? 0 : v; /* so written, NaN stays NaN */
		}
	else if (b)
		SIMD
		for (size_t i = 0; i < N; i++)
			y[i] += b[i];
	if (act == ACT_TANH)
		for (size_t i = 0; i < N; i++)
			y[i] = (real)tanh(y[i]);
}

static void cpu_linear(struct ops *o, void *y0, void *pre0, const void *x0, const real *W, const real *b,
	size_t T, size_t K, size_t N, enum act act)
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
				SIMD
				for (size_t i = 0; i < N; i++)
					y[t * N + i] = gelu(z[i]);
		}
	}
}

static void act_row_back(real *dy, const real *y, const real *pre, size_t N, enum act act)
{
	switch (act) {
	case ACT_NONE:
		break;
	case ACT_RELU:
		SIMD
		for (size_t i = 0; i < N; i++)
			dy[i] = y[i] > 0 ? dy[i] : 0;
		break;
	case ACT_GELU:
		SIMD
		for (size_t i = 0; i < N; i++)
			dy[i] *= gelu_slope(pre[i]);
		break;
	case ACT_TANH:
		SIMD
		for (size_t i = 0; i < N; i++)
			dy[i] *= 1 - y[i] * y[i];
		break;
	}
}

static void cpu_linear_back(struct ops *o, void *dx0, real *dW, real *db, void *dy0, const void *x0, const real *W,
	const void *y0, const void *pre0, size_t T, size_t K, size_t N, enum act act, int add)
{
	struct cpu *c = (struct cpu *)o;
	const real *x = x0, *y = y0, *pre = pre0;
	real *dx = dx0, *dy = dy0;
	size_t R = chunk_rows(T), across = chunks(K, WTILE);
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
	if (!dW)
		return;
	PARALLEL_FOR
	for (size_t job = 0; job < chunks(N, WTILE) * across; job++) {
		size_t n0 = job / across * WTILE, n1 = min_size(N, n0 + WTILE), k0 = job % across * WTILE, k1 = min_size(K, k0 + WTILE);
		gemm_tn(n1 - n0, k1 - k0, T, 1, dy + n0, N, x + k0, K, 1, dW + n0 * K + k0, K);
		for (size_t t = 0; db && k0 == 0 && t < T; t++)
			SIMD
			for (size_t i = n0; i < n1; i++)
				db[i] += dy[t * N + i];
	}
}

/* ---- attention ---- */

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

/*
 * Forward of one (cell, head): a tile of queries against all keys, a tile of keys at a time, with the running maximum and
 * sum of flash attention [Dao et al. 2022]. q, and C and 2C behind it k and v: rows at distance 3C; y: rows at distance C.
 */
static size_t attend_scratch(size_t len, size_t D)
{
	size_t Dp = round_up(D, NR);
	return round_up(len, NR) * D + len * Dp + 2 * QTILE * Dp + QTILE * KTILE + 2 * QTILE + KTILE + KEEP_PAD;
}

static void attend(real *y, real *lse, const real *q, size_t len, size_t C, size_t D, size_t NH, uint32_t head, uint32_t key,
	const struct dropout *d, real *scratch)
{
	const size_t Dp = round_up(D, NR);
	real *Kt = scratch, *V = Kt + round_up(len, NR) * D, *Q = V + len * Dp, *O = Q + QTILE * Dp, *S = O + QTILE * Dp;
	real *m = S + QTILE * KTILE, *l = m + QTILE, *keep = l + QTILE;
	for (size_t j = 0; j < KTILE; j++)
		keep[j] = 1;
	pack_panels(Kt, q + C, 3 * C, len, D);
	pack_rows(V, len, Dp, q + 2 * C, 3 * C, len, D, 1);
	for (size_t i0 = 0; i0 < len; i0 += QTILE) {
		size_t Tq = min_size(QTILE, len - i0), M = round_up(Tq, MR);
		pack_rows(Q, M, Dp, q + i0 * 3 * C, 3 * C, Tq, D, 1 / (real)sqrt((double)D));
		for (size_t j0 = 0; j0 < len; j0 += KTILE) {
			size_t Tk = min_size(KTILE, len - j0);
			mul_nn(S, KTILE, Q, Dp, Kt + j0 * D, D * NR, NR, M, Tk, D, 0);
			for (size_t i = 0; i < Tq; i++) {
				real *s = S + i * KTILE, top = row_max(s, Tk, j0 ? m[i] : s[0]), sum = 0;
				if (drop_on(d))
					keep_row(keep, j0, Tk, d, head, (uint32_t)(i0 + i), key);
				SIMD_SUM(sum)
				for (size_t j = 0; j < Tk; j++) {
					real p = exp_fast(s[j] - top);
					s[j] = p * keep[j];
					sum += p;
				}
				if (j0) {
					real shrink = exp_fast(m[i] - top);
					sum += l[i] * shrink;
					for (size_t c = 0; top != m[i] && c < Dp; c++)
						O[i * Dp + c] *= shrink;
				}
				m[i] = top;
				l[i] = sum;
			}
			mul_nn(O, Dp, S, KTILE, V + j0 * Dp, NR, Dp, M, Dp, Tk, j0 > 0);
		}
		for (size_t i = 0; i < Tq; i++) {
			real inv = 1 / l[i];
			SIMD
			for (size_t c = 0; c < D; c++)
				y[(i0 + i) * C + c] = O[i * Dp + c] * inv;
			lse[(i0 + i) * NH] = m[i] + (real)log(l[i]);
		}
	}
}

static void cpu_attention(struct ops *o, void *y0, real *lse, const void *qkv0, const struct seq *s, size_t C, size_t NH,
	const struct dropout *d)
{
	struct cpu *c = (struct cpu *)o;
	const real *qkv = qkv0;
	real *y = y0;
	size_t D = C / NH;
	own_need(c, attend_scratch(s->L, D));
	PARALLEL_FOR
	for (size_t job = 0; job < s->B * NH; job++) {
		size_t b = job / NH, h = job % NH, t0 = s->host_offset[b], len = s->host_offset[b + 1] - t0;
		attend(y + t0 * C + h * D, lse + t0 * NH + h, qkv + t0 * 3 * C + h * D, len, C, D, NH, (uint32_t)h, s->key[b], d, own(c));
	}
}

/*
 * Backward of one (cell, head), the scores made again tile by tile: with P = exp(S - lse), M the dropout factors and
 * delta_i = dy_i . y_i,   dV += (P M)^T dY;  dS = P (M (dY V^T) - delta);  dQ += dS K / sqrt(D);  dK += dS^T Q / sqrt(D).
 * Q is packed with the 1 / sqrt(D) in it, so that only dQ must be scaled, at the end.
 */
static size_t attend_back_scratch(size_t len, size_t D)
{
	size_t Dp = round_up(D, NR), rows = round_up(len, QTILE);
	return 2 * round_up(len, NR) * D + 4 * rows * Dp + 2 * round_up(KTILE, MR) * Dp + 2 * (QTILE * KTILE + MR) + len + KTILE + KEEP_PAD;
}

static void attend_back(real *dq, const real *dy, const real *y, const real *lse, const real *q, size_t len, size_t C, size_t D,
	size_t NH, uint32_t head, uint32_t key, const struct dropout *d, real *scratch)
{
	const size_t Dp = round_up(D, NR), rows = round_up(len, QTILE), KTp = round_up(KTILE, MR);
	const real scale = 1 / (real)sqrt((double)D);
	real *Kt = scratch, *Vt = Kt + round_up(len, NR) * D, *Q = Vt + round_up(len, NR) * D, *K = Q + rows * Dp;
	real *dY = K + rows * Dp, *dQ = dY + rows * Dp, *dK = dQ + rows * Dp, *dV = dK + KTp * Dp;
	real *S = dV + KTp * Dp, *G = S + QTILE * KTILE + MR, *delta = G + QTILE * KTILE + MR, *keep = delta + len;
	pack_panels(Kt, q + C, 3 * C, len, D);
	pack_panels(Vt, q + 2 * C, 3 * C, len, D);
	pack_rows(Q, rows, Dp, q, 3 * C, len, D, scale);
	pack_rows(K, rows, Dp, q + C, 3 * C, len, D, 1);
	pack_rows(dY, rows, Dp, dy, C, len, D, 1);
	for (size_t i = 0; i < len; i++) {
		real sum = 0;
		SIMD_SUM(sum)
		for (size_t c = 0; c < D; c++)
			sum += dy[i * C + c] * y[i * C + c];
		delta[i] = sum;
	}
	for (size_t j = 0; j < KTILE; j++)
		keep[j] = 1;
	for (size_t j0 = 0; j0 < len; j0 += KTILE) {
		size_t Tk = min_size(KTILE, len - j0);
		for (size_t i0 = 0; i0 < len; i0 += QTILE) {
			size_t Tq = min_size(QTILE, len - i0);
			mul_nn(S, KTILE, Q + i0 * Dp, Dp, Kt + j0 * D, D * NR, NR, Tq, Tk, D, 0);
			mul_nn(G, KTILE, dY + i0 * Dp, Dp, Vt + j0 * D, D * NR, NR, Tq, Tk, D, 0);
			for (size_t i = 0; i < Tq; i++) {
				real *s = S + i * KTILE, *g = G + i * KTILE, ls = lse[(i0 + i) * NH], del = delta[i0 + i];
				if (drop_on(d))
					keep_row(keep, j0, Tk, d, head, (uint32_t)(i0 + i), key);
				SIMD
				for (size_t j = 0; j < Tk; j++) {
					real p = exp_fast(s[j] - ls);
					s[j] = p * keep[j];
					g[j] = s[j] * g[j] - p * del;
				}
			}
			mul_tn(dV, Dp, S, KTILE, dY + i0 * Dp, NR, Dp, Tk, Dp, Tq, i0 > 0);
			mul_tn(dK, Dp, G, KTILE, Q + i0 * Dp, NR, Dp, Tk, Dp, Tq, i0 > 0);
			mul_nn(dQ + i0 * Dp, Dp, G, KTILE, K + j0 * Dp, NR, Dp, Tq, Dp, Tk, j0 > 0);
		}
		for (size_t j = 0; j < Tk; j++) {
			for (size_t c = 0; c < D; c++) {
				dq[(j0 + j) * 3 * C + C + c] = dK[j * Dp + c];
				dq[(j0 + j) * 3 * C + 2 * C + c] = dV[j * Dp + c];
			}
		}
	}
	for (size_t i = 0; i < len; i++)
		for (size_t c = 0; c < D; c++)
			dq[i * 3 * C + c] = dQ[i * Dp + c] * scale;
}

static void cpu_attention_back(struct ops *o, void *dqkv0, const void *dy0, const void *y0, const real *lse, const void *qkv0,
	const struct seq *s, size_t C, size_t NH, const struct dropout *d)
{
	struct cpu *c = (struct cpu *)o;
	const real *qkv = qkv0, *dy = dy0, *y = y0;
	real *dqkv = dqkv0;
	size_t D = C / NH;
	own_need(c, attend_back_scratch(s->L, D));
	PARALLEL_FOR
	for (size_t job = 0; job < s->B * NH; job++) {
		size_t b = job / NH, h = job % NH, t0 = s->host_offset[b], len = s->host_offset[b + 1] - t0;
		size_t at = t0 * C + h * D, at3 = t0 * 3 * C + h * D;
		attend_back(dqkv + at3, dy + at, y + at, lse + t0 * NH + h, qkv + at3, len, C, D, NH, (uint32_t)h, s->key[b], d, own(c));
	}
}

/* ---- pooling and losses ---- */

static void cpu_pool(struct ops *o, void *y0, const void *x0, const struct seq *s, size_t C, enum pool pool)
{
	real *y = y0;
	const real *x = x0;
	for (size_t b = 0; b < s->B; b++, y += C) {
		size_t t0 = s->offset[b], len = s->offset[b + 1] - t0, n = pool == POOL_FIRST ? min_size(len, 1) : len;
		memset(y, 0, C * sizeof(real));
		add_parts(y, x + t0 * C, n, C, C);
		for (size_t i = 0; i < C && n; i++)
			y[i] /= (real)n;
	}
}

static void cpu_pool_back(struct ops *o, void *dx0, const void *dy0, const struct seq *s, size_t C, enum pool pool)
{
	real *dx = dx0;
	const real *dy = dy0;
	memset(dx, 0, s->T * C * sizeof(real));
	for (size_t b = 0; b < s->B; b++, dy += C) {
		size_t t0 = s->offset[b], len = s->offset[b + 1] - t0, n = pool == POOL_FIRST ? min_size(len, 1) : len;
		for (size_t t = t0; t < t0 + n; t++)
			for (size_t i = 0; i < C; i++)
				dx[t * C + i] = dy[i] / (real)n;
	}
}

static void cpu_mlm_loss(struct ops *o, double *sum, real *lse, const void *h0, const real *W, const real *b,
	const uint32_t *target, size_t N, size_t C, size_t V)
{
	struct cpu *c = (struct cpu *)o;
	const real *h = h0;
	size_t R = chunk_rows(N), n = chunks(N, R);
	real *part = shared(c, 2 * N), *hit = part + N;
	own_need(c, ROWS * VTILE + 3 * ROWS);
	PARALLEL_FOR
	for (size_t k = 0; k < n; k++) {
		size_t r0 = k * R, rows = min_size(N, r0 + R) - r0;
		real *z = own(c), *m = z + ROWS * VTILE, *l = m + ROWS, *at = l + ROWS;
		for (size_t v0 = 0; v0 < V; v0 += VTILE) {
			size_t n1 = min_size(VTILE, V - v0);
			gemm_nt(rows, n1, C, 1, h + r0 * C, C, W + v0 * C, C, 0, z, n1);
			for (size_t i = 0; i < rows; i++) {
				real *s = z + i * n1, top = v0 ? m[i] : s[0] + b[v0], add = 0; /* s[0] + b: any of the row's values */
				SIMD
				for (size_t j = 0; j < n1; j++)
					s[j] += b[v0 + j];
				top = row_max(s, n1, top);
				SIMD_SUM(add)
				for (size_t j = 0; j < n1; j++)
					add += exp_fast(s[j] - top);
				l[i] = v0 ? l[i] * exp_fast(m[i] - top) + add : add;
				m[i] = top;
				if (target[r0 + i] - v0 < n1)
					at[i] = s[target[r0 + i] - v0];
			}
		}
		for (size_t i = 0; i < rows; i++) {
			lse[r0 + i] = m[i] + (real)log(l[i]);
			part[r0 + i] = lse[r0 + i] - at[i];
			hit[r0 + i] = at[i] >= m[i];
		}
	}
	sum[0] = sum[1] = 0;
	for (size_t i = 0; i < N; i++) {
		sum[0] += part[i];
		sum[1] += hit[i];
	}
}

static void cpu_mlm_loss_back(struct ops *o, void *dh0, real *dW, real *db, const void *h0, const real *W, const real *b,
	const uint32_t *target, const real *lse, size_t N, size_t C, size_t V)
{
	struct cpu *c = (struct cpu *)o;
	const real *h = h0;
	real *dh = dh0;
	size_t R = chunk_rows(N), group = (V + VGROUPS - 1) / VGROUPS;
	real *part = shared(c, VGROUPS * N * C);
	own_need(c, ROWS * VTILE);
	memset(part, 0, VGROUPS * N * C * sizeof(real));
	PARALLEL_FOR
	for (size_t g = 0; g < VGROUPS; g++) {
		real *z = own(c), *dpart = part + g * N * C;
		size_t end = min_size(V, (g + 1) * group);
		for (size_t v0 = g * group; v0 < end; v0 += VTILE) {
			size_t n1 = min_size(VTILE, end - v0);
			for (size_t r0 = 0; r0 < N; r0 += R) {
				size_t rows = min_size(R, N - r0);
				gemm_nt(rows, n1, C, 1, h + r0 * C, C, W + v0 * C, C, 0, z, n1);
				for (size_t i = 0; i < rows; i++) {
					real *s = z + i * n1, ls = lse[r0 + i];
					SIMD
					for (size_t j = 0; j < n1; j++)
						s[j] = exp_fast(s[j] + b[v0 + j] - ls);
					if (target[r0 + i] - v0 < n1)
						s[target[r0 + i] - v0] -= 1;
					if (db)
						add_parts(db + v0, s, 1, 0, n1);
				}
				gemm_nn(rows, C, n1, 1, z, n1, W + v0 * C, C, 1, dpart + r0 * C, C);
				if (dW)
					gemm_tn(n1, C, rows, 1, z, n1, h + r0 * C, C, 1, dW + v0 * C, C);
			}
		}
	}
	memset(dh, 0, N * C * sizeof(real));
	PARALLEL_FOR
	for (size_t k = 0; k < chunks(N, R); k++)
		add_parts(dh + k * R * C, part + k * R * C, VGROUPS, N * C, (min_size(N, (k + 1) * R) - k * R) * C);
}

static void cpu_class_loss(struct ops *o, double *sum, void *dlogit0, const void *logit0, const int32_t *label,
	const real *weight, size_t N, size_t K)
{
	const real *logit = logit0;
	real *dlogit = dlogit0;
	sum[0] = sum[1] = sum[2] = 0;
	for (size_t i = 0; i < N; i++) {
		const real *z = logit + i * K;
		real *dz = dlogit ? dlogit + i * K : NULL;
		int32_t y = label[i];
		if (y < 0) {
			if (dz)
				memset(dz, 0, K * sizeof(real));
			continue;
		}
		real top = z[0], w = weight ? weight[y] : 1;
		size_t best = 0;
		double l = 0;
		for (size_t k = 1; k < K; k++) {
			if (z[k] > top) {
				top = z[k];
				best = k;
			}
		}
		for (size_t k = 0; k < K; k++)
			l += exp((double)(z[k] - top));
		sum[0] += w * (log(l) + top - z[y]);
		sum[1] += best == (size_t)y;
		sum[2] += w;
		for (size_t k = 0; dz && k < K; k++)
			dz[k] = (real)(w * (exp((double)(z[k] - top)) / l - (k == (size_t)y)));
	}
}

/* ---- optimiser ---- */

static void cpu_sumsq(struct ops *o, double *sum, const real *g, size_t n)
{
	struct cpu *c = (struct cpu *)o;
	size_t parts = chunks(n, FLAT);
	double *part = (double *)shared(c, 2 * parts);
	PARALLEL_FOR
	for (size_t k = 0; k < parts; k++) {
		double s = 0;
		SIMD_SUM(s)
		for (size_t i = k * FLAT; i < min_size(n, (k + 1) * FLAT); i++)
			s += (double)g[i] * g[i];
		part[k] = s;
	}
	for (size_t k = 0; k < parts; k++)
		*sum += part[k];
}

static void cpu_adamw(struct ops *o, real *p, const real *g, real *m, real *v, size_t n, const double *norm2,
	const struct adamw_args *a)
{
	struct cpu *c = (struct cpu *)o;
	double norm = sqrt(*norm2) * fabs(a->gscale), coef = a->max_norm > 0 ? a->max_norm / (norm + 1e-6) : 1;
	double c1 = 1 - pow(a->beta1, (double)a->t), c2 = 1 - pow(a->beta2, (double)a->t);
	const real gs = (real)(a->gscale * (coef < 1 ? coef : 1));
	const real b1 = (real)a->beta1, b2 = (real)a->beta2, one_b1 = (real)(1 - a->beta1), one_b2 = (real)(1 - a->beta2);
	const real eps = (real)a->eps, decay = (real)(a->lr * a->decay);
	const int hf = a->variant == ADAMW_HF46;
	const real root = hf ? 1 : (real)(1 / sqrt(c2));
	const real rate = (real)(hf ? a->lr * sqrt(c2) / c1 : a->lr / c1);
	const real before = hf ? 1 : 1 - decay, after = hf ? 1 - decay : 1;
	PARALLEL_FOR
	for (size_t k = 0; k < chunks(n, FLAT); k++) {
		SIMD
		for (size_t i = k * FLAT; i < min_size(n, (k + 1) * FLAT); i++) {
			real gi = g[i] * gs;
			m[i] = b1 * m[i] + one_b1 * gi;
			v[i] = b2 * v[i] + one_b2 * gi * gi;
			real denom = (real)(sizeof(real) == 4 ? sqrtf((float)v[i]) : sqrt(v[i])) * root + eps;
			p[i] = (p[i] * before - rate * (m[i] / denom)) * after;
		}
	}
}

struct ops *ops_cpu_new(int threads)
{
	static_assert(QTILE % MR == 0 && KTILE % NR == 0 && KTILE % 8 == 0, "tiles are whole blocks");
	struct cpu *c = xcalloc(1, sizeof *c);
	c->threads = threads < 1 ? 1 : threads;
	c->own = xcalloc((size_t)c->threads, sizeof *c->own);
	openblas_set_num_threads(1);
	c->o = (struct ops){
		.name = "cpu", .act_size = sizeof(real), .align = 16,
		.alloc = cpu_alloc, .free = cpu_free, .zero = cpu_zero, .upload = cpu_copy, .download = cpu_copy, .copy = cpu_copy,
		.download_act = cpu_copy_act_out, .upload_act = cpu_copy_act_in,
		.sync = cpu_sync, .params_changed = cpu_params_changed, .destroy = cpu_destroy,
		.embed = cpu_embed, .embed_back = cpu_embed_back,
		.linear = cpu_linear, .linear_back = cpu_linear_back,
		.attention = cpu_attention, .attention_back = cpu_attention_back,
		.norm = cpu_norm, .norm_back = cpu_norm_back,
		.add = cpu_add, .gather = cpu_gather, .scatter = cpu_scatter, .drop = cpu_drop,
		.pool = cpu_pool, .pool_back = cpu_pool_back,
		.mlm_loss = cpu_mlm_loss, .mlm_loss_back = cpu_mlm_loss_back, .class_loss = cpu_class_loss,
		.sumsq = cpu_sumsq, .adamw = cpu_adamw,
	};
	return &c->o;
}
