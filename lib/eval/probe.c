/*
 * The features are centred here (and scaled with `standardize`). The intercept is not penalised, so the optimum is the same, and L-BFGS
 * needs far fewer steps. The parameters are W [rows, d], then b [rows].
 */
#include "eval/probe.h"

#include "base/softmax.h"
#include "base/threads.h"

#include <cblas.h>
#include <lbfgs.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK 256 /* rows a matrix product */
#define SLICES 32 /* partial sums over rows; the same for any number of threads */

struct problem {
	const float *x;
	const uint32_t *row, *y;
	size_t n, d, k, rows;
	double c;
	double tol;
	double *mean, *scale; /* [d]: features are (x - mean) * scale */
	size_t size;          /* rows * d + rows */
	size_t slices;
	double *part; /* [slices, size] gradients */
	double loss[SLICES];
	int threads;
	double *scratch;     /* [threads, CHUNK * (d + rows)] */
	const double *theta; /* the parameters that are evaluated */
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
			to[i * p->d + j] = ((double)x[j] - p->mean[j]) * p->scale[j];
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

static lbfgsfloatval_t evaluate(void *arg, const lbfgsfloatval_t *theta, lbfgsfloatval_t *g, const int size, const lbfgsfloatval_t step)
{
	struct problem *p = arg;
	size_t nw = p->rows * p->d;
	memset(p->part, 0, p->slices * p->size * sizeof *p->part);
	p->theta = theta;
	pool_for(p->threads, p->slices, do_slice, p);
	double f = 0;
	memset(g, 0, p->size * sizeof *g);
	for (size_t s = 0; s < p->slices; s++) {
		f += p->loss[s];
		for (size_t j = 0; j < p->size; j++)
			g[j] += p->part[s * p->size + j];
	}
	double square = 0;
	for (size_t j = 0; j < nw; j++) {
		square += theta[j] * theta[j];
		g[j] += theta[j] / p->c;
	}
	return f + 0.5 / p->c * square;
}

/* After each iteration: stop at the tolerance. */
static int progress(void *arg, const lbfgsfloatval_t *theta, const lbfgsfloatval_t *g, const lbfgsfloatval_t fx,
	const lbfgsfloatval_t xnorm, const lbfgsfloatval_t gnorm, const lbfgsfloatval_t step, int n, int k, int ls)
{
	struct problem *p = arg;
	p->iterations = k;
	p->gradient = 0;
	for (size_t j = 0; j < p->size; j++)
		p->gradient = fabs(g[j]) > p->gradient ? fabs(g[j]) : p->gradient;
	return p->gradient <= p->tol;
}

static void centre(struct problem *p, int standardize)
{
	for (size_t i = 0; i < p->n; i++)
		for (size_t j = 0; j < p->d; j++)
			p->mean[j] += (double)p->x[(size_t)p->row[i] * p->d + j];
	for (size_t j = 0; j < p->d; j++) {
		p->mean[j] /= (double)p->n;
		p->scale[j] = 1;
	}
	if (!standardize)
		return;
	double *var = xcalloc(p->d, sizeof *var);
	for (size_t i = 0; i < p->n; i++)
		for (size_t j = 0; j < p->d; j++) {
			double v = (double)p->x[(size_t)p->row[i] * p->d + j] - p->mean[j];
			var[j] += v * v;
		}
	for (size_t j = 0; j < p->d; j++)
		if (var[j] > 0)
			p->scale[j] = 1 / sqrt(var[j] / (double)p->n);
	free(var);
}

/* Convert the parameters from centred and scaled features to the given ones. */
static void store(struct probe *out, const struct problem *p, const double *theta)
{
	out->w = xmalloc(p->rows * p->d * sizeof *out->w);
	out->b = xmalloc(p->rows * sizeof *out->b);
	for (size_t r = 0; r < p->rows; r++) {
		out->b[r] = theta[p->rows * p->d + r];
		for (size_t j = 0; j < p->d; j++) {
			double w = theta[r * p->d + j] * p->scale[j];
			out->w[r * p->d + j] = w;
			out->b[r] -= w * p->mean[j];
		}
	}
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
	p.mean = xcalloc(d, sizeof *p.mean);
	p.scale = xmalloc(d * sizeof *p.scale);
	p.part = xmalloc(p.slices * p.size * sizeof *p.part);
	p.scratch = xmalloc((size_t)p.threads * CHUNK * (d + rows) * sizeof *p.scratch);
	centre(&p, o->standardize);
	lbfgsfloatval_t *theta = lbfgs_malloc((int)p.size), f = 0;
	memset(theta, 0, p.size * sizeof *theta);

	lbfgs_parameter_t param;
	lbfgs_parameter_init(&param);
	param.m = 10;
	param.epsilon = 0; /* `progress` decides */
	param.max_iterations = o->max_iter;
	int r = lbfgs((int)p.size, theta, &f, evaluate, progress, &p, &param);
	if (r == LBFGS_ALREADY_MINIMIZED)
		p.gradient = 0;
	*out = (struct probe){.k = k, .d = d, .rows = rows, .iterations = p.iterations, .gradient = p.gradient};
	/* a line search that finds no better point means the limit of float64, if the gradient is small too */
	int limit = r != LBFGSERR_MAXIMUMITERATION && p.gradient <= 1e-6 * (double)n;
	out->converged = p.gradient <= p.tol || (r < 0 && limit);
	store(out, &p, theta);
	int bad = 0;
	if (!isfinite(f))
		bad = error_set(e, "the probe's objective is %g after %d iterations", f, p.iterations);
	else if (r < 0 && r < LBFGSERR_OUTOFINTERVAL)
		bad = error_set(e, "libLBFGS refuses the problem (status %d)", r);
	lbfgs_free(theta);
	free(p.mean);
	free(p.scale);
	free(p.part);
	free(p.scratch);
	return bad;
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
