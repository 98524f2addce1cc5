/* The parts of ctaprobe cells: cells.c has the options, the splits and the output, classes.c the probe of labels,
 * nearest.c the one by nearest neighbours, bayes.c that of counts, target.c that of numbers. */
#pragma once

#include "ctaprobe.h"

/* The options that the probes need. */
struct settings {
	const char *label, *target, *group, *fold, *replicates_path, *roc_path;
	long long nfold, repeats, max_iter, nearest, search, replicates;
	double inverse_penalty;
	int as_given; /* features are not standardised */
	int naive_bayes; /* the streams are counts */
	int every_class; /* each fold has a whole group of every class */
	int protocol; /* enum protocol */
};
enum protocol { PROTOCOL_OWN, PROTOCOL_CZ };
extern struct settings cells_set;

/* Train on rows train[0..n) of `from`, test on rows test[0..m) of `to`. */
struct split {
	const struct embeddings *from, *to;
	const uint32_t *train, *test;
	size_t n, m;
	const char *what; /* in messages */
};

struct result {
	size_t k; /* classes */
	uint32_t *predicted; /* [cells tested], labels only */
	double *logit; /* [cells tested, k]; -inf for classes that were not in training */
	uint64_t *frequency; /* [k] cells of the class in training (k-fold: in all) */
	struct metrics metrics; /* after classes_scores, with the area of each class [k] */
	double *auroc;
	double *expected; /* [cells tested], numbers only */
	size_t train_cells, fits; /* fits: one for each split; those of --search are not counted */
	double *penalty; /* [fits] C or alpha of each fit */
	size_t penalty_cap;
	int iterations, converged, unfinished; /* unfinished: fits of --search that did not converge */
};

/* Fit one split and predict its test cells. c: the classes. */
void classes_fit(struct result *r, const struct split *s, const struct classes *c);
void nearest_fit(struct result *r, const struct split *s, const struct classes *c);
void bayes_fit(struct result *r, const struct split *s, const struct classes *c);
void target_fit(struct result *r, const struct split *s);

/* Warn of groups, of this column, that have training cells (a) and tested cells (b). */
void warn_shared(const struct embeddings *a, const struct embeddings *b, const struct classes *groups, const char *column);

/* Add the scores of the tested cells. fold [d->n]: NULL without cross-validation. Then what is known of each class. */
void classes_scores(struct results *to, const struct embeddings *d, struct result *r, const uint32_t *fold);
void classes_details(struct results *to, const struct result *r, const struct classes *c);
void target_scores(struct results *to, const struct embeddings *d, const struct result *r);

/* Assign rows row[0..n) to nfold folds by label and group: fold [n]. Dies with `what` in the message if there are too few. */
void assign_folds(uint32_t *fold, const struct embeddings *d, const uint32_t *row, size_t n, size_t nfold, uint64_t seed, const char *what);

/* Split rows row[0..n): those with fold[i] = f are test, the others train. Returns the number of training rows; test gets n minus it. */
size_t fold_rows(const uint32_t *fold, uint32_t f, const uint32_t *row, size_t n, uint32_t *train, uint32_t *test);
