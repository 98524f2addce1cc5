/* Counts from normalised values: those that went in, or none; noise and fractions; what values are. */
#include "anndata/values.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static uint64_t state = 1;

static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

static double uniform(void)
{
	return (double)(next() >> 11) * 0x1p-53;
}

static double logged(enum unlog by, double y)
{
	return by == UNLOG_EXP ? log1p(y) : by == UNLOG_EXP2 ? log2(1 + y) : by == UNLOG_EXP10 ? log10(1 + y) : y;
}

static uint32_t divisor(uint32_t a, uint32_t b)
{
	while (b) {
		uint32_t r = a % b;
		a = b;
		b = r;
	}
	return a;
}

enum { MOST = 400 };

/* Normalise counts by `unit` in float32, take them back; they are refused, or those that went in divided by their greatest common divisor. */
static int comes_back(enum unlog by, const uint32_t *count, size_t n, double unit)
{
	double v[MOST], error[MOST];
	uint32_t back[MOST], common = 0;
	struct unlogged u;
	for (size_t i = 0; i < n; i++) {
		common = divisor(common, count[i]);
		v[i] = (float)logged(by, (float)(count[i] * unit));
	}
	if (unlog_cell(by, v, error, n, back, &u))
		return 0;
	for (size_t i = 0; i < n; i++)
		assert_int_equal(back[i], count[i] / common);
	assert_true(fabs(u.unit - unit * common) < 1e-5 * unit * common);
	assert_true(u.off < .5);
	return 1;
}

static void counts_come_back(void **unused)
{
	static const double depth[] = {1, 10, 300, 2000, 50000};
	for (enum unlog by = UNLOG_SAME; by < UNLOGS; by++)
		for (int k = 0; k < 4000; k++) {
			uint32_t count[MOST];
			size_t n = 1 + next() % (k % 4 ? 30 : MOST - 1);
			double most = depth[next() % 5], unit = exp(8 * uniform() - 4), times = 1 + (double)(next() % 3);
			for (size_t i = 0; i < n; i++)
				count[i] = (uint32_t)(times * floor(exp(log(1 + most) * pow(uniform(), 2))));
			if (n < MOST / 2) /* few values without a 1 may be too few to say */
				count[0] = (uint32_t)times;
			assert_true(comes_back(by, count, n, unit));
		}
}

/* Beyond what float32 holds they are refused, never wrong. */
static void deep_cells(void **unused)
{
	int back = 0, refused = 0;
	for (int k = 0; k < 2000; k++) {
		uint32_t count[MOST];
		for (size_t i = 0; i < MOST; i++)
			count[i] = (uint32_t)floor(exp(uniform() * (8 + k % 12)));
		(*(comes_back(UNLOG_EXP, count, MOST, 1e-3) ? &back : &refused))++;
	}
	assert_true(back > 500 && refused > 300);
}

static void other_values(void **unused)
{
	double v[MOST], error[MOST], keep[MOST];
	uint32_t count[MOST];
	struct unlogged u;
	for (int k = 0; k < 3000; k++) {
		size_t n = 8 + next() % 100;
		for (size_t i = 0; i < n; i++)
			keep[i] = 8 * uniform();
		for (enum unlog by = UNLOG_SAME; by < UNLOGS; by++) {
			memcpy(v, keep, sizeof v);
			assert_int_equal(unlog_cell(by, v, error, n, count, &u), -1);
		}
	}
	/* one value is wrong by a thousandth: a finer unit does not explain it */
	for (int k = 0; k < 3000; k++) {
		size_t n = 10 + next() % 100, at = next() % n;
		for (size_t i = 0; i < n; i++)
			v[i] = log1p(.7 * (double)(1 + next() % 20) * (i == at ? 1.001 : 1));
		assert_int_equal(unlog_cell(UNLOG_EXP, v, error, n, count, &u), -1);
	}
	const double bad[] = {-1, NAN, INFINITY, 1e6};
	for (size_t k = 0; k < 4; k++) {
		v[0] = 1;
		v[1] = bad[k];
		assert_int_equal(unlog_cell(UNLOG_EXP, v, error, 2, count, &u), -1);
	}
	/* a value that rounding could have made of zero */
	for (double tiny = 1e-320; tiny < 1e-7; tiny *= 7)
		for (double other = tiny; other < 100 * tiny; other *= 1.3) {
			v[0] = tiny;
			v[1] = other;
			assert_int_equal(unlog_cell(UNLOG_EXP, v, error, 2, count, &u), -1);
		}
	v[0] = v[1] = 0;
	assert_int_equal(unlog_cell(UNLOG_EXP, v, error, 2, count, &u), 0);
	assert_true(count[0] == 0 && count[1] == 0);
}

static void noise(void **unused)
{
	const double v[] = {0, 1 + 9e-5, 2 - 9e-5, 7, 10000.03};
	uint32_t count[5];
	double off = 0;
	assert_int_equal(number_rounded(NUMBER_F64, v, 5, 0, count, &off), 5);
	assert_true(count[1] == 1 && count[2] == 2 && count[3] == 7 && count[4] == 10000);
	assert_true(fabs(off - .03) < 1e-9);
	const double fraction[] = {3, 1.001, 2.5, 3.5, -.00001};
	assert_int_equal(number_rounded(NUMBER_F64, fraction, 5, 0, count, &off), 1);
	assert_int_equal(number_rounded(NUMBER_F64, fraction, 5, 1, count, &off), 4);
	assert_true(count[0] == 3 && count[1] == 1 && count[2] == 2 && count[3] == 4 && off == .5);
	double many[1000];
	uint32_t out[1000];
	for (size_t i = 0; i < 1000; i++)
		many[i] = (double)i + 1e-5;
	assert_int_equal(number_rounded(NUMBER_F64, many, 1000, 0, out, &off), 1000);
	many[600] = 2.01;
	assert_int_equal(number_rounded(NUMBER_F64, many, 1000, 0, out, &off), 600);
	for (size_t i = 0; i < 600; i++)
		assert_int_equal(out[i], i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_come_back),
		cmocka_unit_test(deep_cells),
		cmocka_unit_test(other_values),
		cmocka_unit_test(noise),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
