/* ctaprobe transfer: the rows of --report and the notes. */
#include "cli.h"
#include "transfer.h"

#include "base/tsv.h"

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

static void report_promises(const struct reference *r)
{
	const struct calibrated *c = &r->fit.calibrated;
	const struct shift *s = &c->shift;
	double shift = shift_of(s, s->k);
	char *const *whys = r->promised.why;
	for (int i = 0; i < PROMISES; i++) {
		const char *why = whys[i];
		char *row = xasprintf("promise:%s", promise_name[i]), *reason = xasprintf("why:%s", promise_name[i]);
		cli_measured(row, !why);
		if (why) {
			cli_stated(reason, why);
			if (!r->promised.nothing)
				info("%s is not promised: %s", promise_name[i], why);
		}
		free_all(row, reason);
	}
	if (r->promised.nothing)
		cli_stated("why:nothing", r->promised.nothing);
	if (r->promised.nothing && r->group && !transfer_set.require_promise)
		info("nothing is promised for the new cells: %s", r->promised.nothing);
	cli_measured_all({"expected:coverage", c->expected_covered}, {"expected:accuracy", c->expected_right},
		{"unknown:share", transfer_set.unknown}, {"unknown:applied", c->rule.calls_unknown});
	cli_stated("unit", r->group ? r->group : "cell");
	cli_measured_all({"units", (double)c->groups}, {"units_needed:coverage", (double)measured_groups(transfer_set.coverage)},
		{"units_needed:unknown", transfer_set.unknown > 0 ? (double)measured_groups(1 - transfer_set.unknown) : 0},
		{"shift", shift}, {"shift:limit", s->limit}, {"shift:false_alarm", SHIFT_FALSE_ALARM}, {"shift:unseen", shift_unseen(s)});
	if (r->genes) {
		cli_measured_all({"depth:reference", r->depth}, {"depth:new", r->new_depth}, {"thinned", r->fit.share},
			{"molecules", r->molecules}, {"genes:shared", (double)r->shared_genes}, {"molecules:fraction", r->shared_share},
			{"genes:by_symbol", (double)r->by_symbol}, {"genes:fraction", (double)r->shared_genes / (double)r->genes->n});
	}
}

/* A row NAME:CLASS. */
static void report_class(const char *name, const char *class, double value)
{
	char *escaped = tsv_escaped(class), *row = xasprintf("%s:%s", name, escaped);
	cli_measured(row, value);
	free_all(escaped, row);
}

static void report_classes_of(const struct reference *r, const struct written *w)
{
	const struct calibrated *c = &r->fit.calibrated;
	const struct shift *s = &c->shift;
	char *const *name = r->kept.classes.name;
	for (size_t k = 0; k < s->k; k++) {
		report_class("held_out_coverage", name[k], c->of[k].covered);
		if (!(s->new.of[k].n > 0))
			continue;
		report_class("shift", name[k], shift_of(s, k));
		report_class("new", name[k], c->of[k].cells);
		report_class("mix", name[k], c->of[k].share);
		report_class("unlike", name[k], c->of[k].unlike);
		if (r->genes && s->reference.of[k].n > 0)
			report_class("depth_ratio", name[k], shift_depth_ratio(s, k));
	}
	for (size_t k = 0; k < s->k; k++)
		if (w->may_be[k])
			report_class("untested", name[k], (double)w->may_be[k]);
}

void transfer_report(const struct reference *r, const struct predictions *p, const struct written *w)
{
	const struct calibrated *c = &r->fit.calibrated;
	const char *new = stream_name(p->in);
	warn_names(&r->kept.classes);
	if (w->empty)
		warn("%s: %" PRIu64 " of %" PRIu64 " cells have no %s: they get no class", new, w->empty, w->cells,
			!r->genes ? "embedding, as they have no token" : "count of a shared gene");
	if (w->known)
		warn("%s: %" PRIu64 " of %" PRIu64 " cells are in %s too: ctaprobe score leaves them out", new, w->known, w->cells,
			transfer_set.reference);
	report_promises(r);
	report_classes_of(r, w);
	double unlike = 0;
	for (size_t k = 0; k < r->kept.classes.n; k++)
		unlike += c->of[k].unlike;
	cli_measured_all({"reference_cells", (double)r->fit.cells}, {"learned_cells", (double)r->fit.method.n},
		{"classes", (double)r->kept.classes.n}, {"features", (double)r->features}, {"calibration_cells", (double)c->cells},
		{"calibration_groups", (double)c->groups}, {"temperature", c->rule.temperature}, {"most_missed", c->rule.most_missed},
		{"cells", (double)w->cells}, {"unlike_cells", unlike}, {"unknown_cells", (double)w->unknown},
		{"untested_cells", (double)w->of_untested},
		{"in_reference", r->d.s ? (double)w->known : NAN}); /* a saved reference does not know */
	if (c->rule.detail) {
		const struct detail *t = c->rule.detail;
		cli_measured_all({"labels:no_term", (double)t->without}, {"labels:coarse", (double)(t->labels - t->k)},
			{"labels:coarse_cells", (double)t->coarse_cells}, {"units:fine", (double)c->whole},
			{"term_classes", (double)w->term_sum / (double)w->term_cells});
	}
	cli_report(&transfer_cli, "%zu reference cells, %zu classes, temperature %.3g, %" PRIu64 " new cells, %" PRIu64 " of them unknown",
		r->fit.cells, r->kept.classes.n, c->rule.temperature, w->cells, w->unknown);
}
