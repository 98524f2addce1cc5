#include "graph/correlation_kernel.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

#ifndef VECTOR
#define VECTOR 32
#endif

enum { P = 2 * VECTOR }; /* a row of the panel is two vectors of bytes; its sums are eight of 32-bit numbers */

/*
 * sum += sum over the n > 0 entries of a gene in this chunk of q * panel row. The rows of two cells are interleaved and widened, so that one
 * instruction multiplies and adds both. This takes bytes from groups of sixteen, so a gene has another column in the panel than its sum
 * in the row.
 */
#if defined(__AVX2__) && (VECTOR == 32 || defined(__AVX512BW__))
#if VECTOR == 64
typedef __m512i ints;
typedef __m512 floats;
#define VECTOR_OP(name) _mm512_##name
#else
typedef __m256i ints;
typedef __m256 floats;
#define VECTOR_OP(name) _mm256_##name
#endif

static uint32_t panel_column(uint32_t u)
{
	uint32_t vector = u / (VECTOR / 4), lane = u % (VECTOR / 4) / 4;
	return vector / 4 * VECTOR + lane * 16 + vector % 4 * 4 + u % 4;
}

static void add_products(float *sum, const uint8_t *panel, const struct correlation_entry *e, uint32_t n)
{
	const struct correlation_entry *end = e + n;
	const ints zero = VECTOR_OP(set1_epi32)(0);
	ints a[8] = {zero, zero, zero, zero, zero, zero, zero, zero};
	do {
		const ints *p = (const ints *)(panel + (size_t)e->cell[0] * P), *r = (const ints *)(panel + (size_t)e->cell[1] * P);
		ints q = VECTOR_OP(set1_epi32)((int)e->q);
#pragma GCC unroll 2
		for (int k = 0; k < 2; k++) {
			ints low = VECTOR_OP(unpacklo_epi8)(p[k], r[k]), high = VECTOR_OP(unpackhi_epi8)(p[k], r[k]), *to = a + 4 * k;
			to[0] = VECTOR_OP(add_epi32)(to[0], VECTOR_OP(madd_epi16)(VECTOR_OP(unpacklo_epi8)(low, zero), q));
			to[1] = VECTOR_OP(add_epi32)(to[1], VECTOR_OP(madd_epi16)(VECTOR_OP(unpackhi_epi8)(low, zero), q));
			to[2] = VECTOR_OP(add_epi32)(to[2], VECTOR_OP(madd_epi16)(VECTOR_OP(unpacklo_epi8)(high, zero), q));
			to[3] = VECTOR_OP(add_epi32)(to[3], VECTOR_OP(madd_epi16)(VECTOR_OP(unpackhi_epi8)(high, zero), q));
		}
	} while (++e < end);
	floats *s = (floats *)sum;
#pragma GCC unroll 8
	for (int k = 0; k < 8; k++)
		s[k] = VECTOR_OP(add_ps)(s[k], VECTOR_OP(cvtepi32_ps)(a[k]));
}

#if VECTOR == 64
/* The same for four cells (two entries) an instruction, which takes signed bytes of q: the low one and the rest. */
typedef int32_t int32x16 __attribute__((vector_size(64))); /* GCC copies accumulators of type __m512i in every turn */

__attribute__((target("avx512vnni"))) static void add_products_vnni(
	float *sum, const uint8_t *panel, const struct correlation_entry *e, uint32_t n)
{
	const struct correlation_entry *end = e + n;
	const ints low_bytes = _mm512_set1_epi32(0x0e0c0604), high_bytes = _mm512_set1_epi32(0x0f0d0705);
	int32x16 low[8] = {0}, high[8] = {0};
	do {
		const ints *p = (const ints *)(panel + (size_t)e[0].cell[0] * P), *r = (const ints *)(panel + (size_t)e[0].cell[1] * P);
		const ints *s = (const ints *)(panel + (size_t)e[1].cell[0] * P), *t = (const ints *)(panel + (size_t)e[1].cell[1] * P);
		__mmask16 both = end - e > 1 ? 0xffff : 0x3333; /* or only the first */
		ints q = _mm512_maskz_broadcast_i32x4(both, _mm_loadu_si128((const __m128i *)e));
		ints q_low = _mm512_shuffle_epi8(q, low_bytes);
		ints q_high = _mm512_shuffle_epi8(_mm512_add_epi16(q, _mm512_set1_epi16(128)), high_bytes);
#pragma GCC unroll 2
		for (int k = 0; k < 2; k++) {
			ints a = _mm512_unpacklo_epi8(p[k], r[k]), b = _mm512_unpacklo_epi8(s[k], t[k]);
			ints c = _mm512_unpackhi_epi8(p[k], r[k]), d = _mm512_unpackhi_epi8(s[k], t[k]);
			const ints x[4] = {_mm512_unpacklo_epi16(a, b), _mm512_unpackhi_epi16(a, b), _mm512_unpacklo_epi16(c, d),
				_mm512_unpackhi_epi16(c, d)};
#pragma GCC unroll 4
			for (int i = 0; i < 4; i++) {
				int32x16 *l = low + 4 * k + i, *h = high + 4 * k + i;
				*l = (int32x16)_mm512_dpbusd_epi32((ints)*l, x[i], q_low);
				*h = (int32x16)_mm512_dpbusd_epi32((ints)*h, x[i], q_high);
			}
		}
	} while ((e += 2) < end);
	floats *s = (floats *)sum;
#pragma GCC unroll 8
	for (int k = 0; k < 8; k++)
		s[k] = _mm512_add_ps(s[k], _mm512_cvtepi32_ps((ints)(low[k] + 256 * high[k])));
}
#endif
#else
static uint32_t panel_column(uint32_t u)
{
	return u;
}

static void add_products(float *sum, const uint8_t *panel, const struct correlation_entry *e, uint32_t n)
{
	int32_t a[P] = {0};
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *p = panel + (size_t)e[i].cell[0] * P, *r = panel + (size_t)e[i].cell[1] * P;
		int32_t q0 = e[i].q & 0xffff, q1 = e[i].q >> 16;
		for (uint32_t k = 0; k < P; k++)
			a[k] += p[k] * q0 + r[k] * q1;
	}
	for (uint32_t k = 0; k < P; k++)
		sum[k] += (float)a[k];
}
#endif

static void products(float *sum, uint8_t *panel, const struct correlation_ranks *k, uint32_t u0, uint32_t nu, uint32_t v0, uint32_t nv)
{
	void (*add)(float *sum, const uint8_t *panel, const struct correlation_entry *e, uint32_t n) = add_products;
#if VECTOR == 64 && defined(__AVX512BW__)
	if (__builtin_cpu_supports("avx512vnni"))
		add = add_products_vnni;
#endif
	memset(sum, 0, (size_t)nv * P * sizeof *sum);
	for (uint32_t c = 0; c < k->chunks; c++) {
		const uint32_t *start = k->start + (size_t)c * (k->genes + 1);
		const struct correlation_entry *e = k->entry + k->chunk[c];
		memset(panel, 0, sizeof *panel * CORRELATION_CHUNK * P);
		for (uint32_t u = 0; u < nu; u++) {
			uint8_t *column = panel + panel_column(u);
			for (uint32_t i = start[u0 + u]; i < start[u0 + u + 1]; i++) { /* the first cell last: see correlation_ranks.h */
				column[(size_t)e[i].cell[1] * P] = correlation_coarse(e[i].q >> 16);
				column[(size_t)e[i].cell[0] * P] = correlation_coarse(e[i].q & 0xffff);
			}
		}
		for (uint32_t v = 0; v < nv; v++) {
			uint32_t from = start[v0 + v], n = start[v0 + v + 1] - from;
			if (n)
				add(sum + (size_t)v * P, panel, e + from, n);
		}
	}
}

const struct correlation_kernel *correlation_kernel_base(void)
{
	static const struct correlation_kernel kernel = {P, products};
	return &kernel;
}
