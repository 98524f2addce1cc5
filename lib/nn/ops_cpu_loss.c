/* The CPU backend's losses: cross-entropy over the vocabulary, and over classes. */
#include "nn/cpu_loss.h"

void cpu_mlm_loss(struct ops *o, double *sum, real *lse, const void *h0, const real *W, const real *b, const uint32_t *target, size_t N,
	size_t C, size_t V)
{
	struct cpu *c = (struct cpu *)o;
	const real *h = h0;
	size_t across = chunks(N, ROWS), group = chunks(V, VGROUPS);
	struct tops t = tops_at(shared(c, tops_size(N)), N);
	own_need(c, ROWS * VTILE);
	PARALLEL_FOR
	for (size_t job = 0; job < VGROUPS * across; job++) {
		size_t g = job / across, r0 = job % across * ROWS, rows = min_size(N, r0 + ROWS) - r0, end = min_size(V, (g + 1) * group);
		real *z = own(c);
		tops_start(&t, g, r0, rows);
		for (size_t v0 = g * group; v0 < end; v0 += VTILE) {
			size_t n = min_size(VTILE, end - v0);
			gemm_nt(rows, n, C, 1, h + r0 * C, C, W + v0 * C, C, 0, z, VTILE);
			for (size_t i = 0; i < rows; i++)
				logit_row(z + i * VTILE, b + v0, n);
			tops_add(&t, z, target, g, r0, rows, v0, n);
		}
	}
	tops_finish(&t, sum, lse, target);
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
					loss_row_back(s, target[r0 + i], lse[r0 + i], scale, v0, n1);
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
	double loss = 0, hits = 0;
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
		for (size_t k = 0; dz && k < K; k++)
			dz[k] = (real)((scale ? *scale * w : w) * (exp((double)(z[k] - top)) / l - (k == (size_t)y)));
	}
	sum[0] += loss;
	sum[1] += hits;
}
