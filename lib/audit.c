#include "audit.h"

static int is_near(const struct graph *g, const uint32_t *token, uint32_t n, uint32_t i)
{
	uint32_t from = i < AUDIT_REACH ? 0 : i - AUDIT_REACH, to = n - i <= AUDIT_REACH ? n - 1 : i + AUDIT_REACH;
	for (uint32_t k = from; k <= to; k++)
		if (k != i && graph_find(g, token[i], token[k]) >= 0)
			return 1;
	return 0;
}

void audit_cell(struct audit *a, const struct graph *g, uint32_t nspecial, const uint32_t *token, uint32_t n, const uint16_t *position,
		uint32_t k, uint32_t structural, uint8_t *state)
{
	enum { ABSENT, VISIBLE, MASKED };
	a->cells++;
	a->masked += k;
	a->structural += structural;
	for (uint32_t i = 0; i < n; i++) {
		state[token[i]] = VISIBLE;
		a->tokens += token[i] >= nspecial;
		if (g->offset[token[i] + 1] == g->offset[token[i]])
			continue;
		a->linked++;
		a->near += (uint64_t)is_near(g, token, n, i);
	}
	for (uint32_t i = 0; i < k; i++) {
		state[token[position[i]]] = MASKED;
		a->runs += !i || position[i] != position[i - 1] + 1;
	}
	for (uint32_t i = 0; i < k; i++) {
		uint32_t u = token[position[i]];
		a->partners += g->offset[u + 1] - g->offset[u];
		for (uint64_t j = g->offset[u]; j < g->offset[u + 1]; j++) {
			a->present += state[g->neighbour[j]] != ABSENT;
			a->hits += state[g->neighbour[j]] == MASKED;
		}
	}
	for (uint32_t i = 0; i < n; i++)
		state[token[i]] = ABSENT;
}

void audit_add(struct audit *a, const struct audit *b)
{
	a->cells += b->cells;
	a->tokens += b->tokens;
	a->masked += b->masked;
	a->structural += b->structural;
	a->runs += b->runs;
	a->partners += b->partners;
	a->present += b->present;
	a->hits += b->hits;
	a->linked += b->linked;
	a->near += b->near;
}
