/* ctaprobe: score embeddings and predictions. Each subcommand is in SUBCOMMAND.c. */
#include "ctaprobe.h"

static const struct cli_command commands[] = {
	{"cells", ctaprobe_cells, &cells_cli, NULL},
	{"transfer", ctaprobe_transfer, &transfer_cli, NULL},
	{"score", ctaprobe_score, &score_cli, NULL},
	{"genes", ctaprobe_genes, &genes_cli, NULL},
	{"reconstruction", ctaprobe_reconstruction, &reconstruction_cli, NULL},
	{"effective-rank", ctaprobe_effective_rank, &effective_rank_cli, NULL},
	{"learnability", ctaprobe_learnability, &learnability_cli, NULL},
	{"leaderboard", ctaprobe_leaderboard, &leaderboard_cli, NULL},
	{"compare", ctaprobe_compare, &compare_cli, NULL},
	{"reference", ctaprobe_reference, &reference_cli, NULL},
	{"integration", ctaprobe_integration, &integration_cli, NULL},
	{"map", ctaprobe_map, &map_cli, NULL},
	{"network", ctaprobe_network, &network_cli, NULL},
	{"genesets", ctaprobe_genesets, &genesets_cli, NULL},
	{"shift", ctaprobe_shift, &shift_cli, NULL},
	{0},
};

int main(int argc, char **argv)
{
	return cli_commands("ctaprobe", "Score embeddings and predictions.", "libLBFGS, LAPACK, igraph", commands, argc, argv);
}
