/*
 * One label for each cell [Geneformer's cell classification: BertForSequenceClassification]. The stream's header says which classes there are and
 * how many cells each has (maskgen --strategy none --keep COL), so they are known before the first batch. Classes are numbered in the byte order
 * of their names.
 */
#include "heads.h"
#include "cli_labels.h"

#include "base/json.h"
#include "base/tsv.h"

const char *const class_weights[] = {"none", "balanced"};

struct label {
	struct label_options set;
	struct label_column column;
	uint32_t *of; /* [cells of the batch] */
	size_t of_cap;
};

/* ---- a column of labels ---- */

/* Read the classes from the counts in the header. The categories of the column are no classes: some can be those of other cells. */
static void read_classes(struct label_column *c, const struct train *t)
{
	const cJSON *all = masked_value(t->header, "classes");
	const cJSON *names = json_get(all, c->name);
	if (!cJSON_IsObject(names))
		die("%s: the header does not say which classes '%s' has: %s%s", t->source.name, c->name,
			all ? "it has more than the 4096 classes that maskgen counts" : "make the stream with maskgen --count-kept --keep ",
			all ? "" : c->name);
	c->count = xcalloc((size_t)cJSON_GetArraySize(names), sizeof *c->count);
	RELEASED(labels_release) struct labels l = {.classes = &c->classes, .rule = label_rule()};
	for (const cJSON *x = names->child; x; x = x->next) {
		if (!cJSON_IsNumber(x) || !(x->valuedouble > 0))
			die("%s: header: loader.classes: expected numbers of cells above 0", t->source.name);
		FREED char *shown = tsv_escaped(x->string);
		if (!*x->string || strpbrk(x->string, "\t\r\n"))
			die("column '%s': the name of class '%s' is empty or has a tab or line break", c->name, shown);
		size_t had = c->classes.n, k = labels_name(&l, x->string, strlen(x->string), (uint64_t)x->valuedouble);
		if (k == had)
			c->count[k] = x->valuedouble;
	}
	c->nclass = c->classes.n;
	c->labelled = (double)l.cells;
	l.empty = t->info.rows - (t->info.rows < l.cells + l.aside ? t->info.rows : l.cells + l.aside);
	labels_read(&l, c->name, t->source.name, "teach its head nothing");
}

void label_column_open(struct label_column *c, struct train *t)
{
	const struct masked_source *v = &t->validation.source;
	must(labels_name_check(t->header, c->name, t->source.name, &failure));
	if (header_find(t->header, c->name) < 0)
		die("%s: no column '%s': make the stream with maskgen %s %s", t->source.name, c->name, heads_keep(t), c->name);
	labels_open(&c->labels[0], t->header, c->name, &c->classes, t->source.name);
	read_classes(c, t);
	if (v->in && labels_init(&c->labels[1], stream_header(v->in), c->name, &c->classes, label_rule(), v->name, &failure))
		die("--eval: %s", failure.msg);
}

void label_column_eval(struct label_column *c, const struct objective *o, size_t n, const struct masked_source *s)
{
	enum label_rule rule = LABEL_WORDS_ASIDE;
	c->name = o->head.column;
	c->nclass = n;
	for (size_t k = 0; k < n; k++) {
		classes_add(&c->classes, o->head.label[k], strlen(o->head.label[k]));
		if (label_is_none(o->head.label[k], strlen(o->head.label[k])))
			rule = LABEL_WORDS_KEPT; /* as in training */
	}
	must(labels_init(&c->labels[s->validation], stream_header(s->in), c->name, &c->classes, rule, s->name, &failure));
}

/* ---- the objective ---- */

static void check_classes(const struct label_column *c, const struct train *t)
{
	const char *name = t->source.name;
	if (c->nclass == 1)
		die("%s: all cells with a label in column '%s' are '%s': there is nothing to tell apart", name, c->name,
			c->classes.name[0]);
	if (2 * (double)c->nclass > c->labelled)
		die("%s: column '%s' has %zu classes for %.0f cells: expected at least two cells for each class", name, c->name, c->nclass,
			c->labelled);
}

static void open_labels(struct objective *o, struct train *t)
{
	struct label_column *c = &((struct label *)o->state)->column;
	label_column_open(c, t);
	check_classes(c, t);
	o->head.nlabel = (uint32_t)c->nclass;
	o->head.label = c->classes.name;
}

static void label_eval_open(struct objective *o, const char *dir, const struct masked_source *s)
{
	(void)dir;
	label_column_eval(&((struct label *)o->state)->column, o, o->head.nlabel, s);
}

static void ready(struct objective *o, struct train *t)
{
	const struct label *l = o->state;
	const struct label_column *c = &l->column;
	head_class_focal(t->model, o->index, l->set.focal);
	if (!l->set.balanced)
		return;
	FREED real *w = xcalloc(c->nclass, sizeof *w);
	for (size_t k = 0; k < c->nclass; k++) /* as scikit-learn's "balanced" */
		w[k] = (real)(c->labelled / ((double)c->nclass * c->count[k]));
	head_class_weight(t->model, o->index, w);
}

/* The names of further columns are in the configuration; those of --label have the losses of the first. */
static void label_settings(const struct objective *o, cJSON *j)
{
	const struct label *l = o->state;
	if (o->index) {
		FREED char *name = xasprintf("loss of %s", l->set.column);
		FREED char *text = xasprintf("class-weight %s, focal %g", class_weights[l->set.balanced], l->set.focal);
		if (l->set.own)
			cJSON_AddStringToObject(j, name, text);
		return;
	}
	cJSON_AddStringToObject(j, "label", l->set.column);
	cJSON_AddStringToObject(j, "class-weight", class_weights[l->set.balanced]);
	cJSON_AddNumberToObject(j, "focal", l->set.focal);
}

/* A cell without the token that the head reads has no target. */
static void label_cells(struct objective *o, const struct masked_source *s, struct packed *p, const struct block *b, size_t from, size_t to)
{
	struct label *l = o->state;
	grow(l->of, l->of_cap, to - from);
	for (size_t i = from; i < to; i++) {
		uint32_t y = labels_at(&l->column.labels[s->validation], b, i);
		l->of[i - from] = y < l->column.nclass && cell_has_token(o, p, i - from) ? y : ROW_NONE;
	}
	p->b.goal[o->index] = (struct goal){.target = l->of};
}

const struct objective_kind label_objective = {
	.name = "cells",
	.head = &head_cells,
	.input = INPUT_TOKENS,
	.counted = "labels",
	.size = sizeof(struct label),
	.open = open_labels,
	.ready = ready,
	.settings = label_settings,
	.label = label_cells,
	.eval_open = label_eval_open,
};

struct objective *label_add(struct objectives *list, const char *name, const struct label_options *options)
{
	struct objective *o = objective_add(list, &label_objective, name);
	o->what = options->column;
	struct label *l = o->state;
	l->set = *options;
	l->column.name = options->column;
	return o;
}
