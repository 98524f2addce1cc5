/* ctaprobe: score embeddings and predictions. Each subcommand is in SUBCOMMAND.c. */
#include "ctaprobe.h"
#include "cli.h"

static const struct cli_command commands[] = {
	{"cells", ctaprobe_cells, &cells_cli, NULL},
	{"transfer", ctaprobe_transfer, &transfer_cli, NULL},
	{"score", ctaprobe_score, &score_cli, NULL},
	{"genes", ctaprobe_genes, &genes_cli, NULL},
	{"panel", ctaprobe_panel, &panel_cli, NULL},
	{0},
};

int main(int argc, char **argv)
{
	return cli_commands("ctaprobe", "Score embeddings and predictions.", "libLBFGS, LAPACK", commands, argc, argv);
}
