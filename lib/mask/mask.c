#include "mask/mask.h"

#include "base/rng.h"

struct masker {
	struct mask_plan plan;
	uint16_t pos[MASK_ROW_MAX]; /* maskable positions, then shuffled in place */
	uint16_t seeds[MASK_ROW_MAX];
	uint16_t partner[MASK_ROW_MAX + 1]; /* positions of the seed's present neighbours */
	double weight[MASK_ROW_MAX + 1]; /* their weights */
	uint32_t length[MASK_ROW_MAX]; /* of the span that starts at a position */
	uint64_t bit[MASK_ROW_MAX / 64]; /* the mask */
	uint32_t count; /* bits set */
	uint32_t *where; /* [vocab] stamp << 16 | position: of a token in this cell */
	uint32_t stamp;
};

struct masker *masker_new(const struct mask_plan *plan)
{
	struct masker *m = xcalloc(1, sizeof *m);
	m->plan = *plan;
	if (plan->graph)
		m->where = xcalloc(plan->vocab, sizeof *m->where);
	return m;
}

void masker_free(struct masker *m)
{
	if (m)
		free(m->where);
	free(m);
}

static int is_set(const struct masker *m, uint32_t p)
{
	return m->bit[p / 64] >> p % 64 & 1;
}

static void set(struct masker *m, uint32_t p)
{
	uint64_t one = 1ull << p % 64;
	m->count += !(m->bit[p / 64] & one);
	m->bit[p / 64] |= one;
}

/* Step i of a Fisher-Yates shuffle from the front: p[i] becomes a uniform choice among p[i..n). */
static uint16_t pick(uint16_t *p, uint32_t i, uint32_t n, struct rng *r)
{
	uint32_t k = i + rng_below(r, n - i);
	uint16_t t = p[k];
	p[k] = p[i];
	return p[i] = t;
}

static uint32_t maskable(struct masker *m, const uint32_t *token, uint32_t n)
{
	uint32_t k = 0;
	for (uint32_t i = 0; i < n; i++) {
		m->pos[k] = (uint16_t)i;
		k += token[i] >= m->plan.nspecial;
	}
	return k;
}

static void note_places(struct masker *m, const uint32_t *token, uint32_t n)
{
	if (++m->stamp == 1u << 16) {
		memset(m->where, 0, m->plan.vocab * sizeof *m->where);
		m->stamp = 1;
	}
	for (uint32_t i = 0; i < n; i++)
		m->where[token[i]] = m->stamp << 16 | i;
}

/* Neighbours of u in the cell, and their weights if draws are weighted. */
static uint32_t present(struct masker *m, uint32_t u)
{
	const struct graph *g = m->plan.graph;
	uint32_t n = 0;
	for (uint64_t k = g->offset[u]; k < g->offset[u + 1]; k++) {
		uint32_t w = m->where[g->neighbour[k]];
		m->partner[n] = (uint16_t)w;
		if (m->plan.weighted)
			m->weight[n] = fabs((double)g->weight[k]);
		n += w >> 16 == m->stamp;
	}
	return n;
}

/* Module of the token at position i: given for this cell, or the module of its gene in the graph. */
static int32_t module_at(const struct masker *m, const uint32_t *token, const int32_t *module, uint32_t i)
{
	return module ? module[i] : m->plan.graph->module[token[i]];
}

/* Tokens of the cell in the same module as the one at position s. */
static uint32_t present_module(struct masker *m, const uint32_t *token, const int32_t *module, uint32_t n, uint32_t s)
{
	int32_t of = module_at(m, token, module, s);
	uint32_t k = 0;
	for (uint32_t i = 0; i < n; i++) {
		m->partner[k] = (uint16_t)i;
		k += module_at(m, token, module, i) == of && i != s && token[i] >= m->plan.nspecial;
	}
	return k;
}

/* Draw one of [i, n) in proportion to weight and move it to index i. If all weights are 0, draw uniformly. */
static uint16_t pick_weighted(struct masker *m, uint32_t i, uint32_t n, struct rng *r)
{
	double sum = 0, u = rng_unit(r);
	for (uint32_t k = i; k < n; k++)
		sum += m->weight[k];
	if (!(sum > 0))
		return pick(m->partner, i, n, r);
	uint32_t k = i;
	for (u *= sum; k + 1 < n && u >= m->weight[k]; k++)
		u -= m->weight[k];
	uint16_t t = m->partner[k];
	double w = m->weight[k];
	m->partner[k] = m->partner[i];
	m->weight[k] = m->weight[i];
	m->partner[i] = t;
	m->weight[i] = w;
	return t;
}

static void expand(struct masker *m, const uint32_t *token, const int32_t *module, uint32_t n, uint32_t quota, struct rng *r)
{
	const struct graph *g = m->plan.graph;
	uint32_t nseed = 0;
	for (uint32_t i = 0; i < n; i++) {
		m->seeds[nseed] = (uint16_t)i;
		nseed += m->plan.modular ? module_at(m, token, module, i) >= 0 && token[i] >= m->plan.nspecial
					 : g->offset[token[i] + 1] > g->offset[token[i]];
	}
	if (g)
		note_places(m, token, n);
	for (uint32_t i = 0; i < nseed && m->count < quota; i++) {
		uint32_t s = pick(m->seeds, i, nseed, r);
		if (!(m->plan.seed_stays > 0) || rng_unit(r) >= m->plan.seed_stays)
			set(m, s);
		uint32_t have = m->count >= quota ? 0 : m->plan.modular ? present_module(m, token, module, n, s) : present(m, token[s]);
		for (uint32_t k = 0; k < have && k < m->plan.partners && m->count < quota; k++)
			set(m, m->plan.weighted ? pick_weighted(m, k, have, r) : pick(m->partner, k, have, r));
	}
}

static void mask_spans(struct masker *m, const uint32_t *token, uint32_t npos, uint32_t quota, struct rng *r)
{
	const struct graph *g = m->plan.graph;
	uint32_t nspan = 0;
	for (uint32_t i = 0; i < npos; i++) {
		uint32_t p = m->pos[i];
		if (!i || m->pos[i - 1] + 1u != p || graph_find(g, token[p - 1], token[p]) < 0) {
			m->seeds[nspan++] = (uint16_t)p;
			m->length[p] = 0;
		}
		m->length[m->seeds[nspan - 1]]++;
	}
	for (uint32_t i = 0; i < nspan && m->count < quota; i++) {
		uint32_t p = pick(m->seeds, i, nspan, r);
		if (m->length[p] > quota - m->count)
			continue;
		for (uint32_t k = 0; k < m->length[p]; k++)
			set(m, p + k);
	}
}

/* Tokens drawn uniformly, each with the visible ones after it of the same tie, until the budget is used up. */
static void mask_runs(struct masker *m, const struct mask_tokens *t, uint32_t npos, uint32_t budget, struct rng *r)
{
	for (uint32_t i = 0; i < npos && m->count < budget; i++) {
		uint32_t p = pick(m->pos, i, npos, r), of = t->tie[p];
		for (; p < t->n && t->tie[p] == of && t->token[p] >= m->plan.nspecial && !is_set(m, p) && m->count < budget; p++)
			set(m, p);
	}
}

/* Use up the budget: choose uniformly among the maskable positions that are still visible. */
static void top_up(struct masker *m, uint32_t npos, uint32_t budget, struct rng *r)
{
	uint32_t n = npos, k;
	if (m->count) {
		for (k = n = 0; k < npos; k++) {
			uint16_t p = m->pos[k];
			m->pos[n] = p;
			n += !is_set(m, p);
		}
	}
	for (uint32_t i = 0, need = budget - m->count; i < need; i++)
		set(m, pick(m->pos, i, n, r));
}

static void bernoulli(struct masker *m, uint32_t npos, double rate, struct rng *r)
{
	uint64_t limit = (uint64_t)(rate * 0x1p32);
	for (uint32_t i = 0; i < npos; i++)
		if (rng_u32(r) < limit)
			set(m, m->pos[i]);
}

/* The input at a masked position, 80/10/10. One random word decides. */
static uint32_t replacement(const struct mask_plan *p, uint32_t token, struct rng *r)
{
	uint32_t u = rng_u32(r), first = p->bernoulli ? 0 : p->nspecial;
	if (u < 3435973837u) /* 0.8 * 2^32 */
		return p->mask_id;
	if (u < 3865470566u) /* 0.9 * 2^32 */
		return first + rng_below(r, p->vocab - first);
	return token;
}

/* The masked positions in ascending order. Returns how many. */
static uint32_t list_set(const struct masker *m, uint32_t n, uint16_t *position)
{
	uint32_t k = 0;
	for (uint32_t w = 0; m->count && w < (n + 63) / 64; w++)
		for (uint64_t b = m->bit[w]; b; b &= b - 1)
			position[k++] = (uint16_t)(w * 64 + (uint32_t)__builtin_ctzll(b));
	return k;
}

uint32_t mask_cell(struct masker *m, double rate, double lambda, uint64_t cell, uint32_t epoch, const struct mask_tokens *t,
	uint16_t *position, uint32_t *input, uint32_t *structural)
{
	const uint32_t *token = t->token, n = t->n;
	const struct mask_plan *p = &m->plan;
	struct rng r = rng_at(p->seed, RNG_MASK, cell, epoch);
	uint32_t npos = p->strategy == MASK_NONE ? 0 : maskable(m, token, n);
	uint32_t budget = (uint32_t)(npos * rate + 1e-9), quota = (uint32_t)(budget * lambda + 1e-9);
	m->count = 0;
	memset(m->bit, 0, (n + 63) / 64 * 8);
	switch (p->strategy) {
	case MASK_CORRMASK:
		expand(m, token, t->module, n, quota, &r);
		break;
	case MASK_PMI:
		mask_spans(m, token, npos, quota, &r);
		break;
	case MASK_RUNS:
		mask_runs(m, t, npos, budget, &r);
		break;
	case MASK_NONE:
	case MASK_RANDOM:
	case MASK_COLUMNS: /* mask_columns */
	case MASK_PROBE: /* mask_probe */
		break;
	}
	if (structural)
		*structural = m->count;
	if (p->bernoulli)
		bernoulli(m, npos, rate, &r);
	else
		top_up(m, npos, budget, &r);
	uint32_t k = list_set(m, n, position);
	for (uint32_t i = 0; i < k; i++)
		input[i] = replacement(p, token[position[i]], &r);
	return k;
}

/* Positions of the tokens that are neither the one at s nor its neighbours, into m->pos. Returns how many. */
static uint32_t unrelated(struct masker *m, const uint32_t *token, uint32_t n, uint32_t s)
{
	uint32_t k = 0;
	for (uint32_t i = 0; i < n; i++) {
		m->pos[k] = (uint16_t)i;
		k += token[i] >= m->plan.nspecial && i != s && graph_find(m->plan.graph, token[s], token[i]) < 0;
	}
	return k;
}

uint32_t mask_probe(
	struct masker *m, uint64_t cell, uint32_t epoch, const uint32_t *token, uint32_t n, uint16_t *position, uint32_t *target)
{
	const struct graph *g = m->plan.graph;
	struct rng r = rng_at(m->plan.seed, RNG_PROBE, cell, epoch);
	uint32_t nseed = 0, k = 0, others = 0, s = 0;
	for (uint32_t i = 0; i < n; i++) {
		m->seeds[nseed] = (uint16_t)i;
		nseed += g->offset[token[i] + 1] > g->offset[token[i]];
	}
	note_places(m, token, n);
	for (uint32_t i = 0; i < nseed && !(k && k <= others); i++) {
		s = pick(m->seeds, i, nseed, &r);
		k = present(m, token[s]);
		others = k ? unrelated(m, token, n, s) : 0;
	}
	if (!k || k > others)
		return 0;
	m->count = 0;
	memset(m->bit, 0, (n + 63) / 64 * 8);
	set(m, s);
	for (uint32_t i = 0; i < k; i++)
		set(m, m->plan.hidden ? m->partner[i] : pick(m->pos, i, others, &r));
	k = list_set(m, n, position);
	for (*target = 0; position[*target] != s; ++*target)
		;
	return k;
}

/* Mark genes that have neighbours, in random order, each with up to K_max of its neighbours, until `quota` are marked. Returns how many. */
static uint32_t mark_partners(const struct mask_plan *p, uint8_t *marked, uint32_t quota, struct rng *r)
{
	const struct graph *g = p->graph;
	uint32_t *start = xmalloc(p->vocab * sizeof *start), *partner = xmalloc(p->vocab * sizeof *partner), n = 0, count = 0;
	for (uint32_t u = p->nspecial; u < p->vocab; u++)
		if (g->offset[u + 1] > g->offset[u])
			start[n++] = u;
	for (uint32_t i = 0; i < n && count < quota; i++) {
		uint32_t at = i + rng_below(r, n - i), u = start[at], have = (uint32_t)(g->offset[u + 1] - g->offset[u]);
		start[at] = start[i];
		count += !marked[u];
		marked[u] = 1;
		memcpy(partner, g->neighbour + g->offset[u], have * sizeof *partner);
		for (uint32_t k = 0; k < have && k < p->partners && count < quota; k++) {
			uint32_t of = k + rng_below(r, have - k), v = partner[of];
			partner[of] = partner[k];
			count += !marked[v];
			marked[v] = 1;
		}
	}
	free_all(start, partner);
	return count;
}

uint32_t mask_columns(const struct mask_plan *p, double rate, double lambda, uint64_t batch, uint32_t epoch, uint32_t *gene)
{
	if (p->column) {
		memcpy(gene, p->column, p->ncolumn * sizeof *gene);
		return p->ncolumn;
	}
	struct rng r = rng_at(p->seed, RNG_COLUMNS, batch, epoch);
	uint32_t n = p->vocab - p->nspecial, want = (uint32_t)lround(rate * n), k = 0;
	want = want < 1 ? 1 : want > n - 1 ? n - 1 : want;
	FREED uint8_t *marked = xcalloc(p->vocab, 1);
	uint32_t left = p->graph ? want - mark_partners(p, marked, (uint32_t)(want * lambda + 1e-9), &r) : want;
	for (uint32_t i = 0, others = n - (want - left); i < n;
		i++) { /* selection sampling: with probability (still wanted) / (still left) */
		uint32_t u = p->nspecial + i;
		if (!marked[u] && left && rng_below(&r, others--) < left) {
			marked[u] = 1;
			left--;
		}
		if (marked[u])
			gene[k++] = u;
	}
	return k;
}
