/*
 * sctrain value: predict the expression value at each masked position, from a stream of maskgen --objective value. There are two kinds.
 * Of tokens with ranks the model sees which gene is masked, but not its rank: one number by mean squared error. Of tokens with counts the
 * values are input, and that of a masked gene, the gene, or both are hidden: is it 0, and how large is it if not [BMFM-RNA].
 */
#include "sctrain.h"

static double is_zero = -1;

static struct option_def options[] = {
	{0, "Losses", OPT_GROUP},
	{0, "is-zero", OPT_REAL, &is_zero, "W",
		"values as input: weight of cross-entropy, whether a gene is 0, beside the squared error of the others (default 1.5)", 0,
		1e6, .changes = 1},
	{0},
};

static double weight[] = {1.5, 1};

static void settings(const struct objective *o, cJSON *j)
{
	objective_add_losses(o, j);
}

static void check_options(struct objective *o, struct train *t)
{
	if (is_zero >= 0)
		die("--is-zero: %s has no values as input, so there is one loss", t->source.name);
}

static void open_stream(struct objective *o, struct train *t)
{
	weight[0] = is_zero < 0 ? weight[0] : is_zero;
	o->head.part = weight;
}

const struct objective_kind expression_objective = {
	.name = "value", .head = &head_expression, .input = INPUT_VALUES, .counted = "masked", .open = open_stream, .settings = settings};

const struct objective_kind value_objective = {.name = "value",
	.head = &head_value,
	.input = INPUT_VALUES,
	.valued = &expression_objective,
	.counted = "masked",
	.open = check_options};

static void objectives(struct objectives *list)
{
	objective_add(list, &value_objective, NULL);
}

static const struct train_task task = {
	.name = "sctrain value",
	.summary = "Pre-train a model to predict the expression of masked genes.",
	.options = options,
	.config = "corrmask-paper",
	.optim = OPTIM_TRANSFORMER(1e-3),
	.best = BEST_LOSS,
	.objectives = objectives,
};

int sctrain_value(int argc, char **argv)
{
	return train_main(&task, argc, argv);
}
