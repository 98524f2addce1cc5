#include "eval/learnability.h"

#include "base/error.h"
#include "base/sort.h"
#include "eval/isotonic.h"

#define ROUNDING 1e-12 /* a smaller residual is 0, so that genes on the curve are tied */

COMPARE(by_zeros, struct learned_gene *, ORDER((*a)->zero_fraction, (*b)->zero_fraction) ?: ORDER(*a, *b))

static double mean(const double *x, size_t n)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += x[i];
	return sum / (double)n;
}

static double squares(const double *x, size_t n)
{
	double centre = mean(x, n), sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += (x[i] - centre) * (x[i] - centre);
	return sum;
}

/* s of the gene of rank i */
static double spread_at(const double *residual, size_t n, size_t i, size_t window)
{
	size_t from = i < window / 2 ? 0 : i - window / 2;
	from = from + window > n ? n - window : from;
	double s = sqrt(squares(residual + from, window) / (double)(window - 1));
	return s > LEARNING_SPREAD ? s : LEARNING_SPREAD;
}

static const double TAU = 2, MARGIN = 0.1, WINDOW_SHARE = 0.05;

static enum learned kind_of(const struct learned_gene *g)
{
	if (g->z < -TAU && g->r < (1 - MARGIN) * g->expected)
		return LEARNED_WINNER;
	return g->z > TAU && g->r > (1 + MARGIN) * g->expected ? LEARNED_LOSER : LEARNED_AS_EXPECTED;
}

void learnability(struct learned_gene *gene, size_t n, double *explained)
{
	struct learned_gene **g = xcalloc(n + 1, sizeof(struct learned_gene *));
	double *x = xcalloc(4 * n + 1, sizeof *x), *y = x + n, *f = y + n, *residual = f + n, rest = 0;
	int differ = 0;
	size_t window = (size_t)fmax(LEARNING_WINDOW, ceil(WINDOW_SHARE * (double)n));
	window = window > n ? n : window;
	for (size_t i = 0; i < n; i++)
		g[i] = &gene[i];
	qsort(g, n, sizeof *g, by_zeros);
	for (size_t i = 0; i < n; i++) {
		x[i] = g[i]->zero_fraction;
		y[i] = log(g[i]->r);
	}
	isotonic_fit(f, x, y, n);
	for (size_t i = 0; i < n; i++) {
		residual[i] = fabs(y[i] - f[i]) > ROUNDING ? y[i] - f[i] : 0;
		rest += residual[i] * residual[i];
		differ |= y[i] != y[0];
	}
	for (size_t i = 0; i < n; i++) {
		g[i]->expected = exp(f[i]);
		g[i]->z = window > 1 ? residual[i] / spread_at(residual, n, i, window) : NAN;
		g[i]->kind = kind_of(g[i]);
	}
	*explained = differ ? 1 - rest / squares(y, n) : NAN;
	free_all(g, x);
}
