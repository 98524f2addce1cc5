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
	nearest_rows(q, m, x, n, d, k, 2, neighbour, distance);
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
	nearest_rows(x, n, x, n, d, 1, 1, neighbour, distance);
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

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_search), cmocka_unit_test(test_rows)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
