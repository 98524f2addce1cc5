#include "mask/audit.h"

enum { ABSENT, VISIBLE, MASKED };

/* How far apart neighbours are in the rank order. state is VISIBLE for all tokens of the cell. */
static void audit_order(struct audit *a, const struct graph *g, const uint32_t *token, uint32_t n, const uint8_t *state)
{
	uint32_t first = UINT32_MAX; /* the smallest end of all pairs that begin at i or later */
	uint64_t ends = 0;
	for (uint32_t i = n; i-- > 0;) {
		uint32_t u = token[i], to = n - i <= AUDIT_REACH ? n - 1 : i + AUDIT_REACH, near = 0;
		if (g->offset[u + 1] > g->offset[u]) {
			for (uint32_t k = i < AUDIT_REACH ? 0 : i - AUDIT_REACH; k <= to; k++) {
				if (k == i || graph_find(g, u, token[k]) < 0)
					continue;
				near = 1;
				a->close_pairs += k > i;
				first = k > i && k < first ? k : first;
			}
			for (uint64_t j = g->offset[u]; j < g->offset[u + 1]; j++)
				ends += state[g->neighbour[j]] != ABSENT;
		}
		a->near += near;
		if (n - i >= AUDIT_REACH) {
			a->grams++;
			a->grams_with_pair += first - i < AUDIT_REACH;
		}
	}
	a->pairs += ends / 2;
}

static int has_partners(const struct graph *g, uint32_t token)
{
	return g->offset[token + 1] > g->offset[token];
}

void audit_rates(
	struct audit *a, const struct graph *g, uint32_t nspecial, const uint32_t *token, uint32_t n, const uint16_t *position, uint32_t k)
{
	a->masked += k;
	for (uint32_t i = 0; i < n; i++) {
		a->tokens += token[i] >= nspecial;
		a->linked += has_partners(g, token[i]);
	}
	for (uint32_t i = 0; i < k; i++)
		a->linked_masked += has_partners(g, token[position[i]]);
}

void audit_cell(struct audit *a, const struct graph *g, uint32_t nspecial, const uint32_t *token, uint32_t n, const uint16_t *position,
	uint32_t k, uint32_t structural, uint8_t *state)
{
	a->cells++;
	a->structural += structural;
	audit_rates(a, g, nspecial, token, n, position, k);
	for (uint32_t i = 0; i < n; i++)
		state[token[i]] = VISIBLE;
	audit_order(a, g, token, n, state);
	for (uint32_t i = 0; i < k; i++) {
		state[token[position[i]]] = MASKED;
		a->runs += !i || position[i] != position[i - 1] + 1;
	}
	for (uint32_t i = 0; i < k; i++) {
		uint32_t u = token[position[i]];
		uint64_t before = a->hits;
		a->partners += g->offset[u + 1] - g->offset[u];
		for (uint64_t j = g->offset[u]; j < g->offset[u + 1]; j++) {
			a->present += state[g->neighbour[j]] != ABSENT;
			a->hits += state[g->neighbour[j]] == MASKED;
		}
		a->hit += a->hits > before;
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
	a->hit += b->hit;
	a->linked += b->linked;
	a->linked_masked += b->linked_masked;
	a->near += b->near;
	a->grams += b->grams;
	a->grams_with_pair += b->grams_with_pair;
	a->pairs += b->pairs;
	a->close_pairs += b->close_pairs;
}

static double ratio(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : NAN;
}

double audit_rate_linked(const struct audit *a)
{
	return ratio(a->linked_masked, a->linked);
}

double audit_rate_others(const struct audit *a)
{
	return ratio(a->masked - a->linked_masked, a->tokens - a->linked);
}

char *audit_table(const struct audit *a)
{
	const struct {
		const char *name;
		double value;
	} metric[] = {
		{"masking_rate", ratio(a->masked, a->tokens)},
		{"masking_rate_linked", audit_rate_linked(a)},
		{"masking_rate_others", audit_rate_others(a)},
		{"structural_share", ratio(a->structural, a->masked)},
		{"mean_span", ratio(a->masked, a->runs)},
		{"pair_span", ratio(2 * a->present, 2 * a->present - a->hits)},
		{"hit_rate_present", ratio(a->hits, a->present)},
		{"hit_rate", ratio(a->hits, a->partners)},
		{"hit_tokens", ratio(a->hit, a->tokens)},
		{"neighbour_within_5", ratio(a->near, a->tokens)},
		{"neighbour_within_5_linked", ratio(a->near, a->linked)},
		{"grams_5_with_pair", ratio(a->grams_with_pair, a->grams)},
		{"pairs_within_5", ratio(a->close_pairs, a->pairs)},
	};
	char *text = xasprintf("metric\tvalue\ncells\t%llu\ntokens\t%llu\nmasked\t%llu\n", (unsigned long long)a->cells,
		(unsigned long long)a->tokens, (unsigned long long)a->masked);
	for (size_t i = 0; i < sizeof metric / sizeof *metric; i++)
		xappend(&text, "%s\t%.6f\n", metric[i].name, metric[i].value);
	return text;
}
