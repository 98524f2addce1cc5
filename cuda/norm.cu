/*
 * r = x + dropout(a), LayerNorm, and their backward: a warp holds a row in registers, 8 columns a lane and group.
 *     y = (r - mean) / std gamma + beta;     with g = dy gamma, n = (r - mean) / std:
 *     dr = (g - mean(g) - n mean(g n)) / std;   dgamma = sum dy n;   dbeta = sum dy
 * r is rounded to the activation type before anything is computed from it, so that the backward sees the same r.
 */
#include "norm.cuh"

template <class A, int G>
static __global__ void __launch_bounds__(256) norm_kernel(A *y, A *r, float *stat, const A *a, const A *x, const float *gamma,
	const float *beta, struct rows at, uint32_t T, uint32_t C, float eps, struct drop d)
{
	uint32_t lane = threadIdx.x % 32, t = blockIdx.x * 8 + threadIdx.x / 32, pos, cell;
	float v[G][8];
	if (t >= T)
		return;
	read_step(d);
	size_t row = (size_t)t * C;
	if (d.threshold)
		row_at(at, t, &pos, &cell);
#pragma unroll
	for (int g = 0; g < G; g++) {
		uint32_t c = (g * 32 + lane) * 8;
		load8(v[g], a + row, c, C);
		if (d.threshold && c < C)
			drop8(v[g], d, pos, c / 8, cell);
		if (x) {
			float u[8];
			load8(u, x + row, c, C);
#pragma unroll
			for (int i = 0; i < 8; i++)
				v[g][i] += u[i];
		}
#pragma unroll
		for (int i = 0; i < 8; i++)
			v[g][i] = rounded<A>(v[g][i]);
		store8(r + row, v[g], c, C);
	}
	normalise<G>(v, stat + 2 * (size_t)t, gamma, beta, lane, C, eps);
#pragma unroll
	for (int g = 0; g < G; g++)
		store8(y + row, v[g], (g * 32 + lane) * 8, C);
}

template <class A>
static void norm(struct cuda *c, void *y, void *r, float *stat, const void *a, const void *x, const float *gamma, const float *beta,
	struct rows at, size_t T, size_t C, double eps, struct drop d)
{
	BY_WIDTH(c, C,
		launch(c, "norm", norm_kernel<A, G>, dim3(blocks(T, 8)), 256, 0, (A *)y, (A *)r, stat, (const A *)a, (const A *)x, gamma,
			beta, at, T, C, eps, d));
}

void cuda_norm(struct ops *o, void *y, void *r, float *stat, const void *a, const void *x, const float *gamma, const float *beta,
	const struct seq *s, size_t T, size_t C, double eps, const struct dropout *d)
{
	struct cuda *c = cuda_of(o);
	BY_TYPE(c, norm, c, y, r, stat, a, x, gamma, beta, rows_of(s), T, C, eps, drop_of(d));
}

/* Block: 8 warps on one chunk of rows; part [chunks, sums C] = dgamma | dbeta | with 3 sums: the columns of da. */
template <class A, int G>
static __global__ void __launch_bounds__(256) norm_back_kernel(A *da, A *dx, float *part, uint32_t sums, const A *dy, const A *r,
	const float *stat, const float *gamma, struct rows at, uint32_t T, uint32_t C, uint32_t chunk, struct drop d)
{
	constexpr int S = G <= NORM_SUMS ? G : 1;
	uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, pos = 0, cell = 0;
	uint32_t t1 = min(T, (blockIdx.x + 1) * chunk);
	float dg[G][8], db[G][8], ds[S][8];
	read_step(d);
	zero_groups<G>(dg);
	zero_groups<G>(db);
	zero_groups<S>(ds);
	for (uint32_t t = blockIdx.x * chunk + warp; t < t1; t += 8) {
		float v[G][8], g[G][8];
		size_t row = (size_t)t * C;
#pragma unroll
		for (int k = 0; k < G; k++) {
			load8(v[k], r + row, (k * 32 + lane) * 8, C);
			load8(g[k], dy + row, (k * 32 + lane) * 8, C);
		}
		normalise_back<G>(g, v, dg, db, stat + 2 * (size_t)t, gamma, lane, C);
		if (da && d.threshold)
			row_at(at, t, &pos, &cell);
#pragma unroll
		for (int k = 0; k < G; k++) {
			uint32_t c = (k * 32 + lane) * 8;
			if (dx)
				store8(dx + row, g[k], c, C);
			if (da) {
				if (d.threshold && c < C)
					drop8(g[k], d, pos, c / 8, cell);
				store8(da + row, g[k], c, C);
				if (S == G)
					add8(ds[k % S], g[k]);
			}
		}
	}
	float *out = part + (size_t)blockIdx.x * sums * C;
	block_columns<G>(out, dg, C);
	block_columns<G>(out + C, db, C);
	if (S == G && sums == 3)
		block_columns<S>(out + 2 * C, ds, C);
}

template <class A>
static void norm_back(struct cuda *c, void *da, void *dx, float *dgamma, float *dbeta, float *dbias, const void *dy, const void *r,
	const float *stat, const float *gamma, struct rows at, size_t T, size_t C, struct drop d)
{
	size_t chunk = norm_chunk(T), sums = dbias && C <= NORM_SUMS * 256 ? 3 : 2;
	unsigned n = blocks(T, chunk);
	float *part = (float *)scratch(c, SCRATCH_PART, n * sums * C * sizeof(float));
	float *const out[] = {dgamma, dbeta, sums == 3 ? dbias : NULL};
	BY_WIDTH(c, C,
		launch(c, "norm_back", norm_back_kernel<A, G>, dim3(n), 256, 0, (A *)da, (A *)dx, part, sums, (const A *)dy, (const A *)r,
			stat, gamma, at, T, C, chunk, d));
	add_parts_each(c, out, part, n, C);
	if (sums == 2) /* too wide, or not wanted at all */
		column_sums(c, dbias, da, NULL, NULL, T, C, ACT_NONE);
}

void cuda_norm_back(struct ops *o, void *da, void *dx, float *dgamma, float *dbeta, float *dbias, const void *dy, const void *r,
	const float *stat, const float *gamma, const struct seq *s, size_t T, size_t C, const struct dropout *d)
{
	struct cuda *c = cuda_of(o);
	BY_TYPE(c, norm_back, c, da, dx, dgamma, dbeta, dbias, dy, r, stat, gamma, rows_of(s), T, C, drop_of(d));
}
