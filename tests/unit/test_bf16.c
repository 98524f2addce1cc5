/*
 * Products in bfloat16 on the CPU: how numbers are rounded, and when weights are packed anew. test_ops.c, compiled once more, compares the results
 * of all ops with loops in double.
 */
#include "numbers.h"

/* To nearest, ties to even. */
static float rounded(float x)
{
	uint32_t bits;
	memcpy(&bits, &x, 4);
	bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
	memcpy(&x, &bits, 4);
	return x;
}

static float *round_all(const float *x, size_t n)
{
	float *y = xcalloc(n, 4);
	for (size_t i = 0; i < n; i++)
		y[i] = rounded(x[i]);
	return y;
}

/* The same bits as from inputs that were rounded before, ties among them. */
static void rounding(void **state)
{
	enum { T = 37, K = 75, N = 41 };
	struct ops *o = ops_cpu_new_bf16(2);
	float *x = random_floats(T * K, 3), *W = random_floats(N * K, 1), *dy = random_floats(T * N, 1);
	for (size_t i = 0; i < T * K; i += 3) { /* half-way between two neighbours of bfloat16 */
		uint32_t bits;
		memcpy(&bits, x + i, 4);
		bits = (bits & 0xffff0000) | 0x8000;
		memcpy(x + i, &bits, 4);
	}
	float *xr = round_all(x, T * K), *Wr = round_all(W, N * K), *dyr = round_all(dy, T * N);
	float *y[2], *dx[2], *dW[2];
	for (int i = 0; i < 2; i++) {
		y[i] = xcalloc(T * N, 4), dx[i] = xcalloc(T * K, 4), dW[i] = xcalloc(N * K, 4);
		o->linear(o, y[i], NULL, i ? xr : x, i ? Wr : W, NULL, T, K, N, ACT_NONE);
		o->linear_back(o, dx[i], dW[i], NULL, i ? dyr : dy, i ? xr : x, i ? Wr : W, NULL, NULL, T, K, N, ACT_NONE, 0);
	}
	assert_memory_equal(y[0], y[1], T * N * 4);
	assert_memory_equal(dx[0], dx[1], T * K * 4);
	assert_memory_equal(dW[0], dW[1], N * K * 4);
	assert_true(x[0] != xr[0]);
	for (int i = 0; i < 2; i++)
		free(y[i]), free(dx[i]), free(dW[i]);
	free(x), free(W), free(dy), free(xr), free(Wr), free(dyr);
	o->destroy(o);
}

/* What is not a number, or infinite, stays so: training stops at such a loss. */
static void not_finite(void **state)
{
	struct ops *o = ops_cpu_new_bf16(1);
	float x[] = {NAN, 1, INFINITY, 1}, W[] = {1, 2}, y[2];
	o->linear(o, y, NULL, x, W, NULL, 2, 2, 1, ACT_NONE);
	assert_true(isnan(y[0]) && isinf(y[1]));
	o->destroy(o);
}

/* Weights are packed anew after an update, after params_changed, and when other weights come to lie in the same memory. */
static void weights(void **state)
{
	struct ops *o = ops_cpu_new_bf16(1);
	float x[] = {1, 2}, dy[] = {1}, y, dx[2], g[] = {-1, -1}, m[2] = {0}, v[2] = {0};
	float *W = o->alloc(o, 2 * sizeof *W);
	struct adamw_args a = {.lr = 1, .beta1 = 0.9, .beta2 = 0.999, .t = 1, .gscale = 1};
#define EXPECT(w0, w1) \
	do { \
		o->linear(o, &y, NULL, x, W, NULL, 1, 2, 1, ACT_NONE); \
		o->linear_back(o, dx, NULL, NULL, dy, x, W, NULL, NULL, 1, 2, 1, ACT_NONE, 0); \
		assert_float_equal(y, (w0) + 2 * (w1), 1e-5); \
		assert_float_equal(dx[0], w0, 1e-5); \
		assert_float_equal(dx[1], w1, 1e-5); \
	} while (0)
	W[0] = 3, W[1] = 5;
	EXPECT(3, 5);
	W[0] = 7;
	EXPECT(3, 5); /* nobody said so: the packed ones are in use */
	o->params_changed(o, W, 2);
	EXPECT(7, 5);
	o->adamw(o, W, g, m, v, 2, &(double){2}, &a);
	EXPECT(8, 6);
	o->free(o, o->alloc(o, 1));
	W[1] = 1;
	EXPECT(8, 1);
	o->free(o, W);
	o->destroy(o);
}

static void refused(void **state)
{
	setenv("CORRMASK_CPU", "avx2", 1);
	assert_null(ops_cpu_new_bf16(1));
	unsetenv("CORRMASK_CPU");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rounding),
		cmocka_unit_test(not_finite),
		cmocka_unit_test(weights),
		cmocka_unit_test(refused),
	};
	struct ops *here = ops_cpu_new_bf16(1);
	if (!here) {
		puts("skipped, but for the refusal: this processor has no AVX512-BF16, or CORRMASK_CPU excludes it");
		return _cmocka_run_group_tests("refusal", &tests[3], 1, NULL, NULL);
	}
	here->destroy(here);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
