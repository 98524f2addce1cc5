/* sctrain: train or evaluate a model. Each subcommand is in sctrain_SUBCOMMAND.c. */
#include "sctrain.h"

#include "cli.h"
#include "nn/blas_core.h"
#include "train/comm.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *name, *summary;
	int (*main)(int argc, char **argv);
} commands[] = {
	{"mlm", "pre-train a model on a masked stream", mlm_main},
	{"cells", "fine-tune a model to classify cells by a label", cells_main},
	{"genes", "fine-tune a model to classify genes by a label", genes_main},
	{"nb", "pre-train a model of counts on a masked-counts stream", nb_main},
	{"eval", "evaluate a model on a masked stream", eval_main},
};

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
		if (strcmp(word, commands[i].name) == 0)
			return commands[i].main(argc - 1, argv + 1);
	if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0) {
		printf("Usage: sctrain COMMAND [OPTION...] [FILE]\nTrain a model.\n\nCommands (sctrain COMMAND --help says more):\n");
		for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
			printf("  %-8s %s\n", commands[i].name, commands[i].summary);
		return fflush(stdout) ? 1 : 0;
	}
	if (strcmp(word, "-V") == 0 || strcmp(word, "--version") == 0) {
		char kernels[128];
		cpu_describe(kernels, sizeof kernels);
		printf("sctrain %s (scstream %d.%d, %s, %s)\n", CORRMASK_VERSION, STREAM_MAJOR, STREAM_MINOR,
			comm_version() ? comm_version() : "without MPI", kernels);
		return fflush(stdout) ? 1 : 0;
	}
	fprintf(stderr, *word ? "sctrain: unknown command '%s': expected" : "sctrain: no command: expected", word);
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
		fprintf(stderr, "%s %s", i ? " or" : "", commands[i].name);
	fprintf(stderr, "\nTry 'sctrain --help'.\n");
	return 2;
}
