/*
 * The features are centred here. The intercept is not penalised, so the optimum is the same. L-BFGS works on u = L^T W instead of W, where
 *     L L^T = n p Cov(x) + 1/C diag(q),   p = (1 - 1/K) / K
 * is the Hessian at W = 0 for one class (q_j is 1, or the variance of feature j with `standardize`). So its steps depend little on the
 * scales and correlations of the features. The parameters in memory are rows of weights [rows, d], then intercepts [rows].
 */
#include "eval/probe.h"

#include "base/softmax.h"
#include "base/threads.h"
#include "eval/moments.h"

#include <cblas.h>
#include <lapacke.h>
#include <lbfgs.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK 256   /* rows a matrix product */
#define SLICES 32   /* partial sums over rows; the same for any number of threads */
#define SAMPLE 8192 /* about as many rows give Cov(x), but at least 4 for each feature */

struct problem {
	const float *x;
	const uint32_t *row, *y;
	size_t n, d, k, rows;
	double c;
	double tol;
	double *mean, *penalty; /* [d]: features are x - mean; q above */
	double *factor;         /* [d, d] L, row-major, lower triangle */
	double curvature;       /* n p */
	size_t size;            /* rows * d + rows */
	size_t slices;
	double *part; /* [slices, size] gradients */
	double loss[SLICES];
	int threads;
	double *scratch; /* [threads, CHUNK * (d + rows)] */
	double *theta;   /* [size] the weights and intercepts that are evaluated */
	double gradient;
	int iterations;
};

/* Loss of one row; its logits z become dLoss/dz. */
static double row_loss(double *z, size_t rows, uint32_t y)
{
	if (rows == 1) {
		double s = y ? 1 : -1, m = s * z[0];
		double loss = m > 0 ? log1p(exp(-m)) : log1p(exp(m)) - m;
		z[0] = m > 0 ? -s * exp(-m) / (1 + exp(-m)) : -s / (1 + exp(m));
		return loss;
	}
	double target = z[y], loss = softmax(z, rows) - target;
	z[y] -= 1;
	return loss;
}

static void load_chunk(const struct problem *p, size_t from, size_t n, double *to)
{
	for (size_t i = 0; i < n; i++) {
		const float *x = p->x + (size_t)p->row[from + i] * p->d;
		for (size_t j = 0; j < p->d; j++)
			to[i * p->d + j] = (double)x[j] - p->mean[j];
	}
}

/* Add the gradient of rows [from, to) to g [size]; returns their loss. */
static double slice_loss(const struct problem *p, const double *theta, size_t from, size_t to, double *g, double *x)
{
	const int d = (int)p->d, rows = (int)p->rows;
	double *z = x + CHUNK * p->d, loss = 0;
	const double *b = theta + p->rows * p->d;
	double *gb = g + p->rows * p->d;
	for (size_t at = from; at < to; at += CHUNK) {
		size_t n = to - at < CHUNK ? to - at : CHUNK;
		load_chunk(p, at, n, x);
		for (size_t i = 0; i < n; i++)
			memcpy(z + i * p->rows, b, p->rows * sizeof *z);
		cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, rows, d, 1, x, d, theta, d, 1, z, rows);
		for (size_t i = 0; i < n; i++) {
			loss += row_loss(z + i * p->rows, p->rows, p->y[p->row[at + i]]);
			for (size_t j = 0; j < p->rows; j++)
				gb[j] += z[i * p->rows + j];
		}
		cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, rows, d, (int)n, 1, z, rows, x, d, 1, g, d);
	}
	return loss;
}

static void do_slice(void *arg, size_t s, int thread)
{
	struct problem *p = arg;
	double *x = p->scratch + (size_t)thread * CHUNK * (p->d + p->rows);
	p->loss[s] = slice_loss(p, p->theta, p->n * s / p->slices, p->n * (s + 1) / p->slices, p->part + s * p->size, x);
}

/* u = L^T W and sqrt(curvature) b from the weights, or (back) the weights from these. */
static void precondition(const struct problem *p, double *theta, int back)
{
	const int d = (int)p->d, rows = (int)p->rows;
	double scale = sqrt(p->curvature);
	(back ? cblas_dtrsm : cblas_dtrmm)(
		CblasRowMajor, CblasRight, CblasLower, CblasNoTrans, CblasNonUnit, rows, d, 1, p->factor, d, theta, d);
	for (size_t r = 0; r < p->rows; r++)
		theta[p->rows * p->d + r] *= back ? 1 / scale : scale;
}

/* dLoss/du from dLoss/dW. */
static void precondition_gradient(const struct problem *p, double *g)
{
	const int d = (int)p->d, rows = (int)p->rows;
	cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, rows, d, 1, p->factor, d, g, d);
	for (size_t r = 0; r < p->rows; r++)
		g[p->rows * p->d + r] /= sqrt(p->curvature);
}

static lbfgsfloatval_t evaluate(void *arg, const lbfgsfloatval_t *u, lbfgsfloatval_t *g, const int size, const lbfgsfloatval_t step)
{
	struct problem *p = arg;
	size_t nw = p->rows * p->d;
	memset(p->part, 0, p->slices * p->size * sizeof *p->part);
	memcpy(p->theta, u, p->size * sizeof *p->theta);
	precondition(p, p->theta, 1);
	pool_for(p->threads, p->slices, do_slice, p);
	double f = 0;
	memset(g, 0, p->size * sizeof *g);
	for (size_t s = 0; s < p->slices; s++) {
		f += p->loss[s];
		for (size_t j = 0; j < p->size; j++)
			g[j] += p->part[s * p->size + j];
	}
	double square = 0;
	p->gradient = 0;
	for (size_t j = 0; j < p->size; j++) {
		double unit = 1;
		if (j < nw) {
			double q = p->penalty[j % p->d];
			square += q * p->theta[j] * p->theta[j];
			g[j] += q * p->theta[j] / p->c;
			unit = sqrt(q);
		}
		p->gradient = fmax(p->gradient, fabs(g[j]) / unit);
	}
	precondition_gradient(p, g);
	return f + 0.5 / p->c * square;
}

/* After each iteration: stop at the tolerance. The last point that was evaluated is that of the iteration. */
static int progress(void *arg, const lbfgsfloatval_t *u, const lbfgsfloatval_t *g, const lbfgsfloatval_t fx, const lbfgsfloatval_t xnorm,
	const lbfgsfloatval_t gnorm, const lbfgsfloatval_t step, int n, int k, int ls)
{
	struct problem *p = arg;
	p->iterations = k;
	return p->gradient <= p->tol;
}

static void centre(struct problem *p, int standardize)
{
	moments(p->x, p->d, p->row, p->n, p->mean, p->penalty);
	for (size_t j = 0; j < p->d; j++)
		if (!standardize || !(p->penalty[j] > 0))
			p->penalty[j] = 1;
}

/* Compute the factor L from every few rows. */
static int factorize(struct problem *p, struct error *e)
{
	const int d = (int)p->d;
	size_t want = 4 * p->d > SAMPLE ? 4 * p->d : SAMPLE, every = p->n / want + 1, used = 0;
	double *x = p->scratch, *h = p->factor, trace = 0;
	p->curvature = (double)p->n * (1 - 1 / (double)p->k) / (double)p->k;
	while (used * every < p->n) {
		size_t n = 0;
		for (; n < CHUNK && used * every < p->n; n++, used++)
			load_chunk(p, used * every, 1, x + n * p->d);
		cblas_dsyrk(CblasRowMajor, CblasLower, CblasTrans, d, (int)n, 1, x, d, 1, h, d);
	}
	for (size_t i = 0; i < p->d; i++) {
		for (size_t j = 0; j <= i; j++)
			h[i * p->d + j] *= p->curvature / (double)used;
		h[i * p->d + i] += p->penalty[i] / p->c;
		trace += h[i * p->d + i];
	}
	for (size_t i = 0; i < p->d; i++) { /* features that depend on others; nearly constant ones keep their scale */
		double *own = &h[i * p->d + i];
		*own += fmin(1e-10 * trace / (double)p->d, 1e-6 * *own);
	}
	int bad = LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', d, h, d);
	return bad ? error_set(e, "the covariance of the %zu features has no Cholesky factor (dpotrf: %d)", p->d, bad) : 0;
}

/* Convert the weights to features as given, or (back) from them. */
static void uncentre(const struct problem *p, double *w, double *b, double sign)
{
	for (size_t r = 0; r < p->rows; r++)
		for (size_t j = 0; j < p->d; j++)
			b[r] -= sign * w[r * p->d + j] * p->mean[j];
}

static void store(struct probe *out, const struct problem *p)
{
	out->w = xmalloc(p->rows * p->d * sizeof *out->w);
	out->b = xmalloc(p->rows * sizeof *out->b);
	memcpy(out->w, p->theta, p->rows * p->d * sizeof *out->w);
	memcpy(out->b, p->theta + p->rows * p->d, p->rows * sizeof *out->b);
	uncentre(p, out->w, out->b, 1);
}

static void problem_release(struct problem *p)
{
	free(p->mean);
	free(p->penalty);
	free(p->factor);
	free(p->part);
	free(p->scratch);
	free(p->theta);
}

int probe_fit(struct probe *out, const float *x, size_t d, const uint32_t *row, size_t n, const uint32_t *y, size_t k,
	const struct probe_options *o, struct error *e)
{
	size_t rows = k == 2 ? 1 : k;
	struct problem p = {.x = x,
		.row = row,
		.y = y,
		.n = n,
		.d = d,
		.k = k,
		.rows = rows,
		.c = o->c,
		.tol = o->tol,
		.threads = o->threads,
		.size = rows * d + rows,
		.gradient = INFINITY};
	if (p.size > INT32_MAX / SLICES)
		return error_set(e, "%zu classes x %zu features are too many for the probe", k, d);
	size_t chunks = (n + CHUNK - 1) / CHUNK;
	p.slices = chunks < SLICES ? chunks : SLICES;
	p.mean = xmalloc(d * sizeof *p.mean);
	p.penalty = xmalloc(d * sizeof *p.penalty);
	p.factor = xcalloc(d * d, sizeof *p.factor);
	p.part = xmalloc(p.slices * p.size * sizeof *p.part);
	p.scratch = xmalloc((size_t)p.threads * CHUNK * (d + rows) * sizeof *p.scratch);
	p.theta = xcalloc(p.size, sizeof *p.theta);
	centre(&p, o->standardize);
	if (factorize(&p, e)) {
		problem_release(&p);
		return -1;
	}
	lbfgsfloatval_t *u = lbfgs_malloc((int)p.size), f = 0;
	memset(u, 0, p.size * sizeof *u);
	if (o->start) {
		memcpy(u, o->start->w, rows * d * sizeof *u);
		memcpy(u + rows * d, o->start->b, rows * sizeof *u);
		uncentre(&p, u, u + rows * d, -1);
		precondition(&p, u, 0);
	}
	lbfgs_parameter_t param;
	lbfgs_parameter_init(&param);
	param.m = 10;
	param.epsilon = 0; /* `progress` decides */
	param.max_iterations = o->max_iter;
	int r = lbfgs((int)p.size, u, &f, evaluate, progress, &p, &param);
	/* u is the best point; what was evaluated last may be another */
	lbfgsfloatval_t *g = lbfgs_malloc((int)p.size);
	f = evaluate(&p, u, g, (int)p.size, 0);
	lbfgs_free(g);
	lbfgs_free(u);
	*out = (struct probe){.k = k, .d = d, .rows = rows, .iterations = p.iterations, .gradient = p.gradient};
	/* a line search that finds no better point means the limit of float64, if the gradient is small too */
	int limit = r != LBFGSERR_MAXIMUMITERATION && p.gradient <= 1e-6 * (double)n;
	out->converged = p.gradient <= p.tol || (r < 0 && limit);
	store(out, &p);
	problem_release(&p);
	if (!isfinite(f))
		return error_set(e, "the probe's objective is %g after %d iterations", f, out->iterations);
	if (r < 0 && r < LBFGSERR_OUTOFINTERVAL)
		return error_set(e, "libLBFGS refuses the problem (status %d)", r);
	return 0;
}

void probe_release(struct probe *p)
{
	free(p->w);
	free(p->b);
	*p = (struct probe){0};
}

void probe_logits(const struct probe *p, const float *x, double *logit)
{
	size_t first = p->k - p->rows;
	logit[0] = 0;
	for (size_t r = 0; r < p->rows; r++) {
		double z = p->b[r];
		for (size_t j = 0; j < p->d; j++)
			z += p->w[r * p->d + j] * (double)x[j];
		logit[first + r] = z;
	}
}
