/*
 * The network: BERT as Geneformer uses it (post-norm, learned positions, one token type, tied decoder), for packed
 * batches without padding. Written against struct ops; one table of named tensors allocates, initialises, saves, loads
 * and gradient-checks it. Tensor names are those of Hugging Face's BertFor{MaskedLM,SequenceClassification,
 * TokenClassification}. Equations: transformers modeling_bert.py; sites of dropout: embeddings, attention
 * probabilities, attention output, feed-forward output (and the classifier's input).
 *
 * One training step:
 *     model_zero_grad(m);
 *     for each micro-batch:  model_forward(m, &batch, &opt, &loss, e);  model_backward(m, e);  count += loss.count;
 *     model_step(m, &optim, lr factor, count, ...);
 * The gradient is that of the summed loss over all labelled positions; model_step divides by the count, so micro-batches
 * and ranks add up (sum gradients and counts over ranks in between).
 *
 * A device that runs behind the host (ops.queued) need never wait for it: with forward.later and model_step_later a step is only
 * asked for, and the next batch is packed while it runs; model_collect tells, one step later, what came of it.
 */
#ifndef MODEL_H
#define MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "ops.h"
#include "optim.h"

/* The fields of a Hugging Face config.json that matter here, by their names. */
struct model_config {
	uint32_t vocab_size, hidden_size, num_hidden_layers, num_attention_heads, intermediate_size;
	uint32_t max_position_embeddings, type_vocab_size, pad_token_id;
	uint32_t num_labels; /* of a classifier; 0 for mlm */
	char *const *label;  /* [num_labels] their names, borrowed for as long as the model lives; NULL: LABEL_0 ... */
	enum act hidden_act; /* ACT_RELU or ACT_GELU */
	double hidden_dropout_prob, attention_probs_dropout_prob;
	double classifier_dropout; /* negative: as hidden_dropout_prob */
	double layer_norm_eps, initializer_range;
};

enum task {
	TASK_MLM,   /* cls.predictions.*, tied to the word embedding */
	TASK_CELLS, /* bert.pooler.dense, classifier: one label a cell, from position 0 */
	TASK_GENES, /* classifier: one label a token */
	TASK_BARE,  /* no head: embeddings only */
};

enum init {
	INIT_NORMAL, /* N(0, initializer_range^2) */
	INIT_ZERO,
	INIT_ONE,
};

/* One named parameter. Parameters, gradients and both Adam moments lie at `at` in four arrays of equal layout. */
struct tensor {
	char name[96];
	int ndim;
	size_t shape[2];
	size_t n;      /* elements */
	size_t at;     /* offset, in elements */
	enum init init;
	int decay;     /* takes part in weight decay */
	int layer;     /* -1 embeddings, 0 .. L-1 encoder, L pooler and head */
	int frozen;    /* no gradient, no update */
};

enum which {
	PARAM,
	GRAD,
	MOMENT1,
	MOMENT2,
};

/* Cells packed end to end. All arrays are borrowed for the call. */
struct batch {
	size_t ncell;
	const uint32_t *offset; /* [ncell+1], offset[0] = 0; T = offset[ncell] */
	const uint32_t *id;     /* [T] input token ids, < vocab_size */
	size_t nmask;           /* TASK_MLM: predicted positions */
	const uint32_t *mask;   /* [nmask] index into id, ascending, no repeats */
	const uint32_t *target; /* [nmask] the token to predict */
	const int32_t *label;   /* TASK_CELLS [ncell], TASK_GENES [T]; negative = none */
	const uint32_t *key;    /* [ncell] the cell's number in the global batch, for dropout; NULL: 0 .. ncell-1 */
};

struct forward {
	int train;       /* dropout on, activations kept for model_backward */
	uint64_t step;   /* optimizer step, part of the dropout counter */
	int later;       /* do not wait: of loss only count is set, sum and correct come with model_collect */
};

struct loss {
	double sum;      /* cross-entropy, natural log */
	double count;    /* labelled positions (class weights summed, where there are any) */
	double correct;  /* of those, predicted right */
};

struct model;

/* Presets: tiny, corrmask-paper, geneformer-v1-10m. vocab_size stays 0, for the caller to fill. -1: unknown name. */
int model_preset(struct model_config *c, const char *name, struct error *e);
/* Ranges and divisibility; the message names the field. */
int model_check(const struct model_config *c, enum task task, struct error *e);

/*
 * A model of zeros gradients and moments, its parameters drawn from `seed` (Philox; a tensor's values depend on seed, name
 * and index alone; word embedding row pad_token_id is 0). The seed also keys dropout. The model keeps ops, which the
 * caller destroys after model_free. NULL with e set when model_check fails.
 */
struct model *model_new(const struct model_config *c, enum task task, struct ops *ops, uint64_t seed, struct error *e);
/* The same with parameters of 0, for weights that are loaded; model_draw gives a tensor what model_new would have given it. */
struct model *model_blank(const struct model_config *c, enum task task, struct ops *ops, uint64_t seed, struct error *e);
void model_draw(struct model *m, const struct tensor *t);
void model_free(struct model *m);
const struct model_config *model_config(const struct model *m);
enum task model_task(const struct model *m);

/* The table, in the order of Hugging Face's module tree. */
size_t model_ntensor(const struct model *m);
const struct tensor *model_tensor(const struct model *m, size_t i);
const struct tensor *model_find(const struct model *m, const char *name); /* NULL: none */
/* Copy one tensor's n values to or from the host. */
void model_read(struct model *m, enum which w, const struct tensor *t, real *host);
void model_write(struct model *m, enum which w, const struct tensor *t, const real *host);
/* The whole array (all tensors and the gaps between, which are 0): for all-reduce of gradients. */
size_t model_size(const struct model *m); /* elements */
void model_read_all(struct model *m, enum which w, real *host);
void model_write_all(struct model *m, enum which w, const real *host);
void model_read_part(struct model *m, enum which w, size_t from, size_t to, real *host); /* elements [from, to) */
/* Parameters, without gaps. */
size_t model_nparam(const struct model *m);

/* Freeze the first n encoder layers (embeddings stay trainable, as Geneformer does). */
void model_freeze(struct model *m, size_t n);
/* Classes' loss weights [num_labels]; NULL takes them away. */
void model_class_weight(struct model *m, const real *weight);
/*
 * Focal loss of classes instead of cross-entropy [Lin et al. 2017, eq. 4]: -w_y (1 - p_y)^gamma log p_y, p the softmax; gamma >= 0,
 * 0 is cross-entropy. Worked out on the host: the logits of classes are few.
 */
void model_focal(struct model *m, double gamma);

/*
 * Forward pass and summed loss. Checks the batch (ids, lengths, positions, targets and labels in range): -1 with e set
 * naming cell and value. A loss that is not finite is an error too. nmask 0 or no label at all: sum 0, count 0.
 * With f->train, activations are kept until the next forward.
 */
int model_forward(struct model *m, const struct batch *b, const struct forward *f, struct loss *loss, struct error *e);
/* Add the gradient of the summed loss of the last training forward to GRAD. */
int model_backward(struct model *m, struct error *e);
void model_zero_grad(struct model *m);

/*
 * Elements [from, to) of GRAD in the order in which model_backward finishes them: head, layers from the last to the first,
 * embeddings (where the tied decoder's part of the gradient is too), and everything without decay. The same for all models of
 * one configuration; frozen layers are left out.
 */
typedef void model_part(void *arg, size_t from, size_t to);
void model_grad_parts(struct model *m, model_part *f, void *arg);
/* Let the next model_backward call f(arg, from, to) for these parts, each as soon as it will not change any more. */
void model_on_grad(struct model *m, model_part *f, void *arg);

/* L2 norm of GRAD times scale, over what is not frozen. */
double model_grad_norm(struct model *m, double scale);
/*
 * One AdamW update with GRAD / count at rate o->lr * optim_factor(o, done), done = finished updates (this one is done + 1
 * for bias correction). *norm (may be NULL) is the gradient's norm before clipping. A norm that is not finite, or
 * count <= 0, is an error and changes nothing. GRAD is left as it is.
 */
int model_step(struct model *m, const struct optim *o, uint64_t done, double count, double *norm, struct error *e);
/*
 * The same, only asked for; count > 0. model_collect waits for the oldest step that was: its norm, and the loss of its forwards with
 * `later` since model_zero_grad. -1 with e set after a norm or a loss that is not finite (then later steps are of no use either).
 * At most two steps may wait to be collected.
 */
void model_step_later(struct model *m, const struct optim *o, uint64_t done, double count);
int model_collect(struct model *m, struct loss *loss, double *norm, struct error *e);

/*
 * Hidden states, dropout off: h [T, hidden_size] out, of `layer` counted as Geneformer does: 0 = output of the last
 * layer, -1 = second to last, ..., -num_hidden_layers = the embeddings. Needs no mask, target or label.
 */
int model_hidden(struct model *m, const struct batch *b, int layer, real *h, struct error *e);
/*
 * Ask for the means of hidden states over tokens range[2i] .. range[2i+1] (indices into b->id, within cell i) of every cell;
 * model_embedded waits for the oldest that was asked for: x [ncell, hidden_size], NaN for an empty range. At most two may wait.
 */
int model_embed(struct model *m, const struct batch *b, int layer, const uint32_t *range, struct error *e);
int model_embedded(struct model *m, real *x, struct error *e);
/*
 * Logits, dropout off: TASK_CELLS [ncell, num_labels], TASK_GENES [T, num_labels]; TASK_MLM [nmask, vocab_size] at b->mask.
 */
int model_logits(struct model *m, const struct batch *b, real *logit, struct error *e);

/* Share of the rows worked on so far that only filled batches up (ops.round_tokens), 0 .. 1. */
double model_padding(const struct model *m);
/* Bytes the model holds now: parameters, gradients and moments (the latter since the first step), activations and scratch. */
size_t model_bytes(const struct model *m);

#endif
