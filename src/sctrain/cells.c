/*
 * sctrain cells: predict one label for each cell, from its first position [Geneformer's cell classification:
 * BertForSequenceClassification]. The stream's header says which classes there are and how many cells each has (maskgen --strategy
 * none --keep COL), so they are known before the first batch. Classes are numbered in the byte order of their names.
 */
#include "sctrain.h"

#include "label/label.h"

#include <stdlib.h>
#include <string.h>

enum { WEIGHT_NONE, WEIGHT_BALANCED };

static const char *column;
static int class_weight;
static double focal;

static struct option_def options[] = {
	{0, "Classes", OPT_GROUP},
	{0, "label", OPT_STRING, &column, "COL", "the column that holds the classes (required)", .changes = 1},
	{0, "class-weight", OPT_CHOICE, &class_weight, "none|balanced",
		"weight of a class in the loss: 1 (default), or inversely proportional to its number of cells", .changes = 1},
	{0, "focal", OPT_REAL, &focal, "GAMMA", "focal loss: cells that are predicted well have less weight (default 0: cross-entropy)", 0,
		100, .changes = 1},
	{0},
};

static struct classes classes; /* the classes in training, then those that only --eval has */
static size_t nclass;
static double *count;           /* [nclass] cells per epoch; NULL: not known */
static struct labels labels[2]; /* of the training stream, of --eval */
static uint32_t *label;
static size_t label_cap;

static void check(void)
{
	if (!column)
		usage_error("no label: --label COL");
}

static void add_class(const char *name, double n)
{
	size_t had = classes.n;
	if (!*name || strpbrk(name, "\t\r\n"))
		die("--label %s: the name of class %zu is empty or has a tab or line break", column, had);
	if (classes_add(&classes, name, strlen(name)) == had && count)
		count[had] = n;
}

/* Read the classes from the counts in the header. A stream without counts can have a categorical column instead. */
static void read_classes(const struct train *t)
{
	const cJSON *all = masked_value(t->header, "classes");
	const cJSON *names = cJSON_GetObjectItemCaseSensitive(all, column);
	const struct column_spec *spec = labels[0].spec;
	double labelled = 0;
	if (cJSON_IsObject(names)) {
		count = xcalloc((size_t)cJSON_GetArraySize(names), sizeof *count);
		for (const cJSON *x = names->child; x; x = x->next) {
			if (!cJSON_IsNumber(x) || !(x->valuedouble > 0))
				die("%s: header: loader.classes: expected numbers of cells above 0", t->source.name);
			add_class(x->string, x->valuedouble);
			labelled += x->valuedouble;
		}
	} else if (spec->type == CATEGORICAL && !all) {
		for (size_t i = 0; i < spec->ncategory; i++)
			add_class(spec->category[i], 0);
	} else {
		die("%s: the header does not say which classes '%s' has: %s", t->source.name, column,
			all ? "it has more than the 4096 classes that maskgen counts"
			    : "make the stream with maskgen --strategy none --keep");
	}
	nclass = classes.n;
	if (nclass == 0)
		die("%s: no cell has a label in column '%s'", t->source.name, column);
	if (nclass == 1)
		die("%s: all cells with a label in column '%s' are '%s': there is nothing to tell apart", t->source.name, column,
			classes.name[0]);
	if (count && 2 * (double)nclass > labelled)
		die("%s: column '%s' has %zu classes for %.0f cells: expected at least two cells for each class", t->source.name, column,
			nclass, labelled);
	if (count && labelled < (double)t->info.rows)
		warn("%.0f of %llu cells have no label in column '%s': they are left out", (double)t->info.rows - labelled,
			(unsigned long long)t->info.rows, column);
}

static void open_labels(struct train *t)
{
	struct error e;
	if (header_find(t->header, column) < 0)
		die("%s: no column '%s': make the stream with maskgen --strategy none --keep %s", t->source.name, column, column);
	if (labels_init(&labels[0], t->header, column, &classes, t->source.name, &e))
		die("%s", e.msg);
	read_classes(t);
	const struct masked_source *v = &t->validation.source;
	if (v->in && labels_init(&labels[1], stream_header(v->in), column, &classes, v->name, &e))
		die("--eval: %s", e.msg);
	t->head.nlabel = (uint32_t)nclass;
	t->head.label = classes.name;
}

static void ready(struct train *t)
{
	head_class_focal(t->model, 0, focal);
	if (class_weight == WEIGHT_NONE)
		return;
	if (!count)
		die("--class-weight balanced: %s does not say how many cells the classes have: make it with maskgen --strategy none --keep %s",
			t->source.name, column);
	real *w = xcalloc(nclass, sizeof *w);
	double labelled = 0;
	for (size_t k = 0; k < nclass; k++)
		labelled += count[k];
	for (size_t k = 0; k < nclass; k++) /* as scikit-learn's "balanced" */
		w[k] = (real)(labelled / ((double)nclass * count[k]));
	head_class_weight(t->model, 0, w);
	free(w);
}

static void settings(const struct train *t, cJSON *j)
{
	cJSON_AddStringToObject(j, "label", column);
	cJSON_AddStringToObject(j, "class-weight", class_weight ? "balanced" : "none");
	cJSON_AddNumberToObject(j, "focal", focal);
}

/* A cell without tokens has no first position, so it has no target. */
static size_t label_cells(const struct masked_source *s, struct packed *p, const struct block *b, size_t from, size_t to)
{
	grow(label, label_cap, to - from);
	for (size_t i = from; i < to; i++) {
		uint32_t y = labels_at(&labels[s->validation], b, i);
		label[i - from] = y < nclass && p->offset[i - from + 1] > p->offset[i - from] ? y : ROW_NONE;
	}
	p->b.goal[0] = (struct goal){.target = label};
	return to - from;
}

static const struct train_task cells = {
	.head = &head_cells,
	.name = "sctrain cells",
	.summary = "Fine-tune a model to classify cells by a label.",
	.options = options,
	.config = "corrmask-paper",
	.optim = OPTIM_TRANSFORMER(5e-5),
	.warmup = 500,
	.best = BEST_LOSS,
	.counted = "labels",
	.check = check,
	.open = open_labels,
	.ready = ready,
	.settings = settings,
	.label = label_cells,
};

int cells_main(int argc, char **argv)
{
	return train_main(&cells, argc, argv);
}
