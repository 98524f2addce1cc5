#include "transfer/method.h"

#include "base/rng.h"
#include "base/softmax.h"
#include "base/threads.h"
#include "eval/neighbours.h"

enum { FAR = 10 }; /* neighbours whose mean distance says how far a cell is, if not --nearest */

/* The penalty of the regression on genes: from .001 to .01, the mean macro F1 over 18 pairs of studies changes by less than .01. */
static const double genes_penalty = 3e-3;
/* What divides the correlations of ranks before they become probabilities. */
static const double rank_temperature = 0.03;
enum { LACKED_PASSES = 3 }; /* of add_lacked, after which probabilities hardly change */
enum { MOST_ROWS = 100000 }; /* that the regression on genes learns from; docs/benchmarks.md says what it costs */

/* Which of the k classes of m the coarse labels mean that its rows have, [labels - k, k]. Malloced. */
static uint8_t *coarse_sets(const struct method *m, uint32_t k, uint32_t labels)
{
	const struct detail *t = m->o->detail;
	uint8_t *under = xcalloc(labels - k + 1, k);
	for (uint32_t j = k; j < labels; j++)
		for (uint32_t c = 0; c < k; c++)
			under[(j - k) * k + c] = t->under[m->back[j] * t->k + m->back[c]];
	return under;
}

/* The rows that the regression learns from, malloced: not those of a coarse label without a class among the k of m. */
static uint32_t *learned_rows(const uint32_t *row, size_t n, const uint32_t *y, const uint8_t *under, uint32_t k, size_t *learned)
{
	uint32_t *to = xmalloc(n * sizeof *to);
	*learned = 0;
	for (size_t i = 0; i < n; i++)
		if (y[row[i]] < k || memchr(under + (size_t)(y[row[i]] - k) * k, 1, k))
			to[(*learned)++] = row[i];
	return to;
}

/* At most this many cells of each of k strata, cells [k], are at most `most` cells, or one of each. */
static size_t most_of_stratum(const size_t *cells, size_t k, size_t most)
{
	size_t low = 1, high = most + 1;
	while (high - low > 1) {
		size_t at = (low + high) / 2, sum = 0;
		for (size_t s = 0; s < k; s++)
			sum += cells[s] < at ? cells[s] : at;
		*(sum <= most ? &low : &high) = at;
	}
	return low;
}

static size_t stratum_of(const struct embeddings *d, uint32_t row, size_t groups)
{
	return d->y[row] * groups + (d->group ? d->group[row] : 0);
}

/* Of more than MOST_ROWS rows, draw equally many of each label in each group, if there are. Malloced. weight [d->n]: how many each is for. */
static uint32_t *drawn_rows(
	const struct embeddings *d, const uint32_t *row, size_t n, size_t labels, uint32_t seed, float *weight, size_t *drawn)
{
	size_t groups = 1;
	for (size_t i = 0; i < n && d->group; i++)
		groups = d->group[row[i]] >= groups ? d->group[row[i]] + 1 : groups;
	size_t k = labels * groups, *cells = xcalloc(k, sizeof *cells), *left = xmalloc(k * sizeof *left),
	       *taken = xcalloc(k, sizeof *taken);
	uint32_t *to = xmalloc(n * sizeof *to);
	*drawn = 0;
	for (size_t i = 0; i < n; i++)
		cells[stratum_of(d, row[i], groups)]++;
	size_t most = most_of_stratum(cells, k, MOST_ROWS);
	memcpy(left, cells, k * sizeof *left);
	for (size_t i = 0; i < n; i++) {
		size_t s = stratum_of(d, row[i], groups), wanted = cells[s] < most ? cells[s] : most;
		struct rng r = rng_at(seed, RNG_ROWS, row[i], 0);
		if (rng_below(&r, (uint32_t)left[s]--) >= wanted - taken[s])
			continue;
		taken[s]++;
		weight[row[i]] = (float)cells[s] / (float)wanted;
		to[(*drawn)++] = row[i];
	}
	free_all(cells, left, taken);
	return to;
}

/* Regression on genes: the classes of the rows are numbered for it, and coarse labels after them. */
static int genes_fit(struct method *m, const struct embeddings *d, const uint32_t *row, size_t n, int components, struct error *e)
{
	size_t all = m->o->detail ? m->o->detail->labels : m->c->n, learned;
	uint32_t *local = xmalloc(all * sizeof *local), *y = xcalloc(d->n, sizeof *y), k = 0, labels = 0;
	memset(local, 0xFF, all * sizeof *local);
	for (size_t i = 0; i < n; i++)
		local[d->y[row[i]]] = 0;
	m->back = xmalloc(all * sizeof *m->back);
	for (uint32_t c = 0; c < all; c++)
		if (local[c] != MISSING_CODE) {
			m->back[labels] = c;
			local[c] = labels++;
			k += c < m->c->n;
		}
	if (k < 2) {
		free_all(local, y);
		return error_set(e, "the %zu training cells are all '%s' in column '%s'; two classes are needed", n,
			k ? m->c->name[m->back[0]] : "of coarse types", m->o->label);
	}
	for (size_t i = 0; i < n; i++)
		y[row[i]] = local[d->y[row[i]]];
	float *weight = n > MOST_ROWS ? xmalloc(d->n * sizeof *weight) : NULL;
	uint32_t *drawn = weight ? drawn_rows(d, row, n, all, m->o->seed, weight, &n) : NULL;
	row = drawn ? drawn : row;
	uint8_t *under = labels > k ? coarse_sets(m, k, labels) : NULL;
	uint32_t *rows = learned_rows(row, n, y, under, k, &learned);
	int failed = sparse_probe_fit(&m->genes, &d->sparse, rows, learned, y, k, weight, under, genes_penalty, e);
	centroids_fit(&m->centroids, &d->sparse, row, n, y, weight, labels);
	marker_ranks_fit(&m->ranks, &d->sparse, rows, learned, y, weight, k);
	if (components && !failed)
		failed = components_fit(&m->components, &d->sparse, rows, learned, y, k, m->o->threads, e);
	m->n = n;
	free_all(weight, drawn, local, y, under, rows);
	return failed;
}

static int embeddings_fit(
	struct method *m, const struct embeddings *d, const uint32_t *row, size_t n, const struct method *start, struct error *e)
{
	const struct method_options *o = m->o;
	if (o->nearest > n)
		return error_set(e, "--nearest %zu, but there are %zu reference cells", o->nearest, n);
	m->own = n < d->n ? embeddings_rows(d, row, n) : NULL;
	m->x = m->own ? m->own : d->x;
	m->y = xmalloc(n * sizeof *m->y);
	for (size_t i = 0; i < n; i++)
		m->y[i] = d->y[row[i]];
	struct probe_options p = {.c = o->inverse_penalty,
		.tol = PROBE_TOL,
		.max_iter = 5000,
		.standardize = !o->as_given,
		.threads = o->threads,
		.start = start ? &start->probe.p : NULL};
	return o->nearest ? 0 : fitted_train(&m->probe, d, row, n, m->c, o->label, &p, e);
}

int method_fit(struct method *m, const struct embeddings *d, const uint32_t *row, size_t n, const struct classes *c,
	const struct method_options *o, const struct method *start, struct error *e)
{
	*m = (struct method){.o = o, .c = c, .n = n, .d = d->d};
	int failed = d->x ? embeddings_fit(m, d, row, n, start, e) : genes_fit(m, d, row, n, o->components && !start, e);
	if (failed)
		method_release(m);
	return failed;
}

void method_keep(struct method *m, const uint8_t *keep)
{
	const struct sparse_probe *p = &m->genes;
	m->lacked = xcalloc(p->k * p->k, sizeof *m->lacked);
	for (size_t a = 0; a < p->k; a++)
		for (size_t j = 0; j < m->d; j++)
			for (size_t c = 0; c < p->k && !keep[j]; c++)
				m->lacked[a * p->k + c] += (double)m->ranks.mean[a * m->d + j] * (double)p->w[j * p->stride + c];
	sparse_probe_keep(&m->genes, keep);
	centroids_keep(&m->centroids, keep);
	marker_ranks_keep(&m->ranks, keep);
	components_keep(&m->components, keep);
}

void method_release(struct method *m)
{
	fitted_release(&m->probe);
	sparse_probe_release(&m->genes);
	centroids_release(&m->centroids);
	marker_ranks_release(&m->ranks);
	components_release(&m->components);
	free_all(m->back, m->own, m->y, m->lacked);
	*m = (struct method){0};
}

struct job {
	const struct method *m;
	const float *x;
	double *logit;
};

static void probe_row(void *arg, size_t i, int thread)
{
	const struct job *a = arg;
	fitted_logits(&a->m->probe, a->x + i * a->m->d, a->logit + i * a->m->c->n);
}

/* The logarithm of each class's share of the k neighbours and one more cell, which belongs to all classes that m has in equal parts. */
static void vote(const struct method *m, const uint32_t *neighbour, size_t k, const uint8_t *there, double *logit)
{
	size_t classes = 0;
	for (size_t c = 0; c < m->c->n; c++)
		classes += there[c];
	for (size_t c = 0; c < m->c->n; c++)
		logit[c] = there[c] ? 1 / (double)classes : 0;
	for (size_t j = 0; j < k; j++)
		logit[m->y[neighbour[j]]]++;
	for (size_t c = 0; c < m->c->n; c++)
		logit[c] = log(logit[c] / (double)(k + 1));
}

static void nearest_score(const struct method *m, const float *x, size_t n, double *logit, double *far)
{
	size_t k = m->o->nearest ? m->o->nearest : m->n < FAR ? m->n : FAR;
	FREED uint32_t *neighbour = xmalloc(n * k * sizeof *neighbour);
	FREED double *distance = xmalloc(n * k * sizeof *distance);
	FREED uint8_t *there = xcalloc(m->c->n, 1);
	nearest_rows(x, n, m->x, m->n, m->d, NULL, k, m->o->threads, neighbour, distance);
	for (size_t i = 0; i < m->n; i++)
		there[m->y[i]] = 1;
	for (size_t i = 0; i < n; i++) {
		far[i] = 0;
		for (size_t j = 0; j < k; j++)
			far[i] += distance[i * k + j] / (double)k;
		if (m->o->nearest)
			vote(m, neighbour + i * k, k, there, logit + i * m->c->n);
	}
}

/* p [k] are logits of a row without the genes that new cells lack, and become those of a row that has them as the mean of each class does, weighted
 * by the probability of the class. q [k]: by ranks. scratch [2k] */
static void add_lacked(const struct method *m, double *p, const double *q, double *scratch)
{
	size_t k = m->genes.k;
	double *of = scratch, *without = scratch + k;
	memcpy(without, p, k * sizeof *p);
	for (int pass = 0; pass <= LACKED_PASSES; pass++) {
		memcpy(of, p, k * sizeof *p);
		softmax(of, k);
		memcpy(p, without, k * sizeof *p);
		for (size_t a = 0; a < k; a++)
			for (size_t c = 0; c < k; c++)
				p[c] += (pass ? (of[a] + q[a]) / 2 : 1 / (double)k) * m->lacked[a * k + c];
	}
}

/* By genes: the mean of the probabilities of the regression and of the ranks. */
static void genes_score(const struct method *m, const struct sparse *x, const uint32_t *row, size_t n, double *logit, double *far)
{
	size_t k = m->genes.k;
	FREED float *z = xmalloc(m->genes.stride * sizeof *z);
	double *p = xmalloc(4 * k * sizeof *p), *q = p + k;
	FREED struct marker_rank *ranks = xmalloc((m->ranks.m + 1) * sizeof *ranks);
	RELEASED(sparse_row_release) struct sparse_row r = {0};
	for (size_t i = 0; i < n; i++, logit += m->c->n) {
		sparse_row(x, row ? row[i] : i, &r);
		sparse_probe_logits(&m->genes, &r, z);
		marker_ranks_correlation(&m->ranks, &r, ranks, q);
		for (size_t c = 0; c < k; c++) {
			p[c] = (double)z[c];
			q[c] /= rank_temperature;
		}
		softmax(q, k);
		if (m->lacked)
			add_lacked(m, p, q, q + k);
		softmax(p, k);
		for (size_t c = 0; c < m->c->n; c++)
			logit[c] = -INFINITY;
		for (size_t c = 0; c < k; c++)
			logit[m->back[c]] = log((p[c] + q[c]) / 2);
		far[i] = centroids_distance(&m->centroids, &r);
	}
	free(p);
}

void method_score(const struct method *m, const struct embeddings *d, const uint32_t *row, size_t n, double *logit, double *far)
{
	if (!d->x) {
		genes_score(m, &d->sparse, row, n, logit, far);
		return;
	}
	FREED float *own = row ? embeddings_rows(d, row, n) : NULL;
	const float *x = own ? own : d->x;
	nearest_score(m, x, n, logit, far);
	if (!m->o->nearest)
		pool_for(m->o->threads, n, probe_row, &(struct job){m, x, logit});
}
