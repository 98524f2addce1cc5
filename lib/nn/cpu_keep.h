/*
 * Dropout's decisions on the CPU, one bit for a column: 1 is kept. One call of Philox gives the decisions of 8 columns, one byte (ops.h).
 */
#pragma once

#include "base/rng.h"
#include "nn/cpu_kernel.h"

static inline int drop_on(const struct dropout *d)
{
	return d && d->threshold;
}

/* The factor of the values that dropout keeps. */
static inline real keep_scale(const struct dropout *d)
{
	return drop_on(d) ? (real)(65536.0 / (65536.0 - d->threshold)) : 1;
}

/*
 * keep_bits makes CALLS calls of Philox at once, so it may write up to KEEP_PAD bytes past those of n columns. KEEP_REALS: the room for n
 * columns, in reals; rows of STEP columns may be read from it.
 */
enum { KEEP_PAD = 24 };
#define KEEP_REALS(n) (((n) / 8 + 2 * KEEP_PAD) / sizeof(real) + 1)

#ifdef __AVX2__
/*
 * A 64-bit lane holds one word of a counter in its low half. So the low word of a product needs no move, and the next product ignores
 * the high halves. Three vectors hide the latency. The rounds are unrolled, so the compiler can move what does not depend on the column
 * out of the loop. The width is that of the instructions, whatever VECTOR is.
 */
#ifdef USE_AVX512
typedef __m512i words;
enum { COUNTERS = 8 };
#define SET _mm512_set1_epi64
#define MUL _mm512_mul_epu32
#define XOR _mm512_xor_si512
#define ADD _mm512_add_epi64
#define HIGH(x) _mm512_srli_epi64(x, 32)
#define ORDER _mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0) /* in a 128-bit lane counters k and k + 4: halves are compared apart */
#else
typedef __m256i words;
enum { COUNTERS = 4 };
#define SET _mm256_set1_epi64x
#define MUL _mm256_mul_epu32
#define XOR _mm256_xor_si256
#define ADD _mm256_add_epi64
#define HIGH(x) _mm256_srli_epi64(x, 32)
#define ORDER _mm256_set_epi64x(3, 2, 1, 0)
#endif
enum { NV = 3, CALLS = NV * COUNTERS };

/* The bits of a vector of counters, from their four words. */
static inline __attribute__((always_inline)) void keep_write(uint8_t *bits, words x0, words x1, words x2, words x3, uint32_t threshold)
{
#ifdef USE_AVX512
	const __m512i thr = _mm512_set1_epi16((short)threshold);
	/* words 0 1 | 2 3 of each counter side by side, then the 128 bits of a counter together */
	__m512i a = _mm512_mask_shuffle_epi32(x0, 0xaaaa, x1, _MM_PERM_CCAA), b = _mm512_mask_shuffle_epi32(x2, 0xaaaa, x3, _MM_PERM_CCAA);
	uint64_t low = _mm512_cmpge_epu16_mask(_mm512_unpacklo_epi64(a, b), thr);
	uint64_t high = _mm512_cmpge_epu16_mask(_mm512_unpackhi_epi64(a, b), thr);
	low |= high << 32;
	memcpy(bits, &low, 8);
#else
	const __m256i thr = _mm256_set1_epi16((short)threshold);
	__m256i a = _mm256_blend_epi32(x0, _mm256_slli_epi64(x1, 32), 0xaa);
	__m256i b = _mm256_blend_epi32(x2, _mm256_slli_epi64(x3, 32), 0xaa);
	__m256i even = _mm256_unpacklo_epi64(a, b), odd = _mm256_unpackhi_epi64(a, b);
	even = _mm256_cmpeq_epi16(_mm256_max_epu16(even, thr), even);
	odd = _mm256_cmpeq_epi16(_mm256_max_epu16(odd, thr), odd);
	int32_t kept = _mm256_movemask_epi8(_mm256_packs_epi16(even, odd));
	memcpy(bits, &kept, 4);
#endif
}
#endif

/* The bits of columns c0 .. c0 + n (c0 a multiple of 8). */
LOOP void keep_bits(uint8_t *bits, size_t c0, size_t n, const struct dropout *d, uint32_t head, uint32_t pos, uint32_t cell)
{
	const uint32_t w1 = d->site << 28 | d->layer << 16 | head;
	uint32_t c = (uint32_t)(c0 / 8), end = (uint32_t)((c0 + n + 7) / 8);
#ifdef __AVX2__
	const words m0 = SET(0xD2511F53), m1 = SET(0xCD9E8D57), c0v = SET(*d->step), c1v = SET(w1), c3v = SET(cell);
	for (; c < end; c += CALLS, bits += CALLS) {
		words x0[NV], x1[NV], x2[NV], x3[NV];
#pragma GCC unroll 3
		for (int h = 0; h < NV; h++) {
			x0[h] = c0v;
			x1[h] = c1v;
			x2[h] = ADD(SET((pos << 16 | c) + COUNTERS * (uint32_t)h), ORDER);
			x3[h] = c3v;
		}
		uint32_t k0 = d->seed, k1 = RNG_DROPOUT;
#pragma GCC unroll 10
		for (int i = 0; i < 10; i++, k0 += 0x9E3779B9, k1 += 0xBB67AE85) {
			const words k0v = SET(k0), k1v = SET(k1);
#pragma GCC unroll 3
			for (int h = 0; h < NV; h++) {
				words p0 = MUL(x0[h], m0), p1 = MUL(x2[h], m1);
				x0[h] = XOR(HIGH(p1), XOR(x1[h], k0v));
				x2[h] = XOR(HIGH(p0), XOR(x3[h], k1v));
				x1[h] = p1;
				x3[h] = p0;
			}
		}
#pragma GCC unroll 3
		for (int h = 0; h < NV; h++)
			keep_write(bits + COUNTERS * h, x0[h], x1[h], x2[h], x3[h], d->threshold);
	}
#else
	for (; c < end; c++, bits++) {
		uint32_t x[4];
		rng_block(d->seed, RNG_DROPOUT, (uint32_t[]){*d->step, w1, pos << 16 | c, cell}, x);
		*bits = 0;
		for (int i = 0; i < 8; i++)
			*bits |= (uint8_t)(((x[i / 2] >> 16 * (i % 2) & 0xffff) >= d->threshold) << i);
	}
#endif
}

/* y = dropout(x) for a row of C channels; y may be x; scratch: KEEP_REALS(C) */
LOOP void drop_row(real *y, const real *x, real *scratch, size_t C, const struct dropout *d, uint32_t pos, uint32_t cell)
{
	const real scale = keep_scale(d);
	uint8_t *keep = (uint8_t *)scratch;
	keep_bits(keep, 0, C, d, 0, pos, cell);
	size_t i = 0;
	for (; i + STEP <= C; i += STEP) {
		vec v[4];
		EACH v[h] = *(const vec *)(x + i + VL * h) * scale;
		keep_step(v, keep + i / 8);
		EACH *(vec *)(y + i + VL * h) = v[h];
	}
	for (; i < C; i++)
		y[i] = keep[i / 8] >> i % 8 & 1 ? x[i] * scale : 0;
}

/* ---- attention ---- */

/* Dropout of one (cell, head). The forward stores its decisions for the backward where there is memory for them. */
struct decisions {
	const struct dropout *d;
	uint32_t head, key;
	uint8_t *stored; /* the bits of query 0; NULL: not stored */
	size_t stride; /* bytes from one query to the next */
};

static inline size_t keep_stride(size_t longest)
{
	return (longest + 63) / 64 * 8;
}

/* Token t0 is the first of the cell. */
static inline struct decisions decisions_of(const struct dropout *d, size_t t0, size_t NH, size_t head, uint32_t key)
{
	struct decisions w = {.d = drop_on(d) ? d : NULL, .head = (uint32_t)head, .key = key};
	if (w.d && d->keep) {
		w.stride = NH * keep_stride(d->longest);
		w.stored = (uint8_t *)d->keep + t0 * w.stride + head * keep_stride(d->longest);
	}
	return w;
}

/* The bits of query i for n keys from j0, in row; NULL: all are kept. */
static inline const uint8_t *decide(const struct decisions *w, size_t i, size_t j0, size_t n, uint8_t *row)
{
	if (!w->d)
		return NULL;
	keep_bits(row, j0, n, w->d, w->head, (uint32_t)i, w->key);
	if (w->stored)
		memcpy(w->stored + i * w->stride + j0 / 8, row, (n + STEP - 1) / STEP * (STEP / 8));
	return row;
}

/* The same in the backward. */
static inline const uint8_t *recall(const struct decisions *w, size_t i, size_t j0, size_t n, uint8_t *row)
{
	return w->stored ? w->stored + i * w->stride + j0 / 8 : decide(w, i, j0, n, row);
}
