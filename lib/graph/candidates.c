#include "graph/candidates.h"

#include "base/error.h"
#include "base/sort.h"

#include <omp.h>

struct candidate {
	uint32_t v;
	float low, high; /* bounds of the score */
};

struct candidate_list {
	struct candidate *at;
	size_t n, cap;
	float least; /* a lower score is not needed */
	omp_lock_t lock;
};

COMPARE(by_low_down, struct candidate, ORDER(b->low, a->low))

static void prune(struct candidate_list *c, uint32_t most)
{
	if (c->n < most || !most)
		return;
	qsort(c->at, c->n, sizeof *c->at, by_low_down);
	float t = c->at[most - 1].low;
	if (t > c->least)
		__atomic_store(&c->least, &t, __ATOMIC_RELAXED);
	size_t n = 0;
	for (size_t i = 0; i < c->n; i++)
		if (c->at[i].high >= c->least)
			c->at[n++] = c->at[i];
	c->n = n;
}

static void offer(struct candidate_list *c, uint32_t v, float low, float high, uint32_t most)
{
	float least;
	__atomic_load(&c->least, &least, __ATOMIC_RELAXED);
	if (high < least)
		return;
	omp_set_lock(&c->lock);
	if (high >= c->least) {
		if (c->n == c->cap) {
			prune(c, most);
			if (c->n * 4 >= c->cap * 3)
				grow(c->at, c->cap, c->cap + most + 64);
		}
		c->at[c->n++] = (struct candidate){v, low, high};
	}
	omp_unset_lock(&c->lock);
}

void candidates_offer(struct candidates *c, uint32_t u, uint32_t v, float low, float high)
{
	offer(&c->list[u], v, low, high, c->most);
	offer(&c->list[v], u, low, high, c->most);
}

void candidates_init(struct candidates *c, uint32_t genes, uint32_t most, float least)
{
	*c = (struct candidates){genes, most, xcalloc(genes, sizeof *c->list)};
	for (uint32_t g = 0; g < genes; g++) {
		omp_init_lock(&c->list[g].lock);
		c->list[g].least = least;
	}
}

struct gene_pair *candidates_pairs(struct candidates *c, size_t *n)
{
	size_t total = 0, k = 0;
	for (uint32_t g = 0; g < c->genes; g++) {
		prune(&c->list[g], c->most);
		total += c->list[g].n;
	}
	struct gene_pair *p = xcalloc(total, sizeof *p);
	for (uint32_t g = 0; g < c->genes; g++) {
		for (size_t i = 0; i < c->list[g].n; i++, k++) {
			uint32_t v = c->list[g].at[i].v;
			p[k] = (struct gene_pair){g < v ? g : v, g < v ? v : g};
		}
		omp_destroy_lock(&c->list[g].lock);
		free(c->list[g].at);
	}
	free(c->list);
	qsort(p, total, sizeof *p, compare_two_u32);
	for (size_t i = *n = 0; i < total; i++)
		if (!i || compare_two_u32(&p[i], &p[i - 1]))
			p[(*n)++] = p[i];
	return p;
}

struct scored {
	double score;
	uint32_t token; /* of the other gene */
	size_t pair;
};

COMPARE(by_score_down, struct scored, ORDER(b->score, a->score) ?: ORDER(a->token, b->token))

uint8_t *candidates_best(const struct gene_pair *pair, const double *score, size_t n, const uint32_t *token, uint32_t genes, uint32_t most)
{
	FREED uint64_t *offset = xcalloc((size_t)genes + 2, sizeof *offset);
	FREED struct scored *s = xcalloc(2 * n, sizeof *s);
	uint8_t *best = xcalloc(n, 1);
	for (size_t i = 0; i < n; i++) {
		offset[pair[i].u + 2]++;
		offset[pair[i].v + 2]++;
	}
	for (uint32_t g = 0; g < genes; g++)
		offset[g + 2] += offset[g + 1];
	for (size_t i = 0; i < n; i++) {
		s[offset[pair[i].u + 1]++] = (struct scored){score[i], token[pair[i].v], i};
		s[offset[pair[i].v + 1]++] = (struct scored){score[i], token[pair[i].u], i};
	}
	for (uint32_t g = 0; g < genes; g++) {
		struct scored *at = s + offset[g];
		size_t have = offset[g + 1] - offset[g];
		qsort(at, have, sizeof *at, by_score_down);
		for (size_t i = 0; i < have && i < most; i++)
			best[at[i].pair] = 1;
	}
	return best;
}
