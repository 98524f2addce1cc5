#include "eval/count_regression.h"

#include <cblas.h>
#include <lapacke.h>
#include <lbfgs.h>

enum { ITERATIONS = 150 };
static const double LOG_MOST = 15; /* of an expected count: no overflow on the way to the optimum */

/* z [n, genes] = x w + b */
static void linear(const struct count_regression *r, const float *x, size_t n, float *z)
{
	for (size_t i = 0; i < n; i++)
		memcpy(z + i * r->genes, r->w + r->d * r->genes, r->genes * sizeof *z);
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, (int)r->genes, (int)r->d, 1, x, (int)r->d, r->w, (int)r->genes, 1, z,
		(int)r->genes);
}

/* ---- Poisson ---- */

struct poisson {
	struct count_regression *r;
	const float *x, *y;
	const double *s;
	size_t n;
	double penalty, least; /* least: no loss is below it */
	double *scale; /* [genes] weights are searched times this, so that all genes have about the same curvature */
	float *z, *g; /* [n, genes] log mu, then mu - y; [d + 1, genes] */
};

/* z: log mu - log s in, the gradient mu - y out. Returns the sum of the losses. */
static double residuals(const struct poisson *p)
{
	size_t genes = p->r->genes;
	double loss = 0;
	for (size_t i = 0; i < p->n; i++) {
		float logs = (float)log(p->s[i]), *z = p->z + i * genes;
		const float *y = p->y + i * genes;
		double row = 0;
		for (size_t j = 0; j < genes; j++) {
			float l = fminf(z[j] + logs, (float)LOG_MOST), mu = expf(l);
			row += (double)(mu - y[j] * l);
			z[j] = mu - y[j];
		}
		loss += row;
	}
	return loss;
}

static lbfgsfloatval_t evaluate(void *arg, const lbfgsfloatval_t *u, lbfgsfloatval_t *g, const int size, const lbfgsfloatval_t step)
{
	struct poisson *p = arg;
	struct count_regression *r = p->r;
	size_t d = r->d, genes = r->genes, n = p->n;
	double square = 0;
	(void)size;
	(void)step;
	for (size_t k = 0; k <= d; k++)
		for (size_t j = 0; j < genes; j++)
			r->w[k * genes + j] = (float)(u[k * genes + j] / p->scale[j]);
	linear(r, p->x, n, p->z);
	double loss = residuals(p) / (double)n;
	cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)d, (int)genes, (int)n, 1, p->x, (int)d, p->z, (int)genes, 0, p->g,
		(int)genes);
	memset(p->g + d * genes, 0, genes * sizeof *p->g);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < genes; j++)
			p->g[d * genes + j] += p->z[i * genes + j];
	for (size_t k = 0; k <= d; k++)
		for (size_t j = 0; j < genes; j++) {
			double w = k < d ? u[k * genes + j] / p->scale[j] : 0;
			square += w * w;
			g[k * genes + j] = ((double)p->g[k * genes + j] / (double)n + p->penalty * w) / p->scale[j];
		}
	return loss - p->least + p->penalty / 2 * square; /* positive: L-BFGS stops by its relative change */
}

static int fit_poisson(struct poisson *p, struct error *e)
{
	struct count_regression *r = p->r;
	size_t genes = r->genes, size = (r->d + 1) * genes;
	double sum = 0, *mean = xcalloc(genes, sizeof *mean);
	lbfgsfloatval_t *u = xchecked(lbfgs_malloc((int)size)), f;
	lbfgs_parameter_t how;
	p->scale = xmalloc(genes * sizeof *p->scale);
	p->z = xmalloc(p->n * genes * sizeof *p->z);
	p->g = xmalloc(size * sizeof *p->g);
	memset(u, 0, size * sizeof *u);
	for (size_t i = 0; i < p->n; i++) {
		sum += p->s[i];
		for (size_t j = 0; j < genes; j++) {
			double y = (double)p->y[i * genes + j];
			mean[j] += y;
			p->least += (y > 0 ? y - y * log(y) : 0) / (double)p->n;
		}
	}
	for (size_t j = 0; j < genes; j++) {
		double total = fmax(mean[j], 0.5);
		p->scale[j] = sqrt(total / (double)p->n);
		u[r->d * genes + j] = log(total / sum) * p->scale[j];
	}
	lbfgs_parameter_init(&how);
	how.max_iterations = ITERATIONS;
	how.linesearch = LBFGS_LINESEARCH_BACKTRACKING_ARMIJO;
	how.past = 5;
	how.delta = 1e-6;
	int got = lbfgs((int)size, u, &f, evaluate, NULL, p, &how);
	/* float32 gradients are noise at the optimum: no step down is found */
	int bad = !isfinite(f) ||
		(got < 0 && got != LBFGSERR_MAXIMUMITERATION && got != LBFGSERR_MAXIMUMLINESEARCH && got != LBFGSERR_MINIMUMSTEP &&
			got != LBFGSERR_ROUNDING_ERROR && got != LBFGSERR_INCREASEGRADIENT);
	for (size_t k = 0; k < size; k++)
		r->w[k] = (float)(u[k] / p->scale[k % genes]);
	lbfgs_free(u);
	free_all(mean, p->scale, p->z, p->g);
	return bad ? error_set(e, "Poisson regression found no optimum (L-BFGS: %d)", got) : 0;
}

/* ---- ridge ---- */

static int fit_ridge(struct count_regression *r, const float *x, size_t n, const float *y, double penalty, struct error *e)
{
	size_t d = r->d, genes = r->genes;
	double *mean = xcalloc(d, sizeof *mean), *a = xcalloc(d * d, sizeof *a), *b = xcalloc((d + 1) * genes, sizeof *b),
	       *ym = b + d * genes;
	double *c = xmalloc(d * sizeof *c), *t = xmalloc(genes * sizeof *t);
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < d; k++)
			mean[k] += (double)x[i * d + k] / (double)n;
		for (size_t j = 0; j < genes; j++)
			ym[j] += log1p((double)y[i * genes + j]) / (double)n;
	}
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < d; k++)
			c[k] = (double)x[i * d + k] - mean[k];
		for (size_t j = 0; j < genes; j++)
			t[j] = log1p((double)y[i * genes + j]) - ym[j];
		cblas_dsyr(CblasRowMajor, CblasLower, (int)d, 1, c, 1, a, (int)d);
		cblas_dger(CblasRowMajor, (int)d, (int)genes, 1, c, 1, t, 1, b, (int)genes);
	}
	for (size_t k = 0; k < d; k++)
		a[k * d + k] += penalty * (double)n;
	int bad = LAPACKE_dposv(LAPACK_ROW_MAJOR, 'L', (int)d, (int)genes, a, (int)d, b, (int)genes);
	for (size_t j = 0; j < genes; j++) {
		for (size_t k = 0; k < d; k++) {
			r->w[k * genes + j] = (float)b[k * genes + j];
			ym[j] -= b[k * genes + j] * mean[k];
		}
		r->w[d * genes + j] = (float)ym[j];
	}
	free_all(mean, a, b, c, t);
	return bad ? error_set(e, "ridge regression has no solution (dposv: %d)", bad) : 0;
}

/* The factors that make the mean counts right. */
static void calibrate(struct count_regression *r, const float *x, size_t n, const float *y, const double *s)
{
	FREED float *mu = xmalloc(n * r->genes * sizeof *mu);
	FREED double *expected = xcalloc(r->genes, sizeof *expected), *seen = xcalloc(r->genes, sizeof *seen);
	for (size_t j = 0; j < r->genes; j++)
		r->factor[j] = 1;
	count_regression_predict(r, x, n, s, mu);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < r->genes; j++) {
			expected[j] += (double)mu[i * r->genes + j];
			seen[j] += (double)y[i * r->genes + j];
		}
	for (size_t j = 0; j < r->genes; j++)
		r->factor[j] = expected[j] > 0 ? seen[j] / expected[j] : 1;
}

int count_regression_fit(struct count_regression *r, int ridge, const float *x, size_t n, size_t d, const float *y, size_t genes,
	const double *s, double penalty, struct error *e)
{
	*r = (struct count_regression){.d = d, .genes = genes, .ridge = ridge};
	r->w = xmalloc((d + 1) * genes * sizeof *r->w);
	r->factor = xmalloc(genes * sizeof *r->factor);
	if (!ridge)
		return fit_poisson(&(struct poisson){.r = r, .x = x, .y = y, .s = s, .n = n, .penalty = penalty}, e);
	if (fit_ridge(r, x, n, y, penalty, e))
		return -1;
	calibrate(r, x, n, y, s);
	return 0;
}

void count_regression_predict(const struct count_regression *r, const float *x, size_t n, const double *s, float *mu)
{
	linear(r, x, n, mu);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < r->genes; j++) {
			double z = (double)mu[i * r->genes + j];
			double m = r->ridge ? fmax(0, expm1(z)) * r->factor[j] : exp(fmin(z + log(s[i]), LOG_MOST));
			mu[i * r->genes + j] = (float)m;
		}
}

void count_regression_release(struct count_regression *r)
{
	free_all(r->w, r->factor);
	*r = (struct count_regression){0};
}
