#include "eval/roc.h"

#include "base/error.h"
#include "base/sort.h"

/* A corner of the curve: items at or above one score. */
struct corner {
	uint64_t fp, tp;
};

static struct corner next_corner(const struct roc_item *item, size_t n, size_t *at, struct corner c)
{
	double score = item[*at].score;
	for (; *at < n && item[*at].score == score; ++*at) {
		c.tp += item[*at].positive != 0;
		c.fp += item[*at].positive == 0;
	}
	return c;
}

/* As numpy's linspace(0, 1, 100). */
static double grid_at(int i)
{
	return i * (1.0 / (ROC_GRID - 1));
}

/* Interpolate the grid points from *g on that are in [a, b). Of corners with equal fpr the last is used, as in numpy's interp. */
static void fill_grid(struct roc *r, struct corner a, struct corner b, int *g)
{
	double x0 = (double)a.fp / (double)r->negative, x1 = (double)b.fp / (double)r->negative;
	double y0 = (double)a.tp / (double)r->positive, y1 = (double)b.tp / (double)r->positive;
	for (; *g < ROC_GRID - 1 && grid_at(*g) < x1; ++*g)
		r->tpr[*g] = y0 + (y1 - y0) / (x1 - x0) * (grid_at(*g) - x0);
}

void roc_curve(struct roc *r, struct roc_item *item, size_t n)
{
	*r = (struct roc){.auc = NAN};
	for (size_t i = 0; i < n; i++)
		*(item[i].positive ? &r->positive : &r->negative) += 1;
	if (!r->positive || !r->negative)
		return;
	qsort(item, n, sizeof *item, compare_double_down);
	struct corner before = {0}, here = {0};
	double twice = 0; /* the area, in units of half a pair: exact below 2^53 */
	uint64_t corners = 0, df = 0, dt = 0;
	int g = 0;
	for (size_t at = 0; at < n; before = here) {
		here = next_corner(item, n, &at, before);
		uint64_t f = here.fp - before.fp, t = here.tp - before.tp;
		twice += (double)f * (double)(before.tp + here.tp);
		fill_grid(r, before, here, &g);
		/* the corner before this step is dropped if the line continues straight; the first corner is kept */
		corners++;
		r->points += corners > 1 && (corners == 2 || f != df || t != dt);
		df = f;
		dt = t;
	}
	r->points += 2; /* the last corner, and (0, 0) */
	while (g < ROC_GRID)
		r->tpr[g++] = 1;
	r->tpr[0] = 0;
	r->auc = twice / 2 / ((double)r->positive * (double)r->negative);
}

double roc_macro(const double *score, const uint32_t *y, size_t n, size_t k, double *each)
{
	FREED struct roc_item *item = xmalloc(n * sizeof *item);
	double sum = 0;
	size_t known = 0;
	for (size_t c = 0; c < k; c++) {
		struct roc r;
		/* with two classes, both have the same area */
		size_t at = k == 2 ? 1 : c;
		for (size_t i = 0; i < n; i++)
			item[i] = (struct roc_item){score[i * k + at], y[i] == at};
		roc_curve(&r, item, n);
		each[c] = r.auc;
		if (!isnan(r.auc)) {
			sum += r.auc;
			known++;
		}
	}
	return known ? sum / (double)known : NAN;
}

void roc_mean(const double *score, const uint32_t *y, size_t n, size_t k, double tpr[ROC_GRID])
{
	FREED struct roc_item *item = xmalloc(n * sizeof *item);
	size_t known = 0;
	for (int g = 0; g < ROC_GRID; g++)
		tpr[g] = 0;
	for (size_t c = 0; c < k; c++) {
		struct roc r;
		for (size_t i = 0; i < n; i++)
			item[i] = (struct roc_item){score[i * k + c], y[i] == c};
		roc_curve(&r, item, n);
		known += !isnan(r.auc);
		for (int g = 0; g < ROC_GRID && !isnan(r.auc); g++)
			tpr[g] += r.tpr[g];
	}
	for (int g = 0; g < ROC_GRID; g++)
		tpr[g] = known ? tpr[g] / (double)known : NAN;
}
