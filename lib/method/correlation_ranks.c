#include "method/correlation_ranks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void rank_gene(const struct correlation_columns *x, uint32_t j, uint32_t *r, struct correlation_ranks *out)
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
	float scale = D > 0 ? (float)sqrt((double)n / (double)D) : 0;
	uint32_t *chunk = out->chunk + (size_t)j * (out->chunks + 1), c = 0;
	uint64_t k = x->offset[j], end = x->offset[j + 1];
	for (; k < end; k++) {
		while (c <= x->cell[k] / CORRELATION_CHUNK)
			chunk[c++] = (uint32_t)(k - x->offset[j]);
		out->y[k] = scale * (float)r[x->pos[k]];
	}
	while (c <= out->chunks)
		chunk[c++] = (uint32_t)(end - x->offset[j]);
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
		.y = xlarge(x->offset[x->genes], sizeof *k->y),
		.chunk = xcalloc(x->genes, (chunks + 1) * sizeof *k->chunk),
		.chunks = chunks};
#pragma omp parallel for schedule(dynamic, 16)
	for (uint32_t j = 0; j < x->genes; j++)
		rank_gene(x, j, k->r + j * L, k);
}

void correlation_ranks_release(struct correlation_ranks *k)
{
	free(k->r);
	free(k->y);
	free(k->D);
	free(k->S);
	free(k->M);
	free(k->wide);
	free(k->chunk);
}
