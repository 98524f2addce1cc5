/*
 * Shared by all tools: the command line, the report, exit status. A file that says something and no more includes cli_message.h, one that
 * reads or writes streams cli_stream.h, one that has a table of options base/option.h.
 *
 *     static struct cli cli = {.name = "rankenc", .operands = "[FILE...]", .summary = "...", .options = options,
 *                              .common = CLI_STREAM_OUT};
 *     int main(int argc, char **argv)
 *     {
 *             cli_init(&cli, argc, argv);
 *             struct stream *in = cli_open(&cli, 0);
 *             ...
 *             struct stream *out = cli_create(&cli, &header);
 *             loop
 *             must_commit(out);
 *             cli_measured("cells_in", ...);
 *             cli_report(&cli, "%llu cells in, %llu out", ...);
 *     }
 *
 * Exit status: 0 done, 1 failed, 2 misuse.
 */
#pragma once

#include "cli_stream.h"

struct option_def;

enum { CLI_OUT = 1, CLI_RAW = 2, CLI_STREAM_OUT = 3, CLI_SEED = 4, CLI_DEVICE = 8, CLI_THREADS = 16, CLI_LISTS = 32 };

struct cli {
	const char *name; /* "depgraph", "sctrain mlm" */
	const char *operands; /* "[FILE...]"; NULL: takes none */
	const char *summary; /* one line */
	const char *features; /* libraries for --version, may be NULL */
	struct option_def *options; /* the tool's own */
	struct option_def *shared; /* options shared with other subcommands, or NULL */
	unsigned mode; /* if no option chooses another one (option.h); 0: 1 */
	unsigned common; /* CLI_...; CLI_LISTS: an operand is several files, between commas */

	/* out */
	const char *output; /* -o, or NULL */
	const char *report; /* --report, or NULL */
	int raw, quiet, verbose;
	long long threads, seed; /* defaults 1 and 1 */
	const char *device; /* --device as given, default "auto" */
	int bf16; /* --precision bf16 */
	char **operand; /* [noperand]; instead of @LIST, the files that LIST names (cli_manifest.h) */
	int noperand;
	struct outfile *opened; /* -o, open already; NULL: not yet */
};

/* Parse the command line. Prints help or version and exits 0, or prints a usage error and exits 2. It is a usage error too if a tool that
 * reads an input gets no operand and standard input is a terminal. Sets the number of OpenMP threads. */
void cli_init(struct cli *c, int argc, char **argv);

/* Before the first call of BLAS by the threads of --threads, or die (nn/blas.h). A model does it itself when its device is opened. */
void cli_blas(const struct cli *c);

/* The option of this tool that sets `to`, and whether it was given. */
const struct option_def *cli_option(const void *to);
int given(const void *to);
/* The program chose the value of this option, if there is one: provenance has it, as if it was given. */
void cli_decided(const void *to);
/* A usage error if an option was given that does not belong to this mode (opt_check_mode). */
void cli_mode(unsigned mode, const char *why, ...) __attribute__((format(printf, 2, 3)));
/* refuse(why, &variable ...): a usage error, "--NAME WHY", if one of the options that set these variables was given. */
#define refuse(why, ...) refuse_list(why, (const void *const[]){__VA_ARGS__, NULL})
void refuse_list(const char *why, const void *const *to);

/* The subcommands of a tool; name NULL ends the list. --help shows the summary of cli, or `summary`. */
struct cli_command {
	const char *name;
	int (*run)(int argc, char **argv); /* argv[0] is the subcommand's name; NULL: `name` is a heading of --help */
	const struct cli *cli;
	const char *summary;
};

/* Run the subcommand that argv[1] names. Prints help or version and exits 0, or prints a usage error and exits 2. */
int cli_commands(const char *name, const char *summary, const char *features, const struct cli_command *commands, int argc, char **argv);

/* Print the commands and their summaries. */
void cli_list(const struct cli_command *commands);

/* Add this program to the provenance of h, with the options of this run that change the output, then `more`, which may be "". --seed is
 * included even if it was not given. */
char *cli_settings(const struct cli *c); /* the options that were given and change results, and the seed; malloced */
void cli_provenance(const struct cli *c, struct header *h, const char *more);

/* Open -o, or take what is open; die if that fails. */
void cli_output(const struct cli *c, struct outfile *f);

/* The genes of a list, one a line or a table with a column gene_id, gene or symbol: [v->n], 1 where v has the gene by id or symbol. Dies if none is
 * there, warns of those that are not. option, name: of the list and of v, for messages. */
struct vocab;
uint8_t *cli_gene_list(const char *option, const char *path, const struct vocab *v, const char *name);

/* Write text (freed here) to a file that appears only when it is complete. The second: results (freed here) to -o. */
void cli_write(const char *path, char *text);
struct results;
void cli_write_results(const struct cli *c, struct results *of);
/* A table, with tabs, (freed here) to -o; on a terminal its columns are aligned by spaces. */
void cli_write_table(const struct cli *c, char *text);

/* This process is one of several equal ones: messages name its rank, and ranks above 0 print errors only. */
void cli_rank(struct cli *c, int rank);

/* Under -v: the message, then time and peak memory. Ends the table of --report. Call it last: files beside the main output appear here. */
void cli_report(const struct cli *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
