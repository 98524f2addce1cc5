/* sctrain mlm: masked language modelling. The stream has the masked positions and their targets. */
#include "sctrain.h"

const struct objective_kind mlm_objective = {.name = "mlm", .head = &head_mlm, .input = INPUT_TOKENS, .counted = "masked"};

static void objectives(struct objectives *list)
{
	objective_add(list, &mlm_objective, NULL);
}

static const struct train_task task = {
	.name = "sctrain mlm",
	.summary = "Pre-train a model on a masked stream.",
	.config = "corrmask-paper",
	.optim = OPTIM_TRANSFORMER(1e-3),
	.best = BEST_LOSS,
	.objectives = objectives,
};

int sctrain_mlm(int argc, char **argv)
{
	return train_main(&task, argc, argv);
}
