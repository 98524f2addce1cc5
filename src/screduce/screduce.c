/* screduce: vectors and maps of cells without a model. */
#include "screduce.h"
#include "cli.h"

static const struct cli_command commands[] = {
	{"expression", screduce_expression, &expression_cli, NULL},
	{"pca", screduce_pca, &pca_cli, NULL},
	{"map", screduce_map, &map_cli, NULL},
	{0},
};

int main(int argc, char **argv)
{
	return cli_commands("screduce", "Vectors and maps of cells without a model.", "LAPACK, igraph", commands, argc, argv);
}
