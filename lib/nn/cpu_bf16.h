/*
 * Products of bfloat16 numbers, summed in float, by AVX512-BF16. The instruction multiplies pairs: to each of 16 sums it adds a0 b0 + a1 b1.
 * So both factors are stored as pairs of neighbours along the dimension that is summed, one 32-bit word each, the first in the low half.
 * A factor is rounded to bfloat16 (to nearest, ties to even) when it is packed; numbers below 1.2e-38 become 0.
 *
 *     rows       [M][K / 2]            of a matrix whose rows are summed along: what is in memory already, rounded
 *     panels     [N / 32][K / 2][32]   32 columns side by side, for the vectors
 *     tall       [M / 96][K / 2][96]   96 columns side by side, for the factor that is broadcast
 * All but rows have columns of 0 up to the full width. An odd K is padded by 0.
 */
#pragma once

#include "nn/cpu_kernel.h"

#if defined(USE_AVX512) && defined(BF16)
#define USE_BF16

typedef uint32_t pair;

enum {
	BF_M = 12, /* a block of sums: BF_M x BF_N in 24 registers */
	BF_N = 32, /* columns of a panel */
	BF_GROUP = 96, /* rows that share a panel while it is in cache; columns of a tall panel */
	BF_DEPTH = 256, /* pairs of a panel that are in the first cache at a time */
};

static inline size_t pairs_of(size_t n)
{
	return (n + 1) / 2;
}

/* Pairs of packed columns: `width` is BF_N for panels, BF_GROUP for tall ones. */
static inline size_t panels_size(size_t columns, size_t pairs, size_t width)
{
	return (columns + width - 1) / width * width * pairs;
}

/* The first n lanes, n may be more than 16. */
static inline __mmask16 first_lanes(size_t n)
{
	return n >= 16 ? 0xffff : (__mmask16)((1u << n) - 1);
}

/* 16 words from 16 numbers each of two rows: pairs of what is one below the other. */
static inline __attribute__((always_inline)) __m512i pair_lanes(__m512 even, __m512 odd)
{
	__m512i low = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(even)),
		high = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(odd));
	return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

/* 16 words from 32 neighbours of a row, of which n >= 1 are there. */
static inline __attribute__((always_inline)) __m512i pair_neighbours(const float *x, size_t n, __m512 scale)
{
	__m512 a = _mm512_maskz_loadu_ps(first_lanes(n), x);
	__m512 b = n > 16 ? _mm512_maskz_loadu_ps(first_lanes(n - 16), x + 16) : _mm512_setzero_ps();
	return (__m512i)_mm512_cvtne2ps_pbh(_mm512_mul_ps(b, scale), _mm512_mul_ps(a, scale));
}

/* A row of n numbers as rows: pairs_of(n) words. */
LOOP void pack_row(pair *to, const float *x, size_t n, float scale)
{
	__m512 s = _mm512_set1_ps(scale);
	size_t i = 0;
	for (; i + 32 <= n; i += 32)
		_mm512_storeu_si512(to + i / 2, pair_neighbours(x + i, 32, s));
	if (i < n)
		_mm512_mask_storeu_epi32(to + i / 2, first_lanes(pairs_of(n - i)), pair_neighbours(x + i, n - i, s));
}

/* The sum of x times scale, rounded, times y. */
LOOP float dot_rounded(const float *x, const float *y, size_t n, float scale)
{
	__m512 s = _mm512_set1_ps(scale), sum = _mm512_setzero_ps();
	for (size_t i = 0; i < n; i += 16) {
		__m512 a = _mm512_mul_ps(_mm512_maskz_loadu_ps(first_lanes(n - i), x + i), s);
		__m512i r = _mm512_slli_epi32(_mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(a)), 16);
		sum = _mm512_fmadd_ps((__m512)r, _mm512_maskz_loadu_ps(first_lanes(n - i), y + i), sum);
	}
	return sum_lanes((vec)sum);
}

/*
 * Two rows of n columns become one row of pairs. Column c is at to[c / width * panel + c % width]: to points to this pair in the first panel
 * of `panel` words. odd NULL: a row of 0.
 */
LOOP void pack_pair(pair *to, size_t width, size_t panel, const float *even, const float *odd, size_t n, float scale)
{
	__m512 s = _mm512_set1_ps(scale);
	for (size_t c0 = 0; c0 < n; c0 += width, to += panel)
		for (size_t c = c0; c < c0 + width; c += 16) {
			__mmask16 there = c < n ? first_lanes(n - c) : 0;
			__m512 a = _mm512_maskz_loadu_ps(there, even + c),
			       b = odd ? _mm512_maskz_loadu_ps(there, odd + c) : _mm512_setzero_ps();
			_mm512_storeu_si512(to + (c - c0), pair_lanes(_mm512_mul_ps(a, s), _mm512_mul_ps(b, s)));
		}
}

/* n rows of x, at distance ldx, to pairs of rows: sums go over rows. at: the first pair of `pairs` in the panels. */
static inline void pack_down(
	pair *to, size_t width, size_t pairs, size_t at, const float *x, size_t ldx, size_t n, size_t columns, float scale)
{
	for (size_t i = 0; i < n; i += 2)
		pack_pair(
			to + (at + i / 2) * width, width, pairs * width, x + i * ldx, i + 1 < n ? x + (i + 1) * ldx : NULL, columns, scale);
}

/* 16 x 16 words, transposed. */
static inline __attribute__((always_inline)) void transpose(__m512i r[16])
{
	__m512i t[16];
#pragma GCC unroll 8
	for (int i = 0; i < 16; i += 2) {
		t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
		t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
	}
#pragma GCC unroll 4
	for (int i = 0; i < 16; i += 4) {
		r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
		r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
		r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
		r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
	}
	/* r[4 g + k] now holds, in its 128-bit lane l, column 4 l + k of rows 4 g .. 4 g + 3 */
#pragma GCC unroll 4
	for (int k = 0; k < 4; k++) {
		__m512i a = _mm512_shuffle_i32x4(r[k], r[4 + k], 0x88), b = _mm512_shuffle_i32x4(r[k], r[4 + k], 0xdd);
		__m512i c = _mm512_shuffle_i32x4(r[8 + k], r[12 + k], 0x88), d = _mm512_shuffle_i32x4(r[8 + k], r[12 + k], 0xdd);
		t[k] = _mm512_shuffle_i32x4(a, c, 0x88);
		t[8 + k] = _mm512_shuffle_i32x4(a, c, 0xdd);
		t[4 + k] = _mm512_shuffle_i32x4(b, d, 0x88);
		t[12 + k] = _mm512_shuffle_i32x4(b, d, 0xdd);
	}
	memcpy(r, t, sizeof t);
}

/* n <= BF_N rows of K numbers, at distance ldx, become one panel, as its columns. */
LOOP void pack_across(pair *to, const float *x, size_t ldx, size_t n, size_t K, float scale)
{
	const __m512 s = _mm512_set1_ps(scale);
	for (size_t i0 = 0; i0 < BF_N; i0 += 16)
		for (size_t k0 = 0; k0 < K; k0 += 32) {
			__m512i r[16];
#pragma GCC unroll 16
			for (size_t i = 0; i < 16; i++)
				r[i] = i0 + i < n ? pair_neighbours(x + (i0 + i) * ldx + k0, K - k0, s) : _mm512_setzero_si512();
			transpose(r);
#pragma GCC unroll 16
			for (size_t k = 0; k < 16; k++)
				if (k0 / 2 + k < pairs_of(K))
					_mm512_storeu_si512(to + (k0 / 2 + k) * BF_N + i0, r[k]);
		}
}

/*
 * Element (i, k) of A is a[i * ia + k * ka]. K in pairs. Where c lies in no near cache, it comes while the sums are made: it is read at the end.
 */
static inline __attribute__((always_inline)) void bf_block(
	float *c, size_t ldc, const pair *a, size_t ia, size_t ka, const pair *b, size_t K, int add)
{
	__m512 s[BF_M][2];
#pragma GCC unroll 12
	for (size_t i = 0; i < BF_M; i++) {
		s[i][0] = s[i][1] = _mm512_setzero_ps();
		__builtin_prefetch(c + i * ldc, 1);
		__builtin_prefetch(c + i * ldc + 16, 1);
	}
	for (size_t k = 0; k < K; k++) {
		__m512i b0 = _mm512_loadu_si512(b + k * BF_N), b1 = _mm512_loadu_si512(b + k * BF_N + 16);
		IN_REGISTER(b0);
		IN_REGISTER(b1);
#pragma GCC unroll 12
		for (size_t i = 0; i < BF_M; i++) {
			__m512i x = _mm512_set1_epi32((int)a[i * ia + k * ka]);
			s[i][0] = _mm512_dpbf16_ps(s[i][0], (__m512bh)b0, (__m512bh)x);
			s[i][1] = _mm512_dpbf16_ps(s[i][1], (__m512bh)b1, (__m512bh)x);
		}
	}
#pragma GCC unroll 12
	for (size_t i = 0; i < BF_M; i++) {
		_mm512_storeu_ps(c + i * ldc, add ? _mm512_add_ps(_mm512_loadu_ps(c + i * ldc), s[i][0]) : s[i][0]);
		_mm512_storeu_ps(c + i * ldc + 16, add ? _mm512_add_ps(_mm512_loadu_ps(c + i * ldc + 16), s[i][1]) : s[i][1]);
	}
}

/* A block of which only m x n is wanted. */
LOOP void bf_edge(float *c, size_t ldc, const pair *a, size_t ia, size_t ka, const pair *b, size_t m, size_t n, size_t K, int add)
{
	float whole[BF_M * BF_N];
	bf_block(whole, BF_N, a, ia, ka, b, K, 0);
	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < n; j++)
			c[i * ldc + j] = add ? c[i * ldc + j] + whole[i * BF_N + j] : whole[i * BF_N + j];
}

/*
 * C [M,N] = A B (+ C if add), K pairs. Rows of C are at distance ldc, nothing is written past M and N. Element (i, k) of A is A[i * ia + k * ka],
 * and elements up to a multiple of BF_M in i are read. B is in panels of `panel` words.
 */
LOOP void bf_mul(
	float *C, size_t ldc, const pair *A, size_t ia, size_t ka, const pair *B, size_t panel, size_t M, size_t N, size_t K, int add)
{
	for (size_t m0 = 0; m0 < M; m0 += BF_GROUP)
		for (size_t j = 0; j < N; j += BF_N)
			for (size_t k0 = 0; k0 < K; k0 += BF_DEPTH) {
				size_t k = K - k0 < BF_DEPTH ? K - k0 : BF_DEPTH;
				const pair *b = B + j / BF_N * panel + k0 * BF_N;
				for (size_t i = m0; i < M && i < m0 + BF_GROUP; i += BF_M) {
					const pair *a = A + i * ia + k0 * ka;
					if (M - i < BF_M || N - j < BF_N)
						bf_edge(C + i * ldc + j, ldc, a, ia, ka, b, M - i < BF_M ? M - i : BF_M,
							N - j < BF_N ? N - j : BF_N, k, add || k0);
					else
						bf_block(C + i * ldc + j, ldc, a, ia, ka, b, k, add || k0);
				}
			}
}

#endif
