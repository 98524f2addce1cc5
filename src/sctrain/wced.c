/*
 * sctrain wced: predict the expression of the whole cell from its first token [BMFM-RNA, whole-cell expression decoder]. The stream is of
 * maskgen --objective cell: genes are left out of the input, and all genes that were measured are the targets.
 */
#include "sctrain.h"

static double all = -1, input = -1, other = -1, is_zero = -1;

static struct option_def options[] = {
	{0, "Losses", OPT_GROUP},
	{0, "all-genes", OPT_REAL, &all, "W", "weight of the losses of all genes (default 1)", 0, 1e6, .changes = 1},
	{0, "input-genes", OPT_REAL, &input, "W", "weight of the losses of the genes in the input (default 0)", 0, 1e6, .changes = 1},
	{0, "other-genes", OPT_REAL, &other, "W", "weight of the losses of the other genes (default 0)", 0, 1e6, .changes = 1},
	{0, "is-zero", OPT_REAL, &is_zero, "W",
		"weight of cross-entropy, whether a gene is 0, beside the squared error of the others (default 1)", 0, 1e6, .changes = 1},
	{0},
};

static double weight[PARTS_MAX];

static void settings(const struct objective *o, cJSON *j)
{
	objective_add_losses(o, j);
}

const struct objective_kind wced_objective = {
	.name = "wced", .head = &head_wced, .input = INPUT_CELLS, .counted = "genes", .settings = settings};

static void objectives(struct objectives *list)
{
	const double of[] = {all < 0 ? 1 : all, input < 0 ? 0 : input, other < 0 ? 0 : other};
	double sum = 0;
	for (size_t i = 0; i < PARTS_MAX; i++) {
		weight[i] = of[i / 2] * (i % 2 || is_zero < 0 ? 1 : is_zero);
		sum += weight[i];
	}
	if (!(sum > 0))
		usage_error("--all-genes, --input-genes and --other-genes are all 0: there is nothing to learn");
	objective_add(list, &wced_objective, NULL)->head.part = weight;
}

static const struct train_task task = {
	.name = "sctrain wced",
	.summary = "Pre-train a model to predict the expression of the whole cell.",
	.options = options,
	.config = "bmfm-47m",
	.optim = OPTIM_TRANSFORMER(1e-4),
	.best = BEST_LOSS,
	.objectives = objectives,
};

int sctrain_wced(int argc, char **argv)
{
	return train_main(&task, argc, argv);
}
