#include "eval/factor.h"

#include <lapacke.h>

#define CHUNK 512 /* rows that are factored at a time */
#define PANEL 32 /* columns of a block reflector */

void factor_init(struct factor *f, size_t p)
{
	*f = (struct factor){.p = p,
		.r = xcalloc(p * p, sizeof *f->r),
		.chunk = xmalloc(CHUNK * p * sizeof *f->chunk),
		.t = xmalloc(PANEL * p * sizeof *f->t)};
}

void factor_release(struct factor *f)
{
	free_all(f->r, f->chunk, f->t);
	*f = (struct factor){0};
}

/* R of the rows of R and of the chunk together; R is 0 at first. */
void factor_end(struct factor *f)
{
	if (!f->filled)
		return;
	const int m = (int)f->filled, p = (int)f->p, panel = p < PANEL ? p : PANEL;
	if (m < CHUNK) /* close the gaps between the columns */
		for (size_t j = 1; j < f->p; j++)
			memmove(f->chunk + j * f->filled, f->chunk + j * CHUNK, f->filled * sizeof *f->chunk);
	LAPACKE_dtpqrt(LAPACK_COL_MAJOR, m, p, 0, panel, f->r, p, f->chunk, m, f->t, panel);
	f->filled = 0;
}

void factor_add(struct factor *f, const double *x)
{
	for (size_t j = 0; j < f->p; j++)
		f->chunk[j * CHUNK + f->filled] = x[j];
	f->n++;
	if (++f->filled == CHUNK)
		factor_end(f);
}

int factor_svd(const struct factor *f, size_t from, size_t d, double *s, double *u, double *vt, struct error *e)
{
	const size_t rows = d + 1 - from;
	FREED double *a = xcalloc(rows * d, sizeof *a);
	for (size_t j = 0; j < d; j++)
		for (size_t i = from; i <= j + 1; i++)
			a[j * rows + i - from] = factor_at(f, i, j + 1);
	int bad = LAPACKE_dgesdd(LAPACK_COL_MAJOR, u ? 'S' : 'N', (int)rows, (int)d, a, (int)rows, s, u, (int)rows, vt, (int)d);
	return bad ? error_set(e, "the singular values of %zu x %zu values cannot be computed (dgesdd: %d)", f->n, d, bad) : 0;
}

double factor_entropy(const double *s, size_t n)
{
	double sum = 0, h = 0;
	for (size_t i = 0; i < n; i++)
		sum += s[i];
	for (size_t i = 0; i < n; i++)
		h -= s[i] > 0 ? s[i] / sum * log(s[i] / sum) : 0;
	return sum > 0 ? h : NAN;
}
