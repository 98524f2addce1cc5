/* sctrain: train or evaluate a model. Each subcommand is in SUBCOMMAND.c. The tables of subcommands and of objectives. */
#include "sctrain.h"

#include "cli.h"
#include "train/comm.h"

static const struct objective_kind *const kinds[] = {&mlm_objective, &value_objective, &expression_objective, &wced_objective,
	&label_objective, &hce_objective, &number_objective, &genes_objective, &nb_objective};

const struct objective_kind *objective_kind_at(size_t i)
{
	return i < sizeof kinds / sizeof *kinds ? kinds[i] : NULL;
}

static const struct cli_command commands[] = {
	{"mlm", sctrain_mlm, NULL, "Pre-train a model on a masked stream."},
	{"value", sctrain_value, NULL, "Pre-train a model to predict the expression of masked genes."},
	{"wced", sctrain_wced, NULL, "Pre-train a model to predict the expression of the whole cell."},
	{"cells", sctrain_cells, NULL, "Fine-tune a model to predict labels or numbers of cells."},
	{"genes", sctrain_genes, NULL, "Fine-tune a model to classify genes by a label."},
	{"nb", sctrain_nb, NULL, "Pre-train a model of counts on a masked-counts stream."},
	{"eval", sctrain_eval, NULL, "Evaluate a model on a masked stream."},
	{0},
};

int main(int argc, char **argv)
{
	const char *mpi = comm_version();
	return cli_commands("sctrain", "Train or evaluate a model.", mpi ? mpi : "without MPI", commands, argc, argv);
}
