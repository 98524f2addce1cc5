/* sctrain mlm: masked language modelling. The stream has the masked positions and their targets. */
#include "sctrain.h"

const struct train_task mlm_task = {
	.head = &head_mlm,
	.name = "sctrain mlm",
	.summary = "Pre-train a model on a masked stream.",
	.config = "corrmask-paper",
	.optim = OPTIM_TRANSFORMER(1e-3),
	.best = BEST_LOSS,
	.counted = "masked",
};

int mlm_main(int argc, char **argv)
{
	return train_main(&mlm_task, argc, argv);
}
