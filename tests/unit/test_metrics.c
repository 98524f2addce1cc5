/* Scores of small confusion matrices, by hand; sklearn.metrics is asked in tests/ctaprobe.bats. */
#include "eval/hypergeometric.h"
#include "eval/metrics.h"
#include "eval/paired.h"
#include "eval/ranksum.h"
#include "eval/roc.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void by_hand(void **state)
{
	/* class 3 never occurs and is never predicted; class 2 is only predicted */
	const uint32_t truth[] = {0, 0, 0, 1, 1, 0}, guess[] = {0, 0, 1, 1, 2, 0};
	struct metrics m;
	metrics_init(&m, 4);
	metrics_add(&m, truth, guess, 6);
	metrics_score(&m);
	assert_int_equal(m.n, 6);
	assert_int_equal(m.confusion[0 * 4 + 1], 1);
	assert_true(m.accuracy == 4.0 / 6);
	assert_true(m.balanced_accuracy == (3.0 / 4 + 1.0 / 2) / 2);
	assert_true(m.f1[0] == 6.0 / 7 && m.f1[1] == 0.5 && m.f1[2] == 0 && m.f1[3] == 0);
	assert_true(fabs(m.macro_f1 - (6.0 / 7 + 0.5) / 3) < 1e-15);
	assert_true(fabs(m.weighted_f1 - (6.0 / 7 * 4 + 0.5 * 2) / 6) < 1e-15);
	const uint64_t frequency[] = {9, 9, 1, 2};
	uint8_t chosen[4];
	assert_true(metrics_rare_f1(&m, frequency, chosen) == m.f1[0]); /* a third of two classes: one; the tie goes to the lower */
	assert_int_equal(chosen[0], 1);
	assert_int_equal(chosen[1] + chosen[2] + chosen[3], 0);
	metrics_release(&m);
}

static void nothing(void **state)
{
	struct metrics m;
	const uint64_t frequency[2] = {1, 2};
	metrics_init(&m, 2);
	metrics_score(&m);
	assert_true(isnan(m.accuracy) && isnan(m.macro_f1) && isnan(m.weighted_f1) && isnan(m.balanced_accuracy));
	assert_true(isnan(metrics_rare_f1(&m, frequency, NULL)));
	metrics_release(&m);
}

static void a_third(void **state)
{
	const size_t want[] = {0, 1, 1, 1, 1, 2, 2, 2, 3, 3, 3};
	for (size_t k = 1; k <= 10; k++) {
		struct metrics m;
		uint64_t frequency[10];
		uint8_t chosen[10];
		metrics_init(&m, k);
		for (uint32_t c = 0; c < k; c++) {
			metrics_add(&m, &c, &c, 1);
			frequency[c] = 100 - c;
		}
		metrics_score(&m);
		assert_true(metrics_rare_f1(&m, frequency, chosen) == 1);
		size_t n = 0;
		for (size_t c = 0; c < k; c++)
			n += chosen[c];
		assert_int_equal(n, want[k]);
		assert_int_equal(chosen[k - 1], 1); /* the rarest is the last */
		metrics_release(&m);
	}
}

/* Scores 4 3 3 2 1 1 with classes + + - + - -: corners (0,1) (1,2) (1,3) (3,3) of 3 and 3, worth 7.5 of 9 pairs. */
static void roc_by_hand(void **state)
{
	struct roc_item item[] = {{1, 0}, {3, 1}, {2, 1}, {4, 1}, {1, 0}, {3, 0}};
	struct roc r;
	roc_curve(&r, item, 6);
	assert_int_equal(r.positive, 3);
	assert_int_equal(r.negative, 3);
	assert_true(r.auc == 7.5 / 9);
	assert_int_equal(r.points, 5);
	assert_true(r.tpr[0] == 0 && r.tpr[99] == 1 && r.tpr[50] == 1);
	assert_true(fabs(r.tpr[22] - (1.0 / 3 + 22.0 / 99)) < 1e-15); /* on the line from (0, 1/3) to (1/3, 2/3) */
	/* a straight line of one point after another is two corners and the origin */
	struct roc_item line[] = {{9, 1}, {8, 0}, {7, 0}, {6, 0}, {5, 0}};
	roc_curve(&r, line, 5);
	assert_true(r.auc == 1);
	assert_int_equal(r.points, 3);
	/* all the same: chance */
	struct roc_item same[] = {{1, 1}, {1, 0}, {1, 0}};
	roc_curve(&r, same, 3);
	assert_true(r.auc == 0.5);
	assert_int_equal(r.points, 2);
	roc_curve(&r, same, 1);
	assert_true(isnan(r.auc));
	roc_curve(&r, NULL, 0);
	assert_true(isnan(r.auc));
}

/* Exact fractions (Python's math.comb). */
static void hypergeometric(void **state)
{
	static const struct {
		uint64_t x, N, K, n;
		double p;
	} exact[] = {{1, 10, 3, 4, 0.83333333333333337}, {3, 10, 3, 4, 0.033333333333333333}, {0, 5, 2, 2, 1}, {3, 5, 2, 4, 0},
		{1, 5, 3, 4, 1}, {5, 990, 211, 83, 0.99998499515983064}, {24, 990, 211, 83, 0.055191552266794494},
		{17, 990, 211, 83, 0.62276359216465549}, {60, 990, 211, 60, 2.9335221061208226e-44},
		{30, 20000, 200, 400, 6.752117589431659e-18}, {4, 20000, 200, 400, 0.56947733663978328},
		{1, 20000, 200, 400, 0.98276796347472817}, {2, 1000000, 10, 300000, 0.85069297712621361},
		{120, 1000000, 3000, 20000, 3.033240317398561e-12}, {61, 1000000, 3000, 20000, 0.46573417865368621}};
	for (size_t i = 0; i < sizeof exact / sizeof *exact; i++) {
		double p = hypergeometric_tail(exact[i].x, exact[i].N, exact[i].K, exact[i].n);
		if (!(fabs(p - exact[i].p) <= 1e-12 * exact[i].p))
			fail_msg("%zu: %.17g, expected %.17g", i, p, exact[i].p);
	}
}

/* Equal values have a mean and no interval, in a mean as in an area. */
static void no_spread(void **state)
{
	double x[] = {0.1, 0.3 - 0.2, 0.1}, y[] = {0.1, 0.1, 0.1, 0.1}, above[] = {0.5, 0.5, 0.5}, some[] = {0.1, 0.5, 0.1};
	struct difference d;
	struct ranksum r;
	difference_mean(&d, x, 3);
	assert_true(fabs(d.mean - 0.1) < 1e-15 && d.sd <= 0 && isnan(d.low) && isnan(d.high));
	ranksum_against(&r, y, 3, y, 4);
	assert_true(fabs(r.auc - 0.5) < 1e-15 && isnan(r.low) && isnan(r.high));
	ranksum_against(&r, above, 3, y, 4);
	assert_true(fabs(r.auc - 1) < 1e-15 && isnan(r.low) && isnan(r.high));
	ranksum_against(&r, some, 3, y, 4);
	assert_true(r.low < r.auc && r.auc < r.high);
	difference_mean(&d, some, 3);
	assert_true(d.low < d.mean && d.mean < d.high && isnan(d.rank_p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_hand),
		cmocka_unit_test(nothing),
		cmocka_unit_test(a_third),
		cmocka_unit_test(roc_by_hand),
		cmocka_unit_test(hypergeometric),
		cmocka_unit_test(no_spread),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
