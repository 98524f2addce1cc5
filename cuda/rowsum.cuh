/* A block sums listed rows of a matrix: shared by embed.cu and pool.cu. */
#pragma once

#include "device.cuh"

enum {
	ROWSUM_WARPS = 16,
	ROWSUM_THREADS = 32 * ROWSUM_WARPS,
};

/*
 * out[c] = (add ? out[c] : 0) + scale * sum over j < n of weight(j) x[row(j)][c], for columns c0 .. c0 + 256 below C; rows of C.
 * Warp w sums rows w, w + 16, ...; the warps are added in order. All threads of the block call it.
 */
template <class A, class O, class F, class W>
static __device__ __forceinline__ void sum_weighted_rows(
	O *out, int add, float scale, const A *x, uint32_t n, uint32_t c0, uint32_t C, F row, W weight)
{
	__shared__ float sum[ROWSUM_WARPS][256];
	uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, col = c0 + lane * 8;
	float s[8] = {0, 0, 0, 0, 0, 0, 0, 0};
#pragma unroll 4
	for (uint32_t j = warp; j < n; j += ROWSUM_WARPS) {
		uint32_t r = row(j);
		if (r != ROW_NONE) {
			float v[8], w = weight(j);
			load8(v, x + (size_t)r * C, col, C);
#pragma unroll
			for (int i = 0; i < 8; i++)
				s[i] += w * v[i];
		}
	}
	__syncthreads(); /* the last call's sums have been read */
#pragma unroll
	for (int i = 0; i < 8; i++)
		sum[warp][lane * 8 + i] = s[i];
	__syncthreads();
	uint32_t c = c0 + threadIdx.x;
	if (threadIdx.x < 256 && c < C) {
		float t = 0;
		for (int k = 0; k < ROWSUM_WARPS; k++)
			t += sum[k][threadIdx.x];
		out[c] = of<O>::from((add ? to_float(out[c]) : 0) + scale * t);
	}
}

/* The same with weights of 1. */
template <class A, class O, class F>
static __device__ __forceinline__ void sum_rows(O *out, int add, float scale, const A *x, uint32_t n, uint32_t c0, uint32_t C, F row)
{
	sum_weighted_rows<A>(out, add, scale, x, n, c0, C, row, [](uint32_t) { return 1.0f; });
}
