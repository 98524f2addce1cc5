/* Nearest neighbours against a plain search in float64, over several blocks and tiles, with rows that are equal. */
#include "eval/neighbours.h"

#include "base/error.h"
#include "base/rng.h"

#include <cblas.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static float *rows(size_t n, size_t d, float step)
{
	float *x = xmalloc(n * d * sizeof *x);
	for (size_t i = 0; i < n * d; i++) {
		uint32_t ctr[4] = {(uint32_t)i}, out[4];
		rng_block(1, RNG_TEST, ctr, out);
		x[i] = (float)out[0] / 4294967296.0f;
		if (step < 0) /* two far clusters of rows .002 apart: float32 swaps up to two on either side, with errors of 3e-5 in x^2 */
			x[i] = (i % 2 ? 10 : -10) + 0.002f * (float)(i / 2);
		if (step > 0) /* few values, so many distances are equal */
			x[i] = step * floorf(x[i] / step);
	}
	return x;
}

static double between(const float *x, size_t d, size_t a, size_t b)
{
	double sum = 0;
	for (size_t j = 0; j < d; j++)
		sum += ((double)x[a * d + j] - (double)x[b * d + j]) * ((double)x[a * d + j] - (double)x[b * d + j]);
	return sqrt(sum);
}

/* The distances of the k nearest rows are the k smallest of all, in order. Equal ones may be of other rows. */
static void check(size_t n, size_t d, size_t k, float step)
{
	float *x = rows(n, d, step);
	uint32_t *neighbour = xmalloc(n * k * sizeof *neighbour), *again = xmalloc(n * k * sizeof *again);
	double *distance = xmalloc(n * k * sizeof *distance), *least = xmalloc((k + 1) * sizeof *least);
	nearest_neighbours(x, n, d, k, 1, neighbour, distance);
	for (size_t i = 0; i < n; i++) {
		size_t kept = 0;
		for (size_t j = 0; j < n; j++) {
			double v = between(x, d, i, j);
			size_t at = kept;
			if (j == i || (kept == k && v >= least[k - 1]))
				continue;
			for (; at && least[at - 1] > v; at--)
				least[at] = least[at - 1];
			least[at] = v;
			kept += kept < k;
		}
		for (size_t j = 0; j < k; j++) {
			assert_true(neighbour[i * k + j] < n && neighbour[i * k + j] != i);
			assert_true(fabs(distance[i * k + j] - least[j]) < 1e-6);
			assert_true(fabs(distance[i * k + j] - between(x, d, i, neighbour[i * k + j])) < 1e-6);
			for (size_t l = 0; l < j; l++)
				assert_int_not_equal(neighbour[i * k + l], neighbour[i * k + j]);
		}
	}
	nearest_neighbours(x, n, d, k, 3, again, distance);
	assert_memory_equal(neighbour, again, n * k * sizeof *again);
	free(x);
	free(neighbour);
	free(again);
	free(distance);
	free(least);
}

/* The rows of one matrix among those of another: with equal matrices, every row finds itself first. */
static void check_rows(size_t m, size_t n, size_t d, size_t k)
{
	float *x = rows(n, d, 0), *q = rows(m, d, 0);
	uint32_t *neighbour = xmalloc(m * k * sizeof *neighbour);
	double *distance = xmalloc(m * k * sizeof *distance), *all = xmalloc(n * sizeof *all);
	for (size_t i = 0; i < m * d; i++)
		q[i] = 1 - q[i] * q[i];
	nearest_rows(q, m, x, n, d, NULL, k, 2, neighbour, distance);
	for (size_t i = 0; i < m; i++) {
		for (size_t j = 0; j < n; j++) {
			all[j] = 0;
			for (size_t l = 0; l < d; l++)
				all[j] += pow((double)q[i * d + l] - (double)x[j * d + l], 2);
		}
		for (size_t j = 0; j < k; j++) {
			size_t nearer = 0;
			for (size_t l = 0; l < n; l++)
				nearer += all[l] < all[neighbour[i * k + j]];
			assert_int_equal(nearer, j);
			assert_true(fabs(distance[i * k + j] - sqrt(all[neighbour[i * k + j]])) < 1e-6);
		}
	}
	neighbour = xrealloc(neighbour, n, sizeof *neighbour);
	distance = xrealloc(distance, n, sizeof *distance);
	nearest_rows(x, n, x, n, d, NULL, 1, 1, neighbour, distance);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(neighbour[i], i);
	free(x);
	free(q);
	free(neighbour);
	free(distance);
	free(all);
}

static void test_rows(void **state)
{
	openblas_set_num_threads(1);
	check_rows(1, 1, 1, 1);
	check_rows(3, 5, 2, 5);
	check_rows(300, 2300, 6, 15);
}

static void test_search(void **state)
{
	openblas_set_num_threads(1);
	check(2, 1, 1, 0);
	check(5, 3, 4, 0);
	check(2300, 4, 15, 0);
	check(300, 70, 7, 0);
	check(400, 2, 15, 0.25f);
	check(200, 1, 1, -1);
}

/* ---- any finite rows ---- */

static uint32_t draw(uint32_t set, uint32_t i)
{
	uint32_t ctr[4] = {i, set}, out[4];
	rng_block(2, RNG_TEST, ctr, out);
	return out[0];
}

/* A value of about -4 ... 4, in steps of 1/8 or not. */
static double value(uint32_t set, uint32_t i, int grid)
{
	double v = 8 * (double)draw(set, i) / 4294967296.0 - 4;
	return grid ? floor(8 * v) / 8 : v;
}

/* Row i of set number `set`: clusters as far as 1e30, outliers, one scale or many, large and small, equal rows. */
static void any_row(float *x, uint32_t set, uint32_t i, uint32_t d)
{
	static const double size[] = {1, 1, 1e3, 1e4, 1e6, 1e10, 1e19, 1e20, 1e22, 1e30, 1e37, 1e-15, 1e-25, 1e-37};
	double far = size[draw(set, 1) % 14], unit = draw(set, 2) % 3 ? 1 : size[draw(set, 3) % 14];
	uint32_t kind = draw(set, 4) % 6, same = draw(set, 10 + i) % 4 ? i : i / 2; /* some rows are equal */
	for (uint32_t j = 0; j < d; j++) {
		double v = value(set, 1000 + same * d + j, draw(set, 5) % 2);
		if (kind == 1 && j == 0) /* two clusters */
			v += far * (same % 2 ? 1 : -1);
		if (kind == 2 && i == 0 && j == 0) /* an outlier */
			v = far;
		if (kind == 3) /* far away, all */
			v += far;
		if (kind == 4) /* many sizes */
			v *= size[draw(set, 100000 + j) % 14];
		if (kind == 5 && i % 7 == 0)
			v *= far;
		v *= unit;
		x[i * d + j] = (float)(fabs(v) < 3e38 ? v : copysign(3e38, v));
	}
}

/* The k nearest of x [n, d] to q, without row `self`: a plain search. The sums have other roundings than the search has. */
static void plain(
	const float *q, const float *x, size_t n, size_t d, const double *scale, size_t self, size_t k, uint32_t *row, double *least)
{
	size_t kept = 0;
	for (size_t i = 0; i < n; i++) {
		double sum = 0;
		if (i == self)
			continue;
		for (size_t j = 0; j < d; j++) {
			double v = ((double)q[j] - (double)x[i * d + j]) / (scale ? scale[j] : 1);
			sum += v * v;
		}
		if (kept == k && !(sum < least[k - 1]))
			continue;
		size_t at = kept < k ? kept++ : k - 1;
		for (; at && least[at - 1] > sum; at--) {
			least[at] = least[at - 1];
			row[at] = row[at - 1];
		}
		least[at] = sum;
		row[at] = (uint32_t)i;
	}
}

/* The rows of the plain search, but where two sums differ only by their rounding. */
static void compare(const uint32_t *row, const double *distance, const uint32_t *want, const double *least, size_t k, int exact)
{
	for (size_t j = 0; j < k; j++) {
		assert_true(fabs(distance[j] - sqrt(least[j])) <= 1e-14 * distance[j]);
		assert_true(!j || distance[j] >= distance[j - 1]);
		if (exact)
			assert_int_equal(row[j], want[j]);
	}
}

/* 500 sets. All sums of few values in steps of 1/8 are exact, so there the rows must be the same, ties too. */
static void test_any_rows(void **state)
{
	enum { MOST = 260, WIDE = 40, NEAR = 20 };
	static float q[MOST * WIDE], x[MOST * WIDE];
	static uint32_t row[MOST * NEAR], want[NEAR];
	static double distance[MOST * NEAR], least[NEAR], scale[WIDE];
	openblas_set_num_threads(1);
	for (uint32_t set = 0; set < 500; set++) {
		uint32_t n = 3 + draw(set, 6) % (MOST - 3), d = 1 + draw(set, 7) % WIDE, k = 1 + draw(set, 8) % NEAR, m = n / 2 + 1;
		int exact =
			draw(set, 5) % 2 && draw(set, 2) % 3 && (draw(set, 4) % 6 == 0 || (draw(set, 4) % 6 < 4 && draw(set, 1) % 14 < 5));
		k = k < n ? k : n - 1;
		for (uint32_t i = 0; i < n; i++)
			any_row(x, set, i, d);
		nearest_neighbours(x, n, d, k, 1, row, distance);
		for (size_t i = 0; i < n; i++) {
			plain(x + i * d, x, n, d, NULL, i, k, want, least);
			compare(row + i * k, distance + i * k, want, least, k, exact);
		}
		for (size_t j = 0; j < d; j++)
			scale[j] = ldexp(1, (int)(draw(set, 9) % 200) - 100 + (int)(j % 3));
		memcpy(q, x + (n - m) * d, m * d * sizeof *q);
		nearest_rows(q, m, x, n, d, set % 2 ? scale : NULL, k, 2, row, distance);
		for (size_t i = 0; i < m; i++) {
			plain(q + i * d, x, n, d, set % 2 ? scale : NULL, SIZE_MAX, k, want, least);
			compare(row + i * k, distance + i * k, want, least, k, exact);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_search), cmocka_unit_test(test_rows), cmocka_unit_test(test_any_rows)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
