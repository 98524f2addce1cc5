/* ctaprobe cells --nearest: a cell has the class of most of its nearest training cells. */
#include "cells.h"
#include "cli.h"

#include "eval/moments.h"
#include "eval/neighbours.h"

/* What the features are divided by before distances are taken: their standard deviation over rows row[0..n) of d, [d->d]; 1 for a feature that is
 * constant but for rounding, or with as_given. Malloced. */
static double *rows_scale(const struct embeddings *d, const uint32_t *row, size_t n, int as_given)
{
	double *scale = xmalloc(d->d * sizeof *scale), *mean = xmalloc(d->d * sizeof *mean);
	moments(d->x, d->d, row, n, mean, scale);
	for (size_t j = 0; j < d->d; j++)
		scale[j] = !as_given && sqrt(scale[j]) > 1e-12 * fabs(mean[j]) ? sqrt(scale[j]) : 1;
	free(mean);
	return scale;
}

void nearest_fit(struct result *r, const struct split *s, const struct classes *c)
{
	size_t k = (size_t)cells_set.nearest, *votes = xmalloc(c->n * sizeof *votes);
	if (k > s->n)
		die("%s: --nearest %zu, but there are %zu training cells", s->what, k, s->n);
	double *scale = rows_scale(s->from, s->train, s->n, cells_set.as_given), *distance = xmalloc(s->m * k * sizeof *distance);
	float *train = embeddings_rows(s->from, s->train, s->n), *test = embeddings_rows(s->to, s->test, s->m);
	uint32_t *neighbour = xmalloc(s->m * k * sizeof *neighbour);
	progress("%s: the %zu nearest of %zu cells", s->what, k, s->n);
	nearest_rows(test, s->m, train, s->n, s->from->d, scale, k, (int)cells_cli.threads, neighbour, distance);
	for (size_t i = 0; i < s->m; i++) {
		size_t row = s->test[i], best = 0;
		memset(votes, 0, c->n * sizeof *votes);
		for (size_t j = 0; j < k; j++)
			votes[s->from->y[s->train[neighbour[i * k + j]]]]++;
		for (size_t l = 0; l < c->n; l++) {
			best = votes[l] > votes[best] ? l : best;
			r->logit[row * c->n + l] = log((double)votes[l] / (double)k);
		}
		r->predicted[row] = (uint32_t)best;
	}
	r->fits++;
	r->converged++;
	free_all(votes, scale, distance, train, test, neighbour);
}
