#include "graph/correlation_graph.h"

#include "base/clock.h"
#include "base/sort.h"
#include "graph/correlation_screen.h"

/* ---- exact scores ---- */

struct pair {
	uint32_t overlap;
	float rho; /* over those cells */
	float pooled; /* C */
};

struct scratch {
	uint16_t *where; /* [cells] position of gene u, 0 absent */
	uint16_t *a, *b; /* [cells] positions of both where both are */
	uint32_t *count, *rank; /* [2, max_len + 1]; the counts are 0 between the pairs */
};

/* Doubled average ranks by position, and n Q - S^2, from the counts by position, which become 0. (Both genes are ranked by position instead
 * of by value, which is the reverse order and gives the same correlation.) Q is at most 4 m^3 < 2^64, see CORRELATION_CELLS_MAX. */
static __int128 rank_counts(uint32_t *restrict count, uint32_t *restrict rank, uint32_t L, uint64_t m)
{
	uint64_t below = 0, Q = 0, S = m * (m + 1);
	for (uint32_t pos = 1; pos <= L; pos++) {
		uint64_t v = 2 * below + count[pos] + 1;
		rank[pos] = (uint32_t)v;
		Q += count[pos] * v * v;
		below += count[pos];
		count[pos] = 0;
	}
	return (__int128)m * Q - (__int128)S * S;
}

/* The sum of the products of two ranks, by the positions of the m cells with both genes. */
static uint64_t sum_products(const struct scratch *s, uint32_t m, const uint32_t *ra, const uint32_t *rb)
{
	uint64_t P = 0;
	for (uint32_t i = 0; i < m; i++)
		P += (uint64_t)ra[s->a[i]] * rb[s->b[i]];
	return P;
}

/* Spearman over the m cells with both genes. */
static float local_rho(struct scratch *s, uint32_t m, uint32_t L)
{
	uint32_t *ca = s->count, *cb = s->count + L + 1, *ra = s->rank, *rb = s->rank + L + 1;
	for (uint32_t i = 0; i < m; i++) {
		ca[s->a[i]]++;
		cb[s->b[i]]++;
	}
	__int128 da = rank_counts(ca, ra, L, m), db = rank_counts(cb, rb, L, m), S = (__int128)m * ((uint64_t)m + 1);
	if (da <= 0 || db <= 0)
		return 0;
	return (float)((double)((__int128)m * sum_products(s, m, ra, rb) - S * S) / (sqrt((double)da) * sqrt((double)db)));
}

/* The positions of both genes in the cells that have both, to s->a and s->b; returns how many. s->where: the positions of the one, v: the
 * other. */
static uint32_t both(struct scratch *s, const struct correlation_columns *x, uint32_t v)
{
	const uint16_t *cell = x->cell, *pos = x->pos;
	const uint64_t *offset = x->offset + (size_t)v * x->parts;
	uint16_t *restrict a = s->a, *restrict b = s->b;
	uint32_t m = 0;
	for (uint32_t part = 0; part < x->parts; part++) {
		const uint16_t *where = s->where + part * CORRELATION_PART;
#pragma GCC unroll 8
		for (uint64_t i = offset[part], end = offset[part + 1]; i < end; i++) {
			uint16_t w = where[cell[i]];
			a[m] = w;
			b[m] = pos[i];
			m += w != 0;
		}
	}
	return m;
}

/* Returns |C|. */
static double correlation_score(struct pair *p, struct gene_pair of, struct scratch *s, const struct correlation_columns *x,
	const struct correlation_ranks *k, const struct correlation_params *par)
{
	size_t L = x->max_len + 1;
	p->overlap = both(s, x, of.v);
	uint64_t P = sum_products(s, p->overlap, k->r + of.u * L, k->r + of.v * L);
	__int128 num = (__int128)x->n * P - (__int128)k->S[of.u] * k->S[of.v];
	double c = (double)num / (sqrt(k->D[of.u]) * sqrt(k->D[of.v]));
	p->pooled = (float)c;
	if (p->overlap >= par->min_overlap && p->overlap && fabs(c) >= par->rho_min)
		p->rho = local_rho(s, p->overlap, x->max_len);
	return fabs(c);
}

/* The positions of gene u by cell, or 0 again in its cells. */
static void place(uint16_t *where, const struct correlation_columns *x, uint32_t u, int there)
{
	for (uint32_t part = 0; part < x->parts; part++)
		for (uint64_t i = x->offset[(size_t)u * x->parts + part]; i < x->offset[(size_t)u * x->parts + part + 1]; i++)
			where[part * CORRELATION_PART + x->cell[i]] = there ? x->pos[i] : 0;
}

/* Pairs are in order of u, so the positions of u by cell are computed once for all its pairs. */
static void score_pairs(struct pair *pair, double *score, const struct gene_pair *of, size_t n, const struct correlation_columns *x,
	const struct correlation_ranks *k, const struct correlation_params *p)
{
	size_t *first = xcalloc((size_t)x->genes + 1, sizeof *first), i = 0;
	for (uint32_t u = 0; u <= x->genes; u++) {
		while (i < n && of[i].u < u)
			i++;
		first[u] = i;
	}
#pragma omp parallel
	{
		size_t L = x->max_len + 1;
		struct scratch s = {
			xcalloc(x->n, 2), xcalloc((size_t)x->n + 1, 2), xcalloc((size_t)x->n + 1, 2), xcalloc(2 * L, 4), xcalloc(2 * L, 4)};
#pragma omp for schedule(dynamic)
		for (uint32_t u = 0; u < x->genes; u++) {
			if (first[u] == first[u + 1])
				continue;
			place(s.where, x, u, 1);
			for (size_t j = first[u]; j < first[u + 1]; j++)
				score[j] = correlation_score(&pair[j], of[j], &s, x, k, p);
			place(s.where, x, u, 0);
		}
		free_all(s.where, s.a, s.b, s.count, s.rank);
	}
	free(first);
}

struct edge *correlation_edges(
	const struct correlation_columns *x, const struct correlation_params *p, size_t *n, struct correlation_stats *stats)
{
	struct correlation_ranks k;
	double start = clock_seconds();
	correlation_ranks_init(&k, x);
	size_t npair, m = 0;
	FREED struct gene_pair *of = correlation_screen(&k, p->neighbours, p->rho_min, &npair);
	FREED struct pair *pair = xcalloc(npair, sizeof *pair);
	FREED double *score = xcalloc(npair, sizeof *score);
	double half = clock_seconds();
	score_pairs(pair, score, of, npair, x, &k, p);
	FREED uint8_t *best = candidates_best(of, score, npair, x->token, x->genes, p->neighbours);
	struct edge *edge = xcalloc(npair, sizeof *edge);
	for (size_t i = 0; i < npair; i++) {
		if (!best[i] || score[i] < p->rho_min || pair[i].overlap < p->min_overlap || !pair[i].overlap ||
			(p->positive && pair[i].rho < 0))
			continue;
		uint32_t a = x->token[of[i].u], b = x->token[of[i].v];
		edge[m++] = (struct edge){a < b ? a : b, a < b ? b : a, pair[i].rho, pair[i].overlap, {pair[i].pooled}};
	}
	qsort(edge, m, sizeof *edge, compare_two_u32);
	correlation_ranks_release(&k);
	*n = m;
	*stats = (struct correlation_stats){npair, half - start, clock_seconds() - half};
	return edge;
}
