#include "transfer/saved.h"

#include "base/bytes.h"
#include "base/json.h"
#include "transfer/archive.h"

#include <fcntl.h>
#include <unistd.h>

enum { MOST_FLOATS = 1 << 30 }; /* of a matrix */

/* ---- what there is ---- */

static void saved_genes(struct archive *a, struct saved *s)
{
	struct vocab *v = &s->genes, read = {.n = archive_length(a, "genes")};
	int aliases = a->reading ? archive_length(a, "aliases") > 0 : v->alias != NULL;
	struct vocab *of = a->reading ? &read : v;
	if (a->reading && (!read.n || read.n > VOCAB_MAX))
		archive_refuse(a, "genes", "a list of genes");
	archive_texts(a, "genes", &of->id, of->n);
	archive_texts(a, "symbols", &of->symbol, of->n);
	if (aliases)
		archive_texts(a, "aliases", &of->alias, of->n);
	for (size_t i = 0; i < read.n && !a->bad; i++) {
		vocab_push(v, read.id[i], read.symbol[i], NAN);
		if (aliases)
			vocab_alias(v, read.alias[i]);
	}
	if (a->reading && !a->bad)
		a->bad = vocab_index(v, a->path, a->e);
	vocab_release(&read);
	ROOM(a, s->share, v->n);
	archive_tensor(a, "gene_share", (struct matrix){.x = s->share, .rows = v->n, .columns = 1, .per_row = 1});
}

static void saved_classes(struct archive *a, struct saved *s)
{
	struct classes *c = &s->classes;
	char **name = c->name;
	size_t n = a->reading ? archive_length(a, "types") : c->n;
	archive_texts(a, "types", &name, n);
	for (size_t i = 0; i < n && a->reading; i++) {
		if (!a->bad && classes_add(c, name[i], strlen(name[i])) != i)
			archive_refuse(a, "types", "different names");
		free(name[i]);
	}
	if (a->reading)
		free(name);
	if (a->reading && n < 2)
		archive_refuse(a, "types", "two names or more");
	if (a->reading && !a->bad && (double)(s->genes.n + 8) * (double)(n + 8) > MOST_FLOATS)
		archive_refuse(a, "types", "fewer types and genes");
}

static void saved_terms(struct archive *a, struct saved *s)
{
	struct detail *t = &s->detail;
	size_t k = s->classes.n;
	archive_whole(a, "labels", &t->labels, 1 << 20);
	if (a->reading && !a->bad && (t->labels < k || (double)t->labels * (double)k > MOST_FLOATS))
		archive_refuse(a, "labels", "as many as types or more");
	archive_flag(a, "has_terms", &s->has_terms);
	if (!s->has_terms || a->bad)
		return;
	t->k = k;
	archive_whole(a, "coarse_cells", &t->coarse_cells, SIZE_MAX >> 12);
	archive_whole(a, "without_term", &t->without, SIZE_MAX >> 12);
	archive_flags(a, "under", &t->under, t->labels * k);
	size_t n = t->holds.n = a->reading ? archive_length(a, "terms") : t->holds.n;
	if (a->reading && (double)n * (double)k > MOST_FLOATS)
		archive_refuse(a, "terms", "fewer terms");
	if (a->bad) {
		t->holds.n = 0;
		return;
	}
	archive_texts(a, "terms", &t->id, n);
	archive_texts(a, "term_names", &t->name, n);
	archive_flags(a, "term_types", &t->in, n * k);
	ROOM(a, t->size, n);
	archive_wholes(a, "term_sizes", t->size, sizeof *t->size, n, (double)k);
	t->holds.k = k;
	t->holds.in = t->in;
}

void saved_fields(struct archive *a, struct saved *s)
{
	archive_text(a, "label", &s->label);
	archive_text(a, "unit", &s->unit);
	archive_text(a, "source", &s->source);
	archive_text(a, "options", &s->options);
	archive_real(a, "depth", &s->depth);
	archive_real(a, "coverage", &s->coverage);
	archive_real(a, "unknown", &s->unknown);
	archive_real(a, "seed", &s->seed);
	archive_flag(a, "molecules", &s->molecules);
	archive_flag(a, "unknown_asked", &s->unknown_asked);
	archive_whole(a, "rungs", &s->rungs, SAVED_RUNGS);
	saved_genes(a, s);
	saved_classes(a, s);
	saved_terms(a, s);
	if (a->reading ? archive_length(a, "term_ids") > 0 : s->term_id != NULL)
		archive_texts(a, "term_ids", &s->term_id, s->classes.n);
	if (a->reading &&
		!(s->coverage > 0 && s->coverage < 1 && s->unknown >= 0 && s->unknown < 1 && s->seed >= 0 && s->seed <= UINT32_MAX))
		archive_refuse(a, "coverage", "coverage and unknown below 1, and a seed");
	if (a->reading && !a->bad && (!s->rungs || !s->label || !s->source || !s->options))
		archive_refuse(a, "rungs", "one or more, and texts");
}

/* ---- what is said of what was learned ---- */

static void measured_fields(struct archive *a, const char *name, struct measured *m)
{
	struct cJSON *before = archive_enter(a, name);
	archive_real(a, "wanted", &m->wanted);
	archive_real(a, "needed", &m->needed);
	archive_real(a, "sum", &m->sum);
	archive_whole(a, "groups", &m->groups, SIZE_MAX >> 12);
	archive_whole(a, "of", &m->of, SIZE_MAX >> 12);
	a->at = before;
}

void learned_said(struct archive *a, struct learned *l, const struct saved *s)
{
	struct calibrated *c = &l->calibrated;
	size_t k = s->classes.n;
	archive_real(a, "share", &l->share);
	archive_whole(a, "cells", &l->cells, SIZE_MAX >> 12);
	ROOM(a, l->of, s->detail.labels);
	archive_wholes(a, "cells_of", l->of, sizeof *l->of, s->detail.labels, 0x1p52);
	archive_flags(a, "untested", &l->untested, k);
	ROOM(a, c->of, k);
	archive_reals(a, "held", &c->of[0].held, k, sizeof *c->of);
	archive_reals(a, "covered", &c->of[0].covered, k, sizeof *c->of);
	archive_reals(a, "right", &c->of[0].right, k, sizeof *c->of);
	archive_whole(a, "held_cells", &c->cells, SIZE_MAX >> 12);
	archive_whole(a, "groups", &c->groups, SIZE_MAX >> 12);
	archive_whole(a, "whole_groups", &c->whole, SIZE_MAX >> 12);
	measured_fields(a, "measured_coverage", &c->coverage);
	measured_fields(a, "measured_known", &c->known);
	archive_real(a, "all_right", &c->right);
}

/* ---- files ---- */

size_t saved_rungs(double depth, int molecules)
{
	size_t n = 1;
	while (molecules && n < SAVED_RUNGS && ldexp(depth, -(int)n) >= SAVED_FEWEST)
		n++;
	return n;
}

size_t saved_rung(double share, size_t rungs)
{
	double rung = share < 0.5 ? round(-log2(share)) : 0;
	return rung < (double)rungs ? (size_t)rung : rungs - 1;
}

int saved_is(const char *path)
{
	uint8_t head[9];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), is = 0;
	if (fd < 0)
		return 0;
	if (pread(fd, head, sizeof head, 0) == (ssize_t)sizeof head)
		is = get_le64(head) <= SAFETENSORS_HEADER_MAX && head[8] == '{';
	close(fd);
	return is;
}

int saved_open(struct saved *s, const char *path, struct error *e)
{
	char hex[DIGEST_SIZE];
	uint64_t version;
	*s = (struct saved){.file.fd = -1};
	if (safetensors_open(&s->file, path, e))
		return -1;
	const char *own = json_text(s->file.metadata, SAVED_KEY);
	int bad =
		!own ? error_set(e, "%s: not a reference that ctaprobe transfer --save wrote", path) : safetensors_digest(&s->file, hex, e);
	if (!bad && !*s->file.digest)
		bad = error_set(e, "%s: without a digest: expected what ctaprobe transfer --save wrote", path);
	if (!bad && (!(s->all = cJSON_Parse(own)) || json_whole(s->all, "version", 0, &version) || !version))
		bad = error_set(e, "%s: the text of the reference is not JSON with a version", path);
	if (!bad && version > SAVED_VERSION)
		bad = error_set(e, "%s: a reference of version %llu, from a newer corrmask: this one reads %d", path,
			(unsigned long long)version, SAVED_VERSION);
	if (!bad) {
		struct archive a = {.path = path, .at = s->all, .from = &s->file, .prefix = "", .reading = 1, .e = e};
		saved_fields(&a, s);
		s->about = cJSON_Duplicate(json_get(s->all, "about"), 1);
		bad = a.bad;
	}
	if (bad)
		saved_release(s);
	return bad;
}

int saved_said(struct saved *s, struct learned *l, struct error *e)
{
	struct archive a = {.path = s->file.path, .from = &s->file, .prefix = "0.", .reading = 1, .e = e};
	a.at = cJSON_GetArrayItem(json_get(s->all, "learned"), 0);
	*l = (struct learned){0};
	learned_said(&a, l, s);
	return a.bad;
}

void saved_release(struct saved *s)
{
	if (s->term_id)
		free_list(s->term_id, s->classes.n);
	classes_release(&s->classes);
	detail_release(&s->detail);
	vocab_release(&s->genes);
	safetensors_close(&s->file);
	cJSON_Delete(s->about);
	cJSON_Delete(s->all);
	free_all(s->label, s->unit, s->source, s->options, s->share);
	*s = (struct saved){.file.fd = -1};
}
