#include "graph/correlation_ranks.h"

enum { CHUNKS = CORRELATION_PART / CORRELATION_CHUNK }; /* of a part */

/* r' by position, the largest r' of a cell, and the sums of gene j. Returns sqrt(n / D), 0 for a constant gene. */
static double rank_gene(const struct correlation_columns *x, uint32_t j, uint32_t *r, uint32_t *most, struct correlation_ranks *out)
{
	uint32_t L = x->max_len, n = x->n;
	memset(r, 0, ((size_t)L + 1) * sizeof *r);
	uint64_t first = correlation_column(x, j), end = correlation_column(x, j + 1);
	for (uint64_t k = first; k < end; k++)
		r[x->pos[k]]++;
	uint64_t below = n - (end - first) + r[L], zeros = below; /* the last position has value 0 too */
	__int128 S = 0, Q = 0;
	r[L] = 0;
	*most = 1;
	for (uint32_t pos = L; pos-- > 1;) {
		uint64_t m = r[pos];
		/* m equal values after `below` smaller ones have the ranks below + 1 ... below + m; the zeros have (zeros + 1) / 2 */
		uint64_t v = 2 * below + m + 1 - (zeros + 1);
		r[pos] = (uint32_t)v;
		S += (__int128)(m * v);
		Q += (__int128)m * v * v;
		below += m;
		if (m)
			*most = (uint32_t)v;
	}
	__int128 D = (__int128)n * Q - S * S;
	out->S[j] = (int64_t)S;
	out->D[j] = (double)D;
	return D > 0 ? sqrt((double)n / (double)D) : 0;
}

/* What a rounding of n numbers is: q, of a step in y each, in all `sum`; error: the sum of the squares of what it lost, in steps. */
static struct correlation_rounding rounding(double step, uint64_t sum, double error, uint32_t n)
{
	return (struct correlation_rounding){step, step * (double)sum / sqrt(n), step * sqrt(error)};
}

/* The entries of gene j. */
static void fill_gene(
	const struct correlation_columns *x, uint32_t j, const uint32_t *r, uint32_t most, double scale, struct correlation_ranks *out)
{
	double steps = (double)CORRELATION_Q / most, error = 0, coarse_error = 0;
	uint64_t sum = 0, coarse_sum = 0;
	size_t part = (size_t)j * x->parts;
	for (uint64_t k = x->offset[part], end; part < ((size_t)j + 1) * x->parts; part += k == end) {
		if (k == (end = x->offset[part + 1]))
			continue;
		uint32_t in = x->cell[k] / CORRELATION_CHUNK, odd = 0, c = (uint32_t)(part % x->parts) * CHUNKS + in;
		struct correlation_entry *to = out->entry + out->chunk[c] + out->start[(size_t)c * (x->genes + 1) + j];
		for (; k < end && x->cell[k] / CORRELATION_CHUNK == in; k++, odd ^= 1) {
			double y = steps * r[x->pos[k]];
			uint32_t q = (uint32_t)(y + .5), coarse = correlation_coarse(q), cell = x->cell[k] % CORRELATION_CHUNK;
			sum += q;
			coarse_sum += coarse;
			error += (y - q) * (y - q);
			coarse_error += (y / CORRELATION_COARSE - coarse) * (y / CORRELATION_COARSE - coarse);
			if (odd) {
				to->cell[1] = (uint16_t)cell;
				to++->q |= q << 16;
			} else {
				*to = (struct correlation_entry){{(uint16_t)cell, (uint16_t)cell}, q};
			}
		}
	}
	out->fine[j] = rounding(scale / steps, sum, error, x->n);
	out->coarse[j] = rounding(scale / steps * CORRELATION_COARSE, coarse_sum, coarse_error, x->n);
}

/* k->chunk and k->start. */
static void place_entries(struct correlation_ranks *k, const struct correlation_columns *x)
{
	size_t wide = (size_t)x->genes + 1;
#pragma omp parallel for schedule(dynamic, 16)
	for (uint32_t j = 0; j < x->genes; j++)
		for (uint32_t part = 0; part < x->parts; part++)
			for (uint64_t i = x->offset[(size_t)j * x->parts + part]; i < x->offset[(size_t)j * x->parts + part + 1]; i++)
				k->start[(part * CHUNKS + x->cell[i] / CORRELATION_CHUNK) * wide + j + 1]++;
#pragma omp parallel for
	for (uint32_t c = 0; c < k->chunks; c++)
		for (uint32_t j = 0; j < x->genes; j++)
			k->start[c * wide + j + 1] = k->start[c * wide + j] + (k->start[c * wide + j + 1] + 1) / 2;
	for (uint32_t c = 0; c < k->chunks; c++)
		k->chunk[c + 1] = k->chunk[c] + k->start[(c + 1) * wide - 1];
}

void correlation_ranks_init(struct correlation_ranks *k, const struct correlation_columns *x)
{
	size_t L = x->max_len + 1;
	uint32_t chunks = (x->n + CORRELATION_CHUNK - 1) / CORRELATION_CHUNK;
	*k = (struct correlation_ranks){.r = xcalloc(x->genes, L * sizeof *k->r),
		.D = xcalloc(x->genes, 8),
		.S = xcalloc(x->genes, 8),
		.fine = xcalloc(x->genes, sizeof *k->fine),
		.coarse = xcalloc(x->genes, sizeof *k->coarse),
		.chunk = xcalloc((size_t)chunks + 1, sizeof *k->chunk),
		.start = xcalloc(chunks, ((size_t)x->genes + 1) * sizeof *k->start),
		.chunks = chunks,
		.genes = x->genes};
	place_entries(k, x);
	k->entry = xlarge(k->chunk[chunks] + 1, sizeof *k->entry);
	k->entry[k->chunk[chunks]] = (struct correlation_entry){{0, 0}, 0};
#pragma omp parallel for schedule(dynamic, 16)
	for (uint32_t j = 0; j < x->genes; j++) {
		uint32_t most;
		double scale = rank_gene(x, j, k->r + j * L, &most, k);
		fill_gene(x, j, k->r + j * L, most, scale, k);
	}
}

void correlation_ranks_release(struct correlation_ranks *k)
{
	free_all(k->r, k->entry, k->D, k->S, k->fine, k->coarse, k->chunk, k->start);
}
