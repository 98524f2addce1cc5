/*
 * sctrain cells: predict columns of the cells, labels [Geneformer's cell classification] and numbers, and nothing else. Each column is an
 * objective of its own (heads.h).
 */
#include "heads.h"

static struct opt_values label, target;
static int class_weight;
static double focal;

static struct option_def options[] = {
	{0, "Columns", OPT_GROUP},
	{0, "label", OPT_LIST, &label, "COL", "a column of classes to predict; repeat it for several", .changes = 1},
	{0, "target", OPT_LIST, &target, "COL", "a column of numbers to predict, by squared error; repeat it for several", .changes = 1},
	{0, "class-weight", OPT_CHOICE, &class_weight, OPT_WORDS(class_weights),
		"weight of a class in the loss: 1 (default), or inversely proportional to its number of cells", .changes = 1},
	{0, "focal", OPT_REAL, &focal, "GAMMA", "focal loss: cells that are predicted well have less weight (default 0: cross-entropy)", 0,
		100, .changes = 1},
	{0},
};

static void objectives(struct objectives *list)
{
	size_t n = label.n + target.n + head_option.n;
	if (!n)
		usage_error("no label: --label COL");
	if (!label.n)
		refuse("needs --label COL", &focal);
	for (size_t i = 0; i < label.n; i++) /* a label alone: its model is one that transformers knows, without names of ours */
		label_add(list, n == 1 ? NULL : label.item[i], &(struct label_options){label.item[i], class_weight, focal, 0});
	for (size_t i = 0; i < target.n; i++)
		number_add(list, target.item[i]);
}

static const struct train_task task = {
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

int sctrain_cells(int argc, char **argv)
{
	return train_main(&task, argc, argv);
}
