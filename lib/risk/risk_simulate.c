#include "risk/risk_simulate.h"

#include "base/rng.h"
#include "base/threads.h"

#include <cblas.h>
#include <lapacke.h>
#include <stdlib.h>
#include <string.h>

/* b of rng_at: the purpose of a draw; those below 16 are in risk_model.c. Never renumber. */
enum { ROWS = 16, NOISE, MASK, KEEP, RATIO };

/* Below this reciprocal condition number of the Gram matrix the SVD decides what the rank is. */
#define RCOND 1e-12

/* By the SVD, which finds the rank. */
static int solve_svd(const double *x, const double *y, size_t n, size_t p, double *b, struct error *e)
{
	size_t longer = n > p ? n : p, shorter = n < p ? n : p;
	double *a = xmalloc(n * p * sizeof *a), *rhs = xcalloc(longer, sizeof *rhs), *singular = xcalloc(shorter, sizeof *singular);
	lapack_int rank;
	memcpy(a, x, n * p * sizeof *a);
	memcpy(rhs, y, n * sizeof *rhs);
	/* x by rows is x' by columns; row-major makes LAPACKE transpose */
	int status = LAPACKE_dgelsd(LAPACK_ROW_MAJOR, (lapack_int)n, (lapack_int)p, 1, a, (lapack_int)p, rhs, 1, singular, 1e-10, &rank);
	memcpy(b, rhs, p * sizeof *b);
	free(a);
	free(rhs);
	free(singular);
	return status ? error_set(e, "the least-squares solution of %zu rows and %zu features was not found", n, p) : 0;
}

/* Cholesky decomposition of the k x k Gram matrix, in place. 0 if it has full rank. */
static int factorise(double *gram, size_t k)
{
	lapack_int n = (lapack_int)k;
	double norm = LAPACKE_dlansy(LAPACK_COL_MAJOR, '1', 'L', n, gram, n), rcond = 0;
	return LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'L', n, gram, n) || LAPACKE_dpocon(LAPACK_COL_MAJOR, 'L', n, gram, n, norm, &rcond) ||
		!(rcond > RCOND);
}

int risk_solve(const double *x, const double *y, size_t n, size_t p, double *b, double *scratch, struct error *e)
{
	memset(b, 0, p * sizeof *b);
	if (!n)
		return 0;
	size_t k = n < p ? n : p;
	double *gram = scratch, *v = scratch + k * k;
	/* b = X' (X X')^-1 y, or (X' X)^-1 X' y */
	cblas_dsyrk(
		CblasColMajor, CblasLower, n < p ? CblasTrans : CblasNoTrans, (int)k, (int)(n < p ? p : n), 1, x, (int)p, 0, gram, (int)k);
	if (factorise(gram, k))
		return solve_svd(x, y, n, p, b, e);
	if (n < p)
		memcpy(v, y, n * sizeof *v);
	else
		cblas_dgemv(CblasColMajor, CblasNoTrans, (int)p, (int)n, 1, x, (int)p, y, 1, 0, v, 1);
	LAPACKE_dpotrs(LAPACK_COL_MAJOR, 'L', (lapack_int)k, 1, gram, (lapack_int)k, v, (lapack_int)k);
	if (n < p)
		cblas_dgemv(CblasColMajor, CblasNoTrans, (int)p, (int)n, 1, x, (int)p, v, 1, 0, b, 1);
	else
		memcpy(b, v, p * sizeof *b);
	return 0;
}

/* The memory of one thread, [rows, p] unless said */
struct scratch {
	double *x, *masked, *solve;
	uint32_t *mask; /* uniform numbers, 32 bits */
	double *y, *kept_y; /* [rows] */
	double *keep, *mixing; /* [rows] uniform numbers */
	double *b, *v; /* [p] */
};

struct work {
	const struct risk_trials *t;
	struct scratch *scratch; /* [threads] */
	double *result; /* [runs, nrate, 3]: risk, magnitude, kept rows */
	struct error *error; /* [threads] */
	int *failed; /* [threads] */
};

static struct rng draw(const struct risk_trials *t, uint32_t run, uint32_t purpose)
{
	return rng_at(t->seed, RNG_RISK, run, purpose);
}

/* Rows x ~ N(0, Sigma), y = x'beta + noise, and the uniform numbers of one run. */
static void draw_run(const struct risk_trials *t, uint32_t run, struct scratch *s)
{
	size_t n = t->rows, p = t->m->p;
	uint32_t of_masks = t->same == RISK_SAME_MASKS ? 0 : run, of_rows = t->same == RISK_SAME_ROWS ? 0 : run;
	struct rng rows = draw(t, of_rows, ROWS), noise = draw(t, run, NOISE), mask = draw(t, of_masks, MASK);
	struct rng keep = draw(t, of_masks, KEEP), mixing = draw(t, of_masks, RATIO);
	for (size_t i = 0; i < n * p; i++) {
		s->x[i] = rng_normal(&rows);
		s->mask[i] = rng_u32(&mask);
	}
	cblas_dtrmm(
		CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, (int)p, (int)n, 1, t->m->factor, (int)p, s->x, (int)p);
	cblas_dgemv(CblasColMajor, CblasTrans, (int)p, (int)n, 1, s->x, (int)p, t->m->beta, 1, 0, s->y, 1);
	for (size_t i = 0; i < n; i++) {
		s->y[i] += sqrt(t->m->noise) * rng_normal(&noise);
		s->keep[i] = rng_unit(&keep);
		s->mixing[i] = rng_unit(&mixing);
	}
}

/* The kept rows with their masks. Returns how many. */
static size_t keep_rows(const struct risk_trials *t, const struct risk_rate *a, struct scratch *s)
{
	size_t n = 0, p = t->m->p, first = (size_t)lrint(t->rows * a->lo);
	for (size_t i = 0; i < t->rows; i++) {
		double ratio = a->lo + (a->hi - a->lo) * (a->keep == RISK_COUPLED ? s->keep[i] : s->mixing[i]);
		if (a->keep == RISK_ROUNDED ? i >= first : s->keep[i] >= ratio)
			continue;
		uint32_t below = (uint32_t)(ratio * 0x1p32);
		const double *x = s->x + i * p;
		const uint32_t *mask = s->mask + i * p;
		for (size_t j = 0; j < p; j++)
			s->masked[n * p + j] = mask[j] < below ? 0 : x[j];
		s->kept_y[n++] = s->y[i];
	}
	return n;
}

static void one_run(void *arg, size_t run, int thread)
{
	struct work *w = arg;
	const struct risk_trials *t = w->t;
	struct scratch *s = &w->scratch[thread];
	draw_run(t, (uint32_t)run, s);
	for (size_t k = 0; k < t->nrate && !w->failed[thread]; k++) {
		double *out = w->result + (run * t->nrate + k) * 3;
		size_t n = keep_rows(t, &t->rate[k], s);
		w->failed[thread] = risk_solve(s->masked, s->kept_y, n, t->m->p, s->b, s->solve, &w->error[thread]) != 0;
		out[1] = risk_model_norm(t->m, s->b, s->v);
		cblas_daxpy((int)t->m->p, -1, t->m->beta, 1, s->b, 1);
		out[0] = risk_model_norm(t->m, s->b, s->v);
		out[2] = (double)n;
	}
}

static void scratch_init(struct scratch *s, size_t n, size_t p)
{
	size_t k = n < p ? n : p;
	s->x = xmalloc(n * p * sizeof *s->x);
	s->masked = xmalloc(n * p * sizeof *s->masked);
	s->mask = xmalloc(n * p * sizeof *s->mask);
	s->solve = xmalloc((k * k + n + p) * sizeof *s->solve);
	s->y = xcalloc(4 * n, sizeof *s->y);
	s->kept_y = s->y + n;
	s->keep = s->y + 2 * n;
	s->mixing = s->y + 3 * n;
	s->b = xcalloc(2 * p, sizeof *s->b);
	s->v = s->b + p;
}

static void scratch_release(struct scratch *s)
{
	free(s->x);
	free(s->masked);
	free(s->mask);
	free(s->solve);
	free(s->y);
	free(s->b);
}

/* Mean of result[run][k][which] and its standard error, in the order of the runs. */
static double mean(const struct work *w, size_t k, size_t which, double *se)
{
	const struct risk_trials *t = w->t;
	double sum = 0, square = 0, n = t->runs;
	for (size_t i = 0; i < t->runs; i++)
		sum += w->result[(i * t->nrate + k) * 3 + which];
	for (size_t i = 0; i < t->runs; i++) {
		double d = w->result[(i * t->nrate + k) * 3 + which] - sum / n;
		square += d * d;
	}
	*se = n > 1 ? sqrt(square / (n - 1) / n) : NAN;
	return sum / n;
}

int risk_simulate(const struct risk_trials *t, struct risk_mean *out, struct error *e)
{
	size_t threads = (size_t)t->threads;
	struct work w = {.t = t};
	double unused;
	int status = 0;
	w.scratch = xcalloc(threads, sizeof *w.scratch);
	w.error = xcalloc(threads, sizeof *w.error);
	w.failed = xcalloc(threads, sizeof *w.failed);
	w.result = xcalloc((size_t)t->runs * t->nrate * 3, sizeof *w.result);
	for (size_t i = 0; i < threads; i++)
		scratch_init(&w.scratch[i], t->rows, t->m->p);
	pool_for(t->threads, t->runs, one_run, &w);
	for (size_t i = 0; i < threads; i++) {
		if (w.failed[i] && !status)
			status = error_set(e, "%s", w.error[i].msg);
		scratch_release(&w.scratch[i]);
	}
	for (size_t k = 0; k < t->nrate && !status; k++) {
		out[k].risk = mean(&w, k, 0, &out[k].risk_se);
		out[k].magnitude = mean(&w, k, 1, &out[k].magnitude_se);
		out[k].kept = mean(&w, k, 2, &unused);
	}
	free(w.scratch);
	free(w.error);
	free(w.failed);
	free(w.result);
	return status;
}
