/* The subcommands of scperturb (argv[0] is the subcommand's name), and what sets.c reads for apply.c: which genes to perturb. */
#pragma once

#include "cli_stream.h"
#include "perturb/shift.h"
#include "genes/gene_find.h"

int scperturb_apply(int argc, char **argv);
int scperturb_screen(int argc, char **argv);
int scperturb_shift(int argc, char **argv);
extern struct cli apply_cli, screen_cli, shift_cli;

/* Genes that are perturbed together. */
struct set {
	uint32_t *gene; /* [n] */
	size_t n;
	char *label; /* the ids with + between, or the name of a gene set */
	uint64_t cells; /* in which it was perturbed */
};

/* What one of the options --delete, --overexpress, --activate, --inhibit says. */
struct sets {
	enum perturb_kind kind;
	const char *option; /* its argument */
	int all, screened; /* every gene of each cell; those that scperturb screen lists */
	struct set *set; /* [n] otherwise */
	size_t n, cap;
	size_t unknown, ambiguous; /* genes of a .gmt file that are not in the vocabulary; symbols of several genes: both are left out */
	uint64_t cells; /* all: cells that were perturbed */
};

/* Read the argument: "all", "screened", a list of genes, or a file. Dies if it is none of these, or names a gene that the vocabulary lacks. */
void sets_read(struct sets *s, const struct gene_find *genes);
void sets_release(struct sets *s);

/* Ids of genes with + between (malloced). */
char *set_label(const uint32_t *gene, size_t n, const struct vocab *v);
