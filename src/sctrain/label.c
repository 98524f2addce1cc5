/*
 * One label for each cell [Geneformer's cell classification: BertForSequenceClassification]. The stream's header says which classes there are and
 * how many cells each has (maskgen --strategy none --keep COL), so they are known before the first batch. Classes are numbered in the byte order
 * of their names.
 */
#include "cells.h"

#include "label/label.h"

#include <stdlib.h>
#include <string.h>

struct label {
	struct label_options set;
	struct classes classes; /* the classes in training, then those that only --eval has */
	size_t nclass;
	double *count;           /* [nclass] cells per epoch; NULL: not known */
	struct labels labels[2]; /* of the training stream, of --eval */
	uint32_t *of;            /* [cells of the batch] */
	size_t of_cap;
};

static void add_class(struct label *l, const char *name, double n)
{
	size_t had = l->classes.n;
	if (!*name || strpbrk(name, "\t\r\n"))
		die("--label %s: the name of class %zu is empty or has a tab or line break", l->set.column, had);
	if (classes_add(&l->classes, name, strlen(name)) == had && l->count)
		l->count[had] = n;
}

static void check_classes(const struct label *l, const struct train *t, double labelled)
{
	const char *name = t->source.name, *column = l->set.column;
	if (l->nclass == 0)
		die("%s: no cell has a label in column '%s'", name, column);
	if (l->nclass == 1)
		die("%s: all cells with a label in column '%s' are '%s': there is nothing to tell apart", name, column, l->classes.name[0]);
	if (l->count && 2 * (double)l->nclass > labelled)
		die("%s: column '%s' has %zu classes for %.0f cells: expected at least two cells for each class", name, column, l->nclass,
			labelled);
	if (l->count && labelled < (double)t->info.rows)
		warn("%.0f of %llu cells have no label in column '%s': they are left out", (double)t->info.rows - labelled,
			(unsigned long long)t->info.rows, column);
}

/* Read the classes from the counts in the header. A stream without counts can have a categorical column instead. */
static void read_classes(struct label *l, const struct train *t)
{
	const cJSON *all = masked_value(t->header, "classes");
	const cJSON *names = cJSON_GetObjectItemCaseSensitive(all, l->set.column);
	const struct column_spec *spec = l->labels[0].spec;
	double labelled = 0;
	if (cJSON_IsObject(names)) {
		l->count = xcalloc((size_t)cJSON_GetArraySize(names), sizeof *l->count);
		for (const cJSON *x = names->child; x; x = x->next) {
			if (!cJSON_IsNumber(x) || !(x->valuedouble > 0))
				die("%s: header: loader.classes: expected numbers of cells above 0", t->source.name);
			add_class(l, x->string, x->valuedouble);
			labelled += x->valuedouble;
		}
	} else if (spec->type == CATEGORICAL && !all) {
		for (size_t i = 0; i < spec->ncategory; i++)
			add_class(l, spec->category[i], 0);
	} else {
		die("%s: the header does not say which classes '%s' has: %s", t->source.name, l->set.column,
			all ? "it has more than the 4096 classes that maskgen counts"
			    : "make the stream with maskgen --strategy none --keep");
	}
	l->nclass = l->classes.n;
	check_classes(l, t, labelled);
}

static void open_labels(struct objective *o, struct train *t)
{
	struct label *l = o->state;
	struct error e;
	const char *column = l->set.column;
	if (header_find(t->header, column) < 0)
		die("%s: no column '%s': make the stream with maskgen --strategy none --keep %s", t->source.name, column, column);
	must(labels_init(&l->labels[0], t->header, column, &l->classes, t->source.name, &e), &e);
	read_classes(l, t);
	const struct masked_source *v = &t->validation.source;
	if (v->in && labels_init(&l->labels[1], stream_header(v->in), column, &l->classes, v->name, &e))
		die("--eval: %s", e.msg);
	o->head.nlabel = (uint32_t)l->nclass;
	o->head.label = l->classes.name;
}

static void ready(struct objective *o, struct train *t)
{
	const struct label *l = o->state;
	head_class_focal(t->model, o->index, l->set.focal);
	if (!l->set.balanced)
		return;
	if (!l->count)
		die("--class-weight balanced: %s does not say how many cells the classes have: make it with maskgen --strategy none --keep %s",
			t->source.name, l->set.column);
	real *w = xcalloc(l->nclass, sizeof *w);
	double labelled = 0;
	for (size_t k = 0; k < l->nclass; k++)
		labelled += l->count[k];
	for (size_t k = 0; k < l->nclass; k++) /* as scikit-learn's "balanced" */
		w[k] = (real)(labelled / ((double)l->nclass * l->count[k]));
	head_class_weight(t->model, o->index, w);
	free(w);
}

/* The names of further columns are in the configuration; those of --label have the losses of the first. */
static void settings(const struct objective *o, cJSON *j)
{
	const struct label *l = o->state;
	if (o->index) {
		char *name = xasprintf("loss of %s", l->set.column);
		char *text = xasprintf("class-weight %s, focal %g", l->set.balanced ? "balanced" : "none", l->set.focal);
		if (l->set.own)
			cJSON_AddStringToObject(j, name, text);
		free(name);
		free(text);
		return;
	}
	cJSON_AddStringToObject(j, "label", l->set.column);
	cJSON_AddStringToObject(j, "class-weight", l->set.balanced ? "balanced" : "none");
	cJSON_AddNumberToObject(j, "focal", l->set.focal);
}

/* A cell without tokens has no first position, so it has no target. */
static void label_cells(struct objective *o, const struct masked_source *s, struct packed *p, const struct block *b, size_t from, size_t to)
{
	struct label *l = o->state;
	grow(l->of, l->of_cap, to - from);
	for (size_t i = from; i < to; i++) {
		uint32_t y = labels_at(&l->labels[s->validation], b, i);
		l->of[i - from] = y < l->nclass && p->offset[i - from + 1] > p->offset[i - from] ? y : ROW_NONE;
	}
	p->b.goal[o->index] = (struct goal){.target = l->of};
}

static void release(struct objective *o)
{
	struct label *l = o->state;
	labels_release(&l->labels[0]);
	labels_release(&l->labels[1]);
	classes_release(&l->classes);
	free(l->count);
	free(l->of);
}

const struct objective_kind label_objective = {
	.name = "cells",
	.head = &head_cells,
	.input = INPUT_TOKENS,
	.counted = "labels",
	.size = sizeof(struct label),
	.open = open_labels,
	.ready = ready,
	.settings = settings,
	.label = label_cells,
	.release = release,
};

struct objective *label_add(struct objectives *list, const char *name, const struct label_options *options)
{
	struct objective *o = objective_add(list, &label_objective, name);
	o->what = options->column;
	((struct label *)o->state)->set = *options;
	return o;
}
