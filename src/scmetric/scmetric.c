/* scmetric: how good embeddings and predicted expression are. Each command is in COMMAND.c. */
#include "scmetric.h"
#include "cli.h"

static const struct cli_command commands[] = {
	{"integration", scmetric_integration, &integration_cli, NULL},
	{"effective-rank", scmetric_effective_rank, &effective_rank_cli, NULL},
	{"reconstruction", scmetric_reconstruction, &reconstruction_cli, NULL},
	{"reference", scmetric_reference, &reference_cli, NULL},
	{"learnability", scmetric_learnability, &learnability_cli, NULL},
	{0},
};

int main(int argc, char **argv)
{
	return cli_commands("scmetric", "How good embeddings and predicted expression are.", "LAPACK, igraph", commands, argc, argv);
}
