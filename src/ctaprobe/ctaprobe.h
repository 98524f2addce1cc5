/*
 * The subcommands of ctaprobe (argv[0] is the subcommand's name) and the functions that print metrics (report.c).
 */
#pragma once

#include "cli_embeddings.h"
#include "eval/metrics.h"
#include "eval/results.h"

int ctaprobe_cells(int argc, char **argv);
int ctaprobe_score(int argc, char **argv);
int ctaprobe_genes(int argc, char **argv);
int ctaprobe_transfer(int argc, char **argv);
int ctaprobe_panel(int argc, char **argv);
extern struct cli cells_cli, score_cli, genes_cli, transfer_cli, panel_cli;

/* ctaprobe score --target: in is a stream of predicted numbers. */
void score_numbers(struct stream *in, const char *column);

/* ctaprobe score --ontology: labels and predictions of n cells, classes of c. The arrays are changed. */
struct terms_scored {
	uint32_t *y, *predicted; /* [n] */
	size_t n, unlabelled, unpredicted;
};
void score_terms(struct terms_scored *s, const struct classes *c, const char *path, const char *name);

/* The header of predictions: the k classes and how many training cells each has; none if k is 0. */
void header_labels(struct header *h, char *const *name, const uint64_t *cells, size_t k);

/* The scores of a classification: accuracy ... weighted_f1, and f1_rare over the rarest third of the classes by frequency. */
void report_scores(struct results *to, const struct metrics *m, const uint64_t *frequency);
/* How well numbers are predicted: mse, and r2 = 1 - sum (truth - predicted)^2 / sum (truth - mean)^2, NaN if all of truth [n] are equal. */
void report_fit(struct results *to, const double *predicted, const double *truth, size_t n);
/* Bootstrap of the scores: _low and _high of accuracy, balanced_accuracy and macro_f1 (95 % intervals), and how many units were drawn.
 * unit [n]: groups, or NULL: cells. path: a table of the replicates is written there; NULL: none. */
void report_bootstrap(struct results *to, const uint32_t *truth, const uint32_t *predicted, const uint32_t *unit, size_t n, size_t k,
	size_t replicates, uint32_t seed, const char *path);
/* Each class: classes, f1, n, train_n (frequency; NULL: none), rare, confusion. name [m->k]. */
void report_classes(struct results *to, const struct metrics *m, char *const *name, const uint64_t *frequency, const uint64_t *train_n);

/* Write the mean ROC curve of the classes against the rest, as a table of fpr and tpr. probability [n, k]; y [n], of which k and above are
 * classes that were not predicted. */
void report_roc_curve(const char *path, const double *probability, const uint32_t *y, size_t n, size_t k);
