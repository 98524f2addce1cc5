/* ctaprobe cells --target: ridge regression of a column of numbers, with a search of its penalty. */
#include "cells.h"
#include "cli.h"

#include "eval/correlation.h"
#include "eval/ridge.h"

enum { GRID = 20 };

/* alpha = 1 ... 10^8 [numpy: logspace(0, 8, 20)] */
static double grid_at(int i)
{
	return pow(10, i * 8.0 / (GRID - 1));
}

static void target_init(struct ridge *g, const struct embeddings *d, const uint32_t *row, size_t n, const char *what)
{
	if (n < 2)
		die("%s: %s: %zu training cells: ridge regression needs two", stream_name(d->s), what, n);
	progress("%s: fitting %zu cells, %zu features", what, n, d->d);
	if (ridge_init(g, d->x, d->d, row, n, d->target, !cells_set.as_given, &failure))
		die("%s: %s: %s", stream_name(d->s), what, failure.msg);
}

/* The alpha with the smallest mean squared error over folds of the training cells; of equal ones the smallest. */
static double search(const struct split *s)
{
	size_t nfold = (size_t)cells_set.search;
	FREED uint32_t *fold = xmalloc(s->n * sizeof *fold), *train = xmalloc(s->n * sizeof *train), *test = xmalloc(s->n * sizeof *test);
	double mse[GRID] = {0};
	assign_folds(fold, s->from, s->train, s->n, nfold, (uint32_t)cells_cli.seed, s->what);
	for (uint32_t f = 0; f < nfold; f++) {
		struct ridge g = {0};
		size_t n = fold_rows(fold, f, s->train, s->n, train, test), m = s->n - n;
		FREED char *what = xasprintf("%s, fold %u of %zu of the search", s->what, f + 1, nfold);
		target_init(&g, s->from, train, n, what);
		for (int i = 0; i < GRID; i++) {
			double sum = 0;
			ridge_solve(&g, grid_at(i));
			for (size_t t = 0; t < m; t++) {
				double miss = ridge_predict(&g, s->from->x + (size_t)test[t] * s->from->d) - s->from->target[test[t]];
				sum += miss * miss;
			}
			mse[i] += sum / (double)m;
		}
		ridge_release(&g);
	}
	int best = 0;
	for (int i = 1; i < GRID; i++)
		if (mse[i] < mse[best])
			best = i;
	return grid_at(best);
}

void target_fit(struct result *r, const struct split *s)
{
	RELEASED(ridge_release) struct ridge g = {0};
	double alpha = cells_set.search ? search(s) : 1;
	target_init(&g, s->from, s->train, s->n, s->what);
	ridge_solve(&g, alpha);
	for (size_t i = 0; i < s->m; i++)
		r->expected[s->test[i]] = ridge_predict(&g, s->to->x + (size_t)s->test[i] * s->to->d);
	grow(r->penalty, r->penalty_cap, r->fits + 1);
	r->penalty[r->fits++] = alpha;
}

/* Spearman's correlation of the groups' means. Returns the number of groups. */
static size_t by_group(const struct embeddings *d, const double *expected, double *rho)
{
	size_t groups = 0, used = 0;
	for (size_t i = 0; i < d->n; i++)
		groups = d->group[i] >= groups ? d->group[i] + 1 : groups;
	double *n = xcalloc(3 * groups, sizeof *n), *x = n + groups, *y = x + groups;
	for (size_t i = 0; i < d->n; i++) {
		n[d->group[i]]++;
		x[d->group[i]] += expected[i];
		y[d->group[i]] += d->target[i];
	}
	for (size_t g = 0; g < groups; g++)
		if (n[g] > 0) {
			x[used] = x[g] / n[g];
			y[used++] = y[g] / n[g];
		}
	*rho = correlation_spearman(x, y, used);
	free(n);
	return used;
}

void target_scores(struct results *to, const struct embeddings *d, const struct result *r)
{
	results_add(to, "spearman", correlation_spearman(r->expected, d->target, d->n));
	if (d->group) {
		double rho;
		size_t n = by_group(d, r->expected, &rho);
		results_add_all(to, {"group_spearman", rho}, {"groups", (double)n});
	}
	report_fit(to, r->expected, d->target, d->n);
}
