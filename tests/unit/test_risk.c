/*
 * Masked regression: theory against tests/ref/risk.tsv (tests/ref/risk.py golden, in numpy from the definitions), the sums of all genes
 * against one gene at a time, simulation against theory. tests/maskrisk.bats asks numpy about larger models.
 */
#include "base/tsv.h"
#include "risk/risk_genes.h"
#include "risk/risk_simulate.h"
#include "risk/risk_theory.h"

#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct error e;

static void close_to(double got, double want, double tolerance)
{
	if (!(fabs(got - want) <= tolerance * (fabs(want) > 1e-3 ? fabs(want) : 1e-3)))
		fail_msg("%.15g, expected %.15g", got, want);
}

static struct risk_model model_of(struct risk_spec s)
{
	struct risk_model m = {0};
	if (risk_model_draw(&m, &s, &e))
		fail_msg("%s", e.msg);
	return m;
}

/* Sigma_ij = scale_i scale_j rho^|i - j| */
static double *autoregressive(uint32_t p, double rho, int scaled)
{
	double *a = xcalloc((size_t)p * p, sizeof *a);
	for (uint32_t i = 0; i < p; i++)
		for (uint32_t j = 0; j < p; j++)
			a[i * p + j] = pow(rho, fabs((double)i - j)) * (scaled ? (1 + i % 5) * (1.0 + j % 5) : 1);
	return a;
}

/* ---- theory ---- */

static void check_limit(const double *x)
{
	struct risk r;
	if (x[1] == 0) { /* c */
		risk_isotropic(x[0], x[3], x[4], x[5], &r);
		close_to(r.risk, x[6], 1e-12);
	}
	risk_spiked(x[0], x[1], x[2], x[3], x[4], x[5], &r);
	close_to(r.risk, x[6], 1e-12);
	close_to(r.bias, x[7], 1e-12);
	close_to(r.variance, x[8], 1e-12);
}

static void check_autoregressive(const double *x)
{
	uint32_t p = (uint32_t)x[0];
	double *sigma = autoregressive(p, x[1], 0);
	struct risk_model m = model_of((struct risk_spec){.kind = RISK_MATRIX, .p = p, .matrix = sigma});
	struct risk_theory t;
	struct risk r;
	for (uint32_t i = 0; i < p; i++)
		m.beta[i] = 1 / sqrt(p);
	m.noise = x[4];
	assert_int_equal(risk_theory_init(&t, &m, &e), 0);
	assert_true(t.constant);
	for (int own = 0; own < 2; own++) { /* by the shared eigenvectors, and by those of the ratio */
		t.constant = !own;
		assert_int_equal(risk_finite(&t, x[2], x[3], &r, &e), 0);
		close_to(t.null, x[5], 1e-11);
		close_to(r.risk, x[7], 1e-11);
		close_to(r.bias, x[8], 1e-11);
		close_to(r.variance, x[9], 1e-11);
		close_to(r.magnitude, x[10], 1e-11);
	}
	double value[50];
	for (uint32_t j = 0; j < p; j++)
		value[j] = (1 - x[3]) * ((1 - x[3]) * t.value[j] + x[3]);
	close_to(risk_kappa(value, p, x[2] * x[3]), x[6], 1e-11);
	risk_theory_release(&t);
	risk_model_release(&m);
	free(sigma);
}

static void check_rowwise(const double *x)
{
	double ratio[] = {0.3, 0.5, 0.7}, rows[3], *sigma = autoregressive((uint32_t)x[0], x[1], 1);
	struct risk_model m = model_of((struct risk_spec){.kind = RISK_MATRIX, .p = (uint32_t)x[0], .matrix = sigma});
	struct risk_theory t;
	struct risk r;
	for (uint32_t i = 0; i < m.p; i++)
		m.beta[i] = 1 / sqrt(m.p);
	m.noise = 0.25;
	for (int i = 0; i < 3; i++)
		rows[i] = x[2] * ratio[i] / 3;
	assert_int_equal(risk_theory_init(&t, &m, &e), 0);
	assert_int_equal(risk_rowwise(&t, 3, ratio, rows, &r, &e), 0);
	close_to(r.risk, x[3], 1e-9);
	risk_theory_release(&t);
	risk_model_release(&m);
	free(sigma);
}

static void golden(void **state)
{
	static const struct {
		const char *name;
		void (*check)(const double *);
	} kind[] = {{"limit", check_limit}, {"ar1", check_autoregressive}, {"rowwise", check_rowwise}};
	struct tsv t;
	int got, found[3] = {0};
	assert_int_equal(tsv_open(&t, "tests/ref/risk.tsv", &e), 0);
	while ((got = tsv_next(&t, &e)) > 0) {
		double x[16] = {0};
		for (size_t i = 1; i < t.n && i <= 16; i++)
			x[i - 1] = strtod(t.field[i], NULL);
		for (int k = 0; k < 3; k++)
			if (strcmp(t.field[0], kind[k].name) == 0) {
				kind[k].check(x);
				found[k]++;
			}
	}
	assert_int_equal(got, 0);
	assert_true(found[0] == 10 && found[1] == 4 && found[2] == 3);
	tsv_close(&t);
}

/* A range that is one ratio, and one group of rows, are the fixed ratio. */
static void ranges(void **state)
{
	double *sigma = autoregressive(40, 0.7, 1);
	struct risk_model m = model_of((struct risk_spec){.kind = RISK_MATRIX, .p = 40, .matrix = sigma, .quantile = 0.9});
	struct risk_theory t;
	struct risk a, b, c;
	m.noise = 0.25;
	assert_int_equal(risk_theory_init(&t, &m, &e), 0);
	for (double n = 30; n < 300; n *= 4) {
		assert_int_equal(risk_finite(&t, n, 0.5, &a, &e), 0);
		assert_int_equal(risk_range(&t, n, 0.5, 0.5, 0, &b, &e), 0);
		assert_int_equal(risk_range(&t, n, 0.5, 0.5, 1, &c, &e), 0);
		close_to(b.risk, a.risk, 1e-9);
		close_to(c.risk, a.risk, 1e-9);
		close_to(b.magnitude, a.magnitude, 1e-9);
		/* equal expected rows; coupled rows have fewer masks */
		assert_int_equal(risk_range(&t, n, 0.4, 0.6, 0, &b, &e), 0);
		assert_int_equal(risk_range(&t, n, 0.4, 0.6, 1, &c, &e), 0);
		assert_true(b.risk != c.risk && isnan(b.bias));
	}
	risk_theory_release(&t);
	risk_model_release(&m);
	free(sigma);
}

/* Above the threshold, and only there, the risk falls at small ratios. */
static void threshold(void **state)
{
	for (int i = 0; i <= 10; i++) {
		struct risk_model m =
			model_of((struct risk_spec){.kind = RISK_UNIFORM, .p = 60, .largest = 10, .quantile = i / 10.0, .seed = 3});
		struct risk_theory t;
		struct risk r;
		m.noise = 4;
		assert_int_equal(risk_theory_init(&t, &m, &e), 0);
		assert_int_equal(risk_finite(&t, 40, 1e-4, &r, &e), 0);
		assert_true(fabs(t.null - t.value[(int)lrint(i * 5.9)]) < 1e-9);
		assert_int_equal(r.risk<t.null, t.null> risk_threshold(t.mean, t.square, m.noise));
		risk_theory_release(&t);
		risk_model_release(&m);
	}
}

static void pole(void **state)
{
	struct risk_model m = model_of((struct risk_spec){.kind = RISK_ISOTROPIC, .p = 20});
	struct risk_theory t;
	struct risk r;
	m.noise = 1;
	assert_int_equal(risk_theory_init(&t, &m, &e), 0);
	assert_int_equal(risk_finite(&t, 40, 0.5, &r, &e), 0);
	assert_true(isinf(r.risk) && r.bias < 1e-20);
	risk_theory_release(&t);
	risk_model_release(&m);
}

/* ---- models ---- */

static void check_model(const struct risk_model *m)
{
	size_t p = m->p;
	close_to(cblas_dnrm2((int)p, m->beta, 1), 1, 1e-12);
	for (size_t i = 0; i < p; i++)
		for (size_t j = 0; j <= i; j++) {
			double sum = 0;
			for (size_t k = 0; k <= j; k++)
				sum += m->factor[k * p + i] * m->factor[k * p + j];
			close_to(sum, m->sigma[i * p + j], 1e-9);
			assert_true(m->sigma[i * p + j] == m->sigma[j * p + i]);
		}
	double *scratch = xcalloc(2 * p, sizeof *scratch);
	cblas_dsymv(CblasColMajor, CblasLower, (int)p, 1, m->sigma, (int)p, m->beta, 1, 0, scratch, 1);
	close_to(risk_model_norm(m, m->beta, scratch + p), cblas_ddot((int)p, scratch, 1, m->beta, 1), 1e-12);
	free(scratch);
}

/* The eigenvalues of a model's Sigma; value [p] */
static void spectrum(const struct risk_model *m, double *value)
{
	double *a = xmalloc((size_t)m->p * m->p * sizeof *a);
	memcpy(a, m->sigma, (size_t)m->p * m->p * sizeof *a);
	assert_int_equal(risk_eigen(a, m->p, value, &e), 0);
	free(a);
}

static void models(void **state)
{
	double value[300], given[40];
	struct risk_model m = model_of((struct risk_spec){.kind = RISK_SPIKED, .p = 50, .spike = 4, .alignment = 0.6});
	check_model(&m);
	spectrum(&m, value);
	close_to(value[49], 5, 1e-12);
	close_to(value[48], 1, 1e-12);
	double scratch[50];
	close_to(risk_model_norm(&m, m.beta, scratch), 1 + 4 * 0.6 * 0.6, 1e-12);
	risk_model_release(&m);

	m = model_of((struct risk_spec){.kind = RISK_UNIFORM, .p = 300, .largest = 10, .quantile = 0.5});
	check_model(&m);
	spectrum(&m, value);
	double mean = 0;
	for (int j = 0; j < 300; j++)
		mean += value[j] / 300;
	assert_true(value[0] >= 1 && value[299] <= 10 && fabs(mean - 5.5) < 0.5);
	risk_model_release(&m);

	m = model_of((struct risk_spec){.kind = RISK_LATENT, .p = 300, .latent = 150, .largest = 10, .quantile = 1});
	check_model(&m);
	spectrum(&m, value);
	assert_true(fabs(value[0] - 1) < 1e-9 && fabs(value[149] - 1) < 1e-9 && value[150] > 1.01 && fabs(value[299] - 10) < 0.8);
	risk_model_release(&m);

	m = model_of((struct risk_spec){.kind = RISK_BLOCK, .p = 10, .blocks = 3, .correlation = 0.4, .quantile = 1});
	check_model(&m);
	assert_true(m.sigma[0 * 10 + 3] == 0.4 && m.sigma[0 * 10 + 4] == 0 && m.sigma[4 * 10 + 6] == 0.4 && m.sigma[6 * 10 + 7] == 0);
	risk_model_release(&m);

	for (int j = 0; j < 40; j++)
		given[j] = j < 35 ? 1 : 9;
	m = model_of((struct risk_spec){.kind = RISK_EIGEN, .p = 40, .eigenvalue = given, .top = 5});
	check_model(&m);
	spectrum(&m, value);
	for (int j = 0; j < 40; j++)
		close_to(value[j], given[j], 1e-12);
	close_to(risk_model_norm(&m, m.beta, scratch), 9, 1e-12);
	risk_model_release(&m);
}

/* Mean, variance and third central moment of Gamma(a, 1) are a, a and 2 a. */
static void gamma_moments(void **state)
{
	static const double shape[] = {0.3, 1, 2.5, 10};
	enum { N = 40000 };
	double *x = xcalloc(N, sizeof *x);
	for (int k = 0; k < 4; k++) {
		struct rng r = rng_at(1, RNG_TEST, (uint64_t)k, 0);
		double a = shape[k], mean = 0, two = 0, three = 0;
		for (int i = 0; i < N; i++)
			mean += (x[i] = risk_gamma(&r, a)) / N;
		for (int i = 0; i < N; i++) {
			two += pow(x[i] - mean, 2) / N;
			three += pow(x[i] - mean, 3) / N;
		}
		if (fabs(mean - a) > 4 * sqrt(a / N) || fabs(two / a - 1) > 4 * sqrt((2 + 6 / a) / N) || fabs(three / (2 * a) - 1) > 0.25)
			fail_msg("Gamma(%g): mean %.4f, variance %.4f, third moment %.4f", a, mean, two, three);
	}
	free(x);
}

/* The skewness of Beta(a, b) does not depend on the scale. */
static void beta_skewness(void **state)
{
	static const double shape[][2] = {{1, 10}, {2, 5}, {0.5, 0.5}, {3, 0.7}};
	for (int k = 0; k < 4; k++) {
		double a = shape[k][0], b = shape[k][1], value[500], mean = 0, two = 0, three = 0;
		struct risk_model m =
			model_of((struct risk_spec){.kind = RISK_BETA, .p = 500, .largest = 10, .a = a, .b = b, .quantile = 1});
		spectrum(&m, value);
		close_to(value[0], 1, 1e-9);
		close_to(value[499], 10, 1e-9);
		for (int j = 0; j < 500; j++)
			mean += value[j] / 500;
		for (int j = 0; j < 500; j++) {
			two += pow(value[j] - mean, 2) / 500;
			three += pow(value[j] - mean, 3) / 500;
		}
		double want = 2 * (b - a) * sqrt(a + b + 1) / ((a + b + 2) * sqrt(a * b));
		if (fabs(three / pow(two, 1.5) - want) > 0.35) /* standard error about 0.12 */
			fail_msg("Beta(%g, %g): skewness %.3f, expected %.3f", a, b, three / pow(two, 1.5), want);
		risk_model_release(&m);
	}
}

static void not_definite(void **state)
{
	double sigma[] = {1, 2, 2, 1};
	struct risk_model m = {0};
	assert_int_equal(risk_model_draw(&m, &(struct risk_spec){.kind = RISK_MATRIX, .p = 2, .matrix = sigma}, &e), -1);
	assert_non_null(strstr(e.msg, "not positive definite"));
}

/* ---- all genes ---- */

/* Target t of sigma [p, p] directly: its row and column removed. */
static double one_target(const double *sigma, uint32_t p, uint32_t t, double rows, double rate, double *explained)
{
	uint32_t k = p - 1;
	double *a = xcalloc((size_t)k * k, sizeof *a), *c = xcalloc(2 * (size_t)k, sizeof *c), *beta = c + k;
	for (uint32_t i = 0; i < k; i++) {
		c[i] = beta[i] = sigma[(i + (i >= t)) * p + t];
		for (uint32_t j = 0; j < k; j++)
			a[i * k + j] = sigma[(i + (i >= t)) * p + j + (j >= t)];
	}
	struct risk_model m = model_of((struct risk_spec){.kind = RISK_MATRIX, .p = k, .matrix = a});
	struct risk_theory theory;
	struct risk r;
	LAPACKE_dpotrs(LAPACK_COL_MAJOR, 'L', (int)k, 1, m.factor, (int)k, beta, (int)k);
	memcpy(m.beta, beta, k * sizeof *beta);
	*explained = cblas_ddot((int)k, c, 1, beta, 1);
	m.noise = sigma[t * p + t] - *explained;
	assert_int_equal(risk_theory_init(&theory, &m, &e), 0);
	assert_int_equal(risk_finite(&theory, rows, rate, &r, &e), 0);
	risk_theory_release(&theory);
	risk_model_release(&m);
	free(a);
	free(c);
	return r.risk;
}

static void genes(void **state)
{
	enum { P = 24 };
	double rate[] = {0.1, 0.3, 0.6, 0.85}, rows[] = {15, 50, 300};
	double *sigma = autoregressive(P, 0.7, 1);
	for (int n = 0; n < 3; n++)
		for (int threads = 1; threads <= 3; threads += 2) {
			struct risk_genes g = {.p = P, .sigma = sigma, .rows = rows[n], .nrate = 4, .rate = rate, .threads = threads};
			assert_int_equal(risk_genes_run(&g, &e), 0);
			for (uint32_t t = 0; t < P; t++)
				for (int k = 0; k < 4; k++) {
					double explained, want = one_target(sigma, P, t, rows[n], rate[k], &explained);
					close_to(g.explained[t], explained / sigma[t * P + t], 1e-10);
					close_to(g.risk[k * P + t], want / sigma[t * P + t], 1e-8);
				}
			risk_genes_release(&g);
		}
	sigma[1] = sigma[P] = 1e3;
	struct risk_genes g = {.p = P, .sigma = sigma, .rows = 10, .nrate = 4, .rate = rate, .threads = 1};
	assert_int_equal(risk_genes_run(&g, &e), -1);
	assert_non_null(strstr(e.msg, "not positive definite"));
	free(sigma);
}

/* ---- simulation ---- */

/* X b = X b0 on the rows, and b without a part that no row reaches: the defining properties of the solution of smallest norm. */
static void solve(void **state)
{
	double scratch[100], b[4];
	/* two equations, one of them twice, and a row of zeros */
	double x[] = {1, 0, 2, 0, 0, 0, 0, 0, 0, 3, 0, 0, 1, 0, 2, 0}, y[] = {5, 7, 6, 5};
	assert_int_equal(risk_solve(x, y, 4, 4, b, scratch, &e), 0);
	static const double want[] = {1, 2, 2, 0};
	for (int i = 0; i < 4; i++)
		close_to(b[i], want[i], 1e-12);
	/* fewer rows than features, full rank */
	double x2[] = {1, 0, 2, 0, 0, 3, 0, 0}, y2[] = {5, 6};
	assert_int_equal(risk_solve(x2, y2, 2, 4, b, scratch, &e), 0);
	for (int i = 0; i < 4; i++)
		close_to(b[i], want[i], 1e-12);
	/* more rows than features: the mean of two answers; a feature that is never seen */
	double x3[] = {1, 0, 1, 0, 1, 0}, y3[] = {1, 3, 8};
	assert_int_equal(risk_solve(x3, y3, 3, 2, b, scratch, &e), 0);
	close_to(b[0], 4, 1e-12);
	close_to(b[1], 0, 1e-12);
	double x4[] = {1, 0, 0, 2, 1, 2}, y4[] = {1, 2, 6};
	assert_int_equal(risk_solve(x4, y4, 3, 2, b, scratch, &e), 0);
	close_to(b[0], 2, 1e-12);
	close_to(b[1], 1.5, 1e-12);
	/* nothing to learn from */
	double x5[] = {0, 0, 0}, y5[] = {1};
	assert_int_equal(risk_solve(x5, y5, 1, 3, b, scratch, &e), 0);
	assert_true(b[0] == 0 && b[1] == 0 && b[2] == 0);
}

static void same_on_any_threads(void **state)
{
	struct risk_model m = model_of((struct risk_spec){.kind = RISK_BETA, .p = 60, .largest = 10, .a = 1, .b = 10, .quantile = 1});
	m.noise = 0.25;
	struct risk_rate rate[] = {{0.55, 0.55, RISK_INDEPENDENT}, {0.55, 0.55, RISK_COUPLED}, {0.4, 0.7, RISK_INDEPENDENT},
		{0.4, 0.7, RISK_COUPLED}, {0.55, 0.55, RISK_ROUNDED}};
	struct risk_mean a[5], b[5];
	for (int same = RISK_SAME_NOTHING; same <= RISK_SAME_ROWS; same++) {
		struct risk_trials t = {
			.m = &m, .seed = 2, .rows = 20, .runs = 12, .same = (enum risk_same)same, .nrate = 5, .rate = rate, .threads = 1};
		assert_int_equal(risk_simulate(&t, a, &e), 0);
		t.threads = 3;
		assert_int_equal(risk_simulate(&t, b, &e), 0);
		assert_memory_equal(a, b, sizeof a);
		/* a range of one ratio is that ratio, exactly, coupled or not */
		assert_memory_equal(&a[0], &a[1], sizeof *a);
		assert_true(a[2].risk != a[3].risk && a[2].risk != a[0].risk && a[4].kept == 11);
		t.nrate = 1;
		t.rate = rate + 1; /* the other ratios do not change a result */
		assert_int_equal(risk_simulate(&t, b, &e), 0);
		assert_memory_equal(&a[1], &b[0], sizeof *a);
	}
	risk_model_release(&m);
}

/* Within three standard errors and 2 %, over and under p rows, fixed and row-wise ratios. */
static void simulation_is_theory(void **state)
{
	struct risk_model m = model_of((struct risk_spec){.kind = RISK_BETA, .p = 150, .largest = 10, .a = 1, .b = 10, .quantile = 1});
	struct risk_rate rate[] = {
		{0.2, 0.2, RISK_INDEPENDENT}, {0.5, 0.5, RISK_ROUNDED}, {0.3, 0.6, RISK_INDEPENDENT}, {0.3, 0.6, RISK_COUPLED}};
	struct risk_theory t;
	struct risk_mean a[4];
	struct risk want;
	m.noise = 0.25;
	assert_int_equal(risk_theory_init(&t, &m, &e), 0);
	for (uint32_t rows = 60; rows <= 1500; rows *= 25) {
		struct risk_trials trials = {
			.m = &m, .seed = 1, .rows = rows, .runs = rows == 60 ? 150 : 12, .nrate = 4, .rate = rate, .threads = 2};
		assert_int_equal(risk_simulate(&trials, a, &e), 0);
		for (int k = 0; k < 4; k++) {
			if (rate[k].lo == rate[k].hi)
				assert_int_equal(risk_finite(&t, rows, rate[k].lo, &want, &e), 0);
			else
				assert_int_equal(risk_range(&t, rows, rate[k].lo, rate[k].hi, rate[k].keep == RISK_COUPLED, &want, &e), 0);
			if (fabs(a[k].risk - want.risk) > 3 * a[k].risk_se + 0.02 * want.risk ||
				fabs(a[k].magnitude - want.magnitude) > 3 * a[k].magnitude_se + 0.02 * want.magnitude)
				fail_msg("%u rows, ratio %g to %g: risk %.4f (se %.4f), expected %.4f; magnitude %.4f, expected %.4f", rows,
					rate[k].lo, rate[k].hi, a[k].risk, a[k].risk_se, want.risk, a[k].magnitude, want.magnitude);
		}
	}
	risk_theory_release(&t);
	risk_model_release(&m);
}

int main(void)
{
	openblas_set_num_threads(1);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden),
		cmocka_unit_test(ranges),
		cmocka_unit_test(threshold),
		cmocka_unit_test(pole),
		cmocka_unit_test(models),
		cmocka_unit_test(gamma_moments),
		cmocka_unit_test(beta_skewness),
		cmocka_unit_test(not_definite),
		cmocka_unit_test(genes),
		cmocka_unit_test(solve),
		cmocka_unit_test(same_on_any_threads),
		cmocka_unit_test(simulation_is_theory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
