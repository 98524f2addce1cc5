/*
 * The subcommands of ctaprobe (argv[0] is the subcommand's name) and the functions that print metrics (report.c).
 */
#ifndef CTAPROBE_H
#define CTAPROBE_H

#include "cli.h"
#include "label/label.h"
#include "eval/metrics.h"
#include "eval/results.h"

int ctaprobe_cells(int argc, char **argv);
int ctaprobe_score(int argc, char **argv);
int ctaprobe_genes(int argc, char **argv);
int ctaprobe_reconstruction(int argc, char **argv);
int ctaprobe_effective_rank(int argc, char **argv);
int ctaprobe_learnability(int argc, char **argv);
int ctaprobe_leaderboard(int argc, char **argv);
int ctaprobe_compare(int argc, char **argv);
int ctaprobe_reference(int argc, char **argv);
int ctaprobe_map(int argc, char **argv);
int ctaprobe_integration(int argc, char **argv);
int ctaprobe_transfer(int argc, char **argv);
int ctaprobe_network(int argc, char **argv);
int ctaprobe_shift(int argc, char **argv);
int ctaprobe_genesets(int argc, char **argv);
extern struct cli cells_cli, score_cli, genes_cli, reconstruction_cli, effective_rank_cli, learnability_cli, leaderboard_cli, compare_cli,
	reference_cli, map_cli, integration_cli, transfer_cli, network_cli, shift_cli, genesets_cli;

/* ctaprobe score --target: in is a stream of predicted numbers. */
void score_numbers(struct stream *in, const char *column);

/* ctaprobe score --ontology: labels and predictions of n cells, classes of c. The arrays are changed. */
struct terms_scored {
	uint32_t *y, *predicted; /* [n] */
	size_t n, unlabelled, unpredicted;
};
void score_terms(struct terms_scored *s, const struct classes *c, const char *path, const char *name);

/* The cells of one stream of embeddings that have a label and a target. */
struct embeddings {
	struct stream *s;
	size_t rows, n, d, unlabelled; /* rows of the stream; unlabelled: those left out */
	size_t empty; /* and those whose embedding is missing */
	float *x; /* [n, d] */
	uint32_t *y; /* [n] classes; 0 if no label is wanted */
	double *target; /* [n], NULL if none is wanted */
	uint32_t *group, *part; /* [n], NULL if none is wanted */
	uint64_t *cell; /* [n] */
	size_t *row; /* [n] number of the row in the stream */
	size_t x_cap, y_cap, target_cap, group_cap, part_cap, cell_cap, row_cap;
};

/* The wanted columns, each may be NULL, and the tables for their names, shared by all streams. Cells without a label or target are left
 * out;
 * each of the others must have a group, such as a donor, and a part, such as a cluster. */
struct wanted {
	const char *label, *target, *group;
	struct classes *classes, *groups;
	const char *part;
	struct classes *parts;
};

/* Is this the embedding of a cell without tokens, all NaN? And the warning that so many were left out, if any. */
int embedding_missing(const float *x, size_t d);
void embedding_warn(const char *name, size_t empty);
/* Dies if a value of x [d] is not finite. */
void embedding_check(const float *x, size_t d, uint64_t cell, const char *name);
/* What made the embeddings of a stream, by its header: the digest of the model, or of the genes and components, and the layer. If two
 * texts are equal, the same numbers mean the same. Malloced; NULL: it does not say. */
char *embedding_source(const struct header *h);
/* Read all of s, which is d's afterwards, or die. again: index s, since it is read again later. */
void embeddings_read(struct embeddings *d, struct stream *s, const struct wanted *w, int again);
void embeddings_release(struct embeddings *d); /* accepts a zeroed struct */

/* The vectors of genes of one stream (scembed --of genes, static), one a gene. */
struct gene_vectors {
	size_t n, d;
	float *x; /* [n, d] */
	uint32_t *token; /* [n] rows of the stream's vocabulary */
	uint64_t *cells; /* [n] cells that have the gene; 0: not known */
	size_t x_cap, token_cap, cells_cap;
};
/* Read all of in, or die: a stream of other embeddings, two vectors of a gene, a value that is not finite. */
void gene_vectors_read(struct gene_vectors *g, struct stream *in);
void gene_vectors_release(struct gene_vectors *g); /* accepts a zeroed struct */

/* The header of predictions: the k classes and how many training cells each has; none if k is 0. */
void header_labels(struct header *h, char *const *name, const uint64_t *cells, size_t k);

/* The scores of a classification: accuracy ... weighted_f1, and f1_rare over the `rare` rarest classes by frequency (0: a third). */
void report_scores(struct results *to, const struct metrics *m, const uint64_t *frequency, size_t rare);
/* How well numbers are predicted: mse, and r2 = 1 - sum (truth - predicted)^2 / sum (truth - mean)^2, NaN if all of truth [n] are equal. */
void report_fit(struct results *to, const double *predicted, const double *truth, size_t n);
/* Bootstrap of the scores: _low and _high of accuracy, balanced_accuracy and macro_f1 (95 % intervals), and how many units were drawn.
 * unit [n]: groups, or NULL: cells. path: a table of the replicates is written there; NULL: none. */
void report_bootstrap(struct results *to, const uint32_t *truth, const uint32_t *predicted, const uint32_t *unit, size_t n, size_t k,
	size_t replicates, uint32_t seed, const char *path);
/* Each class: classes, f1, n, train_n (frequency; NULL: none), rare, confusion. name [m->k]. */
void report_classes(
	struct results *to, const struct metrics *m, char *const *name, const uint64_t *frequency, const uint64_t *train_n, size_t rare);

/* Write the results, which are freed. */
void report_write(const struct cli *c, struct results *of);

/* Write the mean ROC curve of the classes against the rest, as a table of fpr and tpr. probability [n, k]; y [n], of which k and above are
 * classes that were not predicted. */
void report_roc_curve(const char *path, const double *probability, const uint32_t *y, size_t n, size_t k);

/* Write text (freed here) to a file that appears only when it is complete. */
void write_text(const char *path, char *text);

/* Renumber the classes of c and of the lists v[t] [n[t]] in order of their names. Classes that are in no list are dropped. */
void settle_classes(struct classes *c, uint32_t **v, const size_t *n, int lists);

/* Renumber v [n] without gaps and in the same order; returns how many numbers there are. */
size_t close_gaps(uint32_t *v, size_t n);

#endif
