/* Do 95 % intervals over donors hold the scores that a classifier has for all donors, and the difference of two classifiers, which is 0?
 * Two thousand simulated tests of each kind. */
#include "base/rng.h"
#include "eval/bootstrap.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { K = 6, TESTS = 2000, DRAWS = 1000, DONORS = 20, CELLS = 2000 };
static const double share[K] = {.5, .25, .15, .06, .03, .01};

/* The classifier is right with a chance that depends on the donor, and otherwise says the next class. */
static double chance(double donor)
{
	return 1 / (1 + exp(-1.2 - donor));
}

static void true_scores(double value[BOOTSTRAP_SCORES])
{
	double a = 0, all = 0, f1 = 0;
	for (double z = -8; z <= 8; z += 1. / 64) {
		a += chance(z) * exp(-z * z / 2);
		all += exp(-z * z / 2);
	}
	a /= all;
	for (int k = 0; k < K; k++)
		f1 += 2 * share[k] * a / (share[k] + share[k] * a + share[(k + K - 1) % K] * (1 - a)) / K;
	value[BOOTSTRAP_ACCURACY] = value[BOOTSTRAP_BALANCED] = a;
	value[BOOTSTRAP_MACRO_F1] = f1;
}

static size_t simulate(uint32_t *truth, uint32_t *guess[2], uint32_t *donor, const size_t *size, size_t donors, uint64_t test)
{
	struct rng r = rng_at(1, RNG_TEST, test, 0);
	size_t n = 0;
	for (uint32_t d = 0; d < donors; d++) {
		double of_both = rng_normal(&r), right[2];
		for (int m = 0; m < 2; m++)
			right[m] = chance((of_both + rng_normal(&r)) / sqrt(2));
		for (size_t i = 0; i < size[d]; i++, n++) {
			double u = rng_unit(&r);
			for (truth[n] = 0; truth[n] + 1 < K && u >= share[truth[n]]; truth[n]++)
				u -= share[truth[n]];
			for (int m = 0; m < 2; m++)
				guess[m][n] = rng_unit(&r) < right[m] ? truth[n] : (truth[n] + 1) % K;
			donor[n] = d;
		}
	}
	return n;
}

static int holds(double *draw, double want)
{
	return bootstrap_quantile(draw, DRAWS, .025) <= want && want <= bootstrap_quantile(draw, DRAWS, .975);
}

static uint32_t truth[CELLS], guesses[2][CELLS], donor[CELLS], *guess[2] = {guesses[0], guesses[1]};

/* The shares of tests whose interval has the true score, and whose interval of the difference has 0 */
static void coverage(double held[2][BOOTSTRAP_SCORES], const size_t *size, size_t donors)
{
	static double value[2][DRAWS * BOOTSTRAP_SCORES], one[DRAWS], difference[DRAWS];
	double want[BOOTSTRAP_SCORES];
	true_scores(want);
	for (uint64_t t = 0; t < TESTS; t++) {
		size_t n = simulate(truth, guess, donor, size, donors, t);
		for (int m = 0; m < 2; m++)
			bootstrap_scores(value[m], DRAWS, truth, guess[m], donor, n, K, donors, (uint32_t)t);
		for (size_t s = 0; s < BOOTSTRAP_SCORES; s++) {
			for (size_t i = 0; i < DRAWS; i++) {
				one[i] = value[0][i * BOOTSTRAP_SCORES + s];
				difference[i] = one[i] - value[1][i * BOOTSTRAP_SCORES + s];
			}
			held[0][s] += holds(one, want[s]) / (double)TESTS;
			held[1][s] += holds(difference, 0) / (double)TESTS;
		}
	}
}

static void over_donors(void **state)
{
	static const struct {
		size_t donors, size[DONORS];
	} of[] = {
		{3, {100, 100, 100}},
		{3, {50, 100, 200}},
		{5, {60, 60, 60, 60, 60}},
		{5, {30, 300, 30, 300, 30}},
		{10, {100, 100, 100, 100, 100, 100, 100, 100, 100, 100}},
		{10, {20, 30, 40, 50, 60, 80, 100, 150, 200, 300}},
		{20, {50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50}},
		{20, {10, 15, 20, 20, 25, 30, 30, 35, 40, 40, 50, 60, 60, 70, 80, 90, 110, 150, 200, 400}},
	};
	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		double held[2][BOOTSTRAP_SCORES] = {{0}};
		coverage(held, of[i].size, of[i].donors);
		print_message("%zu donors:", of[i].donors);
		for (int k = 0; k < 2; k++) {
			print_message("%s accuracy %.3f, balanced %.3f, macro F1 %.3f", k ? "; difference of" : "",
				held[k][BOOTSTRAP_ACCURACY], held[k][BOOTSTRAP_BALANCED], held[k][BOOTSTRAP_MACRO_F1]);
			assert_true(held[k][BOOTSTRAP_ACCURACY] >= 0.93 && held[k][BOOTSTRAP_MACRO_F1] >= 0.93);
		}
		print_message("\n");
	}
}

/* Two donors, and one with nearly all cells, tell nothing of others. */
static void too_few(void **state)
{
	static double value[2 * BOOTSTRAP_SCORES];
	const size_t size[][3] = {{100, 100}, {1500, 5, 5}, {100}, {40, 50, 60}};
	for (size_t i = 0; i < 4; i++) {
		size_t donors = size[i][2] ? 3 : size[i][1] ? 2 : 1, n = simulate(truth, guess, donor, size[i], donors, i);
		bootstrap_scores(value, 2, truth, guess[0], donor, n, K, donors, 1);
		assert_int_equal(isnan(value[BOOTSTRAP_SCORES + BOOTSTRAP_MACRO_F1]), i < 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(over_donors), cmocka_unit_test(too_few)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
