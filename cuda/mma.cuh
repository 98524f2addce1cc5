/*
 * Tensor cores for 64 x 64 tiles of bf16: mma.sync m16n8k16, ldmatrix, cp.async (all sm_80 and later). A warp works on 16 rows.
 *
 * A tile lies in shared memory as 64 rows of 128 bytes; the 16-byte piece `p` of row r is at p ^ (r % 8), so that the eight
 * rows an ldmatrix reads together, at one p, are in eight different banks' groups.
 *
 * Fragments, g = lane / 4, q = lane % 4 [PTX ISA, "Matrix fragments for mma.m16n8k16"]:
 *     A 16 x 16   a[0] = (g, 2q..2q+1)   a[1] = (g+8, 2q..)   a[2] = (g, 2q+8..)   a[3] = (g+8, 2q+8..)
 *     B 16 x 8    b[0] = (k = 2q..2q+1, n = g)                b[1] = (k = 2q+8.., n = g)
 *     C 16 x 8    c[0..1] = (g, 2q..2q+1)                     c[2..3] = (g+8, 2q..2q+1)
 * So two neighbouring C fragments, rounded, are one A fragment: products chain without leaving registers.
 */
#ifndef MMA_CUH
#define MMA_CUH

#include "device.cuh"

enum {
	TILE = 64,                /* rows, and columns */
	TILE_SIZE = TILE * TILE,  /* elements: 8 KiB */
	TILE_THREADS = 128,       /* 4 warps, 16 rows each */
};

static __device__ __forceinline__ uint32_t tile_at(uint32_t row, uint32_t piece)
{
	return row * TILE + ((piece ^ (row & 7)) * 8);
}

#ifdef __CUDACC__

#define SHARED_TILES(name) extern __shared__ uint4 shared_tiles[]; bf16 *name = (bf16 *)shared_tiles

static __device__ __forceinline__ uint32_t shared_address(const void *p)
{
	return (uint32_t)__cvta_generic_to_shared(p);
}

/* Four 8 x 8 matrices; lane 8 i + r gives the address of row r of matrix i. r[i]: elements (lane / 4, 2 (lane % 4) ..). */
static __device__ __forceinline__ void ldmatrix(uint32_t r[4], const bf16 *p)
{
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
		     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
		     : "r"(shared_address(p))
		     : "memory");
}

/* The same, each matrix transposed on the way. */
static __device__ __forceinline__ void ldmatrix_trans(uint32_t r[4], const bf16 *p)
{
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
		     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
		     : "r"(shared_address(p))
		     : "memory");
}

/* c += a b */
static __device__ __forceinline__ void mma(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1)
{
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
		     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
		     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* 16 bytes to shared memory in the background; zeros when not `valid`. */
static __device__ __forceinline__ void copy16(bf16 *to, const bf16 *from, bool valid)
{
	int n = valid ? 16 : 0;
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(n) : "memory");
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

/* Rows 0 .. 64 of a tile from memory, rows from `n` on as zeros. All threads of the block. */
static __device__ __forceinline__ void load_tile(bf16 *tile, const bf16 *from, size_t stride, uint32_t n)
{
#pragma unroll
	for (int k = 0; k < TILE * 8 / TILE_THREADS; k++) {
		uint32_t i = threadIdx.x + k * TILE_THREADS, row = i / 8, piece = i % 8;
		copy16(tile + tile_at(row, piece), from + (row < n ? row * stride : 0) + piece * 8, row < n);
	}
}

/* a = rows row0 .. row0 + 16 of the tile: A[m, k] = tile[row0 + m][k] */
static __device__ __forceinline__ void load_a(uint32_t a[4][4], const bf16 *tile, uint32_t row0, uint32_t lane)
{
#pragma unroll
	for (int k = 0; k < 4; k++)
		ldmatrix(a[k], tile + tile_at(row0 + lane % 16, 2 * k + lane / 16));
}

/* a = columns col0 .. col0 + 16, transposed: A[m, k] = tile[k][col0 + m] */
static __device__ __forceinline__ void load_a_trans(uint32_t a[4][4], const bf16 *tile, uint32_t col0, uint32_t lane)
{
#pragma unroll
	for (int k = 0; k < 4; k++)
		ldmatrix_trans(a[k], tile + tile_at(k * 16 + lane / 16 * 8 + lane % 8, col0 / 8 + lane / 8 % 2));
}

/* c [16, 64] += A [16, 64] tile^T */
static __device__ __forceinline__ void mma_nt(float c[8][4], const uint32_t a[4][4], const bf16 *tile, uint32_t lane)
{
#pragma unroll
	for (int k = 0; k < 4; k++) {
#pragma unroll
		for (int n = 0; n < 4; n++) {
			uint32_t b[4];
			ldmatrix(b, tile + tile_at(n * 16 + lane / 16 * 8 + lane % 8, 2 * k + lane / 8 % 2));
			mma(c[2 * n], a[k], b[0], b[1]);
			mma(c[2 * n + 1], a[k], b[2], b[3]);
		}
	}
}

/* c [16, 64] += A [16, 64] tile */
static __device__ __forceinline__ void mma_nn(float c[8][4], const uint32_t a[4][4], const bf16 *tile, uint32_t lane)
{
#pragma unroll
	for (int k = 0; k < 4; k++) {
#pragma unroll
		for (int n = 0; n < 4; n++) {
			uint32_t b[4];
			ldmatrix_trans(b, tile + tile_at(k * 16 + lane % 16, 2 * n + lane / 16));
			mma(c[2 * n], a[k], b[0], b[1]);
			mma(c[2 * n + 1], a[k], b[2], b[3]);
		}
	}
}

/* The 16 x 64 result as the left factor of the next product. */
static __device__ __forceinline__ void to_a(uint32_t a[4][4], const float c[8][4])
{
#pragma unroll
	for (int k = 0; k < 4; k++) {
		a[k][0] = pack_bf16(c[2 * k][0], c[2 * k][1]);
		a[k][1] = pack_bf16(c[2 * k][2], c[2 * k][3]);
		a[k][2] = pack_bf16(c[2 * k + 1][0], c[2 * k + 1][1]);
		a[k][3] = pack_bf16(c[2 * k + 1][2], c[2 * k + 1][3]);
	}
}

/* The 16 x 64 result to rows row0 .. of a tile. */
static __device__ __forceinline__ void to_tile(bf16 *tile, const float c[8][4], uint32_t row0, uint32_t lane)
{
	uint32_t row = row0 + lane / 4, q = lane % 4;
#pragma unroll
	for (int n = 0; n < 8; n++) {
		*(uint32_t *)(tile + tile_at(row, n) + 2 * q) = pack_bf16(c[n][0], c[n][1]);
		*(uint32_t *)(tile + tile_at(row + 8, n) + 2 * q) = pack_bf16(c[n][2], c[n][3]);
	}
}

/* Rows below `n` of the block's 64 x 64 result times factor, to memory; row0 is the warp's first. */
static __device__ __forceinline__ void to_memory(bf16 *to, size_t stride, const float c[8][4], const float factor[2], uint32_t row0, uint32_t n,
	uint32_t lane)
{
#pragma unroll
	for (int r = 0; r < 2; r++) {
		uint32_t row = row0 + lane / 4 + 8 * r;
		if (row < n)
#pragma unroll
			for (int k = 0; k < 8; k++)
				*(uint32_t *)(to + row * stride + 8 * k + 2 * (lane % 4)) =
					pack_bf16(c[k][2 * r] * factor[r], c[k][2 * r + 1] * factor[r]);
	}
}

static __device__ __forceinline__ void zero_tile(float c[8][4])
{
#pragma unroll
	for (int n = 0; n < 8; n++)
#pragma unroll
		for (int i = 0; i < 4; i++)
			c[n][i] = 0;
}

#endif
