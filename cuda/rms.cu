/*
 * r = x + a, RMSNorm, and its backward: a warp holds a row in registers, 8 columns a lane and group, as in norm.cu.
 *     y = r s scale, s = 1 / sqrt(mean(r^2) + eps);     with n = r s, g = dy scale:  dx += s (g - n mean(g n));  dscale += sum dy n
 */
#include "norm.cuh"

template <class A, int G>
static __global__ void __launch_bounds__(256)
	rms_kernel(A *y, A *r, float *stat, const A *a, const A *x, const float *scale, uint32_t T, uint32_t C, float eps)
{
	uint32_t lane = threadIdx.x % 32, t = blockIdx.x * 8 + threadIdx.x / 32;
	float v[G][8], square = 0;
	if (t >= T)
		return;
	size_t row = (size_t)t * C;
#pragma unroll
	for (int g = 0; g < G; g++) {
		uint32_t c = (g * 32 + lane) * 8;
		load8(v[g], a + row, c, C);
		if (x) {
			float u[8];
			load8(u, x + row, c, C);
			add8(v[g], u);
		}
#pragma unroll
		for (int i = 0; i < 8; i++) {
			v[g][i] = rounded<A>(v[g][i]);
			square += v[g][i] * v[g][i];
		}
		store8(r + row, v[g], c, C);
	}
	float s = 1 / sqrtf(warp_sum(square) / (float)C + eps);
#pragma unroll
	for (int g = 0; g < G; g++) {
		uint32_t c = (g * 32 + lane) * 8;
		float w[8];
		load8(w, scale, c, C);
#pragma unroll
		for (int i = 0; i < 8; i++)
			v[g][i] *= s * w[i];
		store8(y + row, v[g], c, C);
	}
	if (lane == 0)
		stat[t] = s;
}

template <class A>
static void rms_norm(
	struct cuda *c, void *y, void *r, float *stat, const void *a, const void *x, const float *scale, size_t T, size_t C, double eps)
{
	BY_WIDTH(c, C,
		launch(c, "rms_norm", rms_kernel<A, G>, dim3(blocks(T, 8)), 256, 0, (A *)y, (A *)r, stat, (const A *)a, (const A *)x, scale,
			T, C, eps));
}

void cuda_rms_norm(
	struct ops *o, void *y, void *r, float *stat, const void *a, const void *x, const float *scale, size_t T, size_t C, double eps)
{
	struct cuda *c = cuda_of(o);
	BY_TYPE(c, rms_norm, c, y, r, stat, a, x, scale, T, C, eps);
}

/* Block: 8 warps on one chunk of rows; part [chunks, C]. */
template <class A, int G>
static __global__ void __launch_bounds__(256) rms_back_kernel(
	A *dx, float *part, const A *dy, const A *r, const float *stat, const float *scale, uint32_t T, uint32_t C, uint32_t chunk)
{
	uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	uint32_t t1 = min(T, (blockIdx.x + 1) * chunk);
	float ds[G][8];
	zero_groups<G>(ds);
	for (uint32_t t = blockIdx.x * chunk + warp; t < t1; t += 8) {
		float n[G][8], g[G][8], s = stat[t], m = 0;
		size_t row = (size_t)t * C;
#pragma unroll
		for (int k = 0; k < G; k++) {
			uint32_t c = (k * 32 + lane) * 8;
			float w[8];
			load8(n[k], r + row, c, C);
			load8(g[k], dy + row, c, C);
			load8(w, scale, c, C);
#pragma unroll
			for (int i = 0; i < 8; i++) {
				n[k][i] *= s;
				ds[k][i] += g[k][i] * n[k][i];
				g[k][i] *= w[i];
				m += g[k][i] * n[k][i];
			}
		}
		m = warp_sum(m) / (float)C;
#pragma unroll
		for (int k = 0; k < G; k++) {
			uint32_t c = (k * 32 + lane) * 8;
			float d[8];
			load8(d, dx + row, c, C);
#pragma unroll
			for (int i = 0; i < 8; i++)
				d[i] += s * (g[k][i] - n[k][i] * m);
			store8(dx + row, d, c, C);
		}
	}
	block_columns<G>(part + (size_t)blockIdx.x * C, ds, C);
}

template <class A>
static void rms_norm_back(
	struct cuda *c, void *dx, float *dscale, const void *dy, const void *r, const float *stat, const float *scale, size_t T, size_t C)
{
	size_t chunk = norm_chunk(T);
	unsigned n = blocks(T, chunk);
	float *part = (float *)scratch(c, SCRATCH_PART, n * C * sizeof(float));
	BY_WIDTH(c, C,
		launch(c, "rms_norm_back", rms_back_kernel<A, G>, dim3(n), 256, 0, (A *)dx, part, (const A *)dy, (const A *)r, stat, scale,
			T, C, chunk));
	add_parts(c, dscale, part, n, C, C);
}

void cuda_rms_norm_back(
	struct ops *o, void *dx, float *dscale, const void *dy, const void *r, const float *stat, const float *scale, size_t T, size_t C)
{
	struct cuda *c = cuda_of(o);
	BY_TYPE(c, rms_norm_back, c, dx, dscale, dy, r, stat, scale, T, C);
}
