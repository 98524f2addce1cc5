/* sctrain: train or evaluate a model. Each subcommand is in SUBCOMMAND.c. */
#include "sctrain.h"

#include "cli.h"
#include "train/comm.h"

static const struct cli_command commands[] = {
	{"mlm", mlm_main, NULL, "Pre-train a model on a masked stream."},
	{"value", value_main, NULL, "Pre-train a model to predict the expression of masked genes."},
	{"cells", cells_main, NULL, "Fine-tune a model to classify cells by a label."},
	{"genes", genes_main, NULL, "Fine-tune a model to classify genes by a label."},
	{"nb", nb_main, NULL, "Pre-train a model of counts on a masked-counts stream."},
	{"eval", eval_main, NULL, "Evaluate a model on a masked stream."},
	{0},
};

int main(int argc, char **argv)
{
	const char *mpi = comm_version();
	return cli_commands("sctrain", "Train or evaluate a model.", mpi ? mpi : "without MPI", commands, argc, argv);
}
