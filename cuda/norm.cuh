/* LayerNorm of a row that a warp holds in registers: shared by norm.cu and embed.cu. */
#pragma once

#include "device.cuh"

/*
 * Partial sums of dgamma and dbeta, at most: whole waves of blocks on the 132 multiprocessors of an H100 or H200, of which each has room for
 * three blocks of rows of 256 columns, and for one of wider rows. The number is the same on every card, and so are the bits.
 */
static constexpr size_t NORM_CHUNKS = 3 * 132;
static constexpr size_t NORM_CHUNK_MIN = 32;
static constexpr int NORM_SUMS = 3; /* groups of columns (BY_WIDTH) for which registers hold a third sum, beside dgamma and dbeta */

/* Run `call` with G = groups of 256 columns that a row of C needs. */
#define BY_WIDTH(c, C, call) \
	do { \
		if ((C) <= 256) { \
			constexpr int G = 1; \
			call; \
		} else if ((C) <= 512) { \
			constexpr int G = 2; \
			call; \
		} else if ((C) <= 768) { \
			constexpr int G = 3; \
			call; \
		} else if ((C) <= 1024) { \
			constexpr int G = 4; \
			call; \
		} else if ((C) <= 1280) { \
			constexpr int G = 5; \
			call; \
		} else \
			cuda_unsupported(c, "hidden sizes above 1280"); \
	} while (0)

static inline size_t norm_chunk(size_t T)
{
	size_t n = (T + NORM_CHUNKS - 1) / NORM_CHUNKS;
	return n < NORM_CHUNK_MIN ? NORM_CHUNK_MIN : n;
}

template <int G> static __device__ __forceinline__ void zero_groups(float v[G][8])
{
#pragma unroll
	for (int g = 0; g < G; g++)
#pragma unroll
		for (int i = 0; i < 8; i++)
			v[g][i] = 0;
}

static __device__ __forceinline__ void add8(float sum[8], const float v[8])
{
#pragma unroll
	for (int i = 0; i < 8; i++)
		sum[i] += v[i];
}

/* v = LayerNorm(v); columns past C are 0 on entry and not defined on return. stat[2] = mean, 1/std. */
template <int G>
static __device__ __forceinline__ void normalise(
	float v[G][8], float *stat, const float *gamma, const float *beta, uint32_t lane, uint32_t C, float eps)
{
	float sum = 0, var = 0;
#pragma unroll
	for (int g = 0; g < G; g++)
#pragma unroll
		for (int i = 0; i < 8; i++)
			sum += v[g][i];
	float mean = warp_sum(sum) / (float)C;
#pragma unroll
	for (int g = 0; g < G; g++)
#pragma unroll
		for (int i = 0; i < 8; i++)
			if ((g * 32 + lane) * 8 + i < C)
				var += (v[g][i] - mean) * (v[g][i] - mean);
	float rstd = 1 / sqrtf(warp_sum(var) / (float)C + eps);
#pragma unroll
	for (int g = 0; g < G; g++) {
		float w[8], b[8];
		load8(w, gamma, (g * 32 + lane) * 8, C);
		load8(b, beta, (g * 32 + lane) * 8, C);
#pragma unroll
		for (int i = 0; i < 8; i++)
			v[g][i] = (v[g][i] - mean) * rstd * w[i] + b[i];
	}
	if (lane == 0) {
		stat[0] = mean;
		stat[1] = rstd;
	}
}

/* dy becomes dr; r is used up; dgamma and dbeta of this lane's columns are added to. Columns past C: dy and r are 0. */
template <int G>
static __device__ __forceinline__ void normalise_back(float dy[G][8], float r[G][8], float dgamma[G][8], float dbeta[G][8],
	const float *stat, const float *gamma, uint32_t lane, uint32_t C)
{
	float mean = stat[0], rstd = stat[1], m1 = 0, m2 = 0;
#pragma unroll
	for (int g = 0; g < G; g++) {
		float w[8];
		load8(w, gamma, (g * 32 + lane) * 8, C);
#pragma unroll
		for (int i = 0; i < 8; i++) {
			r[g][i] = (r[g][i] - mean) * rstd;
			dgamma[g][i] += dy[g][i] * r[g][i]; /* past C dy is 0 */
			dbeta[g][i] += dy[g][i];
			dy[g][i] *= w[i];
			m1 += dy[g][i];
			m2 += dy[g][i] * r[g][i];
		}
	}
	m1 = warp_sum(m1) / (float)C;
	m2 = warp_sum(m2) / (float)C;
#pragma unroll
	for (int g = 0; g < G; g++)
#pragma unroll
		for (int i = 0; i < 8; i++)
			dy[g][i] = rstd * (dy[g][i] - m1 - r[g][i] * m2);
}

/* out[C] = sum over the block's 8 warps, in their order, of v. All 256 threads call it. */
template <int G> static __device__ __forceinline__ void block_columns(float *out, const float v[G][8], uint32_t C)
{
	__shared__ float sum[8][257];
	uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
	for (int g = 0; g < G; g++) {
		__syncthreads();
#pragma unroll
		for (int i = 0; i < 8; i++)
			sum[warp][lane * 8 + i] = v[g][i];
		__syncthreads();
		uint32_t c = g * 256 + threadIdx.x;
		if (c < C) {
			float t = 0;
			for (int k = 0; k < 8; k++)
				t += sum[k][threadIdx.x];
			out[c] = t;
		}
	}
}
