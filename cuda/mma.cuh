/*
 * Tensor cores for tiles of D bf16 columns, 16, 32 or 64: mma.sync m16n8k16, ldmatrix, cp.async (all sm_80 and later).
 *
 * A warp works on 32 rows, two A fragments one below the other: each 16 x 16 of the other factor that ldmatrix brings (4 cycles of
 * shared memory) then feeds four products. With 16 rows it fed two, and shared memory was slower than the tensor cores.
 *
 * A tile lies in shared memory as rows of 128 bytes, of which narrow tiles leave a part empty; the 16-byte piece `p` of row r is at p ^ (r % 8), so that the eight rows an
 * ldmatrix reads together, at one p, are in eight different banks' groups.
 *
 * Fragments, g = lane / 4, q = lane % 4 [PTX ISA, "Matrix fragments for mma.m16n8k16"]:
 *     A 16 x 16   a[0] = (g, 2q..2q+1)   a[1] = (g+8, 2q..)   a[2] = (g, 2q+8..)   a[3] = (g+8, 2q+8..)
 *     B 16 x 8    b[0] = (k = 2q..2q+1, n = g)                b[1] = (k = 2q+8.., n = g)
 *     C 16 x 8    c[0..1] = (g, 2q..2q+1)                     c[2..3] = (g+8, 2q..2q+1)
 * So two neighbouring C fragments, rounded, are one A fragment: products chain without leaving registers.
 *
 * Here, for a warp's 32 rows: a[m][k] is the A fragment of rows 16 m and columns 16 k onwards; a result is c[n][r][i], a lane's element
 * at row g + 8 r, column 8 n + 2 q + i, and so c[n][2 m] and c[n][2 m + 1] are a C fragment.
 */
#pragma once

#include "device.cuh"

enum {
	TILE = 64, /* rows of a tile that a block walks over */
	TILE_SIZE = TILE * 128, /* bytes */
	WARP_ROWS = 32,
	BLOCK_ROWS = 128, /* rows that a block owns: 4 warps */
	TILE_THREADS = 128,
};

/* Bytes from a tile's beginning, which is at a multiple of 128: so ^ 32 k is the piece 2 k further on, and + 128 k k rows below if k % 8 == 0. */
static __device__ __forceinline__ uint32_t tile_at(uint32_t row, uint32_t piece)
{
	return row * 128 + ((piece ^ (row & 7)) * 16);
}

#ifdef __CUDACC__

/* 2^x to about 2 ulp, 0 for what is below float's normal range: exp2f takes three instructions more to get those right. */
static __device__ __forceinline__ float exp2_fast(float x)
{
	float y;
	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}

/* The block's dynamic shared memory. What the instructions below take are addresses in it, by shared_at(). */
#define SHARED(name) extern __shared__ __align__(128) char name[]

static __device__ __forceinline__ uint32_t shared_at(const void *p)
{
	return (uint32_t)__cvta_generic_to_shared(p);
}

/* Four 8 x 8 matrices; lane 8 i + r gives the address of row r of matrix i. r[i]: elements (lane / 4, 2 (lane % 4) ..). */
static __device__ __forceinline__ void ldmatrix(uint32_t r[4], uint32_t at)
{
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
		     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
		     : "r"(at)
		     : "memory");
}

/* The same, each matrix transposed on the way. */
static __device__ __forceinline__ void ldmatrix_trans(uint32_t r[4], uint32_t at)
{
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
		     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
		     : "r"(at)
		     : "memory");
}

/* c += a b. The sum may go to other registers than it came from: those that c started with need no copies. */
static __device__ __forceinline__ void mma(float c[2][2], const uint32_t a[4], uint32_t b0, uint32_t b1)
{
	asm volatile(
		"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
		: "=f"(c[0][0]), "=f"(c[0][1]), "=f"(c[1][0]), "=f"(c[1][1])
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(c[0][0]), "f"(c[0][1]), "f"(c[1][0]), "f"(c[1][1]));
}

/* 16 bytes to shared memory in the background; zeros, and nothing is read, when not `valid`. */
static __device__ __forceinline__ void copy16(uint32_t to, const void *from, bool valid)
{
	int n = valid ? 16 : 0;
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(n) : "memory");
}

static __device__ __forceinline__ void copy_commit(void)
{
	asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Wait until at most the last N committed groups are on their way. */
template <int N> static __device__ __forceinline__ void copy_wait(void)
{
	asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

#else
#include "emu_mma.h"
#endif

/* Rows first .. first + ROWS of a matrix in memory to a tile, as zeros those from first + n on. All THREADS of the block. */
template <int ROWS, int D, uint32_t THREADS = TILE_THREADS>
static __device__ __forceinline__ void load_tile(uint32_t tile, const bf16 *from, uint32_t first, uint32_t stride, uint32_t n)
{
	constexpr uint32_t PIECES = D / 8, STEP = THREADS / PIECES; /* rows at a time, a multiple of 8: tile_at's pieces repeat */
	const uint32_t row = threadIdx.x / PIECES, piece = threadIdx.x % PIECES, to = tile + tile_at(row, piece);
	from += (size_t)(first + row) * stride + piece * 8;
#pragma unroll
	for (uint32_t k = 0; k < ROWS; k += STEP)
		copy16(to + 128 * k, from + k * stride, row + k < n);
}

/* a = rows row0 .. row0 + 32 of the tile */
template <int D> static __device__ __forceinline__ void load_a(uint32_t a[2][D / 16][4], uint32_t tile, uint32_t row0, uint32_t lane)
{
	const uint32_t at = tile + tile_at(row0 + lane % 16, lane / 16);
#pragma unroll
	for (int m = 0; m < 2; m++)
#pragma unroll
		for (int k = 0; k < D / 16; k++)
			ldmatrix(a[m][k], (at ^ 32 * k) + 128 * 16 * m);
}

/* Where in a tile a lane's row for ldmatrix begins, when the tile is the right factor B [D, n]^T, and when it is B [k, D]. */
static __device__ __forceinline__ uint32_t nt_at(uint32_t lane)
{
	return tile_at(lane / 16 * 8 + lane % 8, lane / 8 % 2);
}

static __device__ __forceinline__ uint32_t nn_at(uint32_t lane)
{
	return tile_at(lane % 16, lane / 16);
}

/* c [32, 8 N] += A [32, D] B^T, B = the first 8 N rows of the tile, at = tile + nt_at */
template <int N, int D> static __device__ __forceinline__ void mma_nt(float c[N][4][2], const uint32_t a[2][D / 16][4], uint32_t at)
{
#pragma unroll
	for (int k = 0; k < D / 16; k++) {
#pragma unroll
		for (int n = 0; n < N; n += 2) {
			uint32_t b[4];
			ldmatrix(b, (at ^ 32 * k) + 128 * 8 * n);
#pragma unroll
			for (int m = 0; m < 2; m++) {
				mma(c[n] + 2 * m, a[m][k], b[0], b[1]);
				mma(c[n + 1] + 2 * m, a[m][k], b[2], b[3]);
			}
		}
	}
}

/* c [32, D] += A [32, 16 K] B, B = the first 16 K rows of the tile, at = tile + nn_at */
template <int K, int D> static __device__ __forceinline__ void mma_nn(float c[D / 8][4][2], const uint32_t a[2][K][4], uint32_t at)
{
#pragma unroll
	for (int k = 0; k < K; k++) {
#pragma unroll
		for (int n = 0; n < D / 8; n += 2) {
			uint32_t b[4];
			ldmatrix_trans(b, (at ^ 16 * n) + 128 * 16 * k);
#pragma unroll
			for (int m = 0; m < 2; m++) {
				mma(c[n] + 2 * m, a[m][k], b[0], b[1]);
				mma(c[n + 1] + 2 * m, a[m][k], b[2], b[3]);
			}
		}
	}
}

/* A result as the left factor of the next product. */
template <int N> static __device__ __forceinline__ void to_a(uint32_t a[2][N / 2][4], const float c[N][4][2])
{
#pragma unroll
	for (int n = 0; n < N; n++)
#pragma unroll
		for (int r = 0; r < 4; r++)
			a[r / 2][n / 2][n % 2 * 2 + r % 2] = pack_bf16(c[n][r][0], c[n][r][1]);
}

/* The rows below n of a result times factor[r] to memory; row0 is the warp's first. */
template <int D>
static __device__ __forceinline__ void to_memory(
	bf16 *to, size_t stride, const float c[D / 8][4][2], const float factor[4], uint32_t row0, uint32_t n, uint32_t lane)
{
#pragma unroll
	for (int r = 0; r < 4; r++) {
		uint32_t row = row0 + lane / 4 + 8 * r;
		if (row < n)
#pragma unroll
			for (int k = 0; k < D / 8; k++)
				*(uint32_t *)(to + row * stride + 8 * k + 2 * (lane % 4)) =
					pack_bf16(c[k][r][0] * factor[r], c[k][r][1] * factor[r]);
	}
}

template <int N> static __device__ __forceinline__ void zero(float c[N][4][2])
{
#pragma unroll
	for (int n = 0; n < N; n++)
#pragma unroll
		for (int r = 0; r < 4; r++)
			c[n][r][0] = c[n][r][1] = 0;
}
