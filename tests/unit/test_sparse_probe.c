/* Regression on sparse rows: it comes near the optimum of its objective, threads and rows that are left out change nothing. scikit-learn is asked in
 * tests/ctaprobe_transfer.bats. */
#include "base/rng.h"
#include "eval/sparse_probe.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 3000, D = 400, K = 5 };

/* Rows of about 60 values; each class has more of 20 features. */
static void make(struct sparse *x, uint32_t *y)
{
	struct rng r = rng_at(1, RNG_TEST, 0, 0);
	x->d = D;
	for (uint32_t i = 0; i < N; i++) {
		float row[D];
		size_t n = 0;
		y[i] = i < K ? i : rng_below(&r, K);
		for (uint32_t j = 0; j < D; j++) {
			int own = j / 20 == y[i];
			row[j] = rng_unit(&r) < (own ? .3 : .14) ? (float)(1 + rng_unit(&r)) : 0;
			n += row[j] > 0;
		}
		uint64_t at = sparse_add(x, n);
		for (uint32_t j = 0; j < D; j++)
			if (row[j] > 0) {
				x->column[at] = j;
				x->value[at++] = row[j];
			}
	}
}

/* Row i is of one of the classes of y[i]: of the class itself, or of those under label y[i] - K. */
static const uint8_t under[2 * K] = {1, 1, 0, 0, 0, 0, 1, 1, 1, 0};
static int allows(uint32_t y, size_t c)
{
	return y < K ? c == y : under[(y - K) * K + c];
}

/* The objective of the header, and its gradient by the weights and intercepts: g [(D + 1) K] */
static double objective(const struct sparse *x, const uint32_t *y, const double *w, double penalty, double *g)
{
	double f = 0;
	for (size_t j = 0; j < (D + 1) * K; j++) {
		double p = j < D * K ? penalty : 0;
		f += p / 2 * w[j] * w[j];
		g[j] = p * w[j];
	}
	for (size_t i = 0; i < N; i++) {
		double z[K], sum = 0, inside = 0;
		for (size_t c = 0; c < K; c++) {
			z[c] = w[D * K + c];
			for (uint64_t j = x->offset[i]; j < x->offset[i + 1]; j++)
				z[c] += w[x->column[j] * K + c] * (double)x->value[j];
		}
		for (size_t c = 0; c < K; c++) {
			sum += exp(z[c]);
			inside += allows(y[i], c) ? exp(z[c]) : 0;
		}
		f += (log(sum) - log(inside)) / N;
		for (size_t c = 0; c < K; c++) {
			double residual = (exp(z[c]) / sum - (allows(y[i], c) ? exp(z[c]) / inside : 0)) / N;
			g[D * K + c] += residual;
			for (uint64_t j = x->offset[i]; j < x->offset[i + 1]; j++)
				g[x->column[j] * K + c] += residual * (double)x->value[j];
		}
	}
	return f;
}

/* The optimum in float64: the objective is convex (nearly so with labels above classes), so steps of gradient descent with momentum lead there. */
static double optimum(const struct sparse *x, const uint32_t *y, double penalty)
{
	static double w[(D + 1) * K], old[(D + 1) * K], g[(D + 1) * K];
	double f = 0;
	memset(w, 0, sizeof w);
	memset(old, 0, sizeof old);
	for (size_t t = 0; t < 2000; t++) {
		f = objective(x, y, w, penalty, g);
		for (size_t j = 0; j < (D + 1) * K; j++) {
			double next = w[j] + .9 * (w[j] - old[j]) - .04 * g[j];
			old[j] = w[j];
			w[j] = next;
		}
	}
	return f;
}

/* The fit comes near the optimum. */
static void near(const struct sparse *x, const uint32_t *y, double penalty)
{
	struct sparse_probe p;
	struct error e;
	static uint32_t row[N];
	static double w[(D + 1) * K], g[(D + 1) * K];
	for (uint32_t i = 0; i < N; i++)
		row[i] = i;
	assert_int_equal(sparse_probe_fit(&p, x, row, N, y, K, NULL, under, penalty, &e), 0);
	for (size_t j = 0; j <= D; j++)
		for (size_t c = 0; c < K; c++)
			w[j * K + c] = (double)(j < D ? p.w[j * p.stride + c] : p.b[c]);
	double best = optimum(x, y, penalty), f = objective(x, y, w, penalty, g);
	print_message("  penalty %g: %.5f, optimum %.5f\n", penalty, f, best);
	assert_true(f < best * 1.0005);
	sparse_probe_release(&p);
}

static void near_the_optimum(void **state)
{
	(void)state;
	struct sparse x = {0};
	static uint32_t y[N];
	make(&x, y);
	for (double penalty = 3e-3; penalty < 1; penalty *= 10)
		near(&x, y, penalty);
	for (size_t i = K; i < N; i += 3) /* labels above classes */
		y[i] = y[i] < 2 ? K : y[i] < 4 ? K + 1 : y[i];
	near(&x, y, .03);
	sparse_release(&x);
}

/* Labels that the rows do not tell leave no row settled: passes go on until the optimum is near, and the order of the rows does not matter. */
static void wrong_labels(void **state)
{
	(void)state;
	struct sparse x = {0};
	struct sparse_probe p[2];
	struct error e;
	static uint32_t y[N], row[N];
	struct rng r = rng_at(2, RNG_TEST, 0, 0);
	double apart = 0, size = 0;
	make(&x, y);
	for (size_t i = K; i < N; i++)
		y[i] = rng_unit(&r) < .5 ? rng_below(&r, K) : y[i];
	near(&x, y, 3e-3);
	for (uint32_t back = 0; back < 2; back++) {
		for (uint32_t i = 0; i < N; i++)
			row[i] = back ? N - 1 - i : i;
		assert_int_equal(sparse_probe_fit(&p[back], &x, row, N, y, K, NULL, NULL, 3e-3, &e), 0);
	}
	for (size_t j = 0; j < D * p->stride; j++) {
		apart += fabs((double)p[0].w[j] - (double)p[1].w[j]);
		size += fabs((double)p[0].w[j]);
	}
	print_message("  reversed: %.4f of the weights\n", apart / size);
	assert_true(apart < .03 * size);
	sparse_probe_release(&p[0]);
	sparse_probe_release(&p[1]);
	sparse_release(&x);
}

/* Rows that are all the same say only how frequent the classes are. */
static void same_rows(void **state)
{
	(void)state;
	struct sparse x = {.d = D};
	struct sparse_probe p;
	struct error e;
	static uint32_t y[N], row[N];
	for (uint32_t i = 0; i < N; i++) {
		uint64_t at = sparse_add(&x, 1);
		x.column[at] = 3;
		x.value[at] = .1f;
		row[i] = i;
		y[i] = i < K ? i : 1;
	}
	assert_int_equal(sparse_probe_fit(&p, &x, row, N, y, K, NULL, NULL, 3e-3, &e), 0);
	struct sparse_row own = {0};
	float z[8], sum = 0;
	sparse_row(&x, 0, &own);
	sparse_probe_logits(&p, &own, z);
	for (size_t c = 0; c < K; c++)
		sum += expf(z[c] - z[1]);
	print_message("  most frequent class: %.4f\n", (double)(1 / sum));
	assert_true(fabs(1 / (double)sum - (N - K + 1.) / N) < 1e-3);
	sparse_row_release(&own);
	sparse_probe_release(&p);
	sparse_release(&x);
}

static void rows_left_out(void **state)
{
	(void)state;
	struct sparse x = {0};
	struct sparse_probe a, b;
	struct error e;
	static uint32_t y[N], row[N];
	float z[8];
	make(&x, y);
	for (uint32_t i = 0; i < N / 2; i++)
		row[i] = 2 * i;
	assert_int_equal(sparse_probe_fit(&a, &x, row, N / 2, y, K, NULL, NULL, .01, &e), 0);
	for (uint32_t i = 1; i < N; i += 2) { /* rows that are not of the fit */
		y[i] = K;
		x.value[x.offset[i]] = 1e30f;
	}
	assert_int_equal(sparse_probe_fit(&b, &x, row, N / 2, y, K, NULL, NULL, .01, &e), 0);
	assert_memory_equal(a.w, b.w, a.d * a.stride * sizeof *a.w);
	assert_memory_equal(a.b, b.b, a.stride * sizeof *a.b);
	size_t right = 0;
	for (size_t i = 0; i < N; i += 2) {
		size_t best = 0;
		struct sparse_row own = {0};
		sparse_row(&x, i, &own);
		sparse_probe_logits(&a, &own, z);
		for (size_t c = 1; c < K; c++)
			best = z[c] > z[best] ? c : best;
		right += best == y[i];
	}
	assert_true(right > N / 2 * 9 / 10);
	sparse_probe_release(&a);
	sparse_probe_release(&b);
	sparse_release(&x);
}

/* A row on the ray from the mean to that of a class is like it; one on the other side of the mean is not; with two classes it is like the other. */
static void centroids(void **state)
{
	(void)state;
	struct sparse x = {.d = 3};
	struct centroids c;
	const float value[6][3] = {{4, 0, 0}, {2, 0, 0}, {0, 3, 0}, {0, 3, 0}, {0, 0, 3}, {1, 1, 1}};
	uint32_t y[6] = {0, 0, 1, 1, 2, 2}, row[5] = {0, 1, 2, 3, 4};
	for (size_t i = 0; i < 6; i++) {
		uint64_t at = sparse_add(&x, 3);
		for (uint32_t j = 0; j < 3; j++, at++) {
			x.column[at] = j;
			x.value[at] = value[i][j];
		}
	}
	centroids_fit(&c, &x, row, 5, y, NULL, 3);
	const double mean[3] = {6. / 5, 6. / 5, 3. / 5}, of[3][3] = {{3, 0, 0}, {0, 3, 0}, {0, 0, 3}};
	for (size_t i = 0; i < 6; i++) {
		double most = -1;
		for (size_t a = 0; a < 3; a++) {
			double xy = 0, xx = 0, yy = 0;
			for (size_t j = 0; j < 3; j++) {
				double u = (double)value[i][j] - mean[j], v = of[a][j] - mean[j];
				xy += u * v;
				xx += u * u;
				yy += v * v;
			}
			most = fmax(most, xy / sqrt(xx * yy));
		}
		struct sparse_row r = {0};
		sparse_row(&x, i, &r);
		assert_true(fabs(centroids_distance(&c, &r) - (1 - most)) < 1e-6);
	}
	centroids_release(&c);
	sparse_release(&x);
}

/* A row of weight 2 is two rows. */
static void weights(void **state)
{
	(void)state;
	struct sparse x = {0};
	struct sparse_probe a, b;
	struct centroids c, d;
	struct error e;
	static uint32_t y[N], row[N], twice[2 * N];
	static float weight[N];
	size_t n = 0;
	float u[8], v[8];
	double apart = 0;
	make(&x, y);
	for (uint32_t i = 0; i < N; i++) {
		row[i] = i;
		weight[i] = y[i] < 2 ? 2 : 1;
		for (float k = 0; k < weight[i]; k++)
			twice[n++] = i;
	}
	assert_int_equal(sparse_probe_fit(&a, &x, row, N, y, K, weight, NULL, .01, &e), 0);
	assert_int_equal(sparse_probe_fit(&b, &x, twice, n, y, K, NULL, NULL, .01, &e), 0);
	centroids_fit(&c, &x, row, N, y, weight, K);
	centroids_fit(&d, &x, twice, n, y, NULL, K);
	for (size_t i = 0; i < N; i++) {
		struct sparse_row own = {0};
		sparse_row(&x, i, &own);
		sparse_probe_logits(&a, &own, u);
		sparse_probe_logits(&b, &own, v);
		for (size_t j = 0; j < K; j++) {
			assert_true(fabsf(u[j] - v[j]) < .1f);
			apart += fabs((double)u[j] - (double)v[j]) / N / K;
		}
		assert_true(fabs(centroids_distance(&c, &own) - centroids_distance(&d, &own)) < 1e-5);
	}
	print_message("  weights and rows that are repeated: %.4f\n", apart);
	assert_true(apart < .02);
	sparse_probe_release(&a);
	sparse_probe_release(&b);
	centroids_release(&c);
	centroids_release(&d);
	sparse_release(&x);
}

/* Counts come back from packed rows, and the values are those of the formula; a fit of packed and of plain rows is the same. */
static void packed(void **state)
{
	(void)state;
	struct sparse x = {.d = 70000};
	struct sparse_row row = {0}, of = {0};
	struct sparse_probe a, b;
	struct error e;
	struct rng r = rng_at(2, RNG_TEST, 0, 0);
	static uint32_t column[50][200], y[50], all[50];
	static uint64_t count[50][200];
	for (uint32_t i = 0; i < 50; i++) {
		all[i] = i;
		y[i] = i % 3;
		for (size_t j = 0; j < 4 * (size_t)i; j++) { /* not in order; the first row has none */
			column[i][j] = j % 7 ? rng_below(&r, 300) : rng_below(&r, 70000);
			count[i][j] = j % 11 ? 1 + rng_below(&r, 40) : j % 2 ? UINT32_MAX : 300 + rng_below(&r, 100000);
		}
		sparse_pack(&x, column[i], count[i], 4 * i, 0);
	}
	assert_int_equal(x.values, 4 * 49 * 50 / 2);
	for (size_t i = 0; i < 50; i++) {
		uint64_t total = 0;
		sparse_counts(&x, i, &of);
		assert_int_equal(of.n, 4 * i);
		assert_memory_equal(of.column, column[i], 4 * i * sizeof *of.column);
		assert_memory_equal(of.count, count[i], 4 * i * sizeof *of.count);
		for (size_t j = 0; j < 4 * i; j++)
			total += of.count[j];
		sparse_row(&x, i, &row);
		assert_int_equal(row.n, 4 * i);
		for (size_t j = 0; j < row.n; j++) {
			assert_int_equal(row.column[j], of.column[j]);
			assert_true(row.value[j] == (float)log1p(1e4 * (double)of.count[j] / (double)total));
		}
	}
	assert_int_equal(sparse_probe_fit(&a, &x, all, 50, y, 3, NULL, NULL, .01, &e), 0);
	sparse_unpack(&x);
	assert_null(x.packed);
	assert_int_equal(x.offset[50], 4 * 49 * 50 / 2);
	assert_int_equal(sparse_probe_fit(&b, &x, all, 50, y, 3, NULL, NULL, .01, &e), 0);
	assert_memory_equal(a.w, b.w, a.d * a.stride * sizeof *a.w);
	assert_memory_equal(a.b, b.b, a.stride * sizeof *a.b);
	sparse_row_release(&row);
	sparse_row_release(&of);
	sparse_probe_release(&a);
	sparse_probe_release(&b);
	sparse_release(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(near_the_optimum),
		cmocka_unit_test(wrong_labels),
		cmocka_unit_test(same_rows),
		cmocka_unit_test(rows_left_out),
		cmocka_unit_test(centroids),
		cmocka_unit_test(weights),
		cmocka_unit_test(packed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
