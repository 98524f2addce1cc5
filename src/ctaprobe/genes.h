/* ctaprobe genes: genes.c reads predictions of a fine-tuned model, genes_probe.c makes them from vectors of genes; both are scored alike. */
#pragma once

#include "ctaprobe.h"
#include "eval/roc.h"

/* The scores of one fold. */
struct fold {
	double auc, gene_auc; /* K > 2: mean over the classes, each against all others */
	double *class_auc, *class_gene_auc; /* [K], filled for K > 2 */
	double accuracy, macro_f1;
	uint64_t points; /* of the ROC curve */
	double tpr[ROC_GRID];
	uint64_t cells, tokens, genes; /* scored */
};

/* All folds, and the sums of the one being read. */
struct study {
	size_t K; /* classes; of two, the second is the positive one */
	char **name; /* [K] classes */
	size_t nfold;
	struct fold *fold; /* [nfold] */
	struct metrics all, one; /* over the tokens of all folds, and of one */
	char *first; /* name of the first stream */
	FILE *scores; /* --gene-scores, or NULL */
	uint64_t unlabelled; /* tokens of genes of no class */

	size_t n, p_cap, y_cap; /* tokens scored */
	double *p; /* [n, K] softmax */
	uint32_t *y; /* [n] true class */
	struct roc_item *item; /* [n] scratch */
	size_t item_cap;
	double *sum; /* [V, K] of p, over all tokens of a gene */
	uint64_t *count; /* [V] */
	int32_t *gene_label; /* [V] */
};

/* genes_score.c: the sums of a fold over the genes of v begin at 0. */
void study_begin(struct study *t, const struct vocab *v);
/* Room for one more prediction of t->p; returns its p [K]. */
double *study_next(struct study *t);
/* The prediction is that of a gene of class y that was not learned from: it is scored. guess: the class with the largest probability. */
void study_take(struct study *t, uint32_t y, uint32_t guess);
/* Score fold i, and free its sums. name: of the input, for messages. */
void study_end(struct study *t, size_t i, const struct vocab *v, const char *name);

/* --gene-labels: the folds of a logistic regression on vectors of genes. */
struct genes_probe {
	const char *labels; /* NULL: the input is predictions */
	long long folds, max_iter;
	double inverse_penalty;
	int as_given;
};
extern struct genes_probe genes_probe;
/* Read labels and vectors; t->name, t->K, t->nfold and t->fold are set. Then genes_probe_folds scores all folds, and frees both. */
void genes_probe_read(struct study *t);
void genes_probe_folds(struct study *t);
