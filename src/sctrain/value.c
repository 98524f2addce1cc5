/*
 * sctrain value: predict the expression value at each masked position, by mean squared error. The stream is of maskgen --objective value: the
 * model sees which gene is masked, but not its rank.
 */
#include "sctrain.h"

const struct train_task value_task = {
	.head = &head_value,
	.name = "sctrain value",
	.summary = "Pre-train a model to predict the expression of masked genes.",
	.config = "corrmask-paper",
	.optim = OPTIM_TRANSFORMER(1e-3),
	.best = BEST_LOSS,
	.counted = "masked",
};

int value_main(int argc, char **argv)
{
	return train_main(&value_task, argc, argv);
}
