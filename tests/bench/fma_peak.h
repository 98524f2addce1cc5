/*
 * The processor's own floor: multiplications and additions of floats in registers, with the widest vectors that it has. No memory is
 * read, so no library's matrix product can be faster.
 */
#pragma once

#include <stddef.h>

#ifdef __x86_64__
#include <immintrin.h>

/* 12 sums that do not wait for each other: more than two units with a latency of 5 cycles need. */
#define FMA_CHAINS 12

__attribute__((target("avx2,fma"))) static float fma_avx2(size_t n)
{
	__m256 s[FMA_CHAINS], a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
	for (int k = 0; k < FMA_CHAINS; k++)
		s[k] = _mm256_set1_ps((float)k);
	for (size_t i = 0; i < n; i++)
#pragma GCC unroll 12
		for (int k = 0; k < FMA_CHAINS; k++)
			s[k] = _mm256_fmadd_ps(s[k], a, b);
	for (int k = 1; k < FMA_CHAINS; k++)
		s[0] = _mm256_add_ps(s[0], s[k]);
	return _mm256_cvtss_f32(s[0]);
}

__attribute__((target("avx512f"))) static float fma_avx512(size_t n)
{
	__m512 s[FMA_CHAINS], a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
	for (int k = 0; k < FMA_CHAINS; k++)
		s[k] = _mm512_set1_ps((float)k);
	for (size_t i = 0; i < n; i++)
#pragma GCC unroll 12
		for (int k = 0; k < FMA_CHAINS; k++)
			s[k] = _mm512_fmadd_ps(s[k], a, b);
	for (int k = 1; k < FMA_CHAINS; k++)
		s[0] = _mm512_add_ps(s[0], s[k]);
	return _mm512_cvtss_f32(s[0]);
}

/* Floats of a vector; 0: neither AVX2 with FMA nor AVX-512. */
static int fma_width(void)
{
	return __builtin_cpu_supports("avx512f") ? 16 : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 8 : 0;
}

__attribute__((target("avx512f,avx512bf16"))) static float bf16_avx512(size_t n)
{
	__m512 s[FMA_CHAINS];
	__m512bh a = (__m512bh)_mm512_set1_epi32(0x3f803f80), b = (__m512bh)_mm512_set1_epi32(0x3c003c00); /* 1 and 1/128 */
	for (int k = 0; k < FMA_CHAINS; k++)
		s[k] = _mm512_set1_ps((float)k);
	for (size_t i = 0; i < n; i++)
#pragma GCC unroll 12
		for (int k = 0; k < FMA_CHAINS; k++)
			s[k] = _mm512_dpbf16_ps(s[k], a, b);
	for (int k = 1; k < FMA_CHAINS; k++)
		s[0] = _mm512_add_ps(s[0], s[k]);
	return _mm512_cvtss_f32(s[0]);
}

/* The same with products of bfloat16 numbers: two multiplications and additions a lane. */
static double bf16_run(int threads, size_t n)
{
	float sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
	sum += bf16_avx512(n);
	__asm__ volatile("" : : "m"(sum));
	return 2.0 * 32 * FMA_CHAINS * (double)n * threads;
}

/* n rounds of all chains on each of `threads` threads: returns the operations. */
static double fma_run(int threads, size_t n)
{
	int width = fma_width();
	float sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
	sum += width == 16 ? fma_avx512(n) : width == 8 ? fma_avx2(n) : 0;
	__asm__ volatile("" : : "m"(sum)); /* the compiler must not drop it */
	return 2.0 * width * FMA_CHAINS * (double)n * threads;
}

#else
static int fma_width(void)
{
	return 0;
}
static double fma_run(int threads, size_t n)
{
	return 0;
}
static double bf16_run(int threads, size_t n)
{
	return 0;
}
#endif
