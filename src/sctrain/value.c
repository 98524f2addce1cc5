/*
 * sctrain value: predict the expression value at each masked position, by mean squared error. The stream is of maskgen --objective value: the
 * model sees which gene is masked, but not its rank.
 */
#include "sctrain.h"

const struct objective_kind value_objective = {.name = "value", .head = &head_value, .input = INPUT_VALUES, .counted = "masked"};

static void objectives(struct objectives *list)
{
	objective_add(list, &value_objective, NULL);
}

static const struct train_task task = {
	.name = "sctrain value",
	.summary = "Pre-train a model to predict the expression of masked genes.",
	.config = "corrmask-paper",
	.optim = OPTIM_TRANSFORMER(1e-3),
	.best = BEST_LOSS,
	.objectives = objectives,
};

int sctrain_value(int argc, char **argv)
{
	return train_main(&task, argc, argv);
}
