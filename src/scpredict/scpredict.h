/* The subcommands of scpredict (argv[0] is the subcommand's name), each in SUBCOMMAND.c; terms.c adds an ontology to predictions of cells. */
#pragma once

#include "cli_inference.h"

int scpredict_cells(int argc, char **argv);
int scpredict_genes(int argc, char **argv);
int scpredict_expression(int argc, char **argv);
int scpredict_attribution(int argc, char **argv);
extern struct cli cells_cli, genes_cli, expression_cli, attribution_cli;

/* --head; the table of commands that have no other option. */
extern const char *head;
extern struct option_def head_options[];

/* The heads of the model of -M, and the one that predicts. */
struct chosen {
	struct config_heads heads;
	size_t head;
};
static inline const struct head_spec *chosen(const struct chosen *c)
{
	return &c->heads.head[c->head];
}

/* Load the heads, and choose one that is fit by its name, or the only one (name NULL). what, task: "genes", "nb", for
 * messages. */
void choose_head(struct chosen *c, const char *name, int (*fit)(const struct head_spec *s), const char *what, const char *task);

/* The header of predictions, before they have columns. Dies if the input has one of the columns, a list that ends with NULL. */
void prediction_header(struct header *h, const struct inference *r, const char *const *columns);
void prediction_free_name(const struct header *h, const char *column, const char *name);

/* A head whose classes are the leaves of an ontology: the ontology of the model, and the columns beside those of classes. node: --node. */
struct terms;
struct terms *terms_new(const struct head_spec *s, const struct opt_values *node);
void terms_header(struct terms *t, struct header *h, const char *name);
/* Fill these columns of row `row` from the probabilities p [classes], of which `best` is the largest. Returns the predicted class: `best`, or
 * if greedy the likeliest child from the top down. */
uint32_t terms_decode(struct terms *t, struct block *out, size_t row, uint32_t best, const double *p, int greedy);
void terms_missing(struct terms *t, struct block *out, size_t row);
