/*
 * Hopper's tensor cores: wgmma m64n64k16 of bf16 tiles of 64 rows x 64 columns, as mma.cuh lays them in shared memory (rows of 128 bytes, pieces
 * swizzled), but beginning at a multiple of 1,024 bytes.
 *
 * Four warps (a group) make 64 x 64 of a product, 16 rows a warp. With g = lane / 4 and q = lane % 4 a lane has d[n][r][i], the element at
 * row g + 8 r of the warp's, column 8 n + 2 q + i; and a[4], its part of 16 x 16 of a left factor, is that of mma.cuh.
 *
 * Products run in the background: between wgmma_fence and wgmma_wait nothing may touch their registers or change their tiles.
 */
#pragma once

#include "mma.cuh"

/* The tile at `at` as a factor. + wgmma_columns(k): from its column 16 k on; + wgmma_rows(k): from its row 16 k on. */
static __device__ __forceinline__ uint64_t wgmma_tile(uint32_t at)
{
	/* address and the bytes from eight rows to the next eight (1,024, in both places), in pieces of 16; 128 bytes are swizzled */
	return 1ull << 62 | 64ull << 32 | 64ull << 16 | at >> 4;
}

static __device__ __forceinline__ uint64_t wgmma_columns(uint32_t k)
{
	return 2 * k;
}

static __device__ __forceinline__ uint64_t wgmma_rows(uint32_t k)
{
	return 128 * k;
}

#ifdef __CUDACC__

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define WGMMA(text, ...) asm volatile(text __VA_ARGS__)
#else /* compiled for other cards too, and never launched there */
#define WGMMA(text, ...) __trap()
#endif

#define WGMMA_IF(add) "{\n.reg .pred p;\nsetp.eq.u32 p, " #add ", 1;\n" /* p: add to what d was */
#define WGMMA_SUM \
	"{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"
#define WGMMA_OUT(c, d) \
	c(d[0][0][0]), c(d[0][0][1]), c(d[0][1][0]), c(d[0][1][1]), c(d[1][0][0]), c(d[1][0][1]), c(d[1][1][0]), c(d[1][1][1]), \
		c(d[2][0][0]), c(d[2][0][1]), c(d[2][1][0]), c(d[2][1][1]), c(d[3][0][0]), c(d[3][0][1]), c(d[3][1][0]), c(d[3][1][1]), \
		c(d[4][0][0]), c(d[4][0][1]), c(d[4][1][0]), c(d[4][1][1]), c(d[5][0][0]), c(d[5][0][1]), c(d[5][1][0]), c(d[5][1][1]), \
		c(d[6][0][0]), c(d[6][0][1]), c(d[6][1][0]), c(d[6][1][1]), c(d[7][0][0]), c(d[7][0][1]), c(d[7][1][0]), c(d[7][1][1])

/* d = A B^T on 16 columns of both tiles */
static __device__ __forceinline__ void wgmma_nt_first(float d[8][2][2], uint64_t a, uint64_t b)
{
	WGMMA(WGMMA_IF(0) "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " WGMMA_SUM ", %32, %33, p, 1, 1, 0, 0;\n}",
		: WGMMA_OUT("=f", d)
		: "l"(a), "l"(b));
}

/* d += A B^T on 16 columns of both tiles */
static __device__ __forceinline__ void wgmma_nt_add(float d[8][2][2], uint64_t a, uint64_t b)
{
	WGMMA(WGMMA_IF(1) "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " WGMMA_SUM ", %32, %33, p, 1, 1, 0, 0;\n}",
		: WGMMA_OUT("+f", d)
		: "l"(a), "l"(b));
}

/* d += A B, A 64 x 16 in registers, B 16 rows of the tile */
static __device__ __forceinline__ void wgmma_nn_add(float d[8][2][2], const uint32_t a[4], uint64_t b)
{
	WGMMA(WGMMA_IF(1) "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " WGMMA_SUM ", {%32, %33, %34, %35}, %36, p, 1, 1, 1;\n}",
		: WGMMA_OUT("+f", d)
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

/* What was written to registers and, by this thread, to shared memory is there for the products that follow. */
static __device__ __forceinline__ void wgmma_fence(void)
{
	WGMMA("wgmma.fence.sync.aligned;", ::: "memory");
}

/* After this thread's writes to shared memory, and before the barrier after which products read them. */
static __device__ __forceinline__ void wgmma_tiles_written(void)
{
	WGMMA("fence.proxy.async.shared::cta;", ::: "memory");
}

static __device__ __forceinline__ void wgmma_commit(void)
{
	WGMMA("wgmma.commit_group.sync.aligned;", ::: "memory");
}

/* Wait until at most the last N committed groups of products are on their way; d is of one that is not. */
template <int N> static __device__ __forceinline__ void wgmma_wait(float d[8][2][2])
{
	WGMMA("wgmma.wait_group.sync.aligned %32;", : WGMMA_OUT("+f", d) : "n"(N) : "memory");
}

#else
#include "emu_wgmma.h"
#endif

/* d = A B^T over all 64 columns */
static __device__ __forceinline__ void wgmma_nt(float d[8][2][2], uint64_t a, uint64_t b)
{
	wgmma_nt_first(d, a, b);
#pragma unroll
	for (uint32_t k = 1; k < 4; k++)
		wgmma_nt_add(d, a + wgmma_columns(k), b + wgmma_columns(k));
}

/* d += A B, a[k] of A's columns 16 k onwards */
static __device__ __forceinline__ void wgmma_nn(float d[8][2][2], const uint32_t a[4][4], uint64_t b)
{
#pragma unroll
	for (uint32_t k = 0; k < 4; k++)
		wgmma_nn_add(d, a[k], b + wgmma_rows(k));
}

/* A result as the left factor of the next product. */
static __device__ __forceinline__ void wgmma_left(uint32_t a[4][4], const float d[8][2][2])
{
#pragma unroll
	for (int n = 0; n < 8; n++)
#pragma unroll
		for (int r = 0; r < 2; r++)
			a[n / 2][n % 2 * 2 + r] = pack_bf16(d[n][r][0], d[n][r][1]);
}
