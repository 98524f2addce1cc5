/* Spearman's correlation over marker features: by hand, with ties, and with zeros that are not stored. */
#include "eval/marker_ranks.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void add(struct sparse *x, const float *value)
{
	size_t n = 0;
	for (size_t j = 0; j < x->d; j++)
		n += value[j] > 0;
	uint64_t at = sparse_add(x, n);
	for (uint32_t j = 0; j < x->d; j++)
		if (value[j] > 0) {
			x->column[at] = j;
			x->value[at++] = value[j];
		}
}

static void is_like(const struct marker_ranks *r, const struct sparse *x, size_t i, double first, double second)
{
	struct marker_rank own[16];
	struct sparse_row row = {0};
	double correlation[2];
	sparse_row(x, i, &row);
	marker_ranks_correlation(r, &row, own, correlation);
	assert_true(fabs(correlation[0] - first) < 1e-9 && fabs(correlation[1] - second) < 1e-9);
	sparse_row_release(&row);
}

/* Means over the markers, all but the third feature: (2.5, 2.5, 0, 0), (0, 0, 3, 1); the ranks less their mean: (1, 1, -1, -1), (-1, -1, 1.5, .5).
 * If the first row stands for three, the first mean is (3.25, 2.25, 0, 0), with (1.5, .5, -1, -1). */
static void test_correlation(void **state)
{
	/* four to learn from, of which the last has no class, and four others */
	static const float cells[][5] = {
		{4, 2, 1}, {1, 3, 1}, {0, 0, 1, 3, 1}, {0, 0, 9}, {2, 2, 7, 1}, {4, 3, 0, 2, 1}, {0, 0, 5}, {1, 1, 0, 1, 1}};
	static const uint32_t row[] = {0, 1, 2, 3}, y[] = {0, 0, 1, 2};
	static const float weight[] = {3, 1, 1, 1};
	struct sparse x = {.d = 5};
	struct marker_ranks r;
	for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
		add(&x, cells[i]);
	for (int weighted = 0; weighted < 2; weighted++) {
		marker_ranks_fit(&r, &x, row, 4, y, weighted ? weight : NULL, 2);
		assert_int_equal(r.m, 4);
		is_like(&r, &x, 4, weighted ? 4 / 4.5 : 4 / sqrt(4 * 4.5), -3.5 / 4.5); /* (1, 1, -.5, -1.5) */
		is_like(&r, &x, 5, weighted ? 4.5 / sqrt(4.5 * 5) : 4 / sqrt(4 * 5), -3.5 / sqrt(4.5 * 5)); /* (1.5, .5, -.5, -1.5) */
		is_like(&r, &x, 6, 0, 0);
		is_like(&r, &x, 7, 0, 0);
		marker_ranks_release(&r);
	}
	sparse_release(&x);
}

/* Of twelve features that are higher in the first class the ten with the highest d: not the one that is least higher, nor the one that varies. */
static void test_markers(void **state)
{
	static const float cells[][13] = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 24}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {[12] = 1}};
	static const uint32_t row[] = {0, 1, 2}, y[] = {0, 0, 1};
	struct sparse x = {.d = 13};
	struct marker_ranks r;
	for (size_t i = 0; i < 3; i++)
		add(&x, cells[i]);
	marker_ranks_fit(&r, &x, row, 3, y, NULL, 2);
	assert_int_equal(r.m, 11);
	for (uint32_t j = 0; j < 13; j++)
		assert_int_equal(r.at[j], j == 0 || j == 11 ? 11 : j == 12 ? 10 : j - 1);
	marker_ranks_release(&r);
	sparse_release(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_correlation), cmocka_unit_test(test_markers)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
