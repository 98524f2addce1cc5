/*
 * Building blocks of the CPU ops: exponential, rows of dropout, and matrix products on `real`. They are plain C that the compiler
 * vectorises. Intrinsics are used where the compiler does worse, with a version in C for other CPUs: the 32 x 32 -> 64 bit products of
 * Philox, and maxima.
 */
#ifndef CPU_KERNEL_H
#define CPU_KERNEL_H

#include <cblas.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "nn/ops.h"
#include "base/rng.h"

/* SIMD_SUM splits a loop's sum over vector lanes. The compiler fixes the order, so it is the same in every run. */
#define SIMD _Pragma("omp simd")
#define SIMD_SUM(s) _Pragma(SIMD_STR(omp simd reduction(+ : s)))
#define SIMD_STR(x) #x

#define gemm_ _Generic((real)0, float : cblas_sgemm, double : cblas_dgemm)

/* C [M,N] = alpha A B + beta C, rows at distance lda, ldb, ldc; nt: B is given transposed [N,K]; tn: A is given [K,M]. */
static inline void gemm_nn(
	size_t M, size_t N, size_t K, real alpha, const real *A, size_t lda, const real *B, size_t ldb, real beta, real *C, size_t ldc)
{
	gemm_(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)M, (int)N, (int)K, alpha, A, (int)lda, B, (int)ldb, beta, C, (int)ldc);
}

static inline void gemm_nt(
	size_t M, size_t N, size_t K, real alpha, const real *A, size_t lda, const real *B, size_t ldb, real beta, real *C, size_t ldc)
{
	gemm_(CblasRowMajor, CblasNoTrans, CblasTrans, (int)M, (int)N, (int)K, alpha, A, (int)lda, B, (int)ldb, beta, C, (int)ldc);
}

static inline void gemm_tn(
	size_t M, size_t N, size_t K, real alpha, const real *A, size_t lda, const real *B, size_t ldb, real beta, real *C, size_t ldc)
{
	gemm_(CblasRowMajor, CblasTrans, CblasNoTrans, (int)M, (int)N, (int)K, alpha, A, (int)lda, B, (int)ldb, beta, C, (int)ldc);
}

/*
 * Products small enough to stay in cache, where packing by a BLAS would cost a third of the time. A block of C, MR x NR,
 * lives in twelve vector registers.
 *     mul_nn  C [M,N] = A [M,K] B [K,N]      mul_tn  C [M,N] = A [K,M]^T B [K,N]       (+ C if add)
 * B is in panels of NR columns: panel p starts at B + p * panel and has rows at distance ldb; a row-major matrix is the
 * case panel = NR. M is rounded up to MR and N to NR: the caller's arrays have room for that, and the values there are not used.
 */
typedef real vec __attribute__((vector_size(32), aligned(sizeof(real)), may_alias));

enum {
	VL = 32 / sizeof(real),
	MR = 6,
	NR = 2 * VL,
};

/* Element (i, k) of A is a[i * ia + k * ka]. */
static inline __attribute__((always_inline)) void mul_block(
	real *c, size_t ldc, const real *a, size_t ia, size_t ka, const real *b, size_t ldb, size_t K, int add)
{
	vec s[MR][2];
#pragma GCC unroll 6
	for (size_t i = 0; i < MR; i++) {
		s[i][0] = add ? *(const vec *)(c + i * ldc) : (vec){0};
		s[i][1] = add ? *(const vec *)(c + i * ldc + VL) : (vec){0};
	}
	for (size_t k = 0; k < K; k++) {
		vec b0 = *(const vec *)(b + k * ldb), b1 = *(const vec *)(b + k * ldb + VL);
#pragma GCC unroll 6
		for (size_t i = 0; i < MR; i++) {
			real x = a[i * ia + k * ka];
			s[i][0] += x * b0;
			s[i][1] += x * b1;
		}
	}
#pragma GCC unroll 6
	for (size_t i = 0; i < MR; i++) {
		*(vec *)(c + i * ldc) = s[i][0];
		*(vec *)(c + i * ldc + VL) = s[i][1];
	}
}

static inline void mul_nn(
	real *C, size_t ldc, const real *A, size_t lda, const real *B, size_t panel, size_t ldb, size_t M, size_t N, size_t K, int add)
{
	for (size_t j = 0; j < N; j += NR)
		for (size_t i = 0; i < M; i += MR)
			mul_block(C + i * ldc + j, ldc, A + i * lda, lda, 1, B + j / NR * panel, ldb, K, add);
}

static inline void mul_tn(
	real *C, size_t ldc, const real *A, size_t lda, const real *B, size_t panel, size_t ldb, size_t M, size_t N, size_t K, int add)
{
	for (size_t j = 0; j < N; j += NR)
		for (size_t i = 0; i < M; i += MR)
			mul_block(C + i * ldc + j, ldc, A + i, 1, lda, B + j / NR * panel, ldb, K, add);
}

/* to [rows, Dp] = scale x, x's rows of D at distance ldx; columns past D and rows past n are 0. */
static inline void pack_rows(real *to, size_t rows, size_t Dp, const real *x, size_t ldx, size_t n, size_t D, real scale)
{
	memset(to, 0, rows * Dp * sizeof *to);
	for (size_t i = 0; i < n; i++)
		for (size_t c = 0; c < D; c++)
			to[i * Dp + c] = scale * x[i * ldx + c];
}

/* x transposed, as panels of NR rows of x: panel p holds [D][NR]. Rows past n are 0. */
static inline void pack_panels(real *to, const real *x, size_t ldx, size_t n, size_t D)
{
	for (size_t i0 = 0; i0 < n; i0 += NR, to += D * NR) {
		if (n - i0 < NR)
			memset(to, 0, D * NR * sizeof *to);
		for (size_t i = 0; i < NR && i0 + i < n; i++)
			for (size_t c = 0; c < D; c++)
				to[c * NR + i] = x[(i0 + i) * ldx + c];
	}
}

/*
 * e^x for x <= 88, to 1e-7 relative near 0 and 1e-6 at -87, below which it stays at e^-87. NaN stays NaN.
 * x / ln 2 = n + r, |r| <= 1/2: adding 1.5 2^23 rounds n into the low bits of t, a shift makes them the exponent, and a
 * polynomial fitted for the least relative error gives 2^r.
 */
#define EXP6 1.53458110e-4f
#define EXP5 1.33999309e-3f
#define EXP4 9.61848907e-3f
#define EXP3 5.55032864e-2f
#define EXP2 2.40226462e-1f
#define EXP1 6.93147182e-1f

static inline real exp_fast(real x0)
{
	if (sizeof(real) == sizeof(double))
		return (real)exp((double)x0);
	const float magic = 12582912.0f, log2e = 1.44269504f;
	float x = (float)x0;
	x = x < -87.0f ? -87.0f : x;
	union {
		float f;
		int32_t i;
	} t = {x * log2e + magic}, p;
	float r = x * log2e - (t.f - magic);
	p.f = EXP6;
	p.f = p.f * r + EXP5;
	p.f = p.f * r + EXP4;
	p.f = p.f * r + EXP3;
	p.f = p.f * r + EXP2;
	p.f = p.f * r + EXP1;
	p.f = p.f * r + 1;
	p.i = (int32_t)((uint32_t)p.i + ((uint32_t)t.i << 23));
	return (real)p.f;
}

/* 1 - erf(x), to 1e-6 relative [Press et al., Numerical Recipes, erfcc: a Chebyshev fit]. */
static inline real erfc_fast(real x0)
{
	if (sizeof(real) == sizeof(double))
		return (real)erfc((double)x0);
	float x = (float)x0, z = x < 0 ? -x : x, t = 1 / (1 + 0.5f * z), p = 0.17087277f;
	p = p * t - 0.82215223f;
	p = p * t + 1.48851587f;
	p = p * t - 1.13520398f;
	p = p * t + 0.27886807f;
	p = p * t - 0.18628806f;
	p = p * t + 0.09678418f;
	p = p * t + 0.37409196f;
	p = p * t + 1.00002368f;
	p = p * t - 1.26551223f;
	float r = t * (float)exp_fast((real)(p - z * z));
	return (real)(x < 0 ? 2 - r : r);
}

/*
 * Rows of scores, STEP values at a time. An exponential is a chain of about ten dependent instructions. The scheduler of a core sees too
 * few of them at once to keep its units busy, so the code itself alternates four chains.
 */
typedef __typeof__(_Generic((real)0, float : (int32_t)0, double : (int64_t)0)) lane;
typedef lane lanes __attribute__((vector_size(32), aligned(sizeof(lane)), may_alias));

enum { STEP = 4 * VL };

#define EACH _Pragma("GCC unroll 4") for (int h = 0; h < 4; h++)

/* exp_fast of four vectors. */
static inline __attribute__((always_inline)) void exp_step(vec x[4])
{
#ifdef __AVX2__
	if (sizeof(real) == sizeof(float)) {
		const vec low = (vec){0} - (real)87, magic = (vec){0} + (real)12582912, log2e = (vec){0} + (real)1.44269504f;
		vec t[4], r[4], p[4];
		EACH x[h] = (vec)_mm256_max_ps((__m256)low, (__m256)x[h]); /* in this order NaN stays NaN */
		EACH t[h] = x[h] * log2e + magic;
		EACH r[h] = x[h] * log2e - (t[h] - magic);
		EACH p[h] = r[h] * (real)EXP6 + (real)EXP5;
		EACH p[h] = p[h] * r[h] + (real)EXP4;
		EACH p[h] = p[h] * r[h] + (real)EXP3;
		EACH p[h] = p[h] * r[h] + (real)EXP2;
		EACH p[h] = p[h] * r[h] + (real)EXP1;
		EACH p[h] = p[h] * r[h] + 1;
		EACH x[h] = (vec)((lanes)p[h] + ((lanes)t[h] << 23));
		return;
	}
#endif
	for (int h = 0; h < 4; h++)
		for (int i = 0; i < VL; i++)
			x[h][i] = exp_fast(x[h][i]);
}

/* x where keep is -1, 0 where it is 0 */
static inline vec kept(vec x, const int16_t *keep)
{
#ifdef __AVX2__
	if (sizeof(real) == sizeof(float))
		return (vec)((lanes)x & (lanes)_mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i *)keep)));
#endif
	for (int i = 0; i < VL; i++)
		x[i] = keep[i] ? x[i] : 0;
	return x;
}

static inline real sum_lanes(vec x)
{
	real s[VL];
	memcpy(s, &x, sizeof s);
	for (int n = VL / 2; n; n /= 2)
		for (int i = 0; i < n; i++)
			s[i] += s[i + n];
	return s[0];
}

/* The largest of top and x[0 .. n), n a multiple of STEP. A NaN in x may be ignored. */
static inline real row_max(const real *x, size_t n, real top)
{
#ifdef __AVX2__
	if (sizeof(real) == sizeof(float)) { /* the compiler would compare and blend */
		__m256 v[4];
		EACH v[h] = _mm256_set1_ps((float)top);
		for (size_t j = 0; j < n; j += STEP)
			EACH v[h] = _mm256_max_ps(_mm256_loadu_ps((const float *)x + j + VL * h), v[h]);
		v[0] = _mm256_max_ps(_mm256_max_ps(v[0], v[1]), _mm256_max_ps(v[2], v[3]));
		__m128 a = _mm_max_ps(_mm256_castps256_ps128(v[0]), _mm256_extractf128_ps(v[0], 1));
		a = _mm_max_ps(a, _mm_movehl_ps(a, a));
		return (real)_mm_cvtss_f32(_mm_max_ss(a, _mm_movehdup_ps(a)));
	}
#endif
	for (size_t j = 0; j < n; j++)
		top = x[j] > top ? x[j] : top;
	return top;
}

/* s = e^(s - top), 0 where not kept (keep NULL: all is); returns the sum before dropout. n is a multiple of STEP. */
static inline real soft_row(real *s, const int16_t *keep, size_t n, real top)
{
	vec sum = {0};
	for (size_t j = 0; j < n; j += STEP) {
		vec x[4];
		EACH x[h] = *(vec *)(s + j + VL * h) - top;
		exp_step(x);
		sum += (x[0] + x[1]) + (x[2] + x[3]);
		EACH *(vec *)(s + j + VL * h) = keep ? kept(x[h], keep + j + VL * h) : x[h];
	}
	return sum_lanes(sum);
}

/* p = e^(s - lse);  s = p where kept, else 0;  g = s g - p delta */
static inline void soft_row_back(real *s, real *g, const int16_t *keep, size_t n, real lse, real delta)
{
	for (size_t j = 0; j < n; j += STEP) {
		vec x[4], p[4];
		EACH x[h] = *(vec *)(s + j + VL * h) - lse;
		exp_step(x);
		EACH *(vec *)(s + j + VL * h) = p[h] = kept(x[h], keep + j + VL * h);
		EACH *(vec *)(g + j + VL * h) = p[h] * *(vec *)(g + j + VL * h) - x[h] * delta;
	}
}

static inline int drop_on(const struct dropout *d)
{
	return d && d->threshold;
}

/* The factor of the values that dropout keeps. */
static inline real keep_scale(const struct dropout *d)
{
	return drop_on(d) ? (real)(65536.0 / (65536.0 - d->threshold)) : 1;
}

#define KEEP_PAD 96 /* keep_row may write up to this many values past n */

/*
 * keep[c] for columns c0 .. c0 + n (c0 a multiple of 8): 0 where dropped, else -1. See ops.h.
 */
static inline void keep_row(int16_t *keep, size_t c0, size_t n, const struct dropout *d, uint32_t head, uint32_t pos, uint32_t cell)
{
	const uint32_t w1 = d->site << 28 | d->layer << 16 | head;
	uint32_t c = (uint32_t)(c0 / 8), end = (uint32_t)((c0 + n + 7) / 8);
#ifdef __AVX2__
	/* A vector holds four counters, each in the low half of a 64-bit lane. So the low word of a product needs no move, and the next
	 * product ignores the high halves. Three vectors hide the latency. The rounds are unrolled, so the compiler can move what does not
	 * depend on c out of the loop. */
	enum { NV = 3 };
	const __m256i m0 = _mm256_set1_epi64x(0xD2511F53), m1 = _mm256_set1_epi64x(0xCD9E8D57);
	const __m256i thr = _mm256_set1_epi16((short)d->threshold);
	const __m256i c0v = _mm256_set1_epi64x(*d->step), c1v = _mm256_set1_epi64x(w1), c3v = _mm256_set1_epi64x(cell);
	for (; c < end; c += 4 * NV, keep += 32 * NV) {
		__m256i x0[NV], x1[NV], x2[NV], x3[NV];
#pragma GCC unroll 3
		for (int h = 0; h < NV; h++) {
			x0[h] = c0v;
			x1[h] = c1v;
			x2[h] = _mm256_add_epi64(_mm256_set1_epi64x((pos << 16 | c) + 4 * (uint32_t)h), _mm256_set_epi64x(3, 2, 1, 0));
			x3[h] = c3v;
		}
		uint32_t k0 = d->seed, k1 = RNG_DROPOUT;
#pragma GCC unroll 10
		for (int i = 0; i < 10; i++, k0 += 0x9E3779B9, k1 += 0xBB67AE85) {
			const __m256i k0v = _mm256_set1_epi64x(k0), k1v = _mm256_set1_epi64x(k1);
#pragma GCC unroll 3
			for (int h = 0; h < NV; h++) {
				__m256i p0 = _mm256_mul_epu32(x0[h], m0), p1 = _mm256_mul_epu32(x2[h], m1);
				x0[h] = _mm256_xor_si256(_mm256_srli_epi64(p1, 32), _mm256_xor_si256(x1[h], k0v));
				x2[h] = _mm256_xor_si256(_mm256_srli_epi64(p0, 32), _mm256_xor_si256(x3[h], k1v));
				x1[h] = p1;
				x3[h] = p0;
			}
		}
#pragma GCC unroll 3
		for (int h = 0; h < NV; h++) {
			/* Words 0 1 | 2 3 of each counter side by side, then the 128 bits of a counter together. */
			__m256i a = _mm256_blend_epi32(x0[h], _mm256_slli_epi64(x1[h], 32), 0xaa);
			__m256i b = _mm256_blend_epi32(x2[h], _mm256_slli_epi64(x3[h], 32), 0xaa);
			__m256i even = _mm256_unpacklo_epi64(a, b), odd = _mm256_unpackhi_epi64(a, b);
			even = _mm256_cmpeq_epi16(_mm256_max_epu16(even, thr), even);
			odd = _mm256_cmpeq_epi16(_mm256_max_epu16(odd, thr), odd);
			_mm256_storeu_si256((__m256i *)(keep + 32 * h), _mm256_permute2x128_si256(even, odd, 0x20));
			_mm256_storeu_si256((__m256i *)(keep + 32 * h + 16), _mm256_permute2x128_si256(even, odd, 0x31));
		}
	}
#else
	for (; c < end; c++, keep += 8) {
		uint32_t x[4];
		rng_block(d->seed, RNG_DROPOUT, (uint32_t[]){*d->step, w1, pos << 16 | c, cell}, x);
		for (int i = 0; i < 8; i++)
			keep[i] = (x[i / 2] >> 16 * (i % 2) & 0xffff) < d->threshold ? 0 : -1;
	}
#endif
}

#endif
