#include "eval/eigen.h"

#include "base/rng.h"

#include <cblas.h>
#include <lapacke.h>
#include <math.h>

#define RESIDUAL 1e-10 /* of the largest eigenvalue ... */
#define ROUGH 1e-7 /* ... or this, after a quarter of the restarts: many eigenvalues are as good as equal */
#define MORE 1e-8 /* of the largest: eigenvalues whose sizes together grow by less are the same ones */
#define AGAIN 0.7 /* a vector that loses more of its length to the others is made orthogonal again */
enum { DENSE = 400, RESTARTS = 1000, NEW = 60, COLUMNS = 256 };

struct lanczos {
	size_t n, m; /* of the matrix; vectors at once */
	size_t *first; /* [n + 1] of a row in `column` and `value`, which hold both halves of the matrix */
	uint32_t *column;
	double *value;
	double norm; /* the largest sum of the sizes of a row: no eigenvalue is larger */
	double *q; /* [m + 1, n] */
	double *t; /* [m, m] the matrix in terms of q */
	size_t kept; /* vectors of q that a restart left */
	double last; /* length of q[m] before it was made 1 */
	double *h; /* [m + 1] */
	struct rng rng;
};

static void times(const struct lanczos *l, const double *x, double *y)
{
	for (size_t i = 0; i < l->n; i++) {
		double sum[4] = {0};
		size_t j = l->first[i], end = l->first[i + 1];
		for (; j + 4 <= end; j += 4)
			for (size_t p = 0; p < 4; p++)
				sum[p] += l->value[j + p] * x[l->column[j + p]];
		for (; j < end; j++)
			sum[0] += l->value[j] * x[l->column[j]];
		y[i] = sum[0] + sum[1] + (sum[2] + sum[3]);
	}
}

/* w minus its parts along the first j vectors; l->h [j]: these. Returns the length of w. */
static double clear_parts(struct lanczos *l, size_t j, double *w)
{
	int rows = (int)j, n = (int)l->n;
	cblas_dgemv(CblasRowMajor, CblasNoTrans, rows, n, 1, l->q, n, w, 1, 0, l->h, 1);
	cblas_dgemv(CblasRowMajor, CblasTrans, rows, n, -1, l->q, n, l->h, 1, 1, w, 1);
	return cblas_dnrm2(n, w, 1);
}

/* A vector of length 1 at random as number j, orthogonal to those before. */
static void draw_vector(struct lanczos *l, size_t j)
{
	double *w = l->q + j * l->n, before, after;
	for (size_t i = 0; i < l->n; i++)
		w[i] = rng_unit(&l->rng) - 0.5;
	after = cblas_dnrm2((int)l->n, w, 1);
	do {
		before = after;
		after = j ? clear_parts(l, j, w) : before;
	} while (after < AGAIN * before);
	cblas_dscal((int)l->n, 1 / after, w, 1);
}

/* Vector j + 1 from vector j; returns its length before it was made 1, 0 if it is one at random. */
static double make_next(struct lanczos *l, size_t j)
{
	int n = (int)l->n;
	double *q = l->q + j * l->n, *w = q + l->n, *t = l->t + j * l->m;
	times(l, q, w);
	t[j] = cblas_ddot(n, q, 1, w, 1);
	cblas_daxpy(n, -t[j], q, 1, w, 1);
	if (j == l->kept)
		cblas_dgemv(CblasRowMajor, CblasTrans, (int)j, n, -1, l->q, n, t, 1, 1, w, 1);
	else
		cblas_daxpy(n, -t[j - 1], q - l->n, 1, w, 1);
	double before, after = cblas_dnrm2(n, w, 1);
	do {
		before = after;
		after = clear_parts(l, j + 1, w);
		t[j] += l->h[j];
	} while (after < AGAIN * before && after > RESIDUAL * l->norm);
	if (after > RESIDUAL * l->norm) {
		cblas_dscal(n, 1 / after, w, 1);
		return after;
	}
	draw_vector(l, j + 1);
	return 0;
}

/* Rows of q become the `to` sums of the m rows that the columns of s [m, m] say; out: [n, to] instead, if it is not NULL. */
static void combine(struct lanczos *l, const double *s, size_t to, double *out)
{
	FREED double *sum = xmalloc(to * COLUMNS * sizeof *sum);
	for (size_t from = 0; from < l->n; from += COLUMNS) {
		size_t wide = l->n - from < COLUMNS ? l->n - from : COLUMNS;
		cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)to, (int)wide, (int)l->m, 1, s, (int)l->m, l->q + from, (int)l->n,
			0, sum, COLUMNS);
		for (size_t c = 0; c < to; c++)
			for (size_t i = 0; i < wide; i++)
				*(out ? &out[(from + i) * to + c] : &l->q[c * l->n + from + i]) = sum[c * COLUMNS + i];
	}
}

/* The k eigenvalues of largest size of the symmetric a [n, n], which is overwritten; vector [n, k]. */
static int solve(double *a, size_t n, size_t k, double *value, double *vector, struct error *e)
{
	size_t low = 0, high = n;
	FREED double *all = xmalloc(n * sizeof *all);
	int bad = LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'V', 'L', (int)n, a, (int)n, all); /* rising */
	for (size_t c = 0; !bad && c < k; c++) {
		size_t at = fabs(all[low]) > fabs(all[high - 1]) ? low++ : --high;
		value[c] = all[at];
		for (size_t i = 0; i < n; i++)
			vector[i * k + c] = a[at * n + i];
	}
	return bad ? error_set(e, "no eigenvectors of %zu rows (dsyevd: %d)", n, bad) : 0;
}

static int solve_dense(const struct network *g, const double *weight, size_t k, double *value, double *vector, struct error *e)
{
	size_t n = g->n;
	FREED double *a = xcalloc(n * n, sizeof *a);
	for (size_t i = 0; i < g->m; i++) {
		size_t r = g->end[2 * i], c = g->end[2 * i + 1];
		a[r * n + c] = a[c * n + r] = weight[i];
	}
	return solve(a, n, k, value, vector, e);
}

/* Both halves of the matrix by rows. */
static void take_rows(struct lanczos *l, const struct network *g, const double *weight)
{
	size_t *first = xcalloc(l->n + 2, sizeof *first); /* row i is filled from first[i + 1] on, which becomes the first of row i + 1 */
	l->column = xmalloc((2 * g->m + 1) * sizeof *l->column);
	l->value = xmalloc((2 * g->m + 1) * sizeof *l->value);
	for (size_t i = 0; i < 2 * g->m; i++)
		first[g->end[i] + 2]++;
	for (size_t i = 0; i < l->n; i++)
		first[i + 2] += first[i + 1];
	for (size_t i = 0; i < 2 * g->m; i++) {
		size_t at = first[g->end[i] + 1]++;
		l->column[at] = g->end[i ^ 1];
		l->value[at] = weight[i / 2];
	}
	l->first = first;
	for (size_t i = 0; i < l->n; i++)
		l->norm = fmax(l->norm, cblas_dasum((int)(first[i + 1] - first[i]), l->value + first[i], 1));
}

/* Vectors of t [m, m]: s [m, m], value [m]. How many of the first k are eigenvectors of the matrix, by their residual; -1 with e set. */
static int solve_small(const struct lanczos *l, size_t k, double residual, double *value, double *s, struct error *e)
{
	FREED double *a = xmalloc(l->m * l->m * sizeof *a);
	memcpy(a, l->t, l->m * l->m * sizeof *a);
	int found = 0;
	if (solve(a, l->m, l->m, value, s, e))
		return -1;
	for (size_t c = 0; c < k; c++)
		found += fabs(l->last * s[(l->m - 1) * l->m + c]) <= residual * fabs(value[0]);
	return found;
}

/* Go on with the first `keep` vectors. */
static void restart(struct lanczos *l, size_t keep, const double *value, const double *s)
{
	combine(l, s, keep, NULL);
	memcpy(l->q + keep * l->n, l->q + l->m * l->n, l->n * sizeof *l->q);
	memset(l->t, 0, l->m * l->m * sizeof *l->t);
	for (size_t c = 0; c < keep; c++) {
		l->t[c * l->m + c] = value[c];
		l->t[keep * l->m + c] = l->t[c * l->m + keep] = l->last * s[(l->m - 1) * l->m + c];
	}
	l->kept = keep;
}

/* What begins at one vector meets one vector of all those with the same eigenvalue. So when k are found, a vector at random that is orthogonal to
 * them begins again, until nothing larger turns up. */
static int solve_sparse(struct lanczos *l, size_t k, double *value, double *vector, struct error *e)
{
	size_t m = l->m;
	double seen = -1;
	FREED double *theta = xmalloc(m * sizeof *theta), *s = xmalloc(m * m * sizeof *s);
	draw_vector(l, 0);
	for (int i = 0; i < RESTARTS; i++) {
		for (size_t j = l->kept; j < m; j++) {
			l->last = make_next(l, j);
			if (j + 1 < m)
				l->t[j * m + j + 1] = l->t[(j + 1) * m + j] = l->last;
		}
		int found = solve_small(l, k, i < RESTARTS / 4 ? RESIDUAL : ROUGH, theta, s, e);
		double sizes = cblas_dasum((int)k, theta, 1);
		if (found < 0)
			return -1;
		if ((size_t)found < k) {
			restart(l, k + ((size_t)found < (m - k) / 2 ? (size_t)found : (m - k) / 2), theta, s);
			continue;
		}
		if (sizes <= seen + MORE * fabs(theta[0])) {
			memcpy(value, theta, k * sizeof *value);
			combine(l, s, k, vector);
			return 0;
		}
		seen = sizes;
		l->last = 0;
		restart(l, k, theta, s);
		draw_vector(l, k);
	}
	return error_set(e, "no eigenvectors of %zu rows after %d restarts", l->n, RESTARTS);
}

int eigen_largest(const struct network *g, const double *weight, size_t k, double *value, double *vector, struct error *e)
{
	if (g->n <= DENSE || g->n < 4 * k)
		return solve_dense(g, weight, k, value, vector, e);
	struct lanczos l = {.n = g->n, .m = k + (k > NEW ? k : NEW), .rng = rng_at(0, RNG_EIGEN, 0, 0)};
	l.q = xlarge((l.m + 1) * l.n, sizeof *l.q);
	l.t = xcalloc(l.m * l.m, sizeof *l.t);
	l.h = xmalloc((l.m + 1) * sizeof *l.h);
	take_rows(&l, g, weight);
	int bad = solve_sparse(&l, k, value, vector, e);
	free_all(l.first, l.column, l.value, l.q, l.t, l.h);
	return bad;
}
