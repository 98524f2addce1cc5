#include "cells/simulate.h"

#include "base/rng.h"
#include "base/sort.h"

/* b of rng_at: the purpose of a draw. Never renumber. */
enum { GENE, ORDER, TYPE, MARKER, DONOR, SHIFT, CELL, B1, B2, B2_CLASS, DRIVEN, STATE };

#define LEVEL_SD 1.3 /* spread of the genes' mean levels, natural log */
#define PROGRAM_SD 0.7 /* standard deviation of a type's module activities around its parent's */
#define MARKERS 0.01 /* share of the genes that mark a type */
#define DEPTH_SD 0.35

static struct rng draw(const struct sim *s, uint64_t a, uint32_t purpose)
{
	return rng_at(s->seed, RNG_SIM, a, purpose);
}

/* f_t proportional to q^t with f_last = rarest: q by bisection. */
static void frequencies(double *f, uint32_t n, double rarest)
{
	double lo = 0, hi = 1;
	for (int it = 0; it < 200; it++) {
		double q = (lo + hi) / 2, sum = 0, last = 1;
		for (uint32_t t = 0; t < n; t++, last *= q)
			sum += f[t] = last;
		for (uint32_t t = 0; t < n; t++)
			f[t] /= sum;
		if (f[n - 1] < rarest)
			lo = q;
		else
			hi = q;
	}
}

static void place_modules(struct sim *s)
{
	uint32_t *order = xcalloc(s->genes, sizeof *order), in = (uint32_t)(s->share * s->genes);
	for (uint32_t g = 0; g < s->genes; g++)
		order[g] = g;
	struct rng r = draw(s, 0, ORDER);
	SHUFFLE(&r, order, s->genes);
	for (uint32_t i = 0; i < s->genes; i++)
		s->module[order[i]] = i < in ? (int32_t)(i % s->modules) : -1;
	free(order);
}

static void draw_types(struct sim *s)
{
	FREED double *a = xcalloc((size_t)s->types * s->modules, sizeof *a);
	for (uint32_t t = 0; t < s->types; t++) {
		struct rng r = draw(s, t, TYPE), k = draw(s, t, MARKER);
		double *at = a + (size_t)t * s->modules;
		for (uint32_t m = 0; m < s->modules; m++)
			at[m] = (t ? a[(size_t)((t - 1) / 2) * s->modules + m] : 0) + s->separation * PROGRAM_SD * rng_normal(&r);
		for (uint32_t g = 0; g < s->genes; g++) {
			struct rng q = draw(s, g, GENE);
			double mu = LEVEL_SD * rng_normal(&q);
			double marker = rng_unit(&k) < MARKERS ? s->separation * (2 + 0.5 * rng_normal(&k)) : 0;
			double own = s->module[g] >= 0 ? s->load[g] * at[s->module[g]] : 0;
			s->level[(size_t)t * s->genes + g] = (float)(mu + own + marker);
		}
	}
}

/* The regulator and its targets are genes of no module; it is the most highly expressed of them. */
static int draw_targets(struct sim *s, struct error *e)
{
	uint32_t n = 0, *free_gene = xcalloc(s->genes, sizeof *free_gene);
	struct rng r = draw(s, 0, DRIVEN);
	for (uint32_t g = 0; g < s->genes; g++)
		if (s->module[g] < 0)
			free_gene[n++] = g;
	if (n <= s->targets) {
		free(free_gene);
		return error_set(
			e, "a regulator of %u genes needs %u genes without a module, and there are %u", s->targets, s->targets + 1, n);
	}
	SHUFFLE(&r, free_gene, n);
	s->driven = xcalloc(s->genes, sizeof *s->driven);
	s->regulator = free_gene[0];
	for (uint32_t i = 1; i <= s->targets; i++)
		if (s->level[free_gene[i]] > s->level[s->regulator])
			s->regulator = free_gene[i];
	for (uint32_t i = 0; i <= s->targets; i++)
		s->driven[free_gene[i]] = free_gene[i] == s->regulator ? 1 : (float)(0.3 + 0.7 * rng_unit(&r));
	free(free_gene);
	return 0;
}

int sim_init_cells(struct sim *s, struct error *e)
{
	if (s->rarest > 1.0 / s->types)
		return error_set(
			e, "the rarest of %u types cannot have a frequency of %g (at most %g)", s->types, s->rarest, 1.0 / s->types);
	if (s->share * s->genes < s->modules)
		return error_set(
			e, "%u modules need at least one gene each, and %g of %u genes are for modules", s->modules, s->share, s->genes);
	s->module = xcalloc(s->genes, sizeof *s->module);
	s->frequency = xcalloc(s->types, sizeof *s->frequency);
	s->depth_of = xcalloc(s->donors, sizeof *s->depth_of);
	s->level = xcalloc((size_t)s->types * s->genes, sizeof *s->level);
	s->load = xcalloc(s->genes, sizeof *s->load);
	s->shift = xcalloc((size_t)s->donors * s->genes, sizeof *s->shift);
	frequencies(s->frequency, s->types, s->rarest);
	place_modules(s);
	for (uint32_t g = 0; g < s->genes; g++) {
		struct rng r = draw(s, g, GENE);
		rng_normal(&r); /* the mean level, see draw_types */
		s->load[g] = (float)(0.5 + rng_unit(&r));
		if (rng_u32(&r) % 5 == 0)
			s->load[g] = -s->load[g]; /* some genes of a module fall when the others rise */
	}
	draw_types(s);
	for (uint32_t d = 0; d < s->donors; d++) {
		struct rng r = draw(s, d, DONOR), q = draw(s, d, SHIFT);
		s->depth_of[d] = exp(s->batch * rng_normal(&r));
		for (uint32_t g = 0; g < s->genes; g++)
			s->shift[(size_t)d * s->genes + g] = (float)(s->batch * rng_normal(&q));
	}
	return s->targets ? draw_targets(s, e) : 0;
}

/* chosen[m]: as many random genes as module m has */
static void draw_classes(struct sim *s)
{
	s->chosen = xcalloc((size_t)s->modules * s->genes, 1);
	FREED uint32_t *order = xcalloc(s->genes, sizeof *order);
	for (uint32_t m = 0; m < s->modules; m++) {
		uint32_t size = 0;
		struct rng r = draw(s, m, B2_CLASS);
		for (uint32_t g = 0; g < s->genes; g++) {
			order[g] = g;
			size += s->module[g] == (int32_t)m;
		}
		SHUFFLE(&r, order, s->genes);
		for (uint32_t i = 0; i < size; i++)
			s->chosen[(size_t)m * s->genes + order[i]] = 1;
	}
}

int sim_init_blocks(struct sim *s, struct error *e)
{
	if (s->modules > s->genes)
		return error_set(e, "%u modules need at least as many genes, not %u", s->modules, s->genes);
	s->module = xcalloc(s->genes, sizeof *s->module);
	for (uint32_t g = 0; g < s->genes; g++)
		s->module[g] = (int32_t)((uint64_t)g * s->modules / s->genes);
	if (s->by_class)
		draw_classes(s);
	return 0;
}

/* By inversion, in steps of at most 16 (a sum of Poissons is one). */
static uint32_t poisson(struct rng *r, double mean)
{
	uint32_t n = 0;
	while (mean > 0) {
		double m = mean > 16 ? 16 : mean, p = exp(-m), u = rng_unit(r);
		for (uint32_t k = 0; u >= p && k < 1000; n++) {
			u -= p;
			p *= m / ++k;
		}
		mean -= m;
	}
	return n;
}

static double activity_of(const struct sim *s, uint64_t cell, uint32_t *state)
{
	struct rng r = draw(s, cell, STATE);
	*state = rng_u32(&r) & 1;
	return 2 * *state + 0.5 * rng_normal(&r);
}

uint32_t sim_cell(
	const struct sim *s, uint64_t cell, uint32_t *type, uint32_t *donor, uint32_t *state, uint32_t *gene, uint32_t *count, double *rate)
{
	struct rng r = draw(s, cell, CELL);
	double u = rng_unit(&r);
	uint32_t t = 0, d = rng_below(&r, s->donors);
	while (t + 1 < s->types && u >= s->frequency[t])
		u -= s->frequency[t++];
	double depth = s->depth * s->depth_of[d] * exp(DEPTH_SD * rng_normal(&r)), sum = 0;
	double *z = xcalloc(s->modules, sizeof *z), a = 0;
	*state = 0;
	if (s->driven)
		a = activity_of(s, cell, state);
	for (uint32_t m = 0; m < s->modules; m++)
		z[m] = s->activity * rng_normal(&r);
	for (uint32_t g = 0; g < s->genes; g++) {
		double l =
			(double)s->level[(size_t)t * s->genes + g] + (double)s->shift[(size_t)d * s->genes + g] + s->noise * rng_normal(&r);
		if (s->module[g] >= 0)
			l += (double)s->load[g] * z[s->module[g]];
		if (s->driven)
			l += (double)s->driven[g] * a;
		sum += rate[g] = exp(l);
	}
	uint32_t n = 0;
	for (uint32_t g = 0; g < s->genes; g++) {
		uint32_t c = poisson(&r, depth * rate[g] / sum);
		if (c) {
			gene[n] = g;
			count[n++] = c;
		}
	}
	free(z);
	*type = t;
	*donor = d;
	return n;
}

static double exponential(struct rng *r)
{
	return -log(1 - rng_unit(r));
}

/* Genes with x > 0 in falling order of x, ties to the lower gene. */
static uint32_t sort_genes(const double *x, uint32_t n, struct ranked *v)
{
	uint32_t k = 0;
	for (uint32_t g = 0; g < n; g++)
		if (x[g] > 0)
			v[k++] = (struct ranked){x[g], g};
	qsort(v, k, sizeof *v, compare_ranked_down);
	return k;
}

uint32_t sim_b1(const struct sim *s, uint64_t cell, uint32_t *module, uint32_t *gene, double *x)
{
	struct rng r = draw(s, cell, B1);
	*module = rng_below(&r, s->modules);
	for (uint32_t g = 0; g < s->genes; g++) {
		x[g] = exponential(&r);
		if (s->module[g] == (int32_t)*module)
			x[g] += 10 + 2 * rng_normal(&r);
		if (rng_u32(&r) & 1)
			x[g] = 0;
	}
	FREED struct ranked *v = xcalloc(s->genes, sizeof *v);
	uint32_t n = sort_genes(x, s->genes, v);
	n = n < s->top ? n : s->top;
	for (uint32_t i = 0; i < n; i++)
		gene[i] = v[i].at;
	return n;
}

void sim_b2(const struct sim *s, uint64_t cell, uint32_t *module, uint32_t *rank, double *x)
{
	struct rng r = draw(s, cell, B2);
	uint32_t n = s->genes, size = 0;
	*module = rng_below(&r, s->modules);
	double delta = 10 + 0.5 * rng_normal(&r);
	int coherent = rng_unit(&r) < s->gamma;
	for (uint32_t g = 0; g < n; g++) {
		x[g] = s->mean * exponential(&r);
		size += s->module[g] == (int32_t)*module;
	}
	FREED uint32_t *order = xcalloc(n, sizeof *order);
	for (uint32_t g = 0; g < n; g++)
		order[g] = g;
	SHUFFLE(&r, order, n);
	const uint8_t *chosen = s->chosen ? s->chosen + (size_t)*module * n : NULL;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t g = order[i];
		if (coherent ? s->module[g] == (int32_t)*module : chosen ? chosen[g] : i < size)
			x[g] += delta;
	}
	/* x > 0; a draw of exactly 0 (probability 0) ranks last */
	FREED struct ranked *v = xcalloc(n, sizeof *v);
	for (uint32_t g = 0; g < n; g++)
		v[g] = (struct ranked){x[g], g};
	qsort(v, n, sizeof *v, compare_ranked_down);
	for (uint32_t i = 0; i < n; i++)
		rank[v[i].at] = n - 1 - i;
}
