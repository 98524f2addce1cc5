#include "eval/pair_sets.h"

#include "base/error.h"
#include "base/rng.h"
#include "base/sort.h"
#include "eval/bootstrap.h"

void pair_sets_init(struct pair_sets *s, size_t n, const uint64_t *start, const uint32_t *member, size_t sets)
{
	*s = (struct pair_sets){.n = n};
	for (size_t k = 0; k < sets; k++)
		s->pairs += (start[k + 1] - start[k]) * (start[k + 1] - start[k] - 1) / 2;
	s->pair = xmalloc((s->pairs + 1) * sizeof *s->pair);
	s->pairs = 0;
	for (size_t k = 0; k < sets; k++)
		for (uint64_t i = start[k]; i < start[k + 1]; i++)
			for (uint64_t j = start[k]; j < i; j++)
				s->pair[s->pairs++] = (uint64_t)member[j] << 32 | member[i];
	qsort(s->pair, s->pairs, sizeof *s->pair, compare_u64);
	size_t kept = 0;
	for (size_t i = 0; i < s->pairs; i++)
		if (!kept || s->pair[kept - 1] != s->pair[i])
			s->pair[kept++] = s->pair[i];
	s->pairs = kept;
	s->together = xcalloc(s->n * s->n / 8 + 1, 1);
	for (size_t i = 0; i < kept; i++) {
		size_t u = s->pair[i] >> 32, v = (uint32_t)s->pair[i], at[] = {u * s->n + v, v * s->n + u};
		for (int k = 0; k < 2; k++)
			s->together[at[k] / 8] |= (uint8_t)(1 << at[k] % 8);
	}
}

void pair_sets_release(struct pair_sets *s)
{
	free_all(s->pair, s->together);
	*s = (struct pair_sets){0};
}

static int share_a_set(const struct pair_sets *s, size_t u, size_t v)
{
	size_t at = u * s->n + v;
	return s->together[at / 8] >> at % 8 & 1;
}

COMPARE(by_weight, struct pair_edge, ORDER(b->weight, a->weight) ?: ORDER(a->u, b->u) ?: ORDER(a->v, b->v))

void pair_edges_sort(struct pair_edge *edge, size_t n)
{
	qsort(edge, n, sizeof *edge, by_weight);
}

void pair_edges_mark(const struct pair_sets *s, struct pair_edge *edge, size_t n)
{
	for (size_t i = 0; i < n; i++)
		edge[i].shared = share_a_set(s, edge[i].u, edge[i].v);
}

/* A pair counts times[u] times[v]. All other pairs have the weight 0, between positive and negative ones; equal weights are half right. */
static void score_times(struct pair_scores *r, const struct pair_sets *s, const struct pair_edge *edge, size_t n, const double *times)
{
	double all = 0, square = 0, shared = 0, edge_all = 0, edge_shared = 0, right = 0;
	for (size_t i = 0; i < s->n; i++) {
		all += times[i];
		square += times[i] * times[i];
	}
	for (size_t i = 0; i < s->pairs; i++)
		shared += times[s->pair[i] >> 32] * times[(uint32_t)s->pair[i]];
	for (size_t i = 0; i < n; i++) {
		edge_all += times[edge[i].u] * times[edge[i].v];
		edge_shared += edge[i].shared ? times[edge[i].u] * times[edge[i].v] : 0;
	}
	all = (all * all - square) / 2;
	double others = all - shared, seen = 0; /* pairs of no set; of these, above the pairs at i */
	int rest = 0; /* the pairs without an edge have had their place */
	for (size_t i = 0, j = 0; i < n || !rest; i = j) {
		double yes = 0, no = 0;
		int zero = i == n || edge[i].weight <= 0;
		if (!rest && zero) {
			yes = shared - edge_shared;
			no = others - (edge_all - edge_shared);
			rest = 1;
			for (j = i; j < n && edge[j].weight == 0; j++) /* NOLINT: an edge of weight 0 is like none */
				*(edge[j].shared ? &yes : &no) += times[edge[j].u] * times[edge[j].v];
		} else {
			for (j = i; j < n && edge[j].weight == edge[i].weight; j++) /* NOLINT: equal weights */
				*(edge[j].shared ? &yes : &no) += times[edge[j].u] * times[edge[j].v];
		}
		right += yes * (others - seen - no / 2);
		seen += no;
	}
	r->auroc = right / (shared * others);
	r->fold = edge_shared / edge_all / (shared / all);
	r->shared = edge_shared;
}

static double quantile(double *v, size_t n, double q)
{
	return n < 2 ? (double)NAN : bootstrap_quantile(v, n, q);
}

static void intervals(struct pair_scores *r, const struct pair_sets *s, const struct pair_edge *edge, size_t n, size_t draws, uint32_t seed)
{
	FREED double *auroc = xmalloc(draws * sizeof *auroc), *fold = xmalloc(draws * sizeof *fold), *times = xmalloc(s->n * sizeof *times);
	size_t na = 0, nf = 0;
	for (uint64_t k = 0; k < draws; k++) {
		struct rng g = rng_at(seed, RNG_BOOTSTRAP, k, 0);
		struct pair_scores one;
		memset(times, 0, s->n * sizeof *times);
		for (size_t i = 0; i < s->n; i++)
			times[rng_below(&g, (uint32_t)s->n)]++;
		score_times(&one, s, edge, n, times);
		if (isfinite(one.auroc))
			auroc[na++] = one.auroc;
		if (isfinite(one.fold))
			fold[nf++] = one.fold;
	}
	r->auroc_low = quantile(auroc, na, 0.025);
	r->auroc_high = quantile(auroc, na, 0.975);
	r->fold_low = quantile(fold, nf, 0.025);
	r->fold_high = quantile(fold, nf, 0.975);
}

static double permuted(const struct pair_sets *s, const struct pair_edge *edge, size_t n, double shared, size_t draws, uint32_t seed)
{
	FREED uint32_t *to = xcalloc(s->n, sizeof *to);
	size_t hits = 1;
	for (uint64_t k = 0; k < draws; k++) {
		struct rng g = rng_at(seed, RNG_TEST, k, 1);
		size_t inside = 0;
		rng_order(&g, to, (uint32_t)s->n);
		for (size_t i = 0; i < n; i++)
			inside += (size_t)share_a_set(s, to[edge[i].u], to[edge[i].v]);
		hits += (double)inside >= shared;
	}
	return n ? (double)hits / (double)(draws + 1) : NAN;
}

void pair_sets_score(struct pair_scores *r, const struct pair_sets *s, const struct pair_edge *edge, size_t n, size_t draws, uint32_t seed)
{
	FREED double *one = xmalloc(s->n * sizeof *one);
	for (size_t i = 0; i < s->n; i++)
		one[i] = 1;
	score_times(r, s, edge, n, one);
	intervals(r, s, edge, n, draws, seed);
	r->p = permuted(s, edge, n, r->shared, draws, seed);
}
