/*
 * sctrain value: predict the expression value at each masked position, from a stream of maskgen --objective value. There are two kinds.
 * Of tokens with ranks the model sees which gene is masked, but not its rank: one number by mean squared error. Of tokens with counts the
 * values are input, and that of a masked gene, the gene, or both are hidden: is it 0, and how large is it if not [BMFM-RNA].
 */
#include "sctrain.h"

const struct objective_kind expression_objective = {
	.name = "value", .head = &head_expression, .input = INPUT_VALUES, .counted = "masked", .settings = objective_add_losses};

const struct objective_kind value_objective = {
	.name = "value", .head = &head_value, .input = INPUT_VALUES, .valued = &expression_objective, .counted = "masked"};

const struct train_task value_task = {
	.name = "sctrain value",
	.summary = "Pre-train a model to predict the expression of masked genes.",
	.config = "corrmask-paper",
	.optim = OPTIM_TRANSFORMER(1e-3),
	.best = BEST_LOSS,
	.objective = &value_objective,
};
