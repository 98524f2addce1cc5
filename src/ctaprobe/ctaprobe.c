/* ctaprobe: score embeddings and predictions. Each subcommand is in SUBCOMMAND.c. */
#include "ctaprobe.h"

static const struct cli_command commands[] = {
	{"cells", cells_main, &cells_cli, NULL},
	{"score", score_main, &score_cli, NULL},
	{"genes", genes_main, &genes_cli, NULL},
	{"reconstruction", reconstruction_main, &reconstruction_cli, NULL},
	{"effective-rank", effective_rank_main, &effective_rank_cli, NULL},
	{"leaderboard", leaderboard_main, &leaderboard_cli, NULL},
	{"compare", compare_main, &compare_cli, NULL},
	{"reference", reference_main, &reference_cli, NULL},
	{"map", map_main, &map_cli, NULL},
	{0},
};

int main(int argc, char **argv)
{
	return cli_commands("ctaprobe", "Score embeddings and predictions.", "libLBFGS, LAPACK, igraph", commands, argc, argv);
}
