#include "method/correlation_ranks.h"

#include <math.h>
#include <stdlib.h>

/* r' by position, and the sums of gene j. Returns sqrt(n / D), 0 for a constant gene. */
static float rank_gene(const struct correlation_columns *x, uint32_t j, uint32_t *r, struct correlation_ranks *out)
{
	uint32_t L = x->max_len, n = x->n;
	memset(r, 0, ((size_t)L + 1) * sizeof *r);
	for (uint64_t k = x->offset[j]; k < x->offset[j + 1]; k++)
		r[x->pos[k]]++;
	uint64_t below = n - (x->offset[j + 1] - x->offset[j]) + r[L], zeros = below; /* the last position has value 0 too */
	__int128 S = 0, Q = 0;
	r[L] = 0;
	for (uint32_t pos = L; pos-- > 1;) {
		uint64_t m = r[pos];
		/* m equal values after `below` smaller ones have the ranks below + 1 ... below + m; the zeros have (zeros + 1) / 2 */
		uint64_t v = 2 * below + m + 1 - (zeros + 1);
		r[pos] = (uint32_t)v;
		S += (__int128)(m * v);
		Q += (__int128)m * v * v;
		below += m;
	}
	__int128 D = (__int128)n * Q - S * S;
	out->S[j] = (int64_t)S;
	out->D[j] = (double)D;
	out->M[j] = D > 0 ? (double)S / sqrt((double)D) : 0;
	out->wide[j] = sqrt(1 + out->M[j] * out->M[j]);
	return D > 0 ? (float)sqrt((double)n / (double)D) : 0;
}

/* The entries of gene j. */
static void fill_gene(const struct correlation_columns *x, uint32_t j, const uint32_t *r, float scale, struct correlation_ranks *out)
{
	double lost = 0;
	for (uint64_t k = x->offset[j], end = x->offset[j + 1]; k < end;) {
		uint32_t c = x->cell[k] / CORRELATION_CHUNK;
		uint32_t *to = out->entry + out->chunk[c] + out->start[(size_t)c * (x->genes + 1) + j];
		for (; k < end && x->cell[k] / CORRELATION_CHUNK == c; k++) {
			float y = scale * (float)r[x->pos[k]], half;
			*to = correlation_entry(y, x->cell[k]);
			uint32_t b = (uint32_t)correlation_half(*to++) << 16;
			memcpy(&half, &b, 4);
			lost += (double)(y - half) * (double)(y - half);
		}
	}
	out->lost[j] = sqrt(lost);
}

/* k->chunk and k->start. */
static void place_entries(struct correlation_ranks *k, const struct correlation_columns *x)
{
	size_t wide = (size_t)x->genes + 1;
#pragma omp parallel for schedule(dynamic, 16)
	for (uint32_t j = 0; j < x->genes; j++)
		for (uint64_t i = x->offset[j]; i < x->offset[j + 1]; i++)
			k->start[x->cell[i] / CORRELATION_CHUNK * wide + j + 1]++;
#pragma omp parallel for
	for (uint32_t c = 0; c < k->chunks; c++)
		for (uint32_t j = 0; j < x->genes; j++)
			k->start[c * wide + j + 1] += k->start[c * wide + j];
	for (uint32_t c = 1; c < k->chunks; c++)
		k->chunk[c] = k->chunk[c - 1] + k->start[c * wide - 1];
}

void correlation_ranks_init(struct correlation_ranks *k, const struct correlation_columns *x)
{
	size_t L = x->max_len + 1;
	uint32_t chunks = (x->n + CORRELATION_CHUNK - 1) / CORRELATION_CHUNK;
	*k = (struct correlation_ranks){.r = xcalloc(x->genes, L * sizeof *k->r),
		.D = xcalloc(x->genes, 8),
		.S = xcalloc(x->genes, 8),
		.M = xcalloc(x->genes, 8),
		.wide = xcalloc(x->genes, 8),
		.lost = xcalloc(x->genes, 8),
		.entry = xlarge(x->offset[x->genes], sizeof *k->entry),
		.chunk = xcalloc(chunks, sizeof *k->chunk),
		.start = xcalloc(chunks, ((size_t)x->genes + 1) * sizeof *k->start),
		.chunks = chunks};
	place_entries(k, x);
#pragma omp parallel for schedule(dynamic, 16)
	for (uint32_t j = 0; j < x->genes; j++) {
		float scale = rank_gene(x, j, k->r + j * L, k);
		fill_gene(x, j, k->r + j * L, scale, k);
	}
}

void correlation_ranks_release(struct correlation_ranks *k)
{
	free(k->r);
	free(k->entry);
	free(k->D);
	free(k->S);
	free(k->M);
	free(k->wide);
	free(k->lost);
	free(k->chunk);
	free(k->start);
}
