/*
 * Labels of cells that are terms of an ontology, by hierarchical cross-entropy [BMFM-RNA, section 4; Cultrera di Montesano et al.]. The classes are
 * the leaves of the ontology, pruned to the labels of the cells to train on (label/leaves.h). A label that is no leaf says only that the
 * cell is of one of the leaves under it. The model's directory gets the pruned ontology (ontology.obo), for predictions.
 */
#include "heads.h"

#include "label/leaves.h"

enum { LISTED = 10 }; /* unknown labels that a message names */

struct hce {
	struct label_column column;
	const char *path; /* of the ontology */
	int known; /* the mean is over the cells with a label */
	struct ontology own; /* of the first of these objectives, which reads the file: it may be a pipe */
	const struct ontology *ontology;
	struct leaves leaves;
	char **label; /* [leaves.n] their ids */
	uint32_t *term; /* [nterm] of each class of the column; TERM_NONE: it is none */
	size_t nterm, term_cap;
	char digest[DIGEST_SIZE]; /* of all that the model learns of the ontology */
	uint32_t *of; /* [cells of the batch] */
	size_t of_cap;
};

/* The terms of the classes that were added since. */
static void find_terms(struct hce *x)
{
	grow(x->term, x->term_cap, x->column.classes.n);
	for (; x->nterm < x->column.classes.n; x->nterm++) {
		const char *name = x->column.classes.name[x->nterm];
		x->term[x->nterm] = ontology_find(x->ontology, name, strlen(name));
	}
}

/* Warn of labels that are no terms, or end if they are more than half. */
static void report_unknown(const struct hce *x, const struct train *t)
{
	const struct label_column *c = &x->column;
	size_t n = 0;
	double cells = 0;
	FREED char *list = xstrdup("");
	for (size_t k = 0; k < c->nclass; k++) {
		if (x->term[k] != TERM_NONE)
			continue;
		if (n < LISTED)
			xappend(&list, "%s'%.80s'", n ? ", " : "", c->classes.name[k]);
		cells += c->count[k];
		n++;
	}
	xappend(&list, "%s", n > LISTED ? ", ..." : "");
	FREED char *some = c->count ? xasprintf(" (%.0f of %.0f cells)", cells, c->labelled) : xstrdup("");
	if (2 * n > c->nclass || 2 * cells > c->labelled)
		die("%s: column '%s': %zu of %zu labels%s are not ids, names or exact synonyms of %s: %s: expected at most half",
			t->source.name, c->name, n, c->nclass, some, x->path, list);
	if (n)
		warn("%s: column '%s': %zu of %zu labels%s are not ids, names or exact synonyms of %s, and left out: %s", t->source.name,
			c->name, n, c->nclass, some, x->path, list);
}

static void find_leaves(struct hce *x, const struct train *t)
{
	FREED uint8_t *seen = xcalloc(x->ontology->n, 1);
	for (size_t k = 0; k < x->column.nclass; k++)
		if (x->term[k] != TERM_NONE)
			seen[x->term[k]] = 1;
	leaves_init(&x->leaves, x->ontology, seen);
	if (!x->leaves.n)
		die("%s: no cell has a label in column '%s'", t->source.name, x->column.name);
	if (x->leaves.n == 1)
		die("%s: all labels in column '%s' lie on or above %s (%s): there is nothing to tell apart", t->source.name, x->column.name,
			x->ontology->id[x->leaves.term[0]], x->ontology->name[x->leaves.term[0]]);
	x->label = xcalloc(x->leaves.n, sizeof *x->label);
	for (size_t k = 0; k < x->leaves.n; k++)
		x->label[k] = x->ontology->id[x->leaves.term[k]];
}

/* Name the labels that are no leaves: none of them is ever predicted. */
static void report_above(const struct hce *x, const struct train *t)
{
	const struct label_column *c = &x->column;
	size_t n = 0;
	FREED uint8_t *leaf = xcalloc(x->ontology->n, 1), *told = xcalloc(x->ontology->n, 1);
	FREED char *list = xstrdup("");
	for (size_t k = 0; k < x->leaves.n; k++)
		leaf[x->leaves.term[k]] = 1;
	for (size_t k = 0; k < c->nclass; k++) {
		uint32_t term = x->term[k];
		if (term == TERM_NONE || leaf[term] || told[term])
			continue;
		told[term] = 1;
		if (n++ < LISTED)
			xappend(&list, "%s'%.80s'", n > 1 ? ", " : "", c->classes.name[k]);
	}
	xappend(&list, "%s", n > LISTED ? ", ..." : "");
	if (n)
		info("%s: column '%s': %s %s finer labels below %s: a cell of %s is predicted as one of these", t->source.name, c->name,
			list, n == 1 ? "has" : "have", n == 1 ? "it" : "them", n == 1 ? "it" : "them");
}

/* The last of these objectives writes the terms of all: they have read the same file. */
static void add_file(struct objective *o, struct train *t)
{
	const struct hce *x = o->state;
	FREED uint8_t *chosen = xcalloc(x->ontology->n, 1);
	for (const struct objective *other = t->objectives.one; other < t->objectives.one + t->objectives.n; other++) {
		const struct hce *y = other->state;
		if (other->kind != o->kind)
			continue;
		if (other > o)
			return;
		for (size_t v = 0; v < x->ontology->n; v++)
			chosen[v] |= y->leaves.kept[v];
	}
	ontology_add_namesakes(x->ontology, chosen); /* scpredict cells --node must find what the same name means here */
	train_add_file(t, o, ontology_print(x->ontology, chosen));
}

static void open_terms(struct objective *o, struct train *t)
{
	struct hce *x = o->state;
	const struct objective *first = t->objectives.one;
	while (first->kind != o->kind)
		first++;
	if (first == o && ontology_load(&x->own, x->path, &failure))
		die("--ontology: %s", failure.msg);
	x->ontology = &((const struct hce *)first->state)->own;
	label_column_open(&x->column, t);
	find_terms(x);
	report_unknown(x, t);
	find_leaves(x, t);
	report_above(x, t);
	FREED char *text = ontology_print(x->ontology, x->leaves.kept);
	digest_bytes(text, strlen(text), x->digest);
	add_file(o, t);
	o->head.nlabel = (uint32_t)x->leaves.n;
	o->head.label = x->label;
	o->head.nset = (uint32_t)x->ontology->n;
	o->head.set = x->leaves.set;
	o->head.over_all = !x->known;
}

/* The terms that the model in dir knows. */
static void hce_eval_open(struct objective *o, const char *dir, const struct masked_source *s)
{
	struct hce *x = o->state;
	FREED char *path = xasprintf("%s/%s", dir, o->kind->file);
	must(ontology_load(&x->own, path, &failure));
	x->ontology = &x->own;
	if (leaves_of(&x->leaves, x->ontology, o->head.label, o->head.nlabel, &failure))
		die("%s: %s of the head '%s'", path, failure.msg, objective_name(o));
	label_column_eval(&x->column, o, 0, s);
	o->head.nset = (uint32_t)x->ontology->n;
	o->head.set = x->leaves.set;
}

static void hce_settings(const struct objective *o, cJSON *j)
{
	const struct hce *x = o->state;
	FREED char *name = xasprintf("loss of %s", x->column.name),
		   *text = xasprintf("hce, mean %s, ontology %s", x->known ? "known" : "all", x->digest);
	cJSON_AddStringToObject(j, name, text);
}

/* A cell without a label, with one that is no term of the pruned ontology, or without the token that the head reads has no target. */
static void label_cells(struct objective *o, const struct masked_source *s, struct packed *p, const struct block *b, size_t from, size_t to)
{
	struct hce *x = o->state;
	grow(x->of, x->of_cap, to - from);
	for (size_t i = from; i < to; i++) {
		uint32_t y = labels_at(&x->column.labels[s->validation], b, i);
		find_terms(x);
		uint32_t term = y == MISSING_CODE ? TERM_NONE : x->term[y];
		x->of[i - from] = term != TERM_NONE && x->leaves.kept[term] && cell_has_token(o, p, i - from) ? term : ROW_NONE;
	}
	p->b.goal[o->index] = (struct goal){.target = x->of};
}

const struct objective_kind hce_objective = {
	.name = "cells",
	.head = &head_hce,
	.input = INPUT_TOKENS,
	.counted = "labels",
	.file = "ontology.obo",
	.size = sizeof(struct hce),
	.open = open_terms,
	.settings = hce_settings,
	.label = label_cells,
	.eval_open = hce_eval_open,
};

struct objective *hce_add(struct objectives *list, const char *column, const char *path, int known)
{
	struct objective *o = objective_add(list, &hce_objective, column);
	struct hce *x = o->state;
	x->column.name = column;
	x->path = path;
	x->known = known;
	return o;
}
