/* ctaprobe transfer: the cells with known classes, what is learned from them, and the ones that are held out. */
#include "cells.h"
#include "cli.h"
#include "cli_labels.h"
#include "transfer.h"

enum { FEW_CELLS = 3 }; /* from fewer, mean and variance tell each cell */
enum { FEW_VALUES = 64 << 20 }; /* a reference of fewer counts is kept in 8 bytes a count, a larger one in about 2 */

/* x of two streams must be made alike. */
static void check_alike(const struct header *a, const struct header *b, const char *name)
{
	const struct column_spec *x = &a->col[header_find(a, "x")], *y = &b->col[header_find(b, "x")];
	char *one = embedding_source(a), *two = embedding_source(b);
	if (x->n != y->n)
		die("%s: embeddings of %" PRIu32 " values, but %s has %" PRIu32, name, y->n, transfer_set.reference, x->n);
	if (one && two && strcmp(one, two))
		die("%s: its embeddings were made by '%s', and those of %s by '%s': expected the same", name, two, transfer_set.reference,
			one);
	free_all(one, two);
}

/* Cells that the method has learned from look surer than others do: die if most of `other` are cells of the reference. */
static void refuse_shared(const struct reference *r)
{
	size_t shared = 0;
	for (size_t i = 0; i < r->other.n; i++)
		shared += (size_t)embeddings_among(r->digest, r->digests, &r->other, i);
	if (2 * shared > r->other.n)
		die("--calibration: %s: %zu of its %zu cells have the embedding of a cell of %s: expected other cells",
			stream_name(r->other.s), shared, r->other.n, transfer_set.reference);
}

/* Leave out the cells of d whose class is not one of the first `classes`, those of the reference. Dies if none is left. */
static void drop_unknown(struct embeddings *d, size_t classes)
{
	size_t n = 0;
	for (size_t i = 0; i < d->n; i++)
		if (d->y[i] < classes)
			embeddings_move(d, n++, i);
	if (n < d->n)
		warn("%s: %zu of %zu cells have classes that %s does not have, and are left out", stream_name(d->s), d->n - n, d->n,
			transfer_set.reference);
	embeddings_resize(d, n);
	if (!n)
		die("%s: no cell has a class of %s", stream_name(d->s), transfer_set.reference);
}

static void read_terms(struct reference *r)
{
	const struct detail *t = &r->kept.detail;
	if (detail_init(&r->kept.detail, transfer_set.ontology, &r->kept.classes, &r->d, transfer_set.label, &failure))
		die("--ontology: %s", failure.msg);
	if (t->without)
		warn("%s: column '%s': %zu of %zu labels are not an id, name or exact synonym of a term of %s that is not obsolete: they are types of "
		     "their own: %s",
			transfer_set.reference, transfer_set.label, t->without, t->all, transfer_set.ontology, t->listed);
	if (t->same)
		info("labels are one type with another one, as their term is the same: %s", t->same);
}

/* The ids of terms of the classes: those of --ontology, or those of TERM_ID, a code of `ids` a cell, where all cells of a class have the same. */
static void read_term_ids(struct reference *r, const struct classes *ids)
{
	struct saved *s = &r->kept;
	const struct holds *h = &s->detail.holds;
	size_t k = s->classes.n, some = 0, several = 0;
	FREED const char **of = xcalloc(k, sizeof *of);
	for (size_t v = 0; v < h->n && s->detail.size[v] == 1; v++)
		for (size_t c = 0; c < k; c++)
			if (h->in[v * k + c] && strcmp(s->detail.id[v], s->detail.name[v]))
				of[c] = s->detail.id[v];
	for (size_t i = 0; i < r->d.n && r->d.part; i++) {
		const char *id = r->d.part[i] == MISSING_CODE ? NULL : ids->name[r->d.part[i]], **at = &of[r->d.y[i]];
		if (id && *at && **at && strcmp(*at, id)) {
			several++;
			*at = "";
		} else if (id && !*at) {
			*at = id;
		}
	}
	s->term_id = xcalloc(k, sizeof *s->term_id);
	for (size_t c = 0; c < k; c++) {
		int is = of[c] && strchr(of[c], ':') && !strpbrk(of[c], " \t");
		s->term_id[c] = xstrdup(is ? of[c] : "");
		some += (size_t)is;
	}
	if (several)
		info("%s: classes of column '%s' with several values in column '" TERM_ID "', which have no term: %zu", r->name,
			transfer_set.label, several);
	if (some)
		return;
	free_list(s->term_id, k);
	s->term_id = NULL;
}

static void read_groups(struct reference *r)
{
	struct embeddings *d[] = {&r->d, &r->other};
	const char *group = transfer_set.group;
	uint32_t *of[] = {r->d.group, r->other.group};
	size_t n[] = {r->d.n, r->other.n};
	groups_join(&r->groups, of, n, 2, group, transfer_set.reference);
	classes_settle(&r->groups, of, n, 2);
	if (transfer_set.calibration)
		warn_shared(&r->d, &r->other, &r->groups, group);
	if (r->groups.n >= 2) {
		r->group = group;
		return;
	}
	warn("%s: all cells have one value in column '%s': cells are held out, and nothing is promised", transfer_set.reference, group);
	for (int i = 0; i < 2; i++) {
		free(d[i]->group);
		d[i]->group = NULL;
	}
}

/* What is kept of counts before they are thinned. */
static void keep_depth(struct reference *r)
{
	FREED uint64_t *depth = xmalloc((r->d.n + 1) * sizeof *depth);
	memcpy(depth, r->d.depth, r->d.n * sizeof *depth);
	free(r->digest); /* new cells are compared by shared genes */
	r->digest = NULL;
	r->kept.molecules = 1;
	r->kept.depth = depth_median(depth, r->d.n, &r->kept.molecules);
	r->kept.rungs = saved_rungs(r->kept.depth, r->kept.molecules);
	r->kept.share = embeddings_shares(&r->d);
}

/* New embeddings must be such as those of the reference. */
static void check_new(const struct reference *r, const struct stream *new)
{
	const struct header *h = stream_header(new);
	const char *name = stream_name(new);
	must(header_kind(h, STREAM_EMBEDDING, name, &failure) || header_need(h, "x", F32, FIXED, name, &failure) < 0 ||
		header_need(h, "cell", U64, SCALAR, name, &failure) < 0);
	check_alike(stream_header(r->d.s), h, name);
}

void reference_read(struct reference *r, const struct stream *new)
{
	const struct transfer_options *o = &transfer_set;
	struct stream *in = must_open(o->reference);
	if (!new || stream_header(new)->kind == STREAM_COUNTS)
		r->genes = &stream_header(in)->vocab;
	struct wanted w = {o->label, NULL, o->group, &r->kept.classes, &r->groups, .with = r->genes, .with_name = stream_name(in)};
	r->name = stream_name(in);
	struct stream *other = o->calibration ? must_open(o->calibration) : NULL;
	if (other)
		embeddings_check(other, &w);
	RELEASED(classes_release) struct classes ids = {0};
	int own = o->ontology ? -1 : header_find(stream_header(in), TERM_ID);
	if (own >= 0 && (stream_header(in)->col[own].type == CATEGORICAL || stream_header(in)->col[own].type == STR)) {
		w.part = TERM_ID;
		w.parts = &ids;
	}
	embeddings_read(&r->d, in, &w, o->held_out && !other);
	w.part = NULL;
	r->digest = embeddings_digests(&r->d, NULL);
	r->digests = r->d.n;
	r->kept.source = xasprintf("xxh3:%016" PRIx64, (uint64_t)XXH3_64bits(r->digest, r->digests * sizeof *r->digest));
	r->features = r->d.d;
	r->shared_share = 1;
	classes_settle(&r->kept.classes, &r->d.y, &r->d.n, 1);
	for (size_t k = 0; k < r->kept.classes.n; k++)
		if (!strcmp(r->kept.classes.name[k], UNKNOWN))
			die("%s: a class of column '%s' is called 'unknown', as new cells are that are like no class: rename it",
				o->reference, o->label);
	if (o->ontology)
		read_terms(r);
	else
		r->kept.detail.labels = r->kept.classes.n;
	read_term_ids(r, &ids);
	size_t known = r->kept.classes.n;
	if (known < 2)
		die("%s: there are only cells of '%s' in column '%s' (%zu): expected two classes", o->reference, r->kept.classes.name[0],
			o->label, r->d.n);
	if (other) {
		w.genes = r->genes;
		embeddings_read(&r->other, other, &w, o->held_out != NULL);
		if (!w.with)
			check_alike(stream_header(r->d.s), stream_header(r->other.s), o->calibration);
		refuse_shared(r);
		drop_unknown(&r->other, known);
		classes_settle(
			&r->kept.classes, &r->d.y, &r->d.n, 1); /* without those of the dropped cells; the others keep their numbers */
	}
	if (o->group)
		read_groups(r);
	r->options = (struct method_options){(size_t)o->nearest, o->inverse_penalty, o->as_given, (int)transfer_cli.threads,
		(uint32_t)transfer_cli.seed, o->label, o->unlike || o->save, o->ontology ? &r->kept.detail : NULL};
	if (r->genes)
		keep_depth(r);
	else
		check_new(r, new);
}

/* The classes that no method knew whose cells were held out. */
static void find_untested(struct reference *r)
{
	size_t k = r->kept.classes.n, cells = 0;
	const struct held_out *h = &r->held;
	r->fit.untested = xmalloc(k);
	memset(r->fit.untested, 1, k);
	for (size_t i = 0; i < h->d->n; i++)
		if (h->d->y[i] < k && isfinite(h->logit[i * k + h->d->y[i]])) {
			r->fit.untested[h->d->y[i]] = 0;
			cells++;
		}
	for (size_t c = 0; c < k && cells; c++) /* if there is none at all, calibration says so */
		if (r->fit.untested[c])
			info("%s: class '%s' (%" PRIu64
			     " cells) was never held out while others of it were there: its probabilities are not calibrated",
				transfer_set.reference, r->kept.classes.name[c], r->fit.of[c]);
}

static void count_cells(struct reference *r)
{
	const struct embeddings *d = &r->d;
	struct learned *l = &r->fit;
	l->share = ldexp(1, -(int)r->rung);
	l->cells = d->n;
	l->of = xcalloc(r->kept.detail.labels, sizeof *l->of);
	for (size_t i = 0; i < d->n; i++)
		l->of[d->y[i]]++;
}

void reference_fit(struct reference *r)
{
	const struct embeddings *d = &r->d;
	uint32_t *all = xmalloc(d->n * sizeof *all);
	size_t k = (size_t)transfer_set.folds;
	if (!given(&transfer_set.folds) && r->group && r->groups.n < k)
		k = r->groups.n < 2 ? 2 : r->groups.n;
	for (size_t i = 0; i < d->n; i++)
		all[i] = (uint32_t)i;
	count_cells(r);
	if (d->sparse.values < FEW_VALUES) /* faster */
		sparse_unpack(&r->d.sparse);
	progress("fitting %zu cells, %zu classes, %zu features", d->n, r->kept.classes.n, d->d);
	if (method_fit(&r->fit.method, d, all, d->n, &r->kept.classes, &r->options, NULL, &failure))
		die("%s: reference: %s", stream_name(d->s), failure.msg);
	const struct probe *p = &r->fit.method.probe.p;
	if (p->k && !p->converged)
		warn("the probe did not converge in %d iterations (largest gradient entry %.3g)", p->iterations, p->gradient);
	if (transfer_set.calibration) {
		hold_out_others(&r->held, &r->other, &r->fit.method);
	} else {
		r->fold = xmalloc(d->n * sizeof *r->fold);
		assign_folds(r->fold, d, all, d->n, k, (uint32_t)transfer_cli.seed, "");
		if (hold_out(&r->held, d, &r->fit.method, r->fold, k, &failure))
			die("%s: %s", stream_name(d->s), failure.msg);
	}
	if (r->held.unfinished)
		warn("the probes of %zu folds did not converge", r->held.unfinished);
	find_untested(r);
	if (transfer_calibrate(
		    &r->fit.calibrated, &r->held, r->options.detail, r->groups.n, transfer_set.coverage, transfer_set.unknown, &failure))
		die("%s: %s", stream_name(r->held.d->s), failure.msg);
	free(all);
}

/* Fit the reference at each depth that new cells may have. */
static struct learned *fit_rungs(struct reference *r)
{
	struct learned *all = xcalloc(r->kept.rungs, sizeof *all);
	const struct embeddings whole = r->d, others = r->other;
	for (r->rung = 0; r->rung < r->kept.rungs; r->rung++) {
		embeddings_copy(&r->d, &whole);
		if (others.n)
			embeddings_copy(&r->other, &others);
		if (r->rung)
			embeddings_thin(&r->d, ldexp(1, -(int)r->rung), r->options.seed);
		if (r->rung && others.n)
			embeddings_thin(&r->other, ldexp(1, -(int)r->rung), r->options.seed);
		reference_fit(r);
		all[r->rung] = r->fit;
		r->fit = (struct learned){0};
		held_out_release(&r->held);
		free(r->fold);
		r->fold = NULL;
		r->d.s = r->other.s = NULL;
		embeddings_release(&r->d);
		embeddings_release(&r->other);
	}
	r->d = whole;
	r->other = others;
	return all;
}

/* --about KEY=VALUE */
static void add_about(struct saved *s)
{
	const struct opt_values *v = &transfer_set.about;
	s->about = cJSON_CreateObject();
	for (size_t i = 0; i < v->n; i++) {
		const char *value = strchr(v->item[i], '=');
		if (!value || value == v->item[i] || !value[1])
			usage_error("--about %s: expected KEY=VALUE", v->item[i]);
		FREED char *key = xstrndup(v->item[i], (size_t)(value - v->item[i])), *shown = printable(xstrdup(v->item[i]));
		if (strcmp(shown, v->item[i]))
			usage_error("--about %s: expected text in UTF-8, without control characters", shown);
		if (cJSON_GetObjectItemCaseSensitive(s->about, key))
			usage_error("--about %s: '%s' is given twice", v->item[i], key);
		cJSON_AddStringToObject(s->about, key, value + 1);
	}
}

void reference_save(struct reference *r)
{
	struct saved *s = &r->kept;
	add_about(s);
	reference_read(r, NULL);
	s->label = xstrdup(transfer_set.label);
	s->unit = r->group ? xstrdup(r->group) : NULL;
	s->options = cli_settings(&transfer_cli);
	s->coverage = transfer_set.coverage;
	s->unknown = transfer_set.unknown;
	s->unknown_asked = given(&transfer_set.unknown);
	s->seed = (double)transfer_cli.seed;
	s->has_terms = r->options.detail != NULL;
	static struct learned *all;
	all = fit_rungs(r);
	for (size_t k = 0; k < s->classes.n; k++)
		if (all->of[k] < FEW_CELLS)
			warn("class '%s' has %" PRIu64
			     " cells, whose counts can be computed from what is saved: scsample --min-class leaves it out",
				s->classes.name[k], all->of[k]);
	s->genes = *r->genes; /* borrowed */
	must(saved_write(transfer_set.save, s, all, &failure));
	cli_report(&transfer_cli, "%zu reference cells, %zu classes, saved at %zu depths", r->d.n, s->classes.n, s->rungs);
}

void reference_open(struct reference *r, const struct stream *new)
{
	struct saved *s = &r->kept;
	if (stream_header(new)->kind != STREAM_COUNTS)
		die("%s: a saved reference of counts: expected counts, but %s has embeddings", transfer_set.reference, stream_name(new));
	must(saved_open(s, transfer_set.reference, &failure));
	if (given(&transfer_set.unknown) && fabs(transfer_set.unknown - s->unknown) > 0)
		die("%s: was saved with --unknown %g, and not %g", transfer_set.reference, s->unknown, transfer_set.unknown);
	r->name = transfer_set.reference;
	r->genes = &s->genes;
	r->features = s->genes.n;
	r->group = s->unit;
	r->shared_share = 1;
	transfer_set.label = s->label;
	transfer_set.coverage = s->coverage;
	transfer_set.unknown = s->unknown;
	transfer_cli.seed = (long long)s->seed;
	r->options = (struct method_options){.threads = (int)transfer_cli.threads,
		.seed = (uint32_t)s->seed,
		.label = s->label,
		.detail = s->has_terms ? &s->detail : NULL};
	info("%s: a saved reference does not tell which of the new cells it has learned from", r->name);
}
