/*
 * The subcommands of maskrisk (argv[0] is the subcommand's name), and what they share: the options of a model (model.c) and
 * lists of masking ratios.
 */
#ifndef MASKRISK_H
#define MASKRISK_H

#include "cli.h"
#include "risk/risk_model.h"

#include <stdio.h>

int maskrisk_theory(int argc, char **argv);
int maskrisk_simulate(int argc, char **argv);
int maskrisk_data(int argc, char **argv);
extern struct cli theory_cli, simulate_cli, data_cli;

/* A masking ratio, or a range of ratios from which every row draws one. */
struct ratio {
	double lo, hi; /* equal: one ratio */
	int coupled; /* a range: the draw of the ratio also decides whether the row is kept */
};

/* --rates "A:B:STEP" or "A,B,...": a malloced list of *n ratios. A usage error if one is not between 0 and 1. */
struct ratio *parse_rates(const char *text, size_t *n);
#define DEFAULT_RATES "0.05:0.9:0.05"

/* The options of the models, for theory and simulate, and what they say. */
extern struct option_def model_options[];
struct model_choice {
	struct risk_model model;
	uint32_t rows; /* n, before rows whose target is not masked are left out */
	double spike, align; /* of the spiked model, else 0 */
	int closed; /* there is a closed form: isotropic or spiked */
	struct ratio *ratio; /* [n]: those of --rates, then every range of --ranges independent and coupled */
	size_t n;
	double unit; /* risks are divided by this: 1, or the null with --normalise */
};

/* Check the options, and draw the model. Exits on failure. BLAS runs on one thread from here on. */
void choose_model(struct model_choice *c, const struct cli *cli);
void release_model(struct model_choice *c);

/* The columns ratio and retention of a ratio: "0.3 fixed", "0.5:0.6 coupled". */
void print_ratio(FILE *f, const struct ratio *r);

/* Open a text that is kept in memory; write_output writes it to -o or standard output, where a file appears only when it is complete. */
struct text {
	char *bytes;
	size_t size;
	FILE *f;
};
void text_start(struct text *t);
void text_write(struct text *t, const char *path); /* releases t */

#endif
