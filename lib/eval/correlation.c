#include "eval/correlation.h"

#include "base/error.h"
#include "base/sort.h"
#include "eval/unit.h"

static int constant(const double *x, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (x[i] != x[0])
			return 0;
	return 1;
}

double correlation_pearson(const double *x, const double *y, size_t n)
{
	double mx = 0, my = 0, xx = 0, yy = 0, xy = 0;
	if (constant(x, n) || constant(y, n))
		return NAN;
	double ux = unit_for(largest_size(x, n)), uy = unit_for(largest_size(y, n));
	for (size_t i = 0; i < n; i++) {
		mx += x[i] * ux;
		my += y[i] * uy;
	}
	mx /= (double)n;
	my /= (double)n;
	for (size_t i = 0; i < n; i++) {
		double dx = x[i] * ux - mx, dy = y[i] * uy - my;
		xx += dx * dx;
		yy += dy * dy;
		xy += dx * dy;
	}
	return xy / sqrt(xx) / sqrt(yy);
}

struct item {
	double value;
	size_t index;
};

/* rank [n] from 1; it [n] scratch. */
static void ranks(const double *x, size_t n, struct item *it, double *rank)
{
	for (size_t i = 0; i < n; i++)
		it[i] = (struct item){x[i], i};
	qsort(it, n, sizeof *it, compare_double);
	for (size_t from = 0, to; from < n; from = to) {
		for (to = from + 1; to < n && it[to].value == it[from].value; to++)
			;
		for (size_t i = from; i < to; i++)
			rank[it[i].index] = (double)(from + 1 + to) / 2;
	}
}

double correlation_spearman(const double *x, const double *y, size_t n)
{
	struct item *it = xmalloc(n * sizeof *it);
	double *a = xmalloc(2 * n * sizeof *a), *b = a + n;
	ranks(x, n, it, a);
	ranks(y, n, it, b);
	double r = correlation_pearson(a, b, n);
	free_all(it, a);
	return r;
}
