#include "risk/risk_model.h"

#include "base/tsv.h"

#include <cblas.h>
#include <lapacke.h>
#include <stdlib.h>
#include <string.h>

/* b of rng_at: the purpose of a draw. risk_simulate.c goes on from 16. Never renumber. */
enum { COEFFICIENT, SPIKE, EIGENVALUE, ROTATION, FACTOR, ORTHOGONAL };

static struct rng draw(const struct risk_spec *s, uint64_t a, uint32_t purpose)
{
	return rng_at(s->seed, RNG_RISK, a, purpose);
}

static void normalise(double *x, uint32_t n)
{
	cblas_dscal((int)n, 1 / cblas_dnrm2((int)n, x, 1), x, 1);
}

/* A unit vector from uniform entries in (0, 1). */
static void uniform_vector(const struct risk_spec *s, uint32_t purpose, double *x, uint32_t n)
{
	struct rng r = draw(s, 0, purpose);
	for (uint32_t i = 0; i < n; i++)
		x[i] = 1 - rng_unit(&r);
	normalise(x, n);
}

double risk_gamma(struct rng *r, double shape)
{
	if (shape < 1)
		return risk_gamma(r, shape + 1) * pow(1 - rng_unit(r), 1 / shape);
	double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
	for (;;) {
		double x = rng_normal(r), v = 1 + c * x;
		if (v <= 0)
			continue;
		v = v * v * v;
		if (log(1 - rng_unit(r)) < x * x / 2 + d - d * v + d * log(v))
			return d * v;
	}
}

static void draw_eigenvalues(const struct risk_spec *s, double *value)
{
	double low = INFINITY, high = -INFINITY;
	for (uint32_t j = 0; j < s->p; j++) {
		struct rng r = draw(s, j, EIGENVALUE);
		if (s->kind == RISK_UNIFORM) {
			value[j] = 1 + (s->largest - 1) * rng_unit(&r);
			continue;
		}
		double a = risk_gamma(&r, s->a), b = risk_gamma(&r, s->b);
		value[j] = a / (a + b);
		low = value[j] < low ? value[j] : low;
		high = value[j] > high ? value[j] : high;
	}
	for (uint32_t j = 0; j < s->p && s->kind == RISK_BETA; j++)
		value[j] = high > low ? 1 + (s->largest - 1) * (value[j] - low) / (high - low) : 1;
}

/* sigma = Q diag(value) Q', with Q from the QR decomposition of a normal matrix; the signs of R's diagonal make Q uniform (Haar). A factor
 * -1 of a column of Q cancels here. */
static void rotate(const struct risk_spec *s, const double *value, double *sigma)
{
	size_t p = s->p;
	lapack_int n = (lapack_int)p;
	double *q = xcalloc(p * p, sizeof *q), *tau = xcalloc(p, sizeof *tau);
	for (size_t j = 0; j < p; j++) {
		struct rng r = draw(s, j, ROTATION);
		for (size_t i = 0; i < p; i++)
			q[j * p + i] = rng_normal(&r);
	}
	LAPACKE_dgeqrf(LAPACK_COL_MAJOR, n, n, q, n, tau);
	LAPACKE_dorgqr(LAPACK_COL_MAJOR, n, n, n, q, n, tau);
	for (size_t j = 0; j < p; j++)
		cblas_dscal((int)p, sqrt(value[j]), q + j * p, 1);
	cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, (int)p, (int)p, 1, q, (int)p, 0, sigma, (int)p);
	free(q);
	free(tau);
}

/* sigma += W W'. The largest eigenvalue of W W' tends to variance (sqrt p + sqrt latent)^2. */
static void add_latent(const struct risk_spec *s, double *sigma)
{
	size_t p = s->p, d = s->latent;
	double edge = sqrt((double)p) + sqrt((double)d), sd = sqrt(s->largest - 1) / edge;
	double *w = xcalloc(p * d, sizeof *w);
	for (size_t j = 0; j < d; j++) {
		struct rng r = draw(s, j, FACTOR);
		for (size_t i = 0; i < p; i++)
			w[j * p + i] = sd * rng_normal(&r);
	}
	cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, (int)p, (int)d, 1, w, (int)p, 1, sigma, (int)p);
	free(w);
}

static void add_blocks(const struct risk_spec *s, double *sigma)
{
	size_t p = s->p;
	for (size_t j = 0; j < p; j++)
		for (size_t i = j + 1; i < p && i * s->blocks / p == j * s->blocks / p; i++)
			sigma[j * p + i] = s->correlation;
}

/* The lower triangle of Sigma, by columns. u [p]: the spike, out. */
static void fill_sigma(const struct risk_spec *s, double *sigma, double *u)
{
	size_t p = s->p;
	if (s->kind == RISK_MATRIX) {
		memcpy(sigma, s->matrix, p * p * sizeof *sigma);
		return;
	}
	for (size_t i = 0; i < p; i++)
		sigma[i * p + i] = 1;
	if (s->kind == RISK_SPIKED) {
		uniform_vector(s, SPIKE, u, s->p);
		cblas_dsyr(CblasColMajor, CblasLower, (int)p, s->spike, u, 1, sigma, (int)p);
	} else if (s->kind == RISK_LATENT) {
		add_latent(s, sigma);
	} else if (s->kind == RISK_BLOCK) {
		add_blocks(s, sigma);
	} else if (s->kind == RISK_EIGEN) {
		rotate(s, s->eigenvalue, sigma);
	} else if (s->kind == RISK_UNIFORM || s->kind == RISK_BETA) {
		double *value = xcalloc(p, sizeof *value);
		draw_eigenvalues(s, value);
		rotate(s, value, sigma);
		free(value);
	}
}

/* alignment u + sqrt(1 - alignment^2) v, v a uniform vector without its part along u */
static void align(const struct risk_spec *s, const double *u, double *beta)
{
	int p = (int)s->p;
	uniform_vector(s, ORTHOGONAL, beta, s->p);
	cblas_daxpy(p, -cblas_ddot(p, u, 1, beta, 1), u, 1, beta, 1);
	if (p > 1)
		normalise(beta, s->p);
	cblas_dscal(p, sqrt(1 - s->alignment * s->alignment), beta, 1);
	cblas_daxpy(p, s->alignment, u, 1, beta, 1);
	normalise(beta, s->p);
}

static int choose_eigenvector(const struct risk_spec *s, const double *sigma, double *beta, struct error *e)
{
	size_t p = s->p;
	double *vector = xmalloc(p * p * sizeof *vector), *value = xcalloc(p, sizeof *value);
	memcpy(vector, sigma, p * p * sizeof *vector);
	int status = risk_eigen(vector, s->p, value, e);
	if (!status && s->top) {
		struct rng r = draw(s, 0, COEFFICIENT);
		for (size_t j = p - s->top; j < p; j++)
			cblas_daxpy((int)p, rng_normal(&r), vector + j * p, 1, beta, 1);
		normalise(beta, s->p);
	} else if (!status) {
		memcpy(beta, vector + (size_t)lrint(s->quantile * (double)(p - 1)) * p, p * sizeof *beta);
	}
	free(vector);
	free(value);
	return status;
}

int risk_model_draw(struct risk_model *m, const struct risk_spec *s, struct error *e)
{
	size_t p = s->p;
	double *u = xcalloc(p, sizeof *u);
	*m = (struct risk_model){.p = s->p, .noise = m->noise};
	m->sigma = xcalloc(p * p, sizeof *m->sigma);
	m->factor = xmalloc(p * p * sizeof *m->factor);
	m->beta = xcalloc(p, sizeof *m->beta);
	fill_sigma(s, m->sigma, u);
	for (size_t j = 0; j < p; j++)
		for (size_t i = j + 1; i < p; i++)
			m->sigma[i * p + j] = m->sigma[j * p + i];
	memcpy(m->factor, m->sigma, p * p * sizeof *m->factor);
	lapack_int minor = LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'L', (lapack_int)p, m->factor, (lapack_int)p);
	int status = minor
		? error_set(e, "the covariance matrix is not positive definite (its leading %d x %d part is not)", (int)minor, (int)minor)
		: 0;
	if (s->kind == RISK_ISOTROPIC)
		uniform_vector(s, COEFFICIENT, m->beta, s->p);
	else if (s->kind == RISK_SPIKED)
		align(s, u, m->beta);
	else if (!status)
		status = choose_eigenvector(s, m->sigma, m->beta, e);
	free(u);
	if (status)
		risk_model_release(m);
	return status;
}

void risk_model_release(struct risk_model *m)
{
	free(m->sigma);
	free(m->factor);
	free(m->beta);
	*m = (struct risk_model){0};
}

double risk_model_norm(const struct risk_model *m, const double *x, double *scratch)
{
	int p = (int)m->p;
	memcpy(scratch, x, m->p * sizeof *x);
	cblas_dtrmv(CblasColMajor, CblasLower, CblasTrans, CblasNonUnit, p, m->factor, p, scratch, 1);
	return cblas_ddot(p, scratch, 1, scratch, 1);
}

int risk_eigen(double *a, uint32_t p, double *value, struct error *e)
{
	if (LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'V', 'L', (lapack_int)p, a, (lapack_int)p, value))
		return error_set(e, "the eigenvalues of a %u x %u matrix were not found", p, p);
	return 0;
}

/* ---- text tables ---- */

static int number(const struct tsv *t, size_t i, double *x, struct error *e)
{
	char *end;
	*x = strtod(t->field[i], &end);
	if (end == t->field[i] || *end || !isfinite(*x))
		return tsv_error(t, e, "'%.40s' is not a number", t->field[i]);
	return 0;
}

static int check_symmetric(const char *path, double *a, size_t p, struct error *e)
{
	for (size_t i = 0; i < p; i++)
		for (size_t j = 0; j < i; j++) {
			double x = a[i * p + j], y = a[j * p + i];
			if (fabs(x - y) > 1e-8 * sqrt(fabs(a[i * p + i] * a[j * p + j])))
				return error_set(e, "%s: not symmetric: line %zu, column %zu has %g, and line %zu, column %zu has %g", path,
					i + 1, j + 1, x, j + 1, i + 1, y);
		}
	return 0;
}

int risk_read_matrix(const char *path, double **matrix, uint32_t *p, struct error *e)
{
	struct tsv t;
	size_t n = 0, used = 0, cap = 0;
	double *a = NULL;
	int got;
	if (tsv_open(&t, path, e))
		return -1;
	while ((got = tsv_next(&t, e)) > 0) {
		n = n ? n : t.n;
		if (t.n != n || t.n > RISK_FEATURES_MAX || used == n * n) {
			got = tsv_error(&t, e, "a line of %zu numbers; expected n lines of n numbers, tab-separated, n at most %d", t.n,
				RISK_FEATURES_MAX);
			break;
		}
		grow(a, cap, used + n);
		got = 0;
		for (size_t i = 0; i < n && !got; i++)
			got = number(&t, i, a + used + i, e);
		if (got)
			break;
		used += n;
	}
	tsv_close(&t);
	if (!got && (!n || used != n * n))
		got = error_set(e, "%s: %zu lines of %zu numbers, expected a square matrix", path, n ? used / n : 0, n);
	if (!got)
		got = check_symmetric(path, a, n, e);
	if (got) {
		free(a);
		return -1;
	}
	*matrix = a;
	*p = (uint32_t)n;
	return 0;
}

int risk_read_eigenvalues(const char *path, double **value, uint32_t *p, struct error *e)
{
	struct tsv t;
	size_t n = 0, cap = 0;
	double *v = NULL;
	int got;
	if (tsv_open(&t, path, e))
		return -1;
	while ((got = tsv_next(&t, e)) > 0) {
		double x = 0, times = 1;
		if (t.n > 2)
			got = tsv_error(&t, e, "%zu fields, expected a value, or a value and how often it occurs", t.n);
		else if (number(&t, 0, &x, e) || (t.n == 2 && number(&t, 1, &times, e)))
			got = -1;
		else if (!(x > 0))
			got = tsv_error(&t, e, "%g, expected an eigenvalue above 0", x);
		else if (!(times >= 1) || times != floor(times) || (double)n + times > RISK_FEATURES_MAX)
			got = tsv_error(&t, e, "%g times, expected a whole number, at most %d in all", times, RISK_FEATURES_MAX);
		if (got < 0)
			break;
		grow(v, cap, n + (size_t)times);
		for (size_t i = 0; i < (size_t)times; i++)
			v[n++] = x;
	}
	tsv_close(&t);
	if (!got && !n)
		got = error_set(e, "%s: no eigenvalues", path);
	if (got) {
		free(v);
		return -1;
	}
	*value = v;
	*p = (uint32_t)n;
	return 0;
}
