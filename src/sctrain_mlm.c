/* sctrain mlm: masked language modelling. Masked positions and their targets are the stream's. */
#include "sctrain.h"

static const struct train_task mlm = {
	.task = TASK_MLM, .name = "sctrain mlm", .summary = "Pre-train a model on a masked stream.", .lr = 1e-3,
};

int mlm_main(int argc, char **argv)
{
	return train_main(&mlm, argc, argv);
}
