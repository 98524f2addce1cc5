/*
 * A head computes predictions and a loss from hidden states. Each kind of head is one file (head_mlm.c, head_value.c) and one line of the
 * table in head.c. No other code tests which kind a head is.
 *
 *     struct head_kind  name, tensors, metrics and functions of one kind
 *     struct head_spec  what the user chooses: kind, weight, classes
 *     struct head       one head of one model (model_impl.h); a kind that has own state puts struct head first in its struct
 *     struct goal       the rows and targets of one head in one batch
 */
#ifndef HEAD_H
#define HEAD_H

#include <stddef.h>
#include <stdint.h>

#include "nn/arch.h"

#define HEADS_MAX 4 /* of one model */

struct batch;
struct head;

/* Which hidden states a head reads. */
enum rows {
	ROWS_LISTED, /* the tokens that the goal lists: masked positions */
	ROWS_CELL,   /* one of each cell: token head_spec.position of it, or the cell's own row where the architecture is per_cell */
	ROWS_TOKEN,  /* every token */
};

/* Weights of the genes in the loss of head_nb, learned with the model (curriculum.h). */
struct curriculum {
	uint32_t ratios; /* masking ratios, each with its own weights; 0: all weights are 1 */
	int hard;        /* 1: from easy to hard genes; 0: easy ones throughout */
	uint64_t steps;  /* of the whole training */
};

struct head_spec {
	const struct head_kind *kind;
	double weight;      /* of this head's mean loss in the loss of the model; 0 means 1 */
	uint32_t position;  /* ROWS_CELL: which token of the cell */
	uint32_t nlabel;    /* number of classes, for kinds that have classes */
	char *const *label; /* [nlabel] names of the classes, borrowed until the model is freed; NULL: LABEL_0, LABEL_1 ... */
	struct curriculum curriculum;
};

/* The targets of one head in one batch. All arrays are borrowed for the call. */
struct goal {
	size_t n;               /* ROWS_LISTED: number of listed tokens; with mask: number of masked genes of all cells */
	const uint32_t *row;    /* ROWS_LISTED: [n] index into batch.id, ascending, no repeats */
	const uint32_t *target; /* [rows] class or token to predict; ROW_NONE: none */
	const real *value;      /* [rows, width] targets of kinds that predict numbers; NaN: none */
	const uint32_t
		*mask;  /* [rows, nb_words(vocab_size)] of kinds that predict counts: bits of the genes to predict; n: how many bits */
	uint32_t ratio; /* with a curriculum: number of the batch's masking ratio, < curriculum.ratios */
};

struct loss {
	double sum;            /* natural log, for cross-entropy */
	double count;          /* rows with a target; where classes have weights, the sum of these */
	double correct;        /* rows whose prediction is right */
	double target, square; /* of kinds that predict numbers: sums of the targets, and of their squares */
};

/* A measure of the predictions of a head. */
struct head_metric {
	const char *name;
	double (*of)(const struct loss *l); /* NULL: it is computed from the predicted class of every row (lib/eval) */
	int higher;                         /* 1: a higher value is better */
};

struct head_kind {
	const char *name;          /* "mlm" */
	const char *class_name;    /* second part of the class name in transformers: "ForMaskedLM" */
	const char *problem_type;  /* of config.json, or NULL */
	const char *const *prefix; /* ends with NULL; tensors whose names start with one of these belong to this head */
	const char *only_training; /* NULL, or the start of the names of tensors that a model for use does without */
	enum rows rows;
	int classes;                      /* predicts one of head_spec.nlabel classes */
	uint32_t width;                   /* values in a row of goal.value; 0: the head uses goal.target or goal.mask */
	int counts;                       /* predicts counts: it uses goal.mask, batch.count and the counted tokens */
	const struct head_metric *metric; /* ends with name NULL; the loss is not in the list */
	const struct op_need *need;
	size_t size; /* bytes of the struct that starts with struct head; 0: it is struct head */

	int (*check)(const struct head_spec *s, const struct model_config *c, struct error *e); /* NULL: nothing to check */
	void (*tensors)(const struct head_spec *s, struct params *p, const struct model_config *c);
	void (*resolve)(struct head *h, struct model *m);
	/* Values in a row of model_logits. */
	size_t (*outputs)(const struct head *h, const struct model *m);
	void (*carve)(struct head *h, struct model *m, struct arena *a, const struct shape *s);
	/* What the host computes before the ops of a training forward, and of its backward; it may wait for the device. NULL: nothing. */
	void (*prepare)(struct head *h, struct model *m, const struct batch *b);
	void (*prepare_back)(struct head *h, struct model *m, const struct forward *f);
	/* Compute the inputs of the loss from the hidden states x. */
	void (*forward)(struct head *h, struct model *m, const struct forward *f, const void *x);
	/* Add loss, right predictions and weights to sum [3] on the device. It calls ops only, so that it can be replayed. NULL: the host
	 * computes the loss. */
	void (*loss)(struct head *h, struct model *m, double *sum);
	/* For a loss that the host computes: add to sum [3] and return 1. 0: the device has computed it. NULL: always the device. */
	int (*host_loss)(struct head *h, struct model *m, const struct goal *g, int train, double sum[3]);
	/* loss.count, computed from the batch. NULL: the number of targets. */
	double (*count)(const struct head *h, const struct goal *g);
	/* Logits of the last forward: act [N, outputs], on the device. */
	const void *(*logits)(struct head *h, struct model *m);
	/* Add the gradients of the head's tensors, and write dx, the gradient of the hidden states. */
	void (*backward)(struct head *h, struct model *m, const struct forward *f, void *dx);
	void (*release)(struct head *h, struct model *m); /* NULL: nothing to release */
};

extern const struct head_kind head_mlm;   /* the token at a masked position; the decoder shares the token embedding */
extern const struct head_kind head_cells; /* one class a cell, from its first token */
extern const struct head_kind head_genes; /* one class a token */
extern const struct head_kind head_value; /* a number at a masked position */
extern const struct head_kind head_nb;    /* the counts of masked genes: decoder with a negative binomial likelihood */

/* By name; NULL: none. */
const struct head_kind *head_find(const char *name);
const struct head_kind *head_at(size_t i); /* the i-th, NULL past the last */

/* head_cells and head_genes: set the weights of the classes [nlabel] in the loss of head i; NULL removes them. */
void head_class_weight(struct model *m, size_t i, const real *weight);
/*
 * Focal loss instead of cross-entropy [Lin et al. 2017, eq. 4]: -w_y (1 - p_y)^gamma log p_y, p the softmax; gamma >= 0, 0 is
 * cross-entropy. The host computes it: the logits of classes are few.
 */
void head_class_focal(struct model *m, size_t i, double gamma);

#endif
