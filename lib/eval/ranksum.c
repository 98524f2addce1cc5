#include "eval/ranksum.h"

#include "base/rng.h"
#include "base/sort.h"
#include "eval/distribution.h"

#include <stdlib.h>

enum { EXACT = 16 };

void ranksum_sort(double *y, size_t m)
{
	qsort(y, m, sizeof *y, compare_double);
}

/* How many of y [m], sorted, are below v (or, with `equal`, not above it), given that the first `from` are. */
static size_t count_below(const double *y, size_t m, size_t from, double v, int equal)
{
	y += from;
	return from + LEADING(m - from, i, y[i] < v || (equal && y[i] == v));
}

/* Sum and sum of squares, around a value near the mean, which keeps the digits. */
struct spread {
	double n, sum, square, centre;
};

static void spread_add(struct spread *s, double v, double times)
{
	s->n += times;
	s->sum += times * (v - s->centre);
	s->square += times * (v - s->centre) * (v - s->centre);
}

static double spread_variance(const struct spread *s)
{
	return s->n > 1 ? fmax(0, s->square - s->sum * s->sum / s->n) / (s->n - 1) : NAN;
}

void ranksum_against(struct ranksum *r, double *x, size_t n, const double *y, size_t m)
{
	*r = (struct ranksum){NAN, NAN, NAN, NAN, NAN};
	if (!n || !m)
		return;
	double N = (double)n, M = (double)m, U = 0;
	struct spread of_x = {.centre = 0.5}, of_y = {.centre = 0.5};
	size_t below = 0, upto = 0, last = 0;
	ranksum_sort(x, n);
	for (size_t i = 0; i < n;) {
		size_t same = 1;
		while (i + same < n && x[i + same] == x[i])
			same++;
		below = count_below(y, m, upto, x[i], 0);
		upto = count_below(y, m, below, x[i], 1);
		double place = ((double)below + (double)(upto - below) / 2) / M;
		U += (double)same * place * M;
		spread_add(&of_x, place, (double)same);
		spread_add(&of_y, (double)i / N,
			(double)(below - last)); /* every y between the last x and this one is greater than i values of x */
		spread_add(&of_y, ((double)i + (double)same / 2) / N, (double)(upto - below));
		last = upto;
		i += same;
	}
	spread_add(&of_y, 1, (double)(m - last));
	r->auc = U / (N * M);
	r->z = (U - N * M / 2) / sqrt(N * M * (N + M + 1) / 12);
	r->p = normal_two_sided(r->z);
	double se = sqrt(spread_variance(&of_x) / N + spread_variance(&of_y) / M);
	r->low = se > 0 ? fmax(0, r->auc - NORMAL_975 * se) : NAN;
	r->high = se > 0 ? fmin(1, r->auc + NORMAL_975 * se) : NAN;
}

double sign_flips_least(size_t n)
{
	return n <= EXACT ? ldexp(2, -(int)n) : 1 / (ldexp(1, EXACT) + 1);
}

double sign_flips(const double *d, size_t n)
{
	double observed = 0, size = 0;
	if (!n)
		return NAN;
	for (size_t i = 0; i < n; i++) {
		observed += d[i];
		size += fabs(d[i]);
	}
	observed = fabs(observed) - 1e-12 * size; /* sums in another order count as equal */
	size_t draws = (size_t)1 << (n < EXACT ? n : EXACT), hits = 0;
	struct rng rng = rng_at(1, RNG_TEST, n, 0);
	for (size_t k = 0; k < draws; k++) {
		double sum = 0;
		for (size_t i = 0; i < n; i++) {
			int minus = n <= EXACT ? (int)(k >> i & 1) : (int)(rng_u32(&rng) & 1);
			sum += minus ? -d[i] : d[i];
		}
		hits += fabs(sum) >= observed;
	}
	return n <= EXACT ? (double)hits / (double)draws : (double)(hits + 1) / (double)(draws + 1);
}
