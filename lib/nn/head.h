/*
 * A head computes predictions and a loss from hidden states. Each kind of head is one file (head_mlm.c, head_value.c) and one line of the
 * table in head.c. No other code tests which kind a head is.
 *
 * A model can have several heads, also of one kind. Each has a name. The tensors of a head have the names that its kind gives them, those of
 * transformers, behind the head's prefix. One head of a model can be without a prefix: the one that transformers finds.
 *
 *     struct head_kind  name, readout, target, tensors, metrics and functions of one kind
 *     struct head_spec  what the user chooses: kind, name, weight, classes
 *     struct head       one head of one model (model_impl.h); a kind that has own state puts struct head first in its struct
 *     struct goal       the rows and targets of one head in one batch
 */
#pragma once

#include "nn/arch.h"

#define HEADS_MAX 16 /* of one model */
#define PARTS_MAX 6 /* losses of one head */
#define LOSSES_MAX 24 /* of one model */
#define HEAD_NAME 40 /* bytes of a name at most */
#define HEAD_PREFIX "heads." /* how the prefixes of tensors of heads start: "heads.NAME." */
#define HEAD_PREFIX_MAX 64

struct batch;
struct head;

/* Which hidden states a head reads. */
enum rows {
	ROWS_LISTED, /* the tokens that the goal lists: masked positions */
	ROWS_CELL, /* one of each cell: token head_spec.position of it, or the cell's own row where the architecture is per_cell */
	ROWS_TOKEN, /* every token */
};

/* What it predicts for each row (target.c). */
enum target {
	TARGET_TOKEN, /* goal.target: a token of the vocabulary */
	TARGET_CLASS, /* goal.target: one of head_spec.nlabel classes */
	TARGET_SET, /* goal.target: one of head_spec.nset sets of these classes */
	TARGET_VALUE, /* goal.value: a number */
	TARGET_COUNTS, /* goal.mask: the counts of the masked genes, which the batch has */
	TARGET_CELL, /* goal.value: a number for every gene of the vocabulary */
	TARGETS
};

/* Weights of the genes in the loss of counts, learned with the model (curriculum.h). */
struct curriculum {
	uint32_t ratios; /* masking ratios, each with its own weights; 0: all weights are 1 */
	int hard; /* 1: from easy to hard genes; 0: easy ones throughout */
	uint64_t steps; /* of the whole training */
};

struct head_spec {
	const struct head_kind *kind;
	/* Texts and labels are borrowed until the model is freed. */
	const char *name; /* unique in the model, at most HEAD_NAME bytes; NULL: the name of the kind */
	const char *prefix; /* of the names of its tensors; NULL: none */
	const char *column; /* of the stream, that has its targets; NULL: the header of the stream does not matter */
	double weight; /* of this head's mean loss in the loss of the model; 0 means 1 */
	uint64_t from; /* first step, from 0, of which it is a part; its own tensors are not updated before */
	uint32_t position; /* ROWS_CELL: which token of the cell */
	int direct; /* 1: it reads that token itself, not through the pooler */
	double reverse; /* the hidden states get the gradient times -reverse [gradient reversal, Ganin & Lempitsky 2015]; 0: as it is */
	int over_all; /* 1: its mean loss is over all cells of the batch, those without a target count as 0 */
	uint32_t nlabel; /* TARGET_CLASS, TARGET_SET: number of classes */
	char *const *label; /* [nlabel] names of the classes; NULL: LABEL_0, LABEL_1 ... */
	uint32_t nset; /* TARGET_SET: number of sets; only a training needs them */
	const uint32_t *set; /* [nset, nb_words(nlabel)] bit k % 32 of word k / 32: class k is in the set */
	double mean, scale; /* TARGET_VALUE: the number is mean + scale * prediction; scale 0 means 1 */
	struct curriculum curriculum;
};

/* The targets of one head in one batch. All arrays are borrowed for the call. */
struct goal {
	size_t n; /* ROWS_LISTED: number of listed tokens; with mask: number of masked genes of all cells */
	const uint32_t *row; /* ROWS_LISTED: [n] index into batch.id, ascending, no repeats */
	const uint32_t *target; /* [rows] class, set of classes or token to predict; ROW_NONE: none; NULL: no row has one */
	const real *value; /* [rows] number to predict; NaN: none; NULL: no row has one; TARGET_CELL: [rows, vocab_size] */
	/* [rows, nb_words(vocab_size)] bits of the genes whose counts are predicted; n: how many bits. TARGET_CELL: of the genes in the input;
	 * n: how many numbers */
	const uint32_t *mask;
	uint32_t ratio; /* with a curriculum: number of the batch's masking ratio, < curriculum.ratios */
};

/* Of one loss. A head has one, or as many as its kind has parts. */
struct loss {
	double sum; /* natural log, for cross-entropy */
	double measure; /* beside the loss: rows whose prediction is right, or squared errors, as the kind's metrics need */
	double count; /* rows with a target; where classes have weights, the sum of these; with over_all: all rows */
	double target, square; /* TARGET_VALUE: sums of the targets, and of their squares */
};

/* A measure of the predictions of a head. */
struct head_metric {
	const char *name;
	/* l: loss `part` of the head. NULL: it is computed from the predicted class of every row (lib/eval) */
	double (*of)(const struct loss *l, const struct head_spec *s);
	int higher; /* 1: a higher value is better */
	size_t part;
};

/* One of the losses of a head that has several. */
struct head_part {
	const char *name;
	double weight; /* times the weight of the head; 0: it is only measured */
};

struct head_kind {
	const char *name; /* "mlm" */
	const char *class_name; /* second part of the class name in transformers: "ForMaskedLM" */
	const char *problem_type; /* of config.json, or NULL */
	const char *const *prefix; /* ends with NULL; its tensors' names start with one of these, after the prefix of the head */
	const char *only_training; /* NULL, or the start of the names of tensors that a model for use does without */
	/* Pairs ending with NULL: a tensor that other programs save beside its equal here, and that one; "": the shared embedding of tokens. */
	const char *const (*copy)[2];
	enum rows rows;
	int pool, drop; /* the rows of cells go through the architecture's pooler, if it has one; then dropout */
	enum target target;
	const struct head_part *part; /* ends with a part whose name is NULL; NULL if the head has one loss */
	const struct head_metric *metric; /* ends with a metric whose name is NULL; the loss is not in the list */
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
	/* Add loss and measure to sum [2 parts] on the device. It calls ops only, so that it can be replayed. NULL: the host
	 * computes the loss. */
	void (*loss)(struct head *h, struct model *m, double *sum);
	/* For a loss that the host computes: add to sum [2] and return 1. 0: the device has computed it. NULL: always the device. */
	int (*host_loss)(struct head *h, struct model *m, const struct goal *g, int train, double sum[2]);
	/* loss.count of a goal with `rows` rows. NULL: the number of targets. And of each part: */
	double (*count)(const struct head *h, const struct goal *g, size_t rows);
	void (*count_parts)(const struct head *h, const struct model *m, const struct goal *g, size_t rows, double *count);
	/* Logits of the last forward, where head.z does not keep them: act [N, outputs], on the device. NULL: it does. */
	const void *(*logits)(struct head *h, struct model *m);
	/* Add the gradients of the head's tensors, and write dx, the gradient of the hidden states. */
	void (*backward)(struct head *h, struct model *m, const struct forward *f, void *dx);
	void (*release)(struct head *h, struct model *m); /* NULL: nothing to release */
};

extern const struct head_kind head_mlm; /* the token at a masked position; the decoder shares the token embedding */
extern const struct head_kind head_cells; /* one class a cell, from its first token */
extern const struct head_kind head_hce; /* one class a cell, of which a label may name several: an ontology */
extern const struct head_kind head_genes; /* one class a token */
extern const struct head_kind head_value; /* a number at a masked position */
extern const struct head_kind head_number; /* a number a cell, from its first token */
extern const struct head_kind head_expression; /* the value at a masked position: is it zero, and how large is it */
extern const struct head_kind head_wced; /* the same of every gene of the cell, from its first token */
extern const struct head_kind head_nb; /* the counts of masked genes: decoder with a negative binomial likelihood */

/* By name; NULL: none. */
const struct head_kind *head_find(const char *name);
const struct head_kind *head_at(size_t i); /* the i-th, NULL past the last */

/* Does it predict one of several classes? */
static inline int head_classifies(const struct head_kind *k)
{
	return k->target == TARGET_CLASS || k->target == TARGET_SET;
}

/* Or a number? */
static inline int head_labels(const struct head_kind *k)
{
	return head_classifies(k) || k->target == TARGET_VALUE;
}

size_t head_parts(const struct head_kind *k); /* its losses, at least 1 */
double head_part_weight(const struct head_spec *s, size_t part); /* beside its weight; 1 if the kind has no parts */

/* Its name in its model. */
const char *head_name(const struct head_spec *s);

/* TARGET_CLASS: set the weights of the classes [nlabel] in the loss of head i; NULL removes them. */
void head_class_weight(struct model *m, size_t i, const real *weight);
/*
 * Focal loss instead of cross-entropy [Lin et al. 2017, eq. 4]: -w_y (1 - p_y)^gamma log p_y, p the softmax; gamma >= 0, 0 is
 * cross-entropy. The host computes it: the logits of classes are few.
 */
void head_class_focal(struct model *m, size_t i, double gamma);

/* TARGET_VALUE: change the weights of head i so that its output y becomes by * y + plus. */
void head_value_rescale(struct model *m, size_t i, double by, double plus);
