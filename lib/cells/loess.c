#include "cells/loess.h"

#include "base/error.h"
#include "base/sort.h"

#define CELL 0.2 /* points of a cell that is not cut, as a share of the points of a fit */
#define MARGIN 0.005 /* by which the outermost cells reach beyond the points */
#define NEAR 0.001 /* points nearer than this part of the bandwidth have the weight 1, */
#define FAR 0.999 /* and points beyond this part 0 */
#define DEPENDENT 1e-7 /* a column with a smaller part outside of the columns before it is left out */

struct point {
	double x, y;
};

struct vertex {
	double x, value, slope;
};

struct fit {
	size_t n, near; /* points, and how many one parabola fits */
	struct point *p; /* [n] by x */
	double *row; /* [n, 4] weighted 1, x, x^2, y of the points of a parabola */
	struct vertex *v;
	size_t nv, cap;
};

/* First of the `near` points that are nearest to q. */
static size_t nearest(const struct fit *f, double q)
{
	return LEADING(f->n - f->near, i, q - f->p[i].x > f->p[i + f->near].x - q);
}

static double dot(const double *row, size_t m, int j, int k)
{
	double sum = 0;
	for (const double *p = row; p < row + 4 * m; p += 4)
		sum += p[j] * p[k];
	return sum;
}

/* Least squares of column 3 on columns 0 to 2 of the weighted rows [m, 4], by Gram-Schmidt: b[0..2] out. */
static void solve(double *row, size_t m, double b[3])
{
	double r[3][4] = {{0}};
	for (int k = 0; k < 3; k++) {
		double before = dot(row, m, k, k);
		for (int j = 0; j < k; j++) {
			r[j][k] = dot(row, m, j, k);
			for (double *p = row; p < row + 4 * m; p += 4)
				p[k] -= r[j][k] * p[j];
		}
		double after = dot(row, m, k, k);
		r[k][k] = after > DEPENDENT * DEPENDENT * before ? sqrt(after) : 0;
		for (double *p = row; p < row + 4 * m; p += 4)
			p[k] = r[k][k] > 0 ? p[k] / r[k][k] : 0;
		r[k][3] = dot(row, m, k, 3);
	}
	for (int k = 2; k >= 0; k--) {
		b[k] = r[k][3];
		for (int j = k + 1; j < 3; j++)
			b[k] -= r[k][j] * b[j];
		b[k] = r[k][k] > 0 ? b[k] / r[k][k] : 0;
	}
}

static void fit_vertex(struct fit *f, struct vertex *v)
{
	size_t first = nearest(f, v->x), last = first + f->near - 1, m = 0;
	double h = fmax(v->x - f->p[first].x, f->p[last].x - v->x), b[3];
	for (; first && v->x - f->p[first - 1].x <= h; first--) /* others at the same distance have the weight 0, but not if h is 0 */
		;
	for (; last + 1 < f->n && f->p[last + 1].x - v->x <= h; last++)
		;
	double scale = h > 0 ? h : 1;
	for (size_t i = first; i <= last; i++) {
		double d = (f->p[i].x - v->x) / scale, r = fabs(d);
		if (r >= FAR)
			continue;
		double w = r > NEAR ? sqrt(pow(1 - r * r * r, 3)) : 1;
		double *row = f->row + 4 * m++;
		row[0] = w;
		row[1] = w * d;
		row[2] = w * d * d;
		row[3] = w * f->p[i].y;
	}
	solve(f->row, m, b);
	v->value = b[0];
	v->slope = b[1] / scale;
}

static void add_vertex(struct fit *f, double x)
{
	grow(f->v, f->cap, f->nv + 1);
	f->v[f->nv++] = (struct vertex){.x = x};
}

/*
 * Cut the cell of points [l, u], between the vertices a and b, at its median x. If the next x is equal, cut at the nearest place where two
 * adjacent x differ, so that equal x stay together.
 */
static void cut(struct fit *f, ptrdiff_t l, ptrdiff_t u, double a, double b, ptrdiff_t most)
{
	if (u - l + 1 <= most)
		return;
	ptrdiff_t m = (l + u + 2) / 2 - 1, median = m;
	for (ptrdiff_t off = 0; median + off >= l && median + off<u; off = off> 0 ? -off : 1 - off) /* 0, 1, -1, 2, -2 ... */
		if (f->p[median + off].x != f->p[median + off + 1].x) {
			m = median + off;
			break;
		}
	double x = f->p[m].x;
	if (x == a || x == b)
		return;
	add_vertex(f, x);
	cut(f, l, m, a, x, most);
	cut(f, m + 1, u, x, b, most);
}

/* The cubic between the vertices around x. */
static double between(const struct fit *f, double x)
{
	const struct vertex *a = &f->v[LEADING(f->nv - 2, i, f->v[i + 1].x <= x)], *b = a + 1;
	double w = b->x - a->x, t = (x - a->x) / w, s = 1 - t;
	return s * s * (1 + 2 * t) * a->value + t * t * (3 - 2 * t) * b->value + w * (t * s * s * a->slope - t * t * s * b->slope);
}

void loess(const double *x, const double *y, size_t n, double span, double *fitted)
{
	struct fit f = {.n = n, .p = xmalloc(n * sizeof *f.p), .row = xmalloc(4 * n * sizeof *f.row)};
	f.near = (size_t)((double)n * span + 1e-5);
	f.near = f.near < 1 ? 1 : f.near > n ? n : f.near;
	for (size_t i = 0; i < n; i++)
		f.p[i] = (struct point){x[i], y[i]};
	qsort(f.p, n, sizeof *f.p, compare_double);
	double low = f.p[0].x, high = f.p[n - 1].x;
	double margin = MARGIN * fmax(high - low, 1e-10 * fmax(fabs(low), fabs(high)) + 1e-30);
	add_vertex(&f, low - margin);
	add_vertex(&f, high + margin);
	cut(&f, 0, (ptrdiff_t)n - 1, f.v[0].x, f.v[1].x, (ptrdiff_t)((double)n * span * CELL));
	qsort(f.v, f.nv, sizeof *f.v, compare_double);
	for (size_t k = 0; k < f.nv; k++)
		fit_vertex(&f, &f.v[k]);
	for (size_t i = 0; i < n; i++)
		fitted[i] = between(&f, x[i]);
	free_all(f.p, f.row, f.v);
}
