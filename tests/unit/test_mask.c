/* Masks: the invariants of CorrMask's Algorithm 2 over random cells and graphs. */
#include "mask/mask.h"
#include "base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 300, SPECIAL = 3, MASK_ID = 1, MOST = 280 };

struct trial {
	uint32_t n, k, structural;
	uint32_t token[MOST], input[MOST];
	uint16_t position[MOST];
	uint32_t L; /* maskable tokens */
};

#define TOKENS(t, modules) \
	&(struct mask_tokens) \
	{ \
		.n = (t).n, .token = (t).token, .module = (modules) \
	}

/* Distinct genes in random order, <cls> in front and <eos>-like 0 at the end of every second cell. */
static void random_cell(struct trial *t, struct rng *r)
{
	uint32_t order[VOCAB], m = rng_below(r, MOST - 2);
	for (uint32_t i = 0; i < VOCAB; i++)
		order[i] = i;
	t->n = t->L = 0;
	if (m & 1)
		t->token[t->n++] = 2;
	for (uint32_t i = SPECIAL; i < SPECIAL + m; i++) {
		uint32_t k = i + rng_below(r, VOCAB - i), x = order[k];
		order[k] = order[i];
		t->token[t->n++] = order[i] = x;
		t->L++;
	}
	if (m & 1)
		t->token[t->n++] = 0;
}

static void random_graph(struct graph *g, struct rng *r, double density)
{
	static struct edge edge[VOCAB * VOCAB];
	size_t m = 0;
	for (uint32_t u = SPECIAL; u < VOCAB; u++)
		for (uint32_t v = u + 1; v < VOCAB; v++)
			if (rng_unit(r) < density)
				edge[m++] = (struct edge){u, v, (float)(2 * rng_unit(r) - 1), 200};
	graph_build(g, VOCAB, edge, m, 0);
}

static int masked(const struct trial *t, uint32_t p)
{
	for (uint32_t i = 0; i < t->k; i++)
		if (t->position[i] == p)
			return 1;
	return 0;
}

static void graph_rows(void **state)
{
	struct rng r = rng_at(1, RNG_TEST, 0, 0);
	struct graph g;
	random_graph(&g, &r, 0.05);
	for (uint32_t u = 0; u < g.n; u++)
		for (uint64_t k = g.offset[u]; k < g.offset[u + 1]; k++) {
			if (k > g.offset[u])
				assert_true(g.neighbour[k] > g.neighbour[k - 1]);
			int64_t back = graph_find(&g, g.neighbour[k], u);
			assert_true(back >= 0 && g.weight[back] == g.weight[k]);
			assert_int_equal(graph_find(&g, u, g.neighbour[k]), k);
			assert_int_equal(graph_find(&g, u, u), -1);
		}
	graph_release(&g);
}

static void check(const struct trial *t, const struct graph *g, double rate, double lambda)
{
	uint32_t budget = (uint32_t)floor(t->L * rate + 1e-9), quota = (uint32_t)floor(budget * lambda + 1e-9), seeded = 0, linked = 0;
	assert_int_equal(t->k, budget);
	assert_true(t->structural <= quota);
	for (uint32_t i = 0; i < t->k; i++) {
		if (i)
			assert_true(t->position[i] > t->position[i - 1]);
		assert_true(t->position[i] < t->n);
		assert_true(t->token[t->position[i]] >= SPECIAL);
		linked += g->offset[t->token[t->position[i]] + 1] > g->offset[t->token[t->position[i]]];
		assert_true(t->input[i] == MASK_ID || (t->input[i] >= SPECIAL && t->input[i] < VOCAB));
	}
	assert_true(t->structural <= linked);
	/* unless every seed was used, the quota is filled */
	for (uint32_t i = 0; i < t->n; i++)
		if (g->offset[t->token[i] + 1] > g->offset[t->token[i]])
			seeded += !masked(t, i);
	if (seeded)
		assert_int_equal(t->structural, quota);
}

static void invariants(void **state)
{
	static const double rates[] = {0, 0.004, 0.15, 0.3, 0.77, 1}, lambdas[] = {0, 0.25, 0.5, 1};
	struct rng r = rng_at(2, RNG_TEST, 0, 0);
	struct graph g;
	struct trial t;
	for (int round = 0; round < 4; round++) {
		random_graph(&g, &r, round == 3 ? 0.9 : 0.02 * round);
		for (int weighted = 0; weighted < 2; weighted++)
			for (uint32_t partners = 0; partners < 7; partners += 3) {
				struct mask_plan plan = {.strategy = MASK_CORRMASK,
					.weighted = weighted,
					.partners = partners,
					.seed = 5,
					.vocab = VOCAB,
					.nspecial = SPECIAL,
					.mask_id = MASK_ID,
					.graph = &g};
				struct masker *m = masker_new(&plan);
				for (uint64_t cell = 0; cell < 60; cell++) {
					double rate = rates[cell % 6], lambda = lambdas[cell % 4];
					random_cell(&t, &r);
					t.k = mask_cell(m, rate, lambda, cell, 0, TOKENS(t, NULL), t.position, t.input, &t.structural);
					check(&t, &g, rate, lambda);
				}
				masker_free(m);
			}
		graph_release(&g);
	}
}

/* A probe masks a target and its neighbours in the cell, or as many tokens that are none. */
static void probes(void **state)
{
	struct rng r = rng_at(13, RNG_TEST, 0, 0);
	struct graph g;
	struct trial t;
	uint32_t target[2], probed = 0;
	uint16_t position[2][MOST];
	random_graph(&g, &r, 0.02);
	struct mask_plan plan = {.strategy = MASK_PROBE, .seed = 8, .vocab = VOCAB, .nspecial = SPECIAL, .mask_id = MASK_ID, .graph = &g};
	struct masker *visible = masker_new(&plan);
	plan.hidden = 1;
	struct masker *hidden = masker_new(&plan);
	for (uint64_t cell = 0; cell < 200; cell++) {
		random_cell(&t, &r);
		uint32_t k = mask_probe(hidden, cell, 0, t.token, t.n, position[0], &target[0]), partners = 0;
		assert_int_equal(mask_probe(visible, cell, 0, t.token, t.n, position[1], &target[1]), k);
		if (!k)
			continue;
		probed++;
		uint32_t s = position[0][target[0]];
		assert_int_equal(position[1][target[1]], s);
		for (uint32_t i = 0; i < t.n; i++)
			partners += graph_find(&g, t.token[s], t.token[i]) >= 0;
		assert_int_equal(k, partners + 1);
		for (int h = 0; h < 2; h++)
			for (uint32_t i = 0; i < k; i++) {
				uint32_t token = t.token[position[h][i]];
				assert_true(token >= SPECIAL && (!i || position[h][i] > position[h][i - 1]));
				assert_true(position[h][i] == s || (graph_find(&g, t.token[s], token) >= 0) == !h);
			}
	}
	assert_true(probed > 100);
	masker_free(visible);
	masker_free(hidden);
	graph_release(&g);
}

/* What holds for every strategy that masks tokens of a cell: the budget, and that no special token is masked, shown (but by bernoulli) or counted. */
static void every_strategy(void **state)
{
	static const struct {
		enum mask_strategy strategy;
		int bernoulli, weighted, modular, graph, groups, ties;
		int structured; /* positions that the structure chooses: 0 none, 1 up to lambda of the budget, 2 all */
	} plans[] =
		{
			{MASK_RANDOM},
			{MASK_RANDOM, .bernoulli = 1},
			{MASK_NONE},
			{MASK_RUNS, .ties = 1, .structured = 2},
			{MASK_PMI, .graph = 1, .structured = 1},
			{MASK_CORRMASK, .graph = 1, .structured = 1},
			{MASK_CORRMASK, .graph = 1, .weighted = 1, .structured = 1},
			{MASK_CORRMASK, .graph = 1, .modular = 1, .structured = 1},
			{MASK_CORRMASK, .groups = 1, .modular = 1, .structured = 1},
		},
	  *p;
	struct rng r = rng_at(3, RNG_TEST, 0, 0);
	struct graph g;
	struct trial t;
	int32_t group[MOST];
	uint16_t tie[MOST];
	random_graph(&g, &r, 0.02);
	g.module = xcalloc(VOCAB, sizeof *g.module);
	for (uint32_t u = 0; u < VOCAB; u++)
		g.module[u] = u < SPECIAL ? -1 : (int32_t)rng_below(&r, 9) - 1;
	for (p = plans; p < plans + sizeof plans / sizeof *plans; p++) {
		struct mask_plan plan = {.strategy = p->strategy,
			.bernoulli = p->bernoulli,
			.weighted = p->weighted,
			.modular = p->modular,
			.partners = 5,
			.seed = 8,
			.vocab = VOCAB,
			.nspecial = SPECIAL,
			.mask_id = MASK_ID,
			.graph = p->graph ? &g : NULL};
		struct masker *m = masker_new(&plan);
		for (uint64_t cell = 0; cell < 400; cell++) {
			double rate = rng_unit(&r), lambda = cell % 4 ? rng_unit(&r) : cell % 8 == 0;
			random_cell(&t, &r);
			for (uint32_t i = 0; i < t.n; i++) {
				group[i] = (int32_t)rng_below(&r, 4) - 1; /* special tokens too */
				tie[i] = (uint16_t)(i / 5);
			}
			const struct mask_tokens tokens = {t.n, t.token, p->groups ? group : NULL, p->ties ? tie : NULL};
			t.k = mask_cell(m, rate, lambda, cell, 0, &tokens, t.position, t.input, &t.structural);
			uint32_t budget = p->strategy == MASK_NONE ? 0 : (uint32_t)floor(t.L * rate + 1e-9),
				 quota = (uint32_t)floor(budget * lambda + 1e-9);
			if (p->bernoulli)
				assert_true(fabs(t.k - t.L * rate) <= 5 * sqrt(t.L * rate * (1 - rate)) + 1);
			else
				assert_int_equal(t.k, budget);
			assert_true(t.structural <= (p->structured == 2 ? budget : p->structured ? quota : 0));
			for (uint32_t i = 0; i < t.k; i++) {
				assert_true(t.position[i] < t.n && (!i || t.position[i] > t.position[i - 1]));
				assert_true(t.token[t.position[i]] >= SPECIAL && t.input[i] < VOCAB);
				assert_true(p->bernoulli || t.input[i] == MASK_ID || t.input[i] >= SPECIAL);
			}
		}
		masker_free(m);
	}
	graph_release(&g);
}

/* With lambda 1 a gene with neighbours in the cell is masked together with one of them, but for the last seed, whom the quota may cut off. */
static void partners_are_present_neighbours(void **state)
{
	struct rng r = rng_at(4, RNG_TEST, 0, 0);
	struct graph g;
	struct trial t;
	for (int round = 0; round < 6; round++) {
		random_graph(&g, &r, 0.004 * (1 << round));
		struct mask_plan plan = {.strategy = MASK_CORRMASK,
			.weighted = round % 2,
			.partners = 1 + (uint32_t)round,
			.seed = 8,
			.vocab = VOCAB,
			.nspecial = SPECIAL,
			.mask_id = MASK_ID,
			.graph = &g};
		struct masker *m = masker_new(&plan);
		uint32_t all = 0;
		for (uint64_t cell = 0; cell < 200; cell++) {
			uint8_t in[VOCAB] = {0}, hidden[VOCAB] = {0};
			random_cell(&t, &r);
			t.k = mask_cell(m, 0.15, 1, cell, 0, TOKENS(t, NULL), t.position, t.input, &t.structural);
			for (uint32_t i = 0; i < t.n; i++)
				in[t.token[i]] = 1;
			for (uint32_t i = 0; i < t.k; i++)
				hidden[t.token[t.position[i]]] = 1;
			uint32_t lonely = 0;
			for (uint32_t u = SPECIAL; u < VOCAB && t.structural == t.k; u++) {
				uint32_t present = 0, together = 0;
				for (uint64_t k = g.offset[u]; k < g.offset[u + 1]; k++) {
					present += in[g.neighbour[k]];
					together += hidden[g.neighbour[k]];
				}
				lonely += hidden[u] && present && !together;
			}
			assert_true(lonely <= 1);
			all += t.structural == t.k && t.k > 1;
		}
		assert_true(round < 2 || all > 100); /* of a thin graph few cells have seeds enough */
		masker_free(m);
		graph_release(&g);
	}
}

/* With lambda 1 and one edge per gene, everything masked beyond the last seed comes in whole pairs. */
static void partners_go_together(void **state)
{
	struct edge edge[VOCAB];
	size_t m = 0;
	for (uint32_t u = SPECIAL; u + 1 < VOCAB; u += 2)
		edge[m++] = (struct edge){u, u + 1, 0.5f, 200};
	struct graph g;
	graph_build(&g, VOCAB, edge, m, 0);
	struct mask_plan plan = {
		.strategy = MASK_CORRMASK, .partners = 5, .seed = 9, .vocab = VOCAB, .nspecial = SPECIAL, .mask_id = MASK_ID, .graph = &g};
	struct masker *mk = masker_new(&plan);
	struct trial t = {.n = MOST};
	for (uint32_t i = 0; i < MOST; i++)
		t.token[i] = SPECIAL + i;
	for (uint64_t cell = 0; cell < 50; cell++) {
		t.k = mask_cell(mk, 0.15, 1, cell, 1, TOKENS(t, NULL), t.position, t.input, &t.structural);
		assert_int_equal(t.k, 42);
		uint32_t alone = 0;
		for (uint32_t i = 0; i < t.k; i++)
			alone += !masked(&t, t.position[i] ^ 1); /* the pair of position i is i ^ 1 */
		assert_int_equal(alone, 0);
		/* a neighbour that is not in the cell is never chosen: drop every second gene */
		struct trial h = {.n = MOST / 2};
		for (uint32_t i = 0; i < h.n; i++)
			h.token[i] = SPECIAL + 2 * i;
		h.k = mask_cell(mk, 0.15, 1, cell, 1, TOKENS(h, NULL), h.position, h.input, &h.structural);
		assert_int_equal(h.k, 21);
	}
	masker_free(mk);
	graph_release(&g);
}

/* With modules, what the structural stage masks beyond one seed a module comes from the same modules. */
static void modules_go_together(void **state)
{
	struct graph g;
	graph_build(&g, VOCAB, NULL, 0, 0);
	g.module = xcalloc(VOCAB, sizeof *g.module);
	for (int32_t u = 0; u < VOCAB; u++)
		g.module[u] = u < SPECIAL || u >= 200 ? -1 : u / 10;
	struct mask_plan plan = {.strategy = MASK_CORRMASK,
		.modular = 1,
		.partners = 9,
		.seed = 9,
		.vocab = VOCAB,
		.nspecial = SPECIAL,
		.mask_id = MASK_ID,
		.graph = &g};
	struct masker *m = masker_new(&plan);
	struct trial t = {.n = 200};
	for (uint32_t i = 0; i < t.n; i++)
		t.token[i] = 10 + i; /* modules 1 to 19 whole, then 10 genes without one */
	for (uint64_t cell = 0; cell < 50; cell++) {
		uint32_t in[VOCAB / 10] = {0}, whole = 0;
		t.k = mask_cell(m, 0.2, 1, cell, 0, TOKENS(t, NULL), t.position, t.input, &t.structural);
		assert_int_equal(t.structural, 40);
		for (uint32_t i = 0; i < t.k; i++) {
			assert_true(t.token[t.position[i]] < 200);
			in[t.token[t.position[i]] / 10]++;
		}
		for (uint32_t k = 0; k < VOCAB / 10; k++)
			whole += in[k] == 10;
		assert_int_equal(whole, 4);
	}
	masker_free(m);
	/* no more than K_max partners a seed: of five masks the fifth is a new seed, nearly always of another module */
	plan.partners = 3;
	m = masker_new(&plan);
	uint32_t two = 0;
	for (uint64_t cell = 0; cell < 50; cell++) {
		uint8_t in[VOCAB / 10] = {0};
		uint32_t modules = 0;
		t.k = mask_cell(m, 5.0 / 200, 1, cell, 0, TOKENS(t, NULL), t.position, t.input, NULL);
		assert_int_equal(t.k, 5);
		for (uint32_t i = 0; i < t.k; i++)
			modules += !in[t.token[t.position[i]] / 10]++;
		assert_true(modules <= 2);
		two += modules == 2;
	}
	assert_true(two > 35);
	masker_free(m);
	graph_release(&g);
}

/* Spans go whole, as long as they fit into the quota. */
static void spans_go_whole(void **state)
{
	struct edge edge[VOCAB];
	size_t m = 0;
	for (uint32_t u = SPECIAL; u + 2 < VOCAB; u += 3) { /* spans of three tokens */
		edge[m++] = (struct edge){u, u + 1, 0.5f, 20};
		edge[m++] = (struct edge){u + 1, u + 2, 0.5f, 20};
	}
	struct graph g;
	graph_build(&g, VOCAB, edge, m, 0);
	struct mask_plan plan = {.strategy = MASK_PMI, .seed = 9, .vocab = VOCAB, .nspecial = SPECIAL, .mask_id = MASK_ID, .graph = &g};
	struct masker *mk = masker_new(&plan);
	struct trial t = {.n = 240};
	uint32_t front = 0;
	for (uint32_t i = 0; i < t.n; i++)
		t.token[i] = SPECIAL + i;
	t.token[120] = 0; /* a special token parts a span */
	for (uint64_t cell = 0; cell < 60; cell++) {
		double lambda = cell % 2 ? 1 : 0.5;
		uint32_t quota = (uint32_t)(35 * lambda), whole = 0, last = 0;
		t.k = mask_cell(mk, 0.15, lambda, cell, 1, TOKENS(t, NULL), t.position, t.input, &t.structural);
		assert_int_equal(t.k, 35);
		assert_true(t.structural <= quota && t.structural >= quota - 2);
		for (uint32_t p = 0; p < t.n; p += 3)
			whole += masked(&t, p) && masked(&t, p + 1) && masked(&t, p + 2);
		assert_true(whole >= (t.structural - 2) / 3);
		for (uint32_t i = 0; i < t.k; last = t.position[i++])
			assert_true(t.position[i] != 120 && (!i || t.position[i] > last));
		front += masked(&t, 0);
	}
	assert_true(front > 0 && front < 30); /* spans are taken in random order */
	masker_free(mk);
	graph_release(&g);
}

/* A star: partners of the hub are drawn in proportion to |weight| when asked to, never one of weight 0 before the others. */
static void weighted_partners(void **state)
{
	struct edge edge[20];
	for (uint32_t v = 0; v < 20; v++)
		edge[v] = (struct edge){SPECIAL, SPECIAL + 1 + v, v < 10 ? 0 : (v < 15 ? -0.2f : 0.6f), 200};
	struct graph g;
	graph_build(&g, VOCAB, edge, 20, 0);
	for (int weighted = 0; weighted < 2; weighted++) {
		struct mask_plan plan = {.strategy = MASK_CORRMASK,
			.weighted = weighted,
			.partners = 1,
			.seed = 1,
			.vocab = VOCAB,
			.nspecial = SPECIAL,
			.mask_id = MASK_ID,
			.graph = &g};
		struct masker *m = masker_new(&plan);
		struct trial t = {.n = 21};
		for (uint32_t i = 0; i < 21; i++)
			t.token[i] = SPECIAL + i;
		double hit[3] = {0};
		uint32_t hubs = 0;
		for (uint64_t cell = 0; cell < 60000; cell++) {
			/* budget 2: a seed and one partner; the seed is the hub once in 21 */
			t.k = mask_cell(m, 2.0 / 21, 1, cell, 0, TOKENS(t, NULL), t.position, t.input, NULL);
			assert_int_equal(t.k, 2);
			assert_int_equal(t.position[0], 0);
			uint32_t v = t.position[1] - 1u;
			hit[v < 10 ? 0 : v < 15 ? 1 : 2]++;
			hubs++;
		}
		/* 20/21 of the seeds are leaves, uniform; 1/21 is the hub and draws by weight */
		double want = (20.0 / 21) * 0.25 + (1.0 / 21) * (weighted ? 0.75 : 0.25);
		assert_true(fabs(hit[2] / hubs - want) < 4 * sqrt(want * (1 - want) / hubs));
		masker_free(m);
	}
	graph_release(&g);
}

static void replacement_shares(void **state)
{
	for (int bernoulli = 0; bernoulli < 2; bernoulli++) {
		struct mask_plan plan = {.strategy = MASK_RANDOM,
			.bernoulli = bernoulli,
			.seed = 3,
			.vocab = VOCAB,
			.nspecial = SPECIAL,
			.mask_id = MASK_ID};
		struct masker *m = masker_new(&plan);
		struct rng r = rng_at(4, RNG_TEST, 0, 0);
		double n = 0, mask = 0, other = 0, same = 0, L = 0, special = 0, at[VOCAB] = {0};
		static struct trial t;
		for (uint64_t cell = 0; cell < 4000; cell++) {
			random_cell(&t, &r);
			L += t.L;
			t.k = mask_cell(m, 0.15, 0.5, cell, 0, TOKENS(t, NULL), t.position, t.input, NULL);
			for (uint32_t i = 0; i < t.k; i++) {
				uint32_t was = t.token[t.position[i]], is = t.input[i];
				assert_true(was >= SPECIAL);
				n++;
				mask += is == MASK_ID;
				same += is == was;
				other += is != was && is != MASK_ID;
				special += is < SPECIAL && is != MASK_ID;
				at[is]++;
			}
		}
		double low = bernoulli ? VOCAB : VOCAB - SPECIAL;
		assert_true(fabs(mask / n - (0.8 + (bernoulli ? 0.1 / low : 0))) < 4 * sqrt(0.16 / n));
		assert_true(fabs(same / n - (0.1 + 0.1 / low)) < 4 * sqrt(0.09 / n));
		assert_true(bernoulli ? special > 0 : special == 0);
		if (bernoulli)
			assert_true(fabs(n / L - 0.15) < 4 * sqrt(0.15 * 0.85 / L));
		for (uint32_t v = SPECIAL; v < VOCAB; v++)
			assert_true(at[v] > 0);
		masker_free(m);
	}
}

/* Every maskable position is as likely as any other under `random`. */
static void uniform_positions(void **state)
{
	struct mask_plan plan = {.strategy = MASK_RANDOM, .seed = 3, .vocab = VOCAB, .nspecial = SPECIAL, .mask_id = MASK_ID};
	struct masker *m = masker_new(&plan);
	struct trial t = {.n = 40};
	double hit[40] = {0}, chi = 0;
	for (uint32_t i = 0; i < t.n; i++)
		t.token[i] = SPECIAL + i;
	for (uint64_t cell = 0; cell < 20000; cell++) {
		t.k = mask_cell(m, 0.15, 0, cell, 7, TOKENS(t, NULL), t.position, t.input, NULL);
		assert_int_equal(t.k, 6);
		for (uint32_t i = 0; i < t.k; i++)
			hit[t.position[i]]++;
	}
	for (int i = 0; i < 40; i++)
		chi += (hit[i] - 3000) * (hit[i] - 3000) / 3000;
	assert_true(chi < 80); /* 39 degrees of freedom; p < 1e-4 beyond */
	masker_free(m);
}

/* The order of calls, other cells and epochs leave the masks of a cell alone; lambda 0 is `random`. */
static void depends_on_cell_alone(void **state)
{
	struct rng r = rng_at(6, RNG_TEST, 0, 0);
	struct graph g;
	random_graph(&g, &r, 0.05);
	struct mask_plan plan = {.strategy = MASK_CORRMASK,
				 .partners = 5,
				 .seed = 3,
				 .vocab = VOCAB,
				 .nspecial = SPECIAL,
				 .mask_id = MASK_ID,
				 .graph = &g},
			 uniform = plan;
	uniform.strategy = MASK_RANDOM;
	struct masker *a = masker_new(&plan), *b = masker_new(&plan), *u = masker_new(&uniform);
	static struct trial t, s;
	uint32_t same = 0;
	for (uint64_t cell = 0; cell < 100; cell++) {
		random_cell(&t, &r);
		t.k = mask_cell(a, 0.15, 0.5, cell, 1, TOKENS(t, NULL), t.position, t.input, NULL);
		s.k = mask_cell(a, 0.15, 0.5, cell, 2, TOKENS(t, NULL), s.position, s.input, NULL);
		same += memcmp(t.position, s.position, t.k * 2) == 0;
		t.k = mask_cell(a, 0.15, 0.5, cell, 2, TOKENS(t, NULL), t.position, t.input, NULL);
		for (int other = 0; other < 3; other++)
			mask_cell(b, 0.3, 0.5, cell + 1, 2, TOKENS(t, NULL), s.position, s.input, NULL);
		s.k = mask_cell(b, 0.15, 0.5, cell, 2, TOKENS(t, NULL), s.position, s.input, NULL);
		assert_int_equal(t.k, s.k);
		assert_memory_equal(t.position, s.position, t.k * 2);
		assert_memory_equal(t.input, s.input, t.k * 4);
		t.k = mask_cell(a, 0.15, 0, cell, 2, TOKENS(t, NULL), t.position, t.input, NULL);
		s.k = mask_cell(u, 0.15, 0.5, cell, 2, TOKENS(t, NULL), s.position, s.input, NULL);
		assert_memory_equal(t.position, s.position, t.k * 2);
		assert_memory_equal(t.input, s.input, t.k * 4);
	}
	assert_true(same < 20); /* cells of few tokens; another epoch, other masks */
	masker_free(a);
	masker_free(b);
	masker_free(u);
	graph_release(&g);
}

/* More cells than the 16-bit stamp of the place table can count. */
static void stamp_wraps(void **state)
{
	struct edge e = {SPECIAL, SPECIAL + 1, 1, 200};
	struct graph g;
	graph_build(&g, VOCAB, &e, 1, 0);
	struct mask_plan plan = {
		.strategy = MASK_CORRMASK, .partners = 5, .seed = 3, .vocab = VOCAB, .nspecial = SPECIAL, .mask_id = MASK_ID, .graph = &g};
	struct masker *m = masker_new(&plan);
	uint32_t both[] = {SPECIAL, SPECIAL + 1, SPECIAL + 2, SPECIAL + 3}, one[] = {SPECIAL + 2, SPECIAL + 5, SPECIAL, SPECIAL + 3}, in[4],
		 s;
	uint16_t p[4];
	for (uint64_t cell = 0; cell < 200000; cell++) {
		assert_int_equal(
			mask_cell(m, 0.5, 1, cell, 0, &(struct mask_tokens){.n = 4, .token = cell % 3 ? both : one}, p, in, &s), 2);
		assert_int_equal(s, cell % 3 ? 2 : 1);
	}
	masker_free(m);
	graph_release(&g);
}

/* Every size of set; all genes and all pairs of genes equally often; special tokens never; the draw of (seed, batch, epoch). */
static void columns(void **state)
{
	enum { G = 10, DRAWS = 20000 };
	struct mask_plan p = {.strategy = MASK_COLUMNS, .seed = 7, .vocab = SPECIAL + G, .nspecial = SPECIAL};
	uint32_t gene[G], pair[G][G] = {{0}};
	static const double rate[] = {0, 0.04, 0.15, 0.249, 0.5, 0.96, 1};
	static const uint32_t size[] = {1, 1, 2, 2, 5, 9, 9};
	for (size_t i = 0; i < sizeof rate / sizeof *rate; i++)
		assert_int_equal(mask_columns(&p, rate[i], 0, 3, 1, gene), size[i]);
	for (uint32_t batch = 0; batch < DRAWS; batch++) {
		uint32_t k = mask_columns(&p, 0.3, 0, batch, 2, gene);
		assert_int_equal(k, 3);
		for (uint32_t i = 0; i < k; i++) {
			assert_true(gene[i] >= SPECIAL && gene[i] < SPECIAL + G && (!i || gene[i] > gene[i - 1]));
			for (uint32_t j = 0; j <= i; j++)
				pair[gene[j] - SPECIAL][gene[i] - SPECIAL]++;
		}
	}
	for (int i = 0; i < G; i++)
		for (int j = i; j < G; j++) { /* probability 3/10, of a pair 3/10 x 2/9; 4.5 standard deviations */
			double q = i == j ? 0.3 : 0.3 * 2 / 9;
			assert_true(fabs(pair[i][j] - q * DRAWS) < 4.5 * sqrt(q * (1 - q) * DRAWS));
		}
	p.vocab = VOCAB;
	uint32_t many[VOCAB], other[VOCAB];
	uint32_t k = mask_columns(&p, 0.5, 0, 3, 1, many);
	assert_int_equal(mask_columns(&p, 0.5, 0, 3, 1, other), k);
	assert_memory_equal(many, other, k * sizeof *many);
	mask_columns(&p, 0.5, 0, 3, 2, other);
	assert_memory_not_equal(many, other, k * sizeof *many);
	mask_columns(&p, 0.5, 0, 4, 1, other);
	assert_memory_not_equal(many, other, k * sizeof *many);
	p.seed++;
	mask_columns(&p, 0.5, 0, 3, 1, other);
	assert_memory_not_equal(many, other, k * sizeof *many);
}

/* Pairs of genes: with lambda 1 both are masked or none, but for the last; with 0 the sets are those without a graph; the size never changes. */
static void columns_of_partners(void **state)
{
	enum { G = 40 };
	struct edge e[G / 4];
	struct graph g;
	uint32_t gene[G], plain[G];
	for (uint32_t i = 0; i < G / 4; i++)
		e[i] = (struct edge){SPECIAL + 2 * i, SPECIAL + 2 * i + 1, 1, 200};
	graph_build(&g, SPECIAL + G, e, G / 4, 0);
	struct mask_plan p = {.strategy = MASK_COLUMNS, .seed = 7, .vocab = SPECIAL + G, .nspecial = SPECIAL, .partners = 5}, with = p;
	with.graph = &g;
	double together[2] = {0};
	for (uint32_t batch = 0; batch < 2000; batch++) {
		uint32_t k = mask_columns(&p, 0.25, 0, batch, 1, plain);
		assert_int_equal(mask_columns(&with, 0.25, 0, batch, 1, gene), k);
		assert_memory_equal(gene, plain, k * sizeof *gene);
		for (int half = 0; half < 2; half++) {
			uint8_t in[G] = {0};
			assert_int_equal(mask_columns(&with, 0.25, half ? 0.6 : 1, batch, 1, gene), 10);
			for (uint32_t i = 0; i < k; i++) {
				assert_true(!i || gene[i] > gene[i - 1]);
				in[gene[i] - SPECIAL] = 1;
			}
			for (uint32_t i = 0; i < G / 2; i += 2)
				together[half] += in[i] && in[i + 1];
		}
	}
	assert_true(together[0] == 5 * 2000); /* 10 genes are 5 pairs */
	assert_true(together[1] > 3 * 2000 && together[1] < 4 * 2000); /* 6 of 10 are 3 pairs, and now and then two of the other 4 */
	graph_release(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(graph_rows),
		cmocka_unit_test(invariants),
		cmocka_unit_test(probes),
		cmocka_unit_test(every_strategy),
		cmocka_unit_test(partners_are_present_neighbours),
		cmocka_unit_test(partners_go_together),
		cmocka_unit_test(modules_go_together),
		cmocka_unit_test(spans_go_whole),
		cmocka_unit_test(weighted_partners),
		cmocka_unit_test(replacement_shares),
		cmocka_unit_test(uniform_positions),
		cmocka_unit_test(depends_on_cell_alone),
		cmocka_unit_test(stamp_wraps),
		cmocka_unit_test(columns),
		cmocka_unit_test(columns_of_partners),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
