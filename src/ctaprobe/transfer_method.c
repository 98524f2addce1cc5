/* ctaprobe transfer: what predicts the classes of cells, and the calibration of its scores on cells that it has not seen. */
#include "transfer.h"
#include "cli.h"

#include "base/rng.h"
#include "base/softmax.h"
#include "base/threads.h"
#include "eval/calibration.h"
#include "eval/finest.h"
#include "eval/neighbours.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FAR = 10 }; /* neighbours whose mean distance says how far a cell is, if not --nearest */

/* The penalty of the regression on genes: from .001 to .01, the mean macro F1 over 18 pairs of studies changes by less than .01. */
static const double genes_penalty = 3e-3;
/* What divides the correlations of ranks before they become probabilities. */
static const double rank_temperature = 0.03;
enum { MOST_ROWS = 100000 }; /* that the regression on genes learns from; docs/benchmarks.md says what it costs */

/* ---- method ---- */

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
	free(cells);
	free(left);
	free(taken);
	return to;
}

/* Regression on genes: the classes of the rows are numbered for it, and coarse labels after them. */
static void genes_fit(struct method *m, const struct embeddings *d, const uint32_t *row, size_t n, const char *what)
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
	if (k < 2)
		die("%s: %s: the %zu training cells are all '%s' in column '%s'; two classes are needed", stream_name(d->s), what, n,
			k ? m->c->name[m->back[0]] : "of coarse types", m->o->label);
	for (size_t i = 0; i < n; i++)
		y[row[i]] = local[d->y[row[i]]];
	float *weight = n > MOST_ROWS ? xmalloc(d->n * sizeof *weight) : NULL;
	uint32_t *drawn = weight ? drawn_rows(d, row, n, all, m->o->seed, weight, &n) : NULL;
	row = drawn ? drawn : row;
	uint8_t *under = labels > k ? coarse_sets(m, k, labels) : NULL;
	uint32_t *rows = learned_rows(row, n, y, under, k, &learned);
	if (sparse_probe_fit(&m->genes, &d->sparse, rows, learned, y, k, weight, under, genes_penalty, &failure))
		die("%s: %s: %s", stream_name(d->s), what, failure.msg);
	centroids_fit(&m->centroids, &d->sparse, row, n, y, weight, labels);
	marker_ranks_fit(&m->ranks, &d->sparse, rows, learned, y, weight, k);
	m->n = n;
	free(weight);
	free(drawn);
	free(local);
	free(y);
	free(under);
	free(rows);
}

void method_fit(struct method *m, const struct embeddings *d, const uint32_t *row, size_t n, const struct classes *c,
	const struct method_options *o, const struct method *start, const char *what)
{
	*m = (struct method){.o = o, .c = c, .n = n, .d = d->d};
	if (!d->x) {
		genes_fit(m, d, row, n, what);
		return;
	}
	if (o->nearest > n)
		die("%s: %s: --nearest %zu, but there are %zu reference cells", stream_name(d->s), what, o->nearest, n);
	m->own = n < d->n ? rows_taken(d, row, n) : NULL;
	m->x = m->own ? m->own : d->x;
	m->y = xmalloc(n * sizeof *m->y);
	for (size_t i = 0; i < n; i++)
		m->y[i] = d->y[row[i]];
	if (o->nearest)
		return;
	struct probe_options p = {.c = o->inverse_penalty,
		.tol = PROBE_TOL,
		.max_iter = 5000,
		.standardize = !o->as_given,
		.threads = o->threads,
		.start = start ? &start->probe.p : NULL};
	fitted_train(&m->probe, d, row, n, c, o->label, &p, what);
	if (!m->probe.p.converged)
		warn("%s: the probe did not converge in %d iterations (largest gradient entry %.3g)", what, m->probe.p.iterations,
			m->probe.p.gradient);
}

void method_release(struct method *m)
{
	fitted_release(&m->probe);
	sparse_probe_release(&m->genes);
	centroids_release(&m->centroids);
	marker_ranks_release(&m->ranks);
	free(m->back);
	free(m->own);
	free(m->y);
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
	uint32_t *neighbour = xmalloc(n * k * sizeof *neighbour);
	double *distance = xmalloc(n * k * sizeof *distance);
	uint8_t *there = xcalloc(m->c->n, 1);
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
	free(neighbour);
	free(distance);
	free(there);
}

/* By genes: the mean of the probabilities of the regression and of the ranks. */
static void genes_score(const struct method *m, const struct sparse *x, const uint32_t *row, size_t n, double *logit, double *far)
{
	size_t k = m->genes.k;
	float *z = xmalloc(m->genes.stride * sizeof *z);
	double *p = xmalloc(2 * k * sizeof *p), *q = p + k;
	struct marker_rank *ranks = xmalloc((m->ranks.m + 1) * sizeof *ranks);
	struct sparse_row r = {0};
	for (size_t i = 0; i < n; i++, logit += m->c->n) {
		sparse_row(x, row ? row[i] : i, &r);
		sparse_probe_logits(&m->genes, &r, z);
		marker_ranks_correlation(&m->ranks, &r, ranks, q);
		for (size_t c = 0; c < k; c++) {
			p[c] = (double)z[c];
			q[c] /= rank_temperature;
		}
		softmax(p, k);
		softmax(q, k);
		for (size_t c = 0; c < m->c->n; c++)
			logit[c] = -INFINITY;
		for (size_t c = 0; c < k; c++)
			logit[m->back[c]] = log((p[c] + q[c]) / 2);
		far[i] = centroids_distance(&m->centroids, &r);
	}
	sparse_row_release(&r);
	free(ranks);
	free(z);
	free(p);
}

void method_score(const struct method *m, const struct embeddings *d, const uint32_t *row, size_t n, double *logit, double *far)
{
	if (!d->x) {
		genes_score(m, &d->sparse, row, n, logit, far);
		return;
	}
	float *own = row ? rows_taken(d, row, n) : NULL;
	const float *x = own ? own : d->x;
	nearest_score(m, x, n, logit, far);
	if (!m->o->nearest)
		pool_for(m->o->threads, n, probe_row, &(struct job){m, x, logit});
	free(own);
}

/* ---- calibration ---- */

/* The class of cell i of u; of a coarse label the likeliest class that it allows. */
static uint32_t class_at(const struct unseen *u, size_t i)
{
	uint32_t y = u->y[i], best = y;
	const double *z = u->logit + i * u->k;
	if (y < u->k)
		return y;
	for (uint32_t c = 0; c < u->k; c++)
		if (u->detail->under[y * u->k + c] && (best == y || z[c] > z[best]))
			best = c;
	return best;
}

/* Cells, closed up; malloced. */
struct kept {
	size_t n;
	double *logit, *far;
	uint32_t *y, *class, *group; /* y: labels, class: of class_at */
	uint32_t *row; /* of the unseen ones */
};

/* Those whose class the method knew, and which are in chosen (NULL: all). */
static void keep_known(struct kept *to, const struct unseen *u, const uint8_t *chosen)
{
	size_t n = 0;
	*to = (struct kept){0, xmalloc((u->n * u->k + 1) * sizeof *to->logit), xmalloc((u->n + 1) * sizeof *to->far),
		xmalloc((u->n + 1) * sizeof *to->y), xmalloc((u->n + 1) * sizeof *to->class), xmalloc((u->n + 1) * sizeof *to->group),
		xmalloc((u->n + 1) * sizeof *to->row)};
	for (size_t i = 0; i < u->n; i++) {
		uint32_t class = class_at(u, i);
		if (!isfinite(u->logit[i * u->k + class]) || (chosen && !chosen[i]))
			continue;
		memcpy(to->logit + n * u->k, u->logit + i * u->k, u->k * sizeof *to->logit);
		to->far[n] = u->far[i];
		to->y[n] = u->y[i];
		to->class[n] = class;
		to->row[n] = (uint32_t)i;
		to->group[n++] = u->group ? u->group[i] : 0;
	}
	to->n = n;
}

static void kept_release(struct kept *k)
{
	free(k->logit);
	free(k->far);
	free(k->y);
	free(k->class);
	free(k->group);
	free(k->row);
}

/* The temperature, and the thresholds of sets and terms, by cells whose labels say enough. */
static void calibrate_coverage(struct calibrated *c, const struct unseen *u, double coverage, const char *name)
{
	struct kept at;
	struct conformal missed;
	const struct detail *t = u->detail;
	uint8_t *counted = t ? xmalloc(u->n) : NULL;
	size_t whole = t ? detail_counted(t, u->y, u->group, u->n, u->groups, (1 - coverage) / 2, counted) : 0;
	keep_known(&at, u, counted);
	if (!at.n)
		die("%s: no class has cells both to learn from and to calibrate with", name);
	size_t groups = u->group ? close_gaps(at.group, at.n) : at.n;
	c->whole = t && u->group && !whole ? 0 : groups;
	c->temperature = temperature_fit(at.logit, at.class, at.n, u->k);
	double *score = xmalloc(at.n * sizeof *score), *finest = t ? xmalloc(at.n * sizeof *finest) : NULL;
	for (size_t i = 0; i < at.n; i++) {
		double *z = at.logit + i * u->k;
		const uint8_t *truth = t ? t->under + at.y[i] * u->k : NULL;
		for (size_t k = 0; k < u->k; k++)
			z[k] /= c->temperature;
		softmax(z, u->k);
		score[i] = 1 - z[at.class[i]];
		for (size_t k = 0; k < u->k && truth; k++) /* a set must have all classes that a coarse label allows */
			score[i] = truth[k] ? fmax(score[i], 1 - z[k]) : score[i];
		if (t)
			finest[i] = finest_score(&t->holds, z, truth);
	}
	conformal_init(&missed, score, u->group ? at.group : NULL, at.n, groups);
	c->most_missed = conformal_threshold(&missed, 1 - coverage);
	c->coverage_promised = c->whole && conformal_promised(&missed, 1 - coverage);
	conformal_release(&missed);
	if (t) {
		conformal_init(&missed, finest, u->group ? at.group : NULL, at.n, groups);
		c->finest = conformal_threshold(&missed, 1 - coverage);
		conformal_release(&missed);
	}
	kept_release(&at);
	free(counted);
	free(score);
	free(finest);
}

double calibrated_strange(const struct calibrated *c, double far, double probability)
{
	/* as float32: equal votes for different classes are ties, although their sums were rounded differently */
	return 2 - conformal_p(&c->far, far) - conformal_p(&c->unsure, (double)(float)(1 - probability));
}

/* The limits of how strange a cell may be, by predicted class: guess [cells]. With n cells, 1 / (n + 1) of new ones are stranger than all: fewer cells
 * than that of the wanted share say too little of a class. */
static void calibrate_strange(struct calibrated *c, const double *strange, const uint32_t *guess, const uint32_t *group, double unknown)
{
	double *some = xmalloc(c->cells * sizeof *some);
	uint32_t *of = xmalloc(c->cells * sizeof *of);
	c->strange = xcalloc(c->k + 1, sizeof *c->strange);
	c->most_strange = xmalloc((c->k + 1) * sizeof *c->most_strange);
	c->of = xmalloc(c->k * sizeof *c->of);
	c->unknown_promised = 1;
	c->few = SIZE_MAX;
	for (size_t k = 0; k <= c->k; k++) {
		size_t n = 0;
		for (size_t i = 0; i < c->cells; i++) {
			if (k < c->k && guess[i] != k)
				continue;
			some[n] = strange[i];
			of[n++] = group ? group[i] : 0;
		}
		int enough = k == c->k || unknown * ((double)n + 1) >= 1;
		c->most_strange[k] = INFINITY;
		if (k < c->k)
			c->of[k] = enough ? k : c->k;
		if (!enough)
			continue;
		conformal_init(&c->strange[k], some, group ? of : NULL, n, group ? close_gaps(of, n) : n);
		if (unknown > 0) {
			c->most_strange[k] = conformal_threshold(&c->strange[k], unknown);
			if (!conformal_promised(&c->strange[k], unknown) && c->strange[k].groups < c->few) {
				c->unknown_promised = 0;
				c->few = c->strange[k].groups;
				c->few_of = k;
			}
		}
	}
	free(some);
	free(of);
}

void calibrate(struct calibrated *c, const struct unseen *u, double coverage, double unknown, const char *name)
{
	struct kept at;
	*c = (struct calibrated){.k = u->k};
	calibrate_coverage(c, u, coverage, name);
	keep_known(&at, u, NULL);
	c->cells = at.n;
	c->groups = u->group ? close_gaps(at.group, at.n) : at.n;
	double *strange = xmalloc(at.n * sizeof *strange), *unsure = xmalloc(at.n * sizeof *unsure);
	uint32_t *guess = xmalloc(at.n * sizeof *guess), *group = u->group ? at.group : NULL;
	for (size_t i = 0; i < at.n; i++) {
		double *z = at.logit + i * u->k;
		guess[i] = (uint32_t)softmax_argmax(z, u->k);
		for (size_t k = 0; k < u->k; k++)
			z[k] /= c->temperature;
		softmax(z, u->k);
		unsure[i] = (double)(float)(1 - z[guess[i]]);
	}
	conformal_init(&c->far, at.far, group, at.n, c->groups);
	conformal_init(&c->unsure, unsure, group, at.n, c->groups);
	for (size_t i = 0; i < at.n; i++)
		strange[i] = calibrated_strange(c, at.far[i], 1 - unsure[i]);
	calibrate_strange(c, strange, guess, group, unknown);
	shift_init(&c->shift,
		&(struct unseen){at.logit, at.far, at.class, at.group, at.n, u->k, group ? c->groups : 1, u->cells, at.row, u->detail},
		guess);
	kept_release(&at);
	free(strange);
	free(unsure);
	free(guess);
}

void calibrated_release(struct calibrated *c)
{
	for (size_t k = 0; c->strange && k <= c->k; k++)
		conformal_release(&c->strange[k]);
	shift_release(&c->shift);
	conformal_release(&c->far);
	conformal_release(&c->unsure);
	free(c->strange);
	free(c->most_strange);
	free(c->of);
	*c = (struct calibrated){0};
}
