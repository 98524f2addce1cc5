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

/* Commands that moved to tools of their own. */
static const char *const moved[][2] = {{"integration", "scmetric"}, {"effective-rank", "scmetric"}, {"reconstruction", "scmetric"},
	{"reference", "scmetric"}, {"learnability", "scmetric"}, {"network", "scgenes"}, {"genesets", "scgenes"}, {"compare", "armstat"},
	{"leaderboard", "armstat"}, {"map", "screduce"}, {"shift", "scperturb"}};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof moved / sizeof *moved; i++)
		if (strcmp(argv[1], moved[i][0]) == 0) {
			fprintf(stderr, "ctaprobe: '%s' is now '%s %s'\n", argv[1], moved[i][1], argv[1]);
			return 2;
		}
	return cli_commands("ctaprobe", "Score embeddings and predictions.", "libLBFGS, LAPACK", commands, argc, argv);
}
