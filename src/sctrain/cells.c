/*
 * sctrain cells: predict columns of the cells, labels [Geneformer's cell classification] and numbers, and nothing else. Each column is an
 * objective of its own (heads.h).
 */
#include "heads.h"

#include "base/option.h"

static struct opt_values label;
static int class_weight;

static struct option_def options[] = {
	{0, "Columns", OPT_GROUP},
	{0, "label", OPT_LIST, &label, "COL", "a column of classes to predict (repeatable)", .changes = 1},
	{0, "class-weight", OPT_CHOICE, &class_weight, OPT_WORDS(class_weights),
		"weight of a class in the loss: 1 (default), or inversely proportional to its number of cells", .changes = 1},
	{0},
};

static void objectives(struct objectives *list)
{
	size_t n = label.n + head_option.n;
	if (!n)
		usage_error("no column to predict: --label COL, or --head COL:LOSS");
	for (size_t i = 0; i < label.n; i++) /* a label alone: its model is one that transformers knows, without names of ours */
		label_add(list, n == 1 ? NULL : label.item[i], &(struct label_options){label.item[i], class_weight, 0, 0});
}

const struct train_task cells_task = {
	.name = "sctrain cells",
	.summary = "Fine-tune a model to predict labels or numbers of cells.",
	.options = options,
	.balanced = &class_weight,
	.config = "corrmask-paper",
	.optim = OPTIM_TRANSFORMER(5e-5),
	.warmup = 500,
	.best = BEST_LOSS,
	.objectives = objectives,
};
