/*
 * Building blocks of the CPU ops: exponential, rows of dropout, and matrix products on `real`. They are C with vectors of VECTOR bytes,
 * which any compiler lowers to the instructions that it has. The ops are compiled for each width (Makefile, cpu_vectors.c). Intrinsics are
 * used where the compiler does worse, with a version in C for other CPUs: the 32 x 32 -> 64 bit products of Philox, maxima, and bits
 * that select lanes.
 */
#pragma once

#include <cblas.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "nn/ops.h"

/* SIMD_SUM splits a loop's sum over vector lanes. The compiler fixes the order, so it is the same in every run. */
#define SIMD _Pragma("omp simd")
#define SIMD_SUM(s) _Pragma(SIMD_STR(omp simd reduction(+ : s)))
#define SIMD_STR(x) #x

#ifndef VECTOR
#define VECTOR 32
#endif
#pragma GCC diagnostic ignored "-Wpsabi" /* no vector leaves its file, so the ABI of wide ones does not matter */
#if VECTOR == 64 && defined(__AVX512F__) && defined(__AVX512BW__)
#define USE_AVX512
#elif VECTOR == 32 && defined(__AVX2__)
#define USE_AVX2
#endif

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
 * Products small enough to stay in cache, where packing by a BLAS would cost a third of the time. A block of C, MR x NR, lives in
 * registers: 12 of the 16 of AVX2, 24 of the 32 of AVX-512.
 *     mul_nn  C [M,N] = A [M,K] B [K,N]      mul_tn  C [M,N] = A [K,M]^T B [K,N]       (+ C if add)
 * B is in panels of NR columns: panel p starts at B + p * panel and has rows at distance ldb; a row-major matrix is the
 * case panel = NR. M is rounded up to MR and N to NR: the caller's arrays have room for that, and the values there are not used.
 */
/* A loop that has the registers for itself: within a large function the compiler would spill. */
#define LOOP static __attribute__((noinline, unused))

typedef real vec __attribute__((vector_size(VECTOR), aligned(sizeof(real)), may_alias));

enum { VL = VECTOR / sizeof(real), MR = VECTOR == 64 ? 12 : 6, NR = 2 * VL };

/* The compiler must not load a vector again wherever it is used. */
#if defined(USE_AVX2) || defined(USE_AVX512)
#define IN_REGISTER(v) __asm__("" : "+v"(v))
#else
#define IN_REGISTER(v) ((void)0)
#endif

/* Element (i, k) of A is a[i * ia + k * ka]. */
static inline __attribute__((always_inline)) void mul_block(
	real *c, size_t ldc, const real *a, size_t ia, size_t ka, const real *b, size_t ldb, size_t K, int add)
{
	vec s[MR][2];
#pragma GCC unroll 12
	for (size_t i = 0; i < MR; i++) {
		s[i][0] = add ? *(const vec *)(c + i * ldc) : (vec){0};
		s[i][1] = add ? *(const vec *)(c + i * ldc + VL) : (vec){0};
	}
	for (size_t k = 0; k < K; k++) {
		vec b0 = *(const vec *)(b + k * ldb), b1 = *(const vec *)(b + k * ldb + VL);
		IN_REGISTER(b0);
		IN_REGISTER(b1);
#pragma GCC unroll 12
		for (size_t i = 0; i < MR; i++) {
			real x = a[i * ia + k * ka];
			s[i][0] += x * b0;
			s[i][1] += x * b1;
		}
	}
#pragma GCC unroll 12
	for (size_t i = 0; i < MR; i++) {
		*(vec *)(c + i * ldc) = s[i][0];
		*(vec *)(c + i * ldc + VL) = s[i][1];
	}
}

LOOP void mul_nn(
	real *C, size_t ldc, const real *A, size_t lda, const real *B, size_t panel, size_t ldb, size_t M, size_t N, size_t K, int add)
{
	for (size_t j = 0; j < N; j += NR)
		for (size_t i = 0; i < M; i += MR)
			mul_block(C + i * ldc + j, ldc, A + i * lda, lda, 1, B + j / NR * panel, ldb, K, add);
}

LOOP void mul_tn(
	real *C, size_t ldc, const real *A, size_t lda, const real *B, size_t panel, size_t ldb, size_t M, size_t N, size_t K, int add)
{
	for (size_t i = 0; i < M; i += MR) /* MR columns of A stay in cache: they touch K lines */
		for (size_t j = 0; j < N; j += NR)
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

/* x's n rows of D as panels of NR columns: panel p holds [n][NR]. Columns past D are 0. */
static inline void pack_columns(real *to, const real *x, size_t ldx, size_t n, size_t D)
{
	for (size_t c0 = 0; c0 < D; c0 += NR, to += n * NR) {
		size_t w = D - c0 < NR ? D - c0 : NR;
		for (size_t i = 0; i < n; i++)
			for (size_t c = 0; c < NR; c++)
				to[i * NR + c] = c < w ? x[i * ldx + c0 + c] : 0;
	}
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
typedef lane lanes __attribute__((vector_size(VECTOR), aligned(sizeof(lane)), may_alias));

enum { STEP = 4 * VL };

#define EACH _Pragma("GCC unroll 4") for (int h = 0; h < 4; h++)

/* a > b ? a : b in every lane, so b if one of them is NaN. The compiler would compare and blend. */
static inline __attribute__((always_inline)) vec larger(vec a, vec b)
{
#ifdef USE_AVX512
	return (vec)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(USE_AVX2)
	if (sizeof(real) == sizeof(float))
		return (vec)_mm256_max_ps((__m256)a, (__m256)b);
#endif
	lanes more = a > b;
	return (vec)(((lanes)a & more) | ((lanes)b & ~more));
}

/* exp_fast of four vectors. */
static inline __attribute__((always_inline)) void exp_step(vec x[4])
{
	if (sizeof(real) == sizeof(float)) {
		const vec low = (vec){0} - (real)87, magic = (vec){0} + (real)12582912, log2e = (vec){0} + (real)1.44269504f;
		vec t[4], r[4], p[4];
		EACH x[h] = larger(low, x[h]);
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
	for (int h = 0; h < 4; h++)
		for (int i = 0; i < VL; i++)
			x[h][i] = exp_fast(x[h][i]);
}

/* x where the bit is 1, 0 where it is 0, for the STEP values of four vectors. */
static inline __attribute__((always_inline)) void keep_step(vec x[4], const uint8_t *bits)
{
	uint64_t word = 0;
	memcpy(&word, bits, STEP / 8);
#ifdef USE_AVX512
	EACH x[h] = (vec)_mm512_maskz_mov_ps((__mmask16)(word >> VL * h), (__m512)x[h]);
#else
	lanes bit = {0};
	for (int i = 0; i < VL; i++)
		bit[i] = (lane)1 << i;
	EACH x[h] = (vec)((lanes)x[h] & ((((lanes){0} + (lane)(word >> VL * h)) & bit) == bit));
#endif
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
LOOP real row_max(const real *x, size_t n, real top)
{
	real s[VL];
	vec v[4];
	EACH v[h] = (vec){0} + top;
	for (size_t j = 0; j < n; j += STEP)
		EACH v[h] = larger(*(const vec *)(x + j + VL * h), v[h]);
	v[0] = larger(larger(v[0], v[1]), larger(v[2], v[3]));
	memcpy(s, &v[0], sizeof s);
	for (int w = VL / 2; w; w /= 2)
		for (int i = 0; i < w; i++)
			s[i] = s[i] > s[i + w] ? s[i] : s[i + w];
	return s[0];
}

/* s = e^(s - top), 0 where not kept (keep NULL: all is); returns the sum before dropout. n is a multiple of STEP. */
LOOP real soft_row(real *s, const uint8_t *keep, size_t n, real top)
{
	vec sum = {0};
	for (size_t j = 0; j < n; j += STEP) {
		vec x[4];
		EACH x[h] = *(vec *)(s + j + VL * h) - top;
		exp_step(x);
		sum += (x[0] + x[1]) + (x[2] + x[3]);
		if (keep)
			keep_step(x, keep + j / 8);
		EACH *(vec *)(s + j + VL * h) = x[h];
	}
	return sum_lanes(sum);
}

/* p = e^(s - lse);  s = p where kept, else 0;  g = s g - p delta */
LOOP void soft_row_back(real *s, real *g, const uint8_t *keep, size_t n, real lse, real delta)
{
	for (size_t j = 0; j < n; j += STEP) {
		vec x[4], p[4];
		EACH x[h] = *(vec *)(s + j + VL * h) - lse;
		exp_step(x);
		EACH p[h] = x[h];
		if (keep)
			keep_step(p, keep + j / 8);
		EACH *(vec *)(s + j + VL * h) = p[h];
		EACH *(vec *)(g + j + VL * h) = p[h] * *(vec *)(g + j + VL * h) - x[h] * delta;
	}
}
