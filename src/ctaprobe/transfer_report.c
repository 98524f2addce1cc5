/* ctaprobe transfer: the rows of --report and the notes. */
#include "cli.h"
#include "transfer.h"

#include "base/tsv.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Classes that are numbers, as clusters are, and names that look like sets. */
static void warn_names(const struct classes *c)
{
	size_t numbers = 0;
	const char *set = NULL;
	for (size_t k = 0; k < c->n; k++) {
		numbers += c->name[k][strspn(c->name[k], "0123456789")] == 0;
		set = strstr(c->name[k], BETWEEN) ? c->name[k] : set;
	}
	if (numbers == c->n)
		warn("column '%s' has numbers, as clusters do: name their types in the reference first", transfer_set.label);
	if (set)
		warn("class '%s' has '%s' in its name, which separates classes in label_set: read in_set, or rename it", set, BETWEEN);
}

/* What the held-out cells can promise, and what it costs. */
static void say_calibration(const struct calibrated *c, const char *group)
{
	const char *units = group ? "groups" : "cells";
	size_t n = c->whole;
	double need = transfer_set.coverage * (double)(n + 1) / (double)n;
	if (!measured_keeps(&c->coverage))
		info("%zu %s can promise a coverage of at most %.3g: --coverage %g holds for the held-out cells, and is not promised", n,
			units, (double)n / (double)(n + 1), transfer_set.coverage);
	else if (1 - need < (1 - transfer_set.coverage) / 2)
		info("to promise a coverage of %g for a new one, %zu %s need sets that cover %.3g of their cells: more %s make the sets smaller",
			transfer_set.coverage, n, units, fmin(need, 1), units);
	if (!measured_keeps(&c->known))
		info("some classes have too few %s to promise that only %g of their cells are called unknown: the share of the held-out cells is used",
			units, transfer_set.unknown);
}

static void report_promise(const char *name, const struct promise *p)
{
	char *row = xasprintf("promise:%s", name), *reason = xasprintf("why:%s", name);
	cli_measured(row, p->kept);
	if (!p->kept)
		cli_stated(reason, p->why);
	free_all(row, reason);
}

static void report_promises(const struct reference *r, const struct calibrated *c)
{
	const struct promises *p = &r->promised;
	const struct shift *s = &c->shift;
	double shift = shift_of(s, s->k);
	report_promise("coverage", &p->coverage);
	report_promise("unknown", &p->unknown);
	report_promise("accuracy", &p->accuracy);
	cli_measured("expected:coverage", c->expected_covered);
	cli_measured("expected:accuracy", c->expected_right);
	cli_measured("unknown:share", transfer_set.unknown);
	cli_measured("unknown:applied", c->rule.calls_unknown);
	cli_stated("unit", r->group ? r->group : "cell");
	cli_measured("units", (double)c->groups);
	cli_measured("units_needed:coverage", (double)measured_groups(transfer_set.coverage));
	cli_measured("units_needed:unknown", transfer_set.unknown > 0 ? (double)measured_groups(1 - transfer_set.unknown) : 0);
	cli_measured("shift", shift);
	cli_measured("shift:limit", s->limit);
	cli_measured("shift:false_alarm", SHIFT_FALSE_ALARM);
	cli_measured("shift:unseen", shift_unseen(s));
	if (!r->d.x) {
		cli_measured("depth:reference", r->depth);
		cli_measured("depth:new", r->new_depth);
		cli_measured("thinned", r->thinned);
		cli_measured("molecules", r->molecules);
		cli_measured("genes:shared", (double)r->genes);
		cli_measured("genes:by_symbol", (double)r->by_symbol);
		cli_measured("genes:share", (double)r->genes / (double)stream_header(r->d.s)->vocab.n);
	}
	if (!p->accuracy.kept && r->group && (isnan(s->limit) || isnan(shift)))
		info("nothing is promised for the new cells: %s", p->accuracy.why);
	else if (!p->accuracy.kept && r->group)
		info("nothing is promised for the new cells: %s (shift %.2f, limit %.2f)", p->accuracy.why, shift, s->limit);
}

/* A row NAME:CLASS. */
static void report_class(const char *name, const char *class, double value)
{
	char *escaped = tsv_escaped(class), *row = xasprintf("%s:%s", name, escaped);
	cli_measured(row, value);
	free_all(escaped, row);
}

static void report_classes_of(const struct reference *r, const struct calibrated *c, const struct written *w)
{
	const struct shift *s = &c->shift;
	char *const *name = r->classes.name;
	for (size_t k = 0; k < s->k; k++) {
		report_class("held_out_coverage", name[k], c->of[k].covered);
		if (!(s->new.of[k].n > 0))
			continue;
		report_class("shift", name[k], shift_of(s, k));
		report_class("new", name[k], c->of[k].cells);
		report_class("mix", name[k], c->of[k].share);
		report_class("unlike", name[k], c->of[k].unlike);
		if (!r->d.x && s->reference.of[k].n > 0)
			report_class("depth_ratio", name[k], shift_depth_ratio(s, k));
	}
	for (size_t k = 0; k < s->k; k++)
		if (w->may_be[k])
			report_class("untested", name[k], (double)w->may_be[k]);
}

void transfer_report(const struct reference *r, const struct calibrated *c, const struct predictions *p, const struct written *w)
{
	const char *new = stream_name(p->in);
	say_calibration(c, r->group);
	warn_names(&r->classes);
	if (w->empty)
		warn("%s: %" PRIu64 " of %" PRIu64 " cells have no %s: they get no class", new, w->empty, w->cells,
			r->d.x ? "embedding, as they have no token" : "count of a shared gene");
	if (w->known)
		warn("%s: %" PRIu64 " of %" PRIu64 " cells are in %s too: ctaprobe score leaves them out", new, w->known, w->cells,
			transfer_set.reference);
	report_promises(r, c);
	report_classes_of(r, c, w);
	cli_measured("reference_cells", (double)r->d.n);
	cli_measured("learned_cells", (double)r->method.n);
	cli_measured("classes", (double)r->classes.n);
	cli_measured("features", (double)r->d.d);
	cli_measured("calibration_cells", (double)c->cells);
	cli_measured("calibration_groups", (double)c->groups);
	cli_measured("coverage_promised", measured_keeps(&c->coverage));
	cli_measured("unknown_promised", measured_keeps(&c->known));
	cli_measured("temperature", c->rule.temperature);
	cli_measured("most_missed", c->rule.most_missed);
	cli_measured("cells", (double)w->cells);
	double unlike = 0;
	for (size_t k = 0; k < r->classes.n; k++)
		unlike += c->of[k].unlike;
	cli_measured("unlike_cells", unlike);
	cli_measured("unknown_cells", (double)w->unknown);
	cli_measured("untested_cells", (double)w->of_untested);
	cli_measured("in_reference", (double)w->known);
	if (c->rule.detail) {
		cli_measured("units:fine", (double)c->whole);
		cli_measured("term_classes", (double)w->term_sum / (double)w->term_cells);
	}
	cli_report(&transfer_cli, "%zu reference cells, %zu classes, temperature %.3g, %" PRIu64 " new cells, %" PRIu64 " of them unknown",
		r->d.n, r->classes.n, c->rule.temperature, w->cells, w->unknown);
}
