/* ctaprobe transfer: what may be promised for the new cells, from the groups that were held out and the distance of the new cells to them. */
#include "transfer.h"

#include "base/softmax.h"
#include "cells/expressed.h"
#include "eval/distribution.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- depth ---- */

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

double median_depth(const uint64_t *depth, size_t n)
{
	uint64_t *v = xmalloc((n + 1) * sizeof *v);
	memcpy(v, depth, n * sizeof *v);
	qsort(v, n, sizeof *v, by_value);
	double middle = n ? (double)(v[n / 2] + v[(n - 1) / 2]) / 2 : NAN;
	free(v);
	return middle;
}

void thin_reference(struct embeddings *d, double share, uint32_t seed)
{
	size_t n = 0;
	expressed_thin(&d->sparse, d->depth, d->cell, seed, share);
	for (size_t i = 0; i < d->n; i++)
		if (d->depth[i])
			embeddings_move(d, n++, i);
	embeddings_resize(d, n);
}

/* ---- shift ---- */

/* What is compared of a cell: its distance to the reference, and the logarithm of its depth. */
static void measures(double *v, double far, uint64_t depth)
{
	v[SHIFT_FAR] = far;
	v[SHIFT_DEPTH] = depth ? log((double)depth) : 0;
}

/* The mean and the spread of v [n] without NaN. */
static void spread_of(struct spread *s, const double *v, size_t n)
{
	double square = 0;
	*s = (struct spread){0};
	for (size_t i = 0; i < n; i++)
		if (!isnan(v[i])) {
			s->n++;
			s->mean += v[i];
		}
	s->mean /= (double)s->n;
	for (size_t i = 0; i < n; i++)
		if (!isnan(v[i]))
			square += (v[i] - s->mean) * (v[i] - s->mean);
	s->sd = s->n > 2 ? sqrt(square / (double)(s->n - 1)) : NAN;
}

/* How far the mean of new cells is from those of groups, for whose t-value the limit is that of t_limit. Cells may be farther away than those of other
 * groups, not nearer; of more or less depth. NaN: too few groups. */
static double distance(const struct spread *s, enum shift_measure m, double mean)
{
	double t = (mean - s->mean) / (s->sd * sqrt(1 + 1 / (double)s->n));
	return m == SHIFT_FAR ? t : fabs(t);
}

void shift_init(struct shift *s, const struct unseen *u, const uint32_t *guess)
{
	size_t k = u->k, groups = u->groups;
	*s = (struct shift){.k = k,
		.of = xcalloc((k + 1) * SHIFT_MEASURES, sizeof *s->of),
		.sum = xcalloc(k * SHIFT_MEASURES, sizeof *s->sum),
		.cells = xcalloc(k, sizeof *s->cells),
		.limit = NAN};
	double *sum = xcalloc(groups * k * SHIFT_MEASURES + 1, sizeof *sum), *cells = xcalloc(groups * k + 1, sizeof *cells),
	       v[SHIFT_MEASURES];
	double *one = xmalloc((groups + 1) * sizeof *one);
	for (size_t i = 0; i < u->n; i++) {
		size_t at = u->group[i] * k + guess[i];
		measures(v, u->far[i], u->depth ? u->depth[i] : 0);
		cells[at]++;
		for (int m = 0; m < SHIFT_MEASURES; m++)
			sum[at * SHIFT_MEASURES + (size_t)m] += v[m];
	}
	for (int m = 0; m < SHIFT_MEASURES; m++) {
		for (size_t c = 0; c < k; c++) {
			for (size_t g = 0; g < groups; g++)
				one[g] = sum[(g * k + c) * SHIFT_MEASURES + (size_t)m] / cells[g * k + c];
			spread_of(&s->of[c * SHIFT_MEASURES + (size_t)m], one, groups);
		}
		for (size_t g = 0; g < groups; g++) { /* without the differences between types */
			double all = 0;
			one[g] = 0;
			for (size_t c = 0; c < k; c++) {
				double n = cells[g * k + c];
				if (n > 0)
					one[g] += sum[(g * k + c) * SHIFT_MEASURES + (size_t)m] -
						n * s->of[c * SHIFT_MEASURES + (size_t)m].mean;
				all += n;
			}
			one[g] /= all;
		}
		spread_of(&s->of[k * SHIFT_MEASURES + (size_t)m], one, groups);
	}
	size_t n = s->of[k * SHIFT_MEASURES].n;
	if (n > 2) /* two measures, of which one has two sides */
		s->limit = student_quantile(SHIFT_FALSE_ALARM / 1.5, (double)(n - 1));
	free(sum);
	free(cells);
	free(one);
}

void shift_add(struct shift *s, uint32_t guess, double far, uint64_t depth)
{
	double v[SHIFT_MEASURES];
	measures(v, far, depth);
	s->cells[guess]++;
	for (int m = 0; m < SHIFT_MEASURES; m++)
		s->sum[guess * SHIFT_MEASURES + (size_t)m] += v[m];
}

double shift_of(const struct shift *s, size_t c, enum shift_measure m)
{
	const struct spread *of = s->of + m;
	double sum = 0, n = 0;
	if (c < s->k)
		return distance(of + c * SHIFT_MEASURES, m, s->sum[c * SHIFT_MEASURES + m] / (double)s->cells[c]);
	for (size_t t = 0; t < s->k; t++)
		if (s->cells[t] && of[t * SHIFT_MEASURES].n) {
			sum += s->sum[t * SHIFT_MEASURES + m] - (double)s->cells[t] * of[t * SHIFT_MEASURES].mean;
			n += (double)s->cells[t];
		}
	return distance(of + c * SHIFT_MEASURES, m, sum / n);
}

static double depth_ratio(const struct shift *s, size_t c)
{
	return exp(s->sum[c * SHIFT_MEASURES + SHIFT_DEPTH] / (double)s->cells[c] - s->of[c * SHIFT_MEASURES + SHIFT_DEPTH].mean);
}

void shift_release(struct shift *s)
{
	free(s->of);
	free(s->sum);
	free(s->cells);
	*s = (struct shift){0};
}

/* ---- promises ---- */

/* A row NAME:CLASS of the report. */
static void of_class(const char *name, const char *class, double value)
{
	char *row = xasprintf("%s:%s", name, class);
	for (char *c = row; *c; c++)
		*c = (unsigned char)*c < ' ' ? ' ' : *c;
	cli_measured(row, value);
	free(row);
}

/* Why nothing holds for new cells; malloced, NULL: it does. */
static char *withheld(const struct verdict *v)
{
	double far = shift_of(v->shift, v->shift->k, SHIFT_FAR), depth = shift_of(v->shift, v->shift->k, SHIFT_DEPTH);
	if (!v->unit)
		return xstrdup("no column names the donors of the reference, and cells of one donor are alike");
	if (isnan(v->shift->limit))
		return xasprintf("%zu values of column '%s' are too few to say how much they differ", v->units, v->unit);
	if (far > v->shift->limit)
		return xasprintf("the new cells are farther from the reference than cells of another %s (shift %.2g, limit %.2g)", v->unit,
			far, v->shift->limit);
	if (depth > v->shift->limit)
		return xasprintf("the new cells have %.2g times the molecules of the reference, which no %s has (shift %.2g, limit %.2g)",
			v->new_depth / v->reference_depth / v->thinned, v->unit, depth, v->shift->limit);
	return NULL;
}

static void promise(const char *name, int kept, const struct verdict *v, const char *why, size_t needed)
{
	char *row = xasprintf("promise:%s", name), *reason = xasprintf("why:%s", name);
	char *few = xasprintf("%zu of '%s' are too few: it takes %zu", v->units, v->unit ? v->unit : "", needed);
	cli_measured(row, kept && !why);
	if (!kept || why)
		cli_stated(reason, why ? why : few);
	free(row);
	free(reason);
	free(few);
}

static void verdict_report(const struct verdict *v, char *const *name, const double *covered)
{
	char *why = withheld(v);
	size_t for_coverage = (size_t)ceil(v->coverage / (1 - v->coverage) - 1e-9);
	size_t for_unknown = v->unknown > 0 ? (size_t)ceil(1 / v->unknown - 1 - 1e-9) : 0;
	double far = shift_of(v->shift, v->shift->k, SHIFT_FAR), depth = shift_of(v->shift, v->shift->k, SHIFT_DEPTH);
	promise("coverage", v->coverage_promised, v, why, for_coverage);
	promise("unknown", v->unknown_promised, v, why, for_unknown);
	promise("accuracy", 1, v, why, 0);
	cli_stated("unit", v->unit ? v->unit : "cell");
	cli_measured("units", (double)v->units);
	cli_measured("units_needed:coverage", (double)for_coverage);
	cli_measured("units_needed:unknown", (double)for_unknown);
	cli_measured("shift", v->reference_depth > 0 ? fmax(far, depth) : far);
	cli_measured("shift:limit", v->shift->limit);
	cli_measured("shift:false_alarm", SHIFT_FALSE_ALARM);
	if (v->reference_depth > 0) {
		cli_measured("depth:reference", v->reference_depth);
		cli_measured("depth:new", v->new_depth);
		cli_measured("thinned", v->thinned);
		cli_measured("genes:shared", (double)v->genes);
		cli_measured("genes:share", (double)v->genes / (double)v->all_genes);
	}
	if (why && v->unit)
		warn("nothing is promised for the new cells: %s", why);
	for (size_t c = 0; c < v->shift->k; c++) {
		of_class("held_out_coverage", name[c], covered[c]);
		if (!v->shift->cells[c])
			continue;
		of_class("shift", name[c],
			fmax(shift_of(v->shift, c, SHIFT_FAR), v->reference_depth > 0 ? shift_of(v->shift, c, SHIFT_DEPTH) : 0));
		if (v->reference_depth > 0)
			of_class("depth_ratio", name[c], depth_ratio(v->shift, c));
		if (v->untested[c])
			of_class("untested", name[c], (double)v->shift->cells[c]);
	}
	free(why);
}

void report_verdict(const struct calibrated *c, const struct held_out *h, const struct reference *r, struct verdict *v)
{
	size_t k = r->classes.n;
	double *inside = xcalloc(k, sizeof *inside), *cells = xcalloc(k, sizeof *cells), *p = xmalloc(k * sizeof *p);
	for (size_t i = 0; i < h->d->n; i++) {
		const double *z = h->logit + i * k;
		uint32_t y = h->d->y[i];
		if (!isfinite(z[y]))
			continue;
		for (size_t a = 0; a < k; a++)
			p[a] = z[a] / c->temperature;
		softmax(p, k);
		cells[y]++;
		inside[y] += y == softmax_argmax(z, k) || 1 - p[y] <= c->most_missed;
	}
	for (size_t a = 0; a < k; a++)
		inside[a] /= cells[a];
	v->reference_depth = r->d.x ? 0 : r->depth;
	v->new_depth = r->new_depth;
	v->thinned = r->thinned;
	v->genes = r->genes;
	v->all_genes = stream_header(r->d.s)->vocab.n;
	v->untested = r->untested;
	v->shift = &c->shift;
	verdict_report(v, r->classes.name, inside);
	free(inside);
	free(cells);
	free(p);
}
