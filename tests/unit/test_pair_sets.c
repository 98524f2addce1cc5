/* The scores of edges against all pairs, one by one. */
#include "base/rng.h"
#include "eval/pair_sets.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

enum { MEMBERS = 24, SETS = 5, EACH = 4, EDGES = 60, DRAWS = 200 };

/* Weights of all pairs, of which `n` edges are drawn: few different ones, so that many are equal, 0 and below 0 among them. */
static size_t draw(struct pair_edge *edge, double weight[MEMBERS][MEMBERS], struct rng *g)
{
	size_t n = 0;
	memset(weight, 0, sizeof(double) * MEMBERS * MEMBERS);
	for (uint32_t u = 0; u < MEMBERS; u++)
		for (uint32_t v = u + 1; v < MEMBERS && n < EDGES; v++)
			if (!rng_below(g, 4)) {
				weight[u][v] = (double)rng_below(g, 7) / 2 - 1;
				edge[n++] = (struct pair_edge){(float)weight[u][v], u, v, 0};
			}
	return n;
}

static void all_pairs(void **state)
{
	const uint64_t start[SETS + 1] = {0, 4, 8, 12, 16, 20};
	for (uint64_t set = 0; set < 20; set++) {
		struct rng g = rng_at(1, RNG_TEST, set, 7);
		uint32_t member[SETS * EACH];
		int together[MEMBERS][MEMBERS] = {{0}};
		double weight[MEMBERS][MEMBERS], right = 0, yes = 0, no = 0, inside = 0, pairs = MEMBERS * (MEMBERS - 1) / 2.0;
		struct pair_edge edge[EDGES];
		struct pair_sets s;
		struct pair_scores r;
		for (size_t k = 0; k < SETS; k++)
			for (uint32_t i = 0; i < EACH; i++) /* ascending, and sets overlap */
				member[k * EACH + i] = 6 * i + rng_below(&g, 6);
		for (size_t k = 0; k < SETS; k++)
			for (size_t i = 0; i < EACH; i++)
				for (size_t j = i + 1; j < EACH; j++)
					together[member[k * EACH + i]][member[k * EACH + j]] = 1;
		size_t n = draw(edge, weight, &g);
		pair_sets_init(&s, MEMBERS, start, member, SETS);
		pair_edges_sort(edge, n);
		pair_edges_mark(&s, edge, n);
		for (size_t i = 0; i < n; i++) {
			assert_true(!i || edge[i].weight <= edge[i - 1].weight);
			assert_int_equal(edge[i].shared, together[edge[i].u][edge[i].v]);
			inside += edge[i].shared;
		}
		for (size_t a = 0; a < MEMBERS * MEMBERS; a++) {
			size_t u = a / MEMBERS, v = a % MEMBERS;
			yes += u < v && together[u][v];
			no += u < v && !together[u][v];
			for (size_t b = 0; u < v && together[u][v] && b < MEMBERS * MEMBERS; b++) {
				size_t x = b / MEMBERS, y = b % MEMBERS;
				if (x < y && !together[x][y])
					right += weight[u][v] > weight[x][y] ? 1 : weight[u][v] < weight[x][y] ? 0 : 0.5;
			}
		}
		pair_sets_score(&r, &s, edge, n, DRAWS, 3);
		assert_int_equal(s.pairs, (size_t)yes);
		assert_true(fabs(r.auroc - right / (yes * no)) < 1e-12 && fabs(r.fold - inside / (double)n / (yes / pairs)) < 1e-12);
		assert_true(r.shared == inside && r.auroc_low < r.auroc && r.auroc < r.auroc_high && r.p > 0 && r.p <= 1);
		pair_sets_release(&s);
	}
}

/* A graph of one set alone, and one without an edge. */
static void ends(void **state)
{
	const uint64_t start[] = {0, 4};
	const uint32_t member[] = {2, 5, 9, 20};
	struct pair_edge edge[6];
	struct pair_sets s;
	struct pair_scores r;
	size_t n = 0;
	pair_sets_init(&s, MEMBERS, start, member, 1);
	for (size_t i = 0; i < 4; i++)
		for (size_t j = i + 1; j < 4; j++)
			edge[n++] = (struct pair_edge){1, member[i], member[j], 0};
	pair_edges_mark(&s, edge, n);
	pair_sets_score(&r, &s, edge, n, DRAWS, 1);
	assert_true(r.auroc == 1 && r.shared == 6 && r.p == 1.0 / (DRAWS + 1));
	pair_sets_score(&r, &s, edge, 0, DRAWS, 1);
	assert_true(r.auroc == 0.5 && isnan(r.fold) && isnan(r.p));
	pair_sets_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(all_pairs), cmocka_unit_test(ends)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
