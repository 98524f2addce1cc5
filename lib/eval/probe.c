/*
 * The features are centred here. The intercept is not penalised, so the optimum is the same. L-BFGS works on u = L^T W instead of W, where
 *     L L^T = sum_i h_i x_i x_i^T + 1/C diag(q),   h_i = mean over classes of p (1 - p)
 * is the Hessian of the loss, a mean over the classes (q_j is 1, or the variance of feature j with `standardize`). So its steps depend little
 * on the scales and correlations of the features. L-BFGS runs in stages, and L is made again for each: as the fit gets better, most cells
 * lose their weight h_i. The parameters in memory are rows of weights [rows, d], then intercepts [rows].
 */
#include "eval/probe.h"

#include "base/softmax.h"
#include "base/threads.h"
#include "eval/moments.h"

#include <cblas.h>
#include <lapacke.h>
#include <lbfgs.h>

#define CHUNK 256 /* rows a matrix product */
#define SLICES 32 /* partial sums over rows; the same for any number of threads */
#define BAND 64 /* rows of the Hessian that a thread sums */
#define STAGE 50 /* iterations of the first stage, at least */

struct problem {
	const float *x;
	const uint32_t *row, *y;
	size_t n, d, k, rows;
	double c;
	double tol;
	double *mean, *penalty; /* [d]: features are x - mean; q above */
	double *weight; /* [n] h_i at theta, where they are wanted for L */
	int weigh;
	double *factor; /* [d, d] L, row-major, lower triangle */
	double curvature; /* of the intercepts: the sum of h_i */
	size_t size; /* rows * d + rows */
	size_t slices;
	double *part; /* [slices, size] gradients */
	double loss[SLICES];
	int threads;
	double *scratch; /* [threads, CHUNK * (d + rows)] */
	double *theta; /* [size] the weights and intercepts that were evaluated last */
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
	double target = z[y], loss = softmax_fast(z, rows) - target;
	z[y] -= 1;
	return loss;
}

/* The first m features of n rows; a row takes d places. */
static void load_chunk(const struct problem *p, size_t from, size_t n, size_t m, double *to)
{
	for (size_t i = 0; i < n; i++) {
		const float *x = p->x + (size_t)p->row[from + i] * p->d;
		_Pragma("omp simd") for (size_t j = 0; j < m; j++) to[i * p->d + j] = (double)x[j] - p->mean[j];
	}
}

/* h_i from dLoss/dz, whose entries are p, or p - 1 for the row's own class. */
static double hessian_weight(const double *z, size_t rows)
{
	double s = 0;
	for (size_t r = 0; r < rows; r++)
		s += fabs(z[r]) * (1 - fabs(z[r]));
	return s / (double)rows;
}

/* Add the gradient of rows [from, to) at theta to g [size]; returns their loss, and sets their weights where p->weigh. */
static double slice_loss(const struct problem *p, size_t from, size_t to, double *g, double *x)
{
	const int d = (int)p->d, rows = (int)p->rows;
	double *z = x + CHUNK * p->d, loss = 0;
	const double *b = p->theta + p->rows * p->d;
	double *gb = g + p->rows * p->d;
	for (size_t at = from; at < to; at += CHUNK) {
		size_t n = to - at < CHUNK ? to - at : CHUNK;
		load_chunk(p, at, n, p->d, x);
		for (size_t i = 0; i < n; i++)
			memcpy(z + i * p->rows, b, p->rows * sizeof *z);
		cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, rows, d, 1, x, d, p->theta, d, 1, z, rows);
		for (size_t i = 0; i < n; i++) {
			loss += row_loss(z + i * p->rows, p->rows, p->y[p->row[at + i]]);
			if (p->weigh)
				p->weight[at + i] = hessian_weight(z + i * p->rows, p->rows);
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
	p->loss[s] = slice_loss(p, p->n * s / p->slices, p->n * (s + 1) / p->slices, p->part + s * p->size, x);
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

/* The objective at theta, and its gradient g [size]. Sets the largest entry of the gradient, and the weights where p->weigh. */
static double objective(struct problem *p, double *g)
{
	size_t nw = p->rows * p->d;
	memset(p->part, 0, p->slices * p->size * sizeof *p->part);
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
	return f + 0.5 / p->c * square;
}

static lbfgsfloatval_t evaluate(void *arg, const lbfgsfloatval_t *u, lbfgsfloatval_t *g, const int size, const lbfgsfloatval_t step)
{
	struct problem *p = arg;
	memcpy(p->theta, u, p->size * sizeof *p->theta);
	precondition(p, p->theta, 1);
	double f = objective(p, g);
	precondition_gradient(p, g);
	return f;
}

/* After each iteration, whose point was evaluated last: stop at the tolerance. */
static int progress(void *arg, const lbfgsfloatval_t *u, const lbfgsfloatval_t *g, const lbfgsfloatval_t fx, const lbfgsfloatval_t xnorm,
	const lbfgsfloatval_t gnorm, const lbfgsfloatval_t step, int n, int k, int ls)
{
	struct problem *p = arg;
	p->iterations++;
	return p->gradient <= p->tol;
}

static void centre(struct problem *p, int standardize)
{
	moments(p->x, p->d, p->row, p->n, p->mean, p->penalty);
	for (size_t j = 0; j < p->d; j++)
		if (!standardize || !(p->penalty[j] > 0))
			p->penalty[j] = 1;
}

/* Rows [BAND * band, + BAND) of the Hessian, up to its diagonal. */
static void do_band(void *arg, size_t band, int thread)
{
	struct problem *p = arg;
	size_t first = band * BAND, end = first + BAND < p->d ? first + BAND : p->d;
	const int d = (int)p->d;
	double *x = p->scratch + (size_t)thread * CHUNK * (p->d + p->rows);
	for (size_t at = 0; at < p->n; at += CHUNK) {
		size_t n = p->n - at < CHUNK ? p->n - at : CHUNK;
		load_chunk(p, at, n, end, x);
		for (size_t i = 0; i < n; i++) {
			double s = sqrt(p->weight[at + i]);
			for (size_t j = 0; j < end; j++)
				x[i * p->d + j] *= s;
		}
		cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)(end - first), (int)end, (int)n, 1, x + first, d, x, d, at > 0,
			p->factor + first * p->d, d);
	}
}

/* Compute the factor L at theta. */
static int factorize(struct problem *p, struct error *e)
{
	const int d = (int)p->d;
	double *h = p->factor, trace = 0;
	pool_for(p->threads, (p->d + BAND - 1) / BAND, do_band, p);
	p->curvature = 1e-9 * (double)p->n; /* positive, also if all cells are far from every border */
	for (size_t i = 0; i < p->n; i++)
		p->curvature += p->weight[i];
	for (size_t i = 0; i < p->d; i++) {
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
	free_all(p->mean, p->penalty, p->weight, p->factor, p->part, p->scratch, p->theta);
}

/* Run L-BFGS from theta on, in stages, until the gradient is small, max_iter iterations are done, or no better point is found (*stuck). */
static int minimize(struct problem *p, int max_iter, int *stuck, struct error *e)
{
	int bad = 0, r = 0, stage = (int)(p->d / (2 * p->rows)); /* takes twice the time of making L */
	lbfgs_parameter_t param;
	lbfgs_parameter_init(&param);
	param.m = 10;
	param.linesearch = LBFGS_LINESEARCH_BACKTRACKING_STRONG_WOLFE; /* the default one fails with rare features */
	param.epsilon = 0; /* `progress` decides */
	lbfgsfloatval_t *u = xchecked(lbfgs_malloc((int)p->size)), *g = xchecked(lbfgs_malloc((int)p->size)), unused;
	p->weigh = 1;
	double f = objective(p, g), before = INFINITY;
	for (stage = stage > STAGE ? stage : STAGE; p->gradient > p->tol && p->iterations < max_iter && f < before; stage *= 2) {
		if ((bad = factorize(p, e)))
			break;
		memcpy(u, p->theta, p->size * sizeof *u);
		precondition(p, u, 0);
		param.max_iterations = stage < max_iter - p->iterations ? stage : max_iter - p->iterations;
		p->weigh = 0;
		r = lbfgs((int)p->size, u, &unused, evaluate, progress, p, &param);
		p->weigh = 1;
		before = f;
		f = evaluate(p, u, g, (int)p->size, 0); /* u is the best point; what was evaluated last may be another */
	}
	lbfgs_free(u);
	lbfgs_free(g);
	*stuck = !(f < before);
	if (bad)
		return -1;
	if (!isfinite(f))
		return error_set(e, "the probe's objective is %g after %d iterations", f, p->iterations);
	if (r < 0 && r < LBFGSERR_OUTOFINTERVAL)
		return error_set(e, "libLBFGS refuses the problem (status %d)", r);
	return 0;
}

int probe_fit(struct probe *out, const float *x, size_t d, const uint32_t *row, size_t n, const uint32_t *y, size_t k,
	const struct probe_options *o, struct error *e)
{
	size_t rows = k == 2 ? 1 : k;
	RELEASED(problem_release)
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
	p.weight = xmalloc(n * sizeof *p.weight);
	p.factor = xcalloc(d * d, sizeof *p.factor);
	p.part = xmalloc(p.slices * p.size * sizeof *p.part);
	p.scratch = xmalloc((size_t)p.threads * CHUNK * (d + rows) * sizeof *p.scratch);
	p.theta = xcalloc(p.size, sizeof *p.theta);
	centre(&p, o->standardize);
	if (o->start) {
		memcpy(p.theta, o->start->w, rows * d * sizeof *p.theta);
		memcpy(p.theta + rows * d, o->start->b, rows * sizeof *p.theta);
		uncentre(&p, p.theta, p.theta + rows * d, -1);
	}
	int stuck;
	if (minimize(&p, o->max_iter, &stuck, e))
		return -1;
	*out = (struct probe){.k = k, .d = d, .rows = rows, .iterations = p.iterations, .gradient = p.gradient};
	/* no better point means the limit of float64, if the gradient is small too */
	out->converged = p.gradient <= p.tol || (stuck && p.gradient <= 1e-6 * (double)n);
	store(out, &p);
	return 0;
}

void probe_release(struct probe *p)
{
	free_all(p->w, p->b);
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
