/* sctrain mlm: masked language modelling. The stream has the masked positions and their targets. */
#include "sctrain.h"

const struct objective_kind mlm_objective = {.name = "mlm", .head = &head_mlm, .input = INPUT_TOKENS, .counted = "masked"};

const struct train_task mlm_task = {
	.name = "sctrain mlm",
	.summary = "Pre-train a model on a masked stream.",
	.config = "corrmask-paper",
	.optim = OPTIM_TRANSFORMER(1e-3),
	.best = BEST_LOSS,
	.objective = &mlm_objective,
};
