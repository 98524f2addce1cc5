/* What the two halves of scembed share: scembed.c reads, batches and writes; scembed_predict.c is what --predict does to a batch. */
#ifndef SCEMBED_H
#define SCEMBED_H

#include "batch.h"
#include "config.h"
#include "genelabels.h"

struct run {
	struct ops *ops;
	struct model *model;
	struct masked_columns col;      /* of the input */
	struct block out;
	int *map;                       /* columns of the input for those of the output */
	struct packed packed;
	float *h;                       /* prediction: [cells or tokens, labels] */
	size_t h_cap;
	uint32_t *row;                  /* [rows of the batch] */
	size_t row_cap;
	uint64_t cells, tokens, empty;

	int x;                          /* embedding: its column */
	uint32_t *range;                /* [2 cells of the batch] the tokens whose mean is taken */
	size_t range_cap;
	size_t asked_from, asked;       /* rows of out whose vectors the device is still at work on */
	size_t C;
	int64_t cls, eos;               /* token ids, -1: none */

	struct config_head head;        /* prediction */
	struct genelabels genes;        /* label NULL: the model has no genes.tsv */
	int probabilities, all_genes;   /* the options */
	int logit, predicted, probability, softmax;     /* columns, -1: none; of genes, logit is the first of several */
	int token, label, held_out;
	uint64_t predicted_tokens;
};

/* Load config.json's head and genes.tsv, before the model; the task to load it for. */
enum task predict_open(struct run *r, const char *dir, const struct header *h);
/* The columns of the prediction, behind those that pass through. */
void predict_header(struct run *r, struct header *h, const char *name);
/* Rows [first, first + n) of the output: its cells are in r->packed and their scalar columns already there. */
void predict_rows(struct run *r, size_t first, size_t n);
void predict_release(struct run *r);

#endif
