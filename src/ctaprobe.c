/* ctaprobe: score embeddings and predictions. Each subcommand is in ctaprobe_SUBCOMMAND.c. */
#include "ctaprobe.h"

#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	struct cli *cli;
} commands[] = {
	{"cells", cells_main, &cells_cli},
	{"score", score_main, &score_cli},
	{"genes", genes_main, &genes_cli},
	{"reconstruction", reconstruction_main, &reconstruction_cli},
	{"rank", rank_main, &rank_cli},
	{"ranks", ranks_main, &ranks_cli},
	{"map", map_main, &map_cli},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

int main(int argc, char **argv)
{
	static struct cli top = {.name = "ctaprobe", .operands = "COMMAND [OPTION...] [FILE]", .features = "libLBFGS, LAPACK, igraph"};
	for (size_t i = 0; i < COMMANDS && argc > 1; i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(argc - 1, argv + 1);
	char *list = xstrdup("Score embeddings and predictions. Commands ('ctaprobe COMMAND --help' tells more):"), *names = xstrdup("");
	for (size_t i = 0; i < COMMANDS; i++) {
		char *more = xasprintf("%s\n  %-16s%s", list, commands[i].name, commands[i].cli->summary);
		char *longer = xasprintf("%s%s%s", names, i ? ", " : "", commands[i].name);
		free(list);
		free(names);
		list = more;
		names = longer;
	}
	top.summary = list;
	if (argc < 2)
		top.operands = NULL; /* else cli_init takes a terminal for a missing input */
	cli_init(&top, argc, argv);  /* --help and --version end here */
	if (top.noperand)
		usage_error("unknown command '%s': expected one of %s", top.operand[0], names);
	usage_error("name a command, one of %s", names);
}
