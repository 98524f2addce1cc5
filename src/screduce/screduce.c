/* screduce: vectors of cells without a model. */
#include "screduce.h"

static const struct cli_command commands[] = {
	{"expression", screduce_expression, &expression_cli, NULL},
	{"pca", screduce_pca, &pca_cli, NULL},
	{0},
};

int main(int argc, char **argv)
{
	return cli_commands("screduce", "Vectors of cells without a model.", "LAPACK", commands, argc, argv);
}
