/* The CPU backend's losses: cross-entropy over the vocabulary, and over classes. */
#include "nn/ops_cpu.h"

#include <math.h>
#include <string.h>

/* s += b; padded with -inf to a multiple of STEP */
static void logit_row(real *s, const real *b, size_t n)
{
	SIMD for (size_t j = 0; j < n; j++) s[j] += b[j];
	for (size_t j = n; j < round_up(n, STEP); j++)
		s[j] = -(real)INFINITY;
}

/* A job computes the logits of some rows for one range of the vocabulary. It keeps the largest logit, the sum of exponentials and the
 * target's logit. At the end these are combined over the ranges. */
void cpu_mlm_loss(struct ops *o, double *sum, real *lse, const void *h0, const real *W, const real *b, const uint32_t *target, size_t N,
	size_t C, size_t V)
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
				real t = row_max(s, round_up(n, STEP), l[i] > 0 ? m[i] : s[0]),
				     add = soft_row(s, NULL, round_up(n, STEP), t);
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

void cpu_mlm_loss_back(struct ops *o, void *dh0, real *dW, real *db, const void *h0, const real *W, const real *b, const uint32_t *target,
	const real *lse, const real *scale, size_t N, size_t C, size_t V)
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
					SIMD for (size_t j = 0; j < (scale ? n1 : 0); j++) s[j] *= *scale;
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

void cpu_class_loss(struct ops *o, double *sum, void *dlogit0, const void *logit0, const int32_t *label, const real *weight,
	const real *scale, size_t N, size_t K)
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
			dz[k] = (real)((scale ? *scale * w : w) * (exp((double)(z[k] - top)) / l - (k == (size_t)y)));
	}
	sum[0] += loss;
	sum[1] += hits;
	sum[2] += weights;
}
