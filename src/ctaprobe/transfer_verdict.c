/* ctaprobe transfer: what may be promised for the new cells, from the groups that were held out and the distance of the new cells to them. */
#include "transfer.h"
#include "cli.h"

#include "base/softmax.h"
#include "base/sort.h"
#include "base/tsv.h"
#include "cells/expressed.h"
#include "cells/thin.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- depth ---- */

double median_depth(const uint64_t *depth, size_t n)
{
	uint64_t *v = xmalloc((n + 1) * sizeof *v);
	memcpy(v, depth, n * sizeof *v);
	qsort(v, n, sizeof *v, compare_u64);
	double middle = n ? (double)(v[n / 2] + v[(n - 1) / 2]) / 2 : NAN;
	free(v);
	return middle;
}

void thin_reference(struct embeddings *d, double share, uint32_t seed)
{
	size_t n = 0;
	expressed_thin(&d->sparse, d->depth, d->cell, seed, thin_before(stream_header(d->s)), share);
	for (size_t i = 0; i < d->n; i++)
		if (d->depth[i])
			embeddings_move(d, n++, i);
	embeddings_resize(d, n);
}

/* ---- promises ---- */

void measured_class(const char *name, const char *class, double value)
{
	char *escaped = tsv_escaped(class), *row = xasprintf("%s:%s", name, escaped);
	cli_measured(row, value);
	free(escaped);
	free(row);
}

/* Why nothing holds for new cells; malloced, NULL: it does. */
static char *withheld(const struct verdict *v)
{
	if (!v->unit)
		return xstrdup("cells of the reference were held out, not donors, and cells of one donor are alike");
	if (isnan(v->shift->limit))
		return xasprintf("%zu values of column '%s' %s to say how much they differ", v->units, v->unit,
			v->units > 2 ? "have too few cells each" : "are too few");
	if (isnan(shift_of(v->shift, v->shift->k)))
		return xstrdup("the new cells are too few to be compared with the reference");
	if (!(shift_of(v->shift, v->shift->k) <= v->shift->limit))
		return xasprintf("the new cells differ from the reference more than one %s does from the others", v->unit);
	return NULL;
}

/* of: the class that only so many units have; NULL: the reference has no more */
static void promise(const char *name, int kept, const struct verdict *v, const char *why, size_t units, const char *of, size_t needed)
{
	char *row = xasprintf("promise:%s", name), *reason = xasprintf("why:%s", name),
	     *unit = xasprintf("of column '%s'", v->unit ? v->unit : "");
	char *few = of ? xasprintf("only %zu values %s have cells that look like '%s', and it takes %zu", units, unit, of, needed)
		       : xasprintf("%zu values %s are too few, it takes %zu", units, unit, needed);
	cli_measured(row, kept && !why);
	if (!kept || why)
		cli_stated(reason, why ? why : few);
	free(row);
	free(reason);
	free(unit);
	free(few);
}

static void verdict_report(const struct verdict *v, char *const *name, const double *covered)
{
	char *why = withheld(v);
	size_t for_coverage = (size_t)ceil(v->coverage / (1 - v->coverage) - 1e-9);
	size_t for_unknown = v->unknown > 0 ? (size_t)ceil(1 / v->unknown - 1 - 1e-9) : 0;
	promise("coverage", v->coverage_promised, v, why, v->whole, NULL, for_coverage);
	promise("unknown", v->unknown_promised, v, why, v->few, v->few_of, for_unknown);
	promise("accuracy", 1, v, why, v->units, NULL, 0);
	cli_stated("unit", v->unit ? v->unit : "cell");
	cli_measured("units", (double)v->units);
	cli_measured("units_needed:coverage", (double)for_coverage);
	cli_measured("units_needed:unknown", (double)for_unknown);
	cli_measured("shift", shift_of(v->shift, v->shift->k));
	cli_measured("shift:limit", v->shift->limit);
	cli_measured("shift:false_alarm", SHIFT_FALSE_ALARM);
	if (v->reference_depth > 0) {
		cli_measured("depth:reference", v->reference_depth);
		cli_measured("depth:new", v->new_depth);
		cli_measured("thinned", v->thinned);
		cli_measured("genes:shared", (double)v->genes);
		cli_measured("genes:by_symbol", (double)v->by_symbol);
		cli_measured("genes:share", (double)v->genes / (double)v->all_genes);
	}
	if (why && v->unit && (isnan(v->shift->limit) || isnan(shift_of(v->shift, v->shift->k))))
		info("nothing is promised for the new cells: %s", why);
	else if (why && v->unit)
		info("nothing is promised for the new cells: %s (shift %.2f, limit %.2f)", why, shift_of(v->shift, v->shift->k),
			v->shift->limit);
	for (size_t c = 0; c < v->shift->k; c++) {
		measured_class("held_out_coverage", name[c], covered[c]);
		if (!(v->shift->new.n[c] > 0))
			continue;
		measured_class("shift", name[c], shift_of(v->shift, c));
		if (v->reference_depth > 0 && v->shift->reference.n[c] > 0)
			measured_class("depth_ratio", name[c], depth_ratio(v->shift, c));
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
		if (y >= k || !isfinite(z[y]))
			continue;
		for (size_t a = 0; a < k; a++)
			p[a] = z[a] / c->temperature;
		softmax(p, k);
		cells[y]++;
		inside[y] += y == softmax_argmax(z, k) || 1 - p[y] <= c->most_missed;
	}
	for (size_t a = 0; a < k; a++)
		inside[a] = cells[a] > 0 ? inside[a] / cells[a] : NAN;
	v->reference_depth = r->d.x ? 0 : r->depth;
	v->new_depth = r->new_depth;
	v->thinned = r->thinned;
	v->genes = r->genes;
	v->by_symbol = r->by_symbol;
	v->all_genes = stream_header(r->d.s)->vocab.n;
	v->few = c->few;
	v->few_of = c->few_of < k ? r->classes.name[c->few_of] : NULL;
	v->shift = &c->shift;
	verdict_report(v, r->classes.name, inside);
	free(inside);
	free(cells);
	free(p);
}
