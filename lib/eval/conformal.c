#include "eval/conformal.h"

#include "base/error.h"
#include "base/sort.h"

struct item {
	double score, weight;
};

void conformal_init(struct conformal *c, const double *score, const uint32_t *group, size_t n, size_t groups)
{
	FREED struct item *it = xmalloc(n * sizeof *it);
	FREED double *cells = xcalloc(groups + 1, sizeof *cells);
	*c = (struct conformal){.n = n, .groups = group ? groups : n};
	for (size_t i = 0; i < n && group; i++)
		cells[group[i]]++;
	for (size_t i = 0; i < n; i++)
		it[i] = (struct item){score[i], group ? 1 / cells[group[i]] : 1};
	qsort(it, n, sizeof *it, compare_double);
	c->score = xmalloc(n * sizeof *c->score);
	c->mass = xmalloc((n + 1) * sizeof *c->mass);
	c->mass[0] = 0;
	for (size_t i = 0; i < n; i++) {
		c->score[i] = it[i].score;
		c->mass[i + 1] = c->mass[i] + it[i].weight;
	}
}

void conformal_shorten(struct conformal *c)
{
	size_t n = 0;
	for (size_t i = 0; i < c->n && c->n > CONFORMAL_MOST; i++)
		if ((i + 1) * CONFORMAL_MOST / c->n > i * CONFORMAL_MOST / c->n) {
			c->score[n] = c->score[i];
			c->mass[++n] = c->mass[i + 1];
		}
	c->n = c->n > CONFORMAL_MOST ? n : c->n;
}

void conformal_release(struct conformal *c)
{
	free_all(c->score, c->mass);
	*c = (struct conformal){0};
}

/* Sums of shares are rounded; this is far below the weight of a cell. */
static double slack(const struct conformal *c)
{
	return 1e-9 * (double)c->groups;
}

/* Can so many groups promise 1 - miss? */
static int groups_promise(const struct conformal *c, double miss)
{
	return (1 - miss) * (double)(c->groups + 1) <= (double)c->groups + slack(c);
}

double conformal_threshold(const struct conformal *c, double miss)
{
	double need = (1 - miss) * (double)(c->groups + (size_t)groups_promise(c, miss)) - slack(c);
	return c->score[LEADING(c->n - 1, i, c->mass[i + 1] < need)]; /* the first score with enough mass up to it */
}

double conformal_p(const struct conformal *c, double score)
{
	size_t below = LEADING(c->n, i, c->score[i] < score);
	return fmin(1, (1 + c->mass[c->n] - c->mass[below]) / (double)(c->groups + 1));
}
