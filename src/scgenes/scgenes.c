/* scgenes: gene networks of embeddings, and the gene sets they hold. Each command is in COMMAND.c. */
#include "scgenes.h"

static const struct cli_command commands[] = {
	{"network", scgenes_network, &network_cli, NULL},
	{"genesets", scgenes_genesets, &genesets_cli, NULL},
	{0},
};

int main(int argc, char **argv)
{
	return cli_commands("scgenes", "Gene networks of embeddings, and the gene sets they hold.", NULL, commands, argc, argv);
}
