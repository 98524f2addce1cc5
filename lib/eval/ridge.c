#include "eval/ridge.h"

#include "eval/factor.h"

#include <cblas.h>

static void factor_rows(struct factor *f, const float *x, size_t d, const uint32_t *row, size_t n, const double *y)
{
	FREED double *v = xmalloc((d + 2) * sizeof *v);
	factor_init(f, d + 2);
	v[0] = 1;
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < d; j++)
			v[j + 1] = (double)x[(size_t)row[i] * d + j];
		v[d + 1] = y[row[i]];
		factor_add(f, v);
	}
	factor_end(f);
}

/* Scale of each feature: its column of R below row 0 has the length sd sqrt(n). The columns of R are scaled too. That of a constant feature
 * holds only what rounding left, which may be larger than the other features: it becomes 0, and so does the weight. */
static void scale_columns(struct ridge *r, struct factor *f, int standardize)
{
	for (size_t j = 1; j <= r->d; j++) {
		double square = 0, *column = f->r + j * f->p;
		for (size_t i = 1; i <= j; i++)
			square += column[i] * column[i];
		double sd = sqrt(square / (double)f->n);
		if (sd > 1e-12 * fabs(r->mean[j - 1]))
			r->scale[j - 1] = standardize ? 1 / sd : 1;
		for (size_t i = 1; i <= j; i++)
			column[i] *= r->scale[j - 1];
	}
}

int ridge_init(struct ridge *r, const float *x, size_t d, const uint32_t *row, size_t n, const double *y, int standardize, struct error *e)
{
	RELEASED(factor_release) struct factor f;
	factor_rows(&f, x, d, row, n, y);
	*r = (struct ridge){.d = d,
		.s = xmalloc(d * sizeof *r->s),
		.vt = xmalloc(d * d * sizeof *r->vt),
		.c = xmalloc(d * sizeof *r->c),
		.mean = xmalloc(d * sizeof *r->mean),
		.scale = xmalloc(d * sizeof *r->scale),
		.w = xmalloc(d * sizeof *r->w),
		.intercept = factor_at(&f, 0, d + 1) / factor_at(&f, 0, 0)};
	for (size_t j = 0; j < d; j++) {
		r->mean[j] = factor_at(&f, 0, j + 1) / factor_at(&f, 0, 0);
		r->scale[j] = 0;
	}
	scale_columns(r, &f, standardize);
	FREED double *u = xmalloc(d * d * sizeof *u);
	int bad = factor_svd(&f, 1, d, r->s, u, r->vt, e);
	if (!bad)
		cblas_dgemv(CblasColMajor, CblasTrans, (int)d, (int)d, 1, u, (int)d, f.r + (d + 1) * f.p + 1, 1, 0, r->c, 1);
	return bad;
}

void ridge_release(struct ridge *r)
{
	free_all(r->s, r->vt, r->c, r->mean, r->scale, r->w);
	*r = (struct ridge){0};
}

void ridge_solve(struct ridge *r, double alpha)
{
	FREED double *t = xmalloc(r->d * sizeof *t);
	for (size_t i = 0; i < r->d; i++)
		t[i] = r->c[i] * r->s[i] / (r->s[i] * r->s[i] + alpha);
	cblas_dgemv(CblasColMajor, CblasTrans, (int)r->d, (int)r->d, 1, r->vt, (int)r->d, t, 1, 0, r->w, 1);
	r->b = r->intercept;
	for (size_t j = 0; j < r->d; j++) {
		r->w[j] *= r->scale[j];
		r->b -= r->w[j] * r->mean[j];
	}
}

double ridge_predict(const struct ridge *r, const float *x)
{
	double y = r->b;
	for (size_t j = 0; j < r->d; j++)
		y += r->w[j] * (double)x[j];
	return y;
}
