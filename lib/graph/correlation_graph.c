#include "graph/correlation_graph.h"

#include "base/clock.h"
#include "graph/correlation_screen.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- exact scores ---- */

enum certain { OPEN, OUT, IN }; /* is a pair among the `neighbours` largest |C| of a gene? */

struct pair {
	uint32_t u, v; /* as in struct correlation_pair */
	uint32_t overlap;
	float low, high, rho; /* bounds of |C|; rho over the cells with both */
	double c; /* |C|, of pairs that are open */
	uint8_t certain[2]; /* enum certain, of u and of v */
	uint8_t wanted;
};

struct scratch {
	uint16_t *where; /* [cells] position of gene u, 0 absent */
	uint16_t *a, *b; /* [cells] positions of both where both are */
	uint32_t *count, *rank; /* [2, max_len + 1]; the counts are 0 between the pairs */
};

/* Does it take C itself to choose this pair, or another one of its genes? */
static int is_open(const struct pair *p, double rho_min)
{
	return p->certain[0] == OPEN || p->certain[1] == OPEN || p->low < rho_min;
}

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

/* The sum of the products of two ranks, by the positions of n cells with both genes. */
static uint64_t sum_products(const uint16_t *a, const uint16_t *b, uint32_t n, const uint32_t *ra, const uint32_t *rb)
{
	uint64_t P = 0;
	for (uint32_t i = 0; i < n; i++)
		P += (uint64_t)ra[a[i]] * rb[b[i]];
	return P;
}

/* The positions of both genes in those of the cells `from` to `end` of the one that have the other, to a and b; returns how many. s->where:
 * the positions of the other. */
static uint32_t both(const struct scratch *s, const struct correlation_columns *x, uint64_t from, uint64_t end, uint16_t *restrict a,
	uint16_t *restrict b)
{
	const uint32_t *cell = x->cell;
	const uint16_t *pos = x->pos, *where = s->where;
	uint32_t m = 0;
#pragma GCC unroll 8
	for (uint64_t i = from; i < end; i++) {
		uint16_t w = where[cell[i]];
		a[m] = w;
		b[m] = pos[i];
		m += w != 0;
	}
	return m;
}

enum { BLOCK = 2048 }; /* cells of a gene at a time: what `both` writes is read again in the first-level cache */

static uint64_t block_end(uint64_t from, uint64_t end)
{
	return end - from < BLOCK ? end : from + BLOCK;
}

/* |C| of a pair. */
static void score(struct pair *p, const struct scratch *s, const struct correlation_columns *x, const struct correlation_ranks *k)
{
	size_t L = x->max_len + 1;
	uint64_t P = 0, end = x->offset[p->v + 1];
	for (uint64_t i = x->offset[p->v]; i < end; i = block_end(i, end)) {
		uint32_t n = both(s, x, i, block_end(i, end), s->a, s->b);
		P += sum_products(s->a, s->b, n, k->r + p->u * L, k->r + p->v * L);
	}
	__int128 num = (__int128)x->n * P - (__int128)k->S[p->u] * k->S[p->v];
	p->c = fabs((double)num / (sqrt(k->D[p->u]) * sqrt(k->D[p->v])));
}

/* Spearman over the m cells with both genes, whose positions were counted. */
static float local_rho(const struct scratch *s, uint32_t m, uint32_t L)
{
	uint32_t *ca = s->count, *cb = s->count + L + 1, *ra = s->rank, *rb = s->rank + L + 1;
	__int128 da = rank_counts(ca, ra, L, m), db = rank_counts(cb, rb, L, m), S = (__int128)m * ((uint64_t)m + 1);
	if (da <= 0 || db <= 0)
		return 0;
	return (float)((double)((__int128)m * sum_products(s->a, s->b, m, ra, rb) - S * S) / (sqrt((double)da) * sqrt((double)db)));
}

/* The overlap of a wanted pair and its weight, unless the overlap is too small. */
static void weigh(struct pair *p, const struct scratch *s, const struct correlation_columns *x, uint32_t min_overlap)
{
	uint32_t m = 0, L = x->max_len, *ca = s->count, *cb = s->count + L + 1;
	uint64_t end = x->offset[p->v + 1];
	for (uint64_t i = x->offset[p->v]; i < end; i = block_end(i, end)) {
		uint32_t n = both(s, x, i, block_end(i, end), s->a + m, s->b + m);
		for (uint32_t j = m; j < m + n; j++) {
			ca[s->a[j]]++;
			cb[s->b[j]]++;
		}
		m += n;
	}
	p->overlap = m;
	p->wanted = m && m >= min_overlap;
	if (p->wanted)
		p->rho = local_rho(s, m, L);
	else
		memset(s->count, 0, 2 * ((size_t)L + 1) * sizeof *s->count);
}

enum step { CHOOSE, WEIGH }; /* |C| of the pairs that are open; the weights of those that are wanted */

/* Pairs are in order of u, so the positions of u by cell are computed once for all its pairs. */
static void score_pairs(struct pair *pair, size_t n, enum step step, const struct correlation_columns *x, const struct correlation_ranks *k,
	const struct correlation_params *p)
{
	size_t *first = xcalloc((size_t)x->genes + 1, sizeof *first), i = 0;
	for (uint32_t u = 0; u <= x->genes; u++) {
		while (i < n && pair[i].u < u)
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
			for (uint64_t c = x->offset[u]; c < x->offset[u + 1]; c++)
				s.where[x->cell[c]] = x->pos[c];
			for (struct pair *q = pair + first[u]; q < pair + first[u + 1]; q++) {
				if (step == CHOOSE && is_open(q, p->rho_min))
					score(q, &s, x, k);
				else if (step == WEIGH && q->wanted)
					weigh(q, &s, x, p->min_overlap);
			}
			for (uint64_t c = x->offset[u]; c < x->offset[u + 1]; c++)
				s.where[x->cell[c]] = 0;
		}
		free(s.where);
		free(s.a);
		free(s.b);
		free(s.count);
		free(s.rank);
	}
	free(first);
}

/* ---- choosing edges ---- */

struct scored {
	double c; /* to sort by */
	uint32_t token; /* of the other gene */
	int side; /* which of the two genes has the pair */
	struct pair *pair;
};

static int by_score_down(const void *a, const void *b)
{
	const struct scored *p = a, *q = b;
	if (p->c != q->c)
		return p->c < q->c ? 1 : -1;
	return (p->token > q->token) - (p->token < q->token);
}

/* The pairs of each gene, s[offset[g] .. offset[g + 1]), malloced. */
static struct scored *pairs_of_genes(struct pair *pair, size_t n, const struct correlation_columns *x, size_t **offset)
{
	size_t *at = *offset = xcalloc((size_t)x->genes + 2, sizeof *at);
	struct scored *s = xcalloc(2 * n, sizeof *s);
	for (size_t i = 0; i < n; i++) {
		at[pair[i].u + 2]++;
		at[pair[i].v + 2]++;
	}
	for (uint32_t g = 0; g < x->genes; g++)
		at[g + 2] += at[g + 1];
	for (size_t i = 0; i < n; i++) {
		s[at[pair[i].u + 1]++] = (struct scored){.token = x->token[pair[i].v], .side = 0, .pair = &pair[i]};
		s[at[pair[i].v + 1]++] = (struct scored){.token = x->token[pair[i].u], .side = 1, .pair = &pair[i]};
	}
	return s;
}

/* What the bounds say about the n pairs of a gene: among its k largest are those above the bounds of all but k, not those below k others. */
static void decide(struct scored *s, size_t n, size_t k)
{
	double most = -1, least = -1; /* the k-th largest low, the (k + 1)-th largest high */
	for (size_t i = 0; i < n; i++)
		s[i].c = (double)s[i].pair->low;
	qsort(s, n, sizeof *s, by_score_down);
	if (n >= k)
		least = s[k - 1].c;
	for (size_t i = 0; i < n; i++)
		s[i].c = (double)s[i].pair->high;
	qsort(s, n, sizeof *s, by_score_down);
	if (n > k)
		most = s[k].c;
	for (size_t i = 0; i < n; i++) {
		struct pair *p = s[i].pair;
		p->certain[s[i].side] = (double)p->low > most ? IN : (double)p->high < least ? OUT : OPEN;
	}
}

/* Mark the pairs that are among the first k of this gene. */
static void choose(struct scored *s, size_t n, size_t k, double rho_min)
{
	for (size_t i = 0; i < n; i++)
		s[i].c = s[i].pair->certain[s[i].side] == IN ? 2 : s[i].pair->certain[s[i].side] == OUT ? -1 : s[i].pair->c;
	qsort(s, n, sizeof *s, by_score_down);
	for (size_t i = 0; i < n && i < k; i++)
		s[i].pair->wanted |= s[i].pair->low >= rho_min || s[i].pair->c >= rho_min;
}

/* Mark the wanted pairs and give them their weights. C is computed of those alone that the bounds leave open. */
static void choose_pairs(struct pair *pair, size_t n, const struct correlation_columns *x, const struct correlation_ranks *k,
	const struct correlation_params *p)
{
	size_t *offset;
	struct scored *s = pairs_of_genes(pair, n, x, &offset);
	for (uint32_t g = 0; g < x->genes; g++)
		decide(s + offset[g], offset[g + 1] - offset[g], p->neighbours);
	score_pairs(pair, n, CHOOSE, x, k, p);
	for (uint32_t g = 0; g < x->genes; g++)
		choose(s + offset[g], offset[g + 1] - offset[g], p->neighbours, p->rho_min);
	free(offset);
	free(s);
	score_pairs(pair, n, WEIGH, x, k, p);
}

static int by_token(const void *a, const void *b)
{
	const struct edge *p = a, *q = b;
	return p->u != q->u ? (p->u > q->u) - (p->u < q->u) : (p->v > q->v) - (p->v < q->v);
}

struct edge *correlation_edges(
	const struct correlation_columns *x, const struct correlation_params *p, size_t *n, struct correlation_stats *stats)
{
	struct correlation_ranks k;
	double start = clock_seconds();
	correlation_ranks_init(&k, x);
	size_t npair, m = 0;
	struct correlation_pair *screened = correlation_screen(&k, p->neighbours, p->rho_min, &npair);
	struct pair *pair = xcalloc(npair, sizeof *pair);
	for (size_t i = 0; i < npair; i++)
		pair[i] = (struct pair){.u = screened[i].u, .v = screened[i].v, .low = screened[i].low, .high = screened[i].high};
	free(screened);
	double half = clock_seconds();
	choose_pairs(pair, npair, x, &k, p);
	struct edge *edge = xcalloc(npair, sizeof *edge);
	for (size_t i = 0; i < npair; i++) {
		if (!pair[i].wanted || (p->positive && pair[i].rho < 0))
			continue;
		uint32_t a = x->token[pair[i].u], b = x->token[pair[i].v];
		edge[m++] = (struct edge){a < b ? a : b, a < b ? b : a, pair[i].rho, pair[i].overlap};
	}
	qsort(edge, m, sizeof *edge, by_token);
	free(pair);
	correlation_ranks_release(&k);
	*n = m;
	*stats = (struct correlation_stats){npair, half - start, clock_seconds() - half};
	return edge;
}
