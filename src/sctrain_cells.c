/*
 * sctrain cells: one label a cell, from its first position [Geneformer's cell classification: BertForSequenceClassification].
 * The classes and how often they occur stand in the header of the stream (maskgen --strategy none --keep COL), so they are known
 * before the first batch. Class numbers follow the names in byte order.
 */
#include "sctrain.h"

#include "label.h"

#include <stdlib.h>
#include <string.h>

enum { WEIGHT_NONE, WEIGHT_BALANCED };

static const char *column;
static int class_weight;
static double focal;

static struct option_def options[] = {
	{.name = "label", .kind = OPT_STRING, .to = &column, .arg = "COL", .changes = 1, .help = "the column that holds the classes (required)"},
	{.name = "class-weight", .kind = OPT_CHOICE, .to = &class_weight, .arg = "none|balanced", .changes = 1,
	 .help = "weights of the classes in the loss: all 1 (default), or the rarer the heavier"},
	{.name = "focal", .kind = OPT_REAL, .to = &focal, .arg = "GAMMA", .max = 100, .changes = 1,
	 .help = "focal loss: cells that are predicted well count less (default 0: cross-entropy)"},
	{0},
};

static struct classes classes;          /* those of the training, first; others that --eval shows come behind */
static size_t nclass;
static double *count;                   /* [nclass] cells of an epoch; NULL: not known */
static struct labels labels[2];         /* of the training stream, of --eval */
static int32_t *label;
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

/* From the header's counts; a stream that has none may still have a categorical column. */
static void read_classes(const struct train *t)
{
	const cJSON *all = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(t->header->extra, "loader"), "classes");
	const cJSON *names = cJSON_GetObjectItemCaseSensitive(all, column);
	const struct column_spec *spec = labels[0].spec;
	double labelled = 0;
	if (cJSON_IsObject(names)) {
		count = xcalloc((size_t)cJSON_GetArraySize(names), sizeof *count);
		for (const cJSON *x = names->child; x; x = x->next) {
			if (!cJSON_IsNumber(x) || !(x->valuedouble > 0))
				die("%s: header: loader.classes: expected numbers of cells above 0", stream_name(t->in));
			add_class(x->string, x->valuedouble);
			labelled += x->valuedouble;
		}
	} else if (spec->type == CATEGORICAL && !all) {
		for (size_t i = 0; i < spec->ncategory; i++)
			add_class(spec->category[i], 0);
	} else {
		die("%s: the header does not say which classes '%s' has: %s", stream_name(t->in), column,
		    all ? "maskgen counts up to 4096; a column of more is no label" : "make the stream with maskgen --strategy none --keep");
	}
	nclass = classes.n;
	if (nclass == 0)
		die("%s: no cell has a label in column '%s'", stream_name(t->in), column);
	if (nclass == 1)
		die("%s: all cells with a label in column '%s' are '%s': there is nothing to tell apart", stream_name(t->in), column,
		    classes.name[0]);
	if (count && 2 * (double)nclass > labelled)
		die("%s: column '%s' has %zu classes for %.0f cells: expected two cells a class at least", stream_name(t->in), column, nclass,
		    labelled);
	if (count && labelled < (double)t->loader.rows)
		warn("%.0f of %llu cells have no label in column '%s': they are left out", (double)t->loader.rows - labelled,
		     (unsigned long long)t->loader.rows, column);
}

static void open_labels(struct train *t, struct model_config *c)
{
	struct error e;
	if (header_find(t->header, column) < 0)
		die("%s: no column '%s': make the stream with maskgen --strategy none --keep %s", stream_name(t->in), column, column);
	if (labels_init(&labels[0], t->header, column, &classes, stream_name(t->in), &e))
		die("%s", e.msg);
	read_classes(t);
	if (t->held.in && labels_init(&labels[1], stream_header(t->held.in), column, &classes, stream_name(t->held.in), &e))
		die("--eval: %s", e.msg);
	c->num_labels = (uint32_t)nclass;
	c->label = classes.name;
}

static void ready(struct train *t)
{
	model_focal(t->model, focal);
	if (class_weight == WEIGHT_NONE)
		return;
	if (!count)
		die("--class-weight balanced: %s does not say how many cells the classes have: make it with maskgen --strategy none --keep %s",
		    stream_name(t->in), column);
	real *w = xcalloc(nclass, sizeof *w);
	double labelled = 0;
	for (size_t k = 0; k < nclass; k++)
		labelled += count[k];
	for (size_t k = 0; k < nclass; k++)     /* as scikit-learn's "balanced" */
		w[k] = (real)(labelled / ((double)nclass * count[k]));
	model_class_weight(t->model, w);
	free(w);
}

static void settings(const struct train *t, cJSON *j)
{
	cJSON_AddStringToObject(j, "label", column);
	cJSON_AddStringToObject(j, "class-weight", class_weight ? "balanced" : "none");
	cJSON_AddNumberToObject(j, "focal", focal);
}

/* A cell without tokens has no first position to look at. */
static void label_cells(struct train *t, int held, struct packed *p, const struct block *b, size_t from, size_t to)
{
	grow(label, label_cap, to - from);
	for (size_t i = from; i < to; i++) {
		uint32_t y = label_at(&labels[held], b, i);
		label[i - from] = y < nclass && p->offset[i - from + 1] > p->offset[i - from] ? (int32_t)y : -1;
	}
	p->b.label = label;
}

static const struct train_task cells = {
	.task = TASK_CELLS, .name = "sctrain cells", .summary = "Fine-tune a model to tell cells apart by a label.", .options = options,
	.lr = 5e-5, .warmup = 500, .check = check, .open = open_labels, .ready = ready, .settings = settings, .label = label_cells,
};

int cells_main(int argc, char **argv)
{
	return train_main(&cells, argc, argv);
}
