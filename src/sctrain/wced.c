/*
 * sctrain wced: predict the expression of the whole cell from its first token [BMFM-RNA, whole-cell expression decoder]. The stream is of
 * maskgen --objective cell: genes are left out of the input, and all genes that were measured are the targets.
 */
#include "sctrain.h"

const struct objective_kind wced_objective = {
	.name = "wced", .head = &head_wced, .input = INPUT_CELLS, .counted = "genes", .settings = objective_add_losses};

const struct train_task wced_task = {
	.name = "sctrain wced",
	.summary = "Pre-train a model to predict the expression of the whole cell.",
	.config = "bmfm-47m",
	.optim = OPTIM_TRANSFORMER(1e-4),
	.best = BEST_LOSS,
	.objective = &wced_objective,
};
