#include "risk/risk_genes.h"

#include "base/threads.h"
#include "risk/risk_model.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One ratio. Matrices are [p, p], by columns; column g of v, z, m, mm belongs to target g, in the eigenbasis or (m, mm, x) in features. */
struct ratio {
	const struct risk_genes *g;
	double r, q;
	double *w; /* eigenvectors of S */
	double *v; /* w' Sigma e without the target's own entry */
	double *z, *x; /* M Sigma e, in the eigenbasis and in features */
	double *m; /* N e, then N N e, in features */
	double *s, *diagonal; /* [p] eigenvalues of S; w_j' D w_j */
	double *kappa; /* [p] of each target */
	double *square, *product; /* [p] m' D m; m' D mm */
};

static void multiply(double *c, const double *a, const double *b, int p, enum CBLAS_TRANSPOSE t)
{
	cblas_dgemm(CblasColMajor, t, CblasNoTrans, p, p, p, 1, a, p, b, p, 0, c, p);
}

/* Eigenvalues, eigenvectors, and v. */
static int decompose(struct ratio *a, struct error *e)
{
	size_t p = a->g->p;
	const double *sigma = a->g->sigma;
	for (size_t i = 0; i < p * p; i++)
		a->w[i] = a->q * a->q * sigma[i];
	for (size_t i = 0; i < p; i++)
		a->w[i * p + i] += a->q * a->r * sigma[i * p + i];
	if (risk_eigen(a->w, a->g->p, a->s, e))
		return -1;
	multiply(a->v, a->w, sigma, (int)p, CblasTrans);
	for (size_t g = 0; g < p; g++)
		cblas_daxpy((int)p, -sigma[g * p + g], a->w + g, (int)p, a->v + g * p, 1);
	for (size_t j = 0; j < p; j++) {
		a->diagonal[j] = 0;
		for (size_t i = 0; i < p; i++)
			a->diagonal[j] += sigma[i * p + i] * a->w[j * p + i] * a->w[j * p + i];
	}
	return 0;
}

/* Traces of M and M^2, from sums over the eigenvalues. */
struct traces {
	double h1, h2, t1, t2;
};

static struct traces find_traces(const struct ratio *a, size_t g, double kappa)
{
	size_t p = a->g->p;
	double h1 = 0, h2 = 0, h3 = 0, t1 = 0, t2 = 0;
	for (size_t j = 0; j < p; j++) {
		double x = 1 / (a->s[j] + kappa), w = a->w[j * p + g] * a->w[j * p + g];
		t1 += x;
		t2 += x * x;
		h1 += w * x;
		h2 += w * x * x;
		h3 += w * x * x * x;
	}
	return (struct traces){.h1 = h1, .h2 = h2, .t1 = t1 - h2 / h1, .t2 = t2 - 2 * h3 / h1 + h2 / h1 * (h2 / h1)};
}

/* tr S M = n r, by Newton's method from 0 as in risk_kappa. */
static void find_kappa(struct ratio *a, size_t g)
{
	double rows = a->g->rows * a->r, others = a->g->p - 1.0, kappa = 0;
	for (int it = 0; rows < others && it < 200; it++) {
		struct traces t = find_traces(a, g, kappa);
		double step = (others - kappa * t.t1 - rows) / (t.t1 - kappa * t.t2);
		kappa += step;
		if (step <= 1e-14 * kappa)
			break;
	}
	a->kappa[g] = kappa;
}

/* z = M Sigma e for every target, and x the same in features. */
static void find_predictions(struct ratio *a)
{
	size_t p = a->g->p;
	for (size_t g = 0; g < p; g++) {
		const double *v = a->v + g * p;
		double *z = a->z + g * p, along = 0;
		struct traces t = find_traces(a, g, a->kappa[g]);
		for (size_t j = 0; j < p; j++)
			along += a->w[j * p + g] * v[j] / (a->s[j] + a->kappa[g]);
		for (size_t j = 0; j < p; j++)
			z[j] = (v[j] - a->w[j * p + g] * along / t.h1) / (a->s[j] + a->kappa[g]);
	}
	multiply(a->x, a->w, a->z, (int)p, CblasNoTrans);
}

/* sum_i D_i x_i y_i */
static double weighted(const struct ratio *a, const double *x, const double *y)
{
	size_t p = a->g->p;
	double sum = 0;
	for (size_t i = 0; i < p; i++)
		sum += a->g->sigma[i * p + i] * x[i] * y[i];
	return sum;
}

/* square = m'Dm and product = m'D mm, with m = N e and mm = N N e. v and z are free for them by now. */
static void find_column_norms(struct ratio *a)
{
	size_t p = a->g->p;
	for (int power = 1; power <= 2; power++) {
		for (size_t g = 0; g < p; g++)
			for (size_t j = 0; j < p; j++) {
				double x = 1 / (a->s[j] + a->kappa[g]);
				a->z[g * p + j] = a->w[j * p + g] * (power == 1 ? x : x * x);
			}
		multiply(power == 1 ? a->m : a->v, a->w, a->z, (int)p, CblasNoTrans);
	}
	for (size_t g = 0; g < p; g++) {
		a->square[g] = weighted(a, a->m + g * p, a->m + g * p);
		a->product[g] = weighted(a, a->m + g * p, a->v + g * p);
	}
}

/* Quadratic forms of the target's covariances c = Sigma e with M. */
struct forms {
	double cmc, cmmc, cmdmc;
};

/* The risk of target g, in its own unit. explained: c' Sigma^-1 c */
static double target_risk(const struct ratio *a, size_t g, const struct forms *f, double explained)
{
	size_t p = a->g->p;
	double kappa = a->kappa[g], q = a->q, r = a->r, rows = a->g->rows * r, others = (double)p - 1, dm = 0, dmm = 0;
	struct traces t = find_traces(a, g, kappa);
	for (size_t j = 0; j < p; j++) {
		double x = 1 / (a->s[j] + kappa);
		dm += a->diagonal[j] * x;
		dmm += a->diagonal[j] * x * x;
	}
	/* tr D M and tr D M^2 */
	dm -= a->square[g] / t.h1;
	dmm += -2 * a->product[g] / t.h1 + t.h2 / t.h1 * a->square[g] / t.h1;
	double squares = others - 2 * kappa * t.t1 + kappa * kappa * t.t2; /* tr (S M)^2 */
	double factor =
		(squares - q * r * (dm - kappa * dmm)) / (q * q) / (kappa > 0 ? kappa * t.t1 - kappa * kappa * t.t2 : rows - others);
	double residual = a->g->sigma[g * p + g] - q * q * (f->cmc + kappa * f->cmmc);
	double size = f->cmc - kappa * f->cmmc - q * r * f->cmdmc; /* b' Sigma b, b = q M c */
	return size - 2 * q * f->cmc + explained + factor * residual;
}

static int run_ratio(struct ratio *a, double *risk, struct error *e)
{
	size_t p = a->g->p;
	if (decompose(a, e))
		return -1;
	for (size_t g = 0; g < p; g++)
		find_kappa(a, g);
	find_predictions(a);
	struct forms *f = xcalloc(p, sizeof *f);
	for (size_t g = 0; g < p; g++) {
		const double *z = a->z + g * p, *x = a->x + g * p;
		f[g].cmc = cblas_ddot((int)p, a->v + g * p, 1, z, 1);
		f[g].cmmc = cblas_ddot((int)p, z, 1, z, 1);
		f[g].cmdmc = weighted(a, x, x);
	}
	a->m = a->x; /* x is not needed any more */
	find_column_norms(a);
	for (size_t g = 0; g < p; g++) {
		double variance = a->g->sigma[g * p + g];
		risk[g] = target_risk(a, g, &f[g], a->g->explained[g] * variance) / variance;
	}
	free(f);
	return 0;
}

struct work {
	struct risk_genes *g;
	struct error *error; /* [nrate], "" for none */
};

static void one_ratio(void *arg, size_t k, int thread)
{
	struct work *work = arg;
	struct risk_genes *g = work->g;
	size_t p = g->p;
	double *matrices = xlarge(4 * p * p, sizeof *matrices), *vectors = xcalloc(5 * p, sizeof *vectors);
	struct ratio a = {.g = g, .r = g->rate[k], .q = 1 - g->rate[k], .w = matrices, .v = matrices + p * p, .z = matrices + 2 * p * p};
	a.x = matrices + 3 * p * p;
	a.s = vectors;
	a.diagonal = vectors + p;
	a.kappa = vectors + 2 * p;
	a.square = vectors + 3 * p;
	a.product = vectors + 4 * p;
	work->error[k].msg[0] = 0;
	run_ratio(&a, g->risk + k * p, &work->error[k]);
	free(matrices);
	free(vectors);
}

/* The share of its variance that the other features explain: 1 - 1 / (variance [Sigma^-1]_gg). */
static int find_explained(struct risk_genes *g, struct error *e)
{
	size_t p = g->p;
	double *w = xmalloc(p * p * sizeof *w), *s = xcalloc(p, sizeof *s);
	memcpy(w, g->sigma, p * p * sizeof *w);
	int status = risk_eigen(w, g->p, s, e);
	if (!status && !(s[0] > 1e-12 * s[p - 1]))
		status = error_set(e, "the covariance matrix is not positive definite (eigenvalues from %.3g to %.3g)", s[0], s[p - 1]);
	for (size_t k = 0; k < p && !status; k++) {
		double inverse = 0;
		for (size_t j = 0; j < p; j++)
			inverse += w[j * p + k] * w[j * p + k] / s[j];
		g->explained[k] = 1 - 1 / (inverse * g->sigma[k * p + k]);
	}
	free(w);
	free(s);
	return status;
}

int risk_genes_run(struct risk_genes *g, struct error *e)
{
	struct work work = {.g = g};
	g->explained = xcalloc(g->p, sizeof *g->explained);
	g->risk = xcalloc(g->nrate * g->p, sizeof *g->risk);
	int status = find_explained(g, e);
	if (!status) {
		work.error = xcalloc(g->nrate, sizeof *work.error);
		pool_for(g->threads, g->nrate, one_ratio, &work);
		for (size_t k = 0; k < g->nrate && !status; k++)
			if (*work.error[k].msg)
				status = error_set(e, "%s", work.error[k].msg);
		free(work.error);
	}
	if (status)
		risk_genes_release(g);
	return status;
}

void risk_genes_release(struct risk_genes *g)
{
	free(g->explained);
	free(g->risk);
	g->explained = g->risk = NULL;
}
