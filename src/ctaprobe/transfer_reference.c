/* ctaprobe transfer: the cells with known classes, what is learned from them, and the ones that are held out. */
#include "cells.h"
#include "cli.h"
#include "transfer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
	const struct detail *t = &r->detail;
	if (detail_init(&r->detail, transfer_set.ontology, &r->classes, &r->d, transfer_set.label, &failure))
		die("--ontology: %s", failure.msg);
	if (t->without)
		warn("%s: column '%s': %zu of %zu labels are not an id, name or exact synonym of a term of %s that is not obsolete: they are types of "
		     "their own: %s",
			transfer_set.reference, transfer_set.label, t->without, t->all, transfer_set.ontology, t->listed);
	if (t->same)
		info("labels are one type with another one, as their term is the same: %s", t->same);
	cli_measured("labels:no_term", (double)t->without);
	cli_measured("labels:coarse", (double)(t->labels - t->k));
	cli_measured("labels:coarse_cells", (double)t->coarse_cells);
}

static void read_groups(struct reference *r)
{
	struct embeddings *d[] = {&r->d, &r->other};
	const char *group = transfer_set.group;
	classes_settle(&r->groups, (uint32_t *[]){r->d.group, r->other.group}, (size_t[]){r->d.n, r->other.n}, 2);
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

void reference_read(struct reference *r, const struct stream *new)
{
	const struct transfer_options *o = &transfer_set;
	const struct header *h = stream_header(new);
	const char *name = stream_name(new);
	struct wanted w = {
		o->label, NULL, o->group, &r->classes, &r->groups, .with = strcmp(h->kind, "counts") ? NULL : &h->vocab, .with_name = name};
	struct stream *other = o->calibration ? must_open(o->calibration) : NULL;
	if (other)
		embeddings_check(other, &w);
	embeddings_read(&r->d, must_open(o->reference), &w, o->held_out && !other);
	r->digest = embeddings_digests(&r->d);
	r->digests = r->d.n;
	classes_settle(&r->classes, &r->d.y, &r->d.n, 1);
	for (size_t k = 0; k < r->classes.n; k++)
		if (!strcmp(r->classes.name[k], UNKNOWN))
			die("%s: a class of column '%s' is called 'unknown', as new cells are that are like no class: rename it",
				o->reference, o->label);
	if (o->ontology)
		read_terms(r);
	else
		r->detail.labels = r->classes.n;
	size_t known = r->classes.n;
	r->cells = xcalloc(r->detail.labels, sizeof *r->cells);
	for (size_t i = 0; i < r->d.n; i++)
		r->cells[r->d.y[i]]++;
	if (known < 2)
		die("%s: there are only cells of '%s' in column '%s' (%zu): expected two classes", o->reference, r->classes.name[0],
			o->label, r->d.n);
	if (other) {
		w.genes = w.with ? &stream_header(r->d.s)->vocab : NULL;
		embeddings_read(&r->other, other, &w, o->held_out != NULL);
		if (!w.with)
			check_alike(stream_header(r->d.s), stream_header(r->other.s), o->calibration);
		refuse_shared(r);
		drop_unknown(&r->other, known);
		classes_settle(&r->classes, &r->d.y, &r->d.n, 1); /* without those of the dropped cells; the others keep their numbers */
	}
	if (o->group)
		read_groups(r);
	r->options = (struct method_options){(size_t)o->nearest, o->inverse_penalty, o->as_given, (int)transfer_cli.threads,
		(uint32_t)transfer_cli.seed, o->label, o->unlike != NULL, o->ontology ? &r->detail : NULL};
	must((r->d.x && (header_kind(h, "embedding", name, &failure) || header_need(h, "x", F32, FIXED, name, &failure) < 0)) ||
		header_need(h, "cell", U64, SCALAR, name, &failure) < 0);
	if (r->d.x)
		check_alike(stream_header(r->d.s), h, name);
}

/* The classes that no method knew whose cells were held out. */
static void find_untested(struct reference *r)
{
	size_t k = r->classes.n, cells = 0;
	const struct held_out *h = &r->held;
	r->untested = xmalloc(k);
	memset(r->untested, 1, k);
	for (size_t i = 0; i < h->d->n; i++)
		if (h->d->y[i] < k && isfinite(h->logit[i * k + h->d->y[i]])) {
			r->untested[h->d->y[i]] = 0;
			cells++;
		}
	for (size_t c = 0; c < k && cells; c++) /* if there is none at all, calibration says so */
		if (r->untested[c])
			info("%s: class '%s' (%" PRIu64
			     " cells) was never held out while others of it were there: its probabilities are not calibrated",
				transfer_set.reference, r->classes.name[c], r->cells[c]);
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
	if (d->sparse.values < FEW_VALUES) /* faster */
		sparse_unpack(&r->d.sparse);
	progress("fitting %zu cells, %zu classes, %zu features", d->n, r->classes.n, d->d);
	if (method_fit(&r->method, d, all, d->n, &r->classes, &r->options, NULL, &failure))
		die("%s: reference: %s", stream_name(d->s), failure.msg);
	const struct probe *p = &r->method.probe.p;
	if (p->k && !p->converged)
		warn("the probe did not converge in %d iterations (largest gradient entry %.3g)", p->iterations, p->gradient);
	if (transfer_set.calibration) {
		hold_out_others(&r->held, &r->other, &r->method);
	} else {
		r->fold = xmalloc(d->n * sizeof *r->fold);
		assign_folds(r->fold, d, all, d->n, k, (uint32_t)transfer_cli.seed, "");
		if (hold_out(&r->held, d, &r->method, r->fold, k, &failure))
			die("%s: %s", stream_name(d->s), failure.msg);
	}
	if (r->held.unfinished)
		warn("the probes of %zu folds did not converge", r->held.unfinished);
	find_untested(r);
	free(all);
}

void reference_release(struct reference *r)
{
	promises_release(&r->promised);
	method_release(&r->method);
	held_out_release(&r->held);
	embeddings_release(&r->d);
	embeddings_release(&r->other);
	classes_release(&r->classes);
	classes_release(&r->groups);
	detail_release(&r->detail);
	free_all(r->fold, r->cells, r->untested, r->digest);
}
