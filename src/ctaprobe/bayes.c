/*
 * ctaprobe cells --naive-bayes: multinomial naive Bayes of counts, with one molecule of every gene added to each class
 * [Manning et al. 2008, chapter 13]:
 *     logit_c = log(share of class c) + sum_g count_g log((n_cg + 1) / (n_c + genes)),   n: molecules of the training cells
 */
#include "cells.h"

/* prior [k] and w [d, k]: the logarithms of the shares of the classes, and of the genes in each. -inf: a class without training cells. */
static void bayes_train(double *prior, double *w, const struct split *s, size_t k)
{
	const struct embeddings *d = s->from;
	double *total = xcalloc(k, sizeof *total), genes = (double)s->from->shared;
	RELEASED(sparse_row_release) struct sparse_row r = {0};
	for (size_t i = 0; i < s->n; i++) {
		size_t c = d->y[s->train[i]];
		prior[c]++;
		sparse_counts(&d->sparse, s->train[i], &r);
		for (size_t v = 0; v < r.n; v++) {
			w[r.column[v] * k + c] += (double)r.count[v];
			total[c] += (double)r.count[v];
		}
	}
	for (size_t c = 0; c < k; c++)
		prior[c] = log(prior[c] / (double)s->n);
	for (size_t i = 0; i < d->d * k; i++)
		w[i] = log((w[i] + 1) / (total[i % k] + genes));
	free(total);
}

void bayes_fit(struct result *r, const struct split *s, const struct classes *c)
{
	const struct embeddings *d = s->to;
	RELEASED(sparse_row_release) struct sparse_row counts = {0};
	FREED double *prior = xcalloc(c->n, sizeof *prior), *w = xcalloc(d->d * c->n, sizeof *w);
	progress("%s: naive Bayes of %zu cells, %zu classes", s->what, s->n, c->n);
	bayes_train(prior, w, s, c->n);
	for (size_t i = 0; i < s->m; i++) {
		size_t row = s->test[i], best = 0;
		double *logit = r->logit + row * c->n;
		for (size_t l = 0; l < c->n; l++)
			logit[l] = prior[l];
		sparse_counts(&d->sparse, row, &counts);
		for (size_t v = 0; v < counts.n; v++)
			for (size_t l = 0; l < c->n; l++)
				logit[l] += (double)counts.count[v] * w[counts.column[v] * c->n + l];
		for (size_t l = 1; l < c->n; l++)
			best = logit[l] > logit[best] ? l : best;
		r->predicted[row] = (uint32_t)best;
	}
	r->fits++;
	r->converged++;
}
