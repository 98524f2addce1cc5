/* scgenes: gene networks of embeddings, the gene sets they hold, and marker genes. Each command is in COMMAND.c. */
#include "scgenes.h"
#include "cli.h"

static const struct cli_command commands[] = {
	{"network", scgenes_network, &network_cli, NULL},
	{"genesets", scgenes_genesets, &genesets_cli, NULL},
	{"markers", scgenes_markers, &markers_cli, NULL},
	{0},
};

int main(int argc, char **argv)
{
	return cli_commands("scgenes", "Gene networks from embeddings, their gene sets, and marker genes.", NULL, commands, argc, argv);
}
