/*
 * The CPU backend of ops.h: OpenBLAS for the products, OpenMP over fixed chunks, loops that the compiler vectorises.
 *
 * Which thread does a chunk is left to chance; what a chunk is, and the order in which chunks are summed, is not: chunks
 * depend on shapes alone. BLAS runs single-threaded inside the loops. Parallel work is split over rows (forward, input
 * gradients), over tiles of a weight (weight gradients, so each sum over tokens is one chain), over (cell, head)
 * for attention, over vocabulary ranges for the decoder.
 */
#include "ops_cpu.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_kernel.h"

void openblas_set_num_threads(int n);

/* ---- memory ---- */

static void *cpu_alloc(struct ops *o, size_t bytes)
{
	return memset(xlarge(bytes, 1), 0, bytes);
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

/* Nothing runs behind the caller: what is asked for is done on return. */

static void *cpu_host_alloc(struct ops *o, size_t bytes)
{
	return xlarge(bytes, 1);
}

static void cpu_mark(struct ops *o, unsigned i)
{
}

static int cpu_wait(struct ops *o, unsigned i, struct error *e)
{
	return 0;
}

static void cpu_usage(struct ops *o, double *busy, double *idle)
{
	*busy = *idle = 0;
}

static int cpu_replay(struct ops *o, const uint64_t key[OPS_KEY])
{
	return 0;
}

static void cpu_replay_end(struct ops *o)
{
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

/* y = dropout(x) for a row of C channels; scratch: C + KEEP_PAD reals */
static void drop_row(real *y, const real *x, real *scratch, size_t C, const struct dropout *d, uint32_t pos, uint32_t cell)
{
	int16_t *keep = (int16_t *)scratch;
	const real scale = keep_scale(d);
	keep_row(keep, 0, C, d, 0, pos, cell);
	SIMD
	for (size_t i = 0; i < C; i++)
		y[i] = keep[i] ? x[i] * scale : 0;
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
	for (size_t i = 0; i < N; i++) {
		if (index[i] == ROW_NONE)
			memset(y + i * C, 0, C * sizeof(real));
		else
			memcpy(y + i * C, x + index[i] * C, C * sizeof(real));
	}
}

static void cpu_scatter(struct ops *o, void *dx0, const void *dy0, const uint32_t *index, size_t N, size_t T, size_t C)
{
	real *dx = dx0;
	const real *dy = dy0;
	memset(dx, 0, T * C * sizeof(real));
	for (size_t i = 0; i < N; i++)
		if (index[i] != ROW_NONE)
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

/*
 * dW [N,K] += dy^T x, db [N] += sum of dy (db may be NULL). A job is a tile of dW for one part of the tokens, the parts being
 * cut by T alone; their sums meet in order.
 */
static void weight_back(struct cpu *c, real *dW, real *db, const real *dy, const real *x, size_t T, size_t K, size_t N)
{
	size_t across = chunks(K, WTILE), tiles = chunks(N, WTILE) * across;
	size_t R = chunks(T, min_size(WPARTS, chunks(T, WROWS))), parts = chunks(T, R), size = N * (K + 1);
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

static void cpu_linear_back(struct ops *o, void *dx0, real *dW, real *db, void *dy0, const void *x0, const real *W,
	const void *y0, const void *pre0, size_t T, size_t K, size_t N, enum act act, int add)
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

/* ---- pooling and losses ---- */

static void cpu_pool(struct ops *o, void *y0, const void *x0, const uint32_t *range, size_t B, size_t C, int as_real)
{
	real *y = y0;
	const real *x = x0;
	for (size_t b = 0; b < B; b++, y += C, range += 2) {
		size_t n = range[1] - range[0];
		memset(y, 0, C * sizeof(real));
		add_parts(y, x + range[0] * C, n, C, C);
		for (size_t i = 0; i < C && (n || as_real); i++)
			y[i] /= (real)n; /* 0/0 is NaN */
	}
}

static void cpu_pool_back(struct ops *o, void *dx0, const void *dy0, const uint32_t *range, const struct seq *s, size_t C)
{
	real *dx = dx0;
	const real *dy = dy0;
	memset(dx, 0, s->T * C * sizeof(real));
	for (size_t b = 0; b < s->B; b++, dy += C, range += 2)
		for (size_t t = range[0]; t < range[1]; t++)
			for (size_t i = 0; i < C; i++)
				dx[t * C + i] = dy[i] / (real)(range[1] - range[0]);
}

/* s += b, and -inf up to a whole step */
static void logit_row(real *s, const real *b, size_t n)
{
	SIMD
	for (size_t j = 0; j < n; j++)
		s[j] += b[j];
	for (size_t j = n; j < round_up(n, STEP); j++)
		s[j] = -(real)INFINITY;
}

/* A job is a range of the vocabulary for some rows; maximum, sum and target's logit of the ranges meet at the end. */
static void cpu_mlm_loss(struct ops *o, double *sum, real *lse, const void *h0, const real *W, const real *b,
	const uint32_t *target, size_t N, size_t C, size_t V)
{
	struct cpu *c = (struct cpu *)o;
	const real *h = h0;
	size_t across = chunks(N, ROWS), group = chunks(V, VGROUPS);
	real *top = shared(c, (2 * VGROUPS + 1) * N), *part = top + VGROUPS * N, *at = part + VGROUPS * N;
	own_need(c, ROWS * VTILE);
	PARALLEL_FOR
	for (size_t job = 0; job < VGROUPS * across; job++) {
		size_t g = job / across, r0 = job % across * ROWS, rows = min_size(N, r0 + ROWS) - r0, end = min_size(V, (g + 1) * group);
		real *z = own(c), *m = top + g * N + r0, *l = part + g * N + r0;
		for (size_t i = 0; i < rows; i++) {
			m[i] = -(real)INFINITY;
			l[i] = 0;
		}
		for (size_t v0 = g * group; v0 < end; v0 += VTILE) {
			size_t n = min_size(VTILE, end - v0);
			gemm_nt(rows, n, C, 1, h + r0 * C, C, W + v0 * C, C, 0, z, VTILE);
			for (size_t i = 0; i < rows; i++) {
				real *s = z + i * VTILE;
				logit_row(s, b + v0, n);
				if (target[r0 + i] - v0 < n)
					at[r0 + i] = s[target[r0 + i] - v0];
				real t = row_max(s, round_up(n, STEP), l[i] > 0 ? m[i] : s[0]), add = soft_row(s, NULL, round_up(n, STEP), t);
				l[i] = l[i] * exp_fast(m[i] - t) + add;
				m[i] = t;
			}
		}
	}
	double loss = 0, hits = 0;
	for (size_t i = 0; i < N; i++) {
		real m = top[i], l = 0;
		for (size_t g = 1; g < VGROUPS; g++)
			m = top[g * N + i] > m ? top[g * N + i] : m;
		for (size_t g = 0; g < VGROUPS; g++)
			l += part[g * N + i] * exp_fast(top[g * N + i] - m);
		lse[i] = m + (real)log(l);
		if (target[i] != ROW_NONE) {
			loss += lse[i] - at[i];
			hits += at[i] >= m;
		}
	}
	sum[0] += loss;
	sum[1] += hits;
}

static void cpu_mlm_loss_back(struct ops *o, void *dh0, real *dW, real *db, const void *h0, const real *W, const real *b,
	const uint32_t *target, const real *lse, size_t N, size_t C, size_t V)
{
	struct cpu *c = (struct cpu *)o;
	const real *h = h0;
	real *dh = dh0;
	size_t R = ROWS, group = chunks(V, VGROUPS);
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
				gemm_nt(rows, n1, C, 1, h + r0 * C, C, W + v0 * C, C, 0, z, VTILE);
				for (size_t i = 0; i < rows; i++) {
					real *s = z + i * VTILE;
					logit_row(s, b + v0, n1);
					soft_row(s, NULL, round_up(n1, STEP), lse[r0 + i]);
					if (target[r0 + i] == ROW_NONE)
						memset(s, 0, n1 * sizeof *s);
					else if (target[r0 + i] - v0 < n1)
						s[target[r0 + i] - v0] -= 1;
					if (db)
						add_parts(db + v0, s, 1, 0, n1);
				}
				gemm_nn(rows, C, n1, 1, z, VTILE, W + v0 * C, C, 1, dpart + r0 * C, C);
				if (dW)
					gemm_tn(n1, C, rows, 1, z, VTILE, h + r0 * C, C, 1, dW + v0 * C, C);
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
	double loss = 0, hits = 0, weights = 0;
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
		loss += w * (log(l) + top - z[y]);
		hits += best == (size_t)y;
		weights += w;
		for (size_t k = 0; dz && k < K; k++)
			dz[k] = (real)(w * (exp((double)(z[k] - top)) / l - (k == (size_t)y)));
	}
	sum[0] += loss;
	sum[1] += hits;
	sum[2] += weights;
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
	if (!isfinite(norm))
		return;
	PARALLEL_FOR
	for (size_t k = 0; k < chunks(n, FLAT); k++) {
		const size_t end = min_size(n, (k + 1) * FLAT);
		for (size_t from = k * FLAT, to; from < end; from = to) { /* with decay, then without */
			const int with = from < a->decayed;
			const real first = with ? before : 1, last = with ? after : 1;
			to = with ? min_size(end, a->decayed) : end;
			SIMD
			for (size_t i = from; i < to; i++) {
				real gi = g[i] * gs;
				m[i] = b1 * m[i] + one_b1 * gi;
				v[i] = b2 * v[i] + one_b2 * gi * gi;
				real denom = (real)(sizeof(real) == 4 ? sqrtf((float)v[i]) : sqrt(v[i])) * root + eps;
				p[i] = (p[i] * first - rate * (m[i] / denom)) * last;
			}
		}
	}
}

struct ops *ops_cpu_new(int threads)
{
	static_assert(VTILE % STEP == 0, "rows of logits are whole steps");
	struct cpu *c = xcalloc(1, sizeof *c);
	c->threads = threads < 1 ? 1 : threads;
	c->own = xcalloc((size_t)c->threads, sizeof *c->own);
	openblas_set_num_threads(1);
	c->o = (struct ops){
		.name = "cpu", .act_size = sizeof(real), .align = 16, .round_tokens = 1, .round_rows = 1,
		.alloc = cpu_alloc, .free = cpu_free, .zero = cpu_zero, .upload = cpu_copy, .download = cpu_copy, .copy = cpu_copy,
		.download_act = cpu_copy_act_out, .upload_act = cpu_copy_act_in,
		.sync = cpu_sync, .params_changed = cpu_params_changed, .destroy = cpu_destroy,
		.host_alloc = cpu_host_alloc, .host_free = cpu_free, .send = cpu_copy, .fetch = cpu_copy, .mark = cpu_mark, .wait = cpu_wait,
		.usage = cpu_usage, .replay = cpu_replay, .replay_end = cpu_replay_end,
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
