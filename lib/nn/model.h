/*
 * A model: one architecture (arch.h), a table of named tensors (params.h) and a weighted sum of heads (head.h), for packed batches
 * without padding between cells. Written against struct ops, so it runs on every backend.
 *
 * One training step:
 *     model_zero_grad(m);
 *     for each micro-batch:  model_forward(m, &batch, &opt, loss, e);  model_backward(m, e);  count += loss[0].count;
 *     model_step(m, &optim, lr factor, count, ...);
 * The gradient is that of the summed loss over all rows with a target; model_step divides by the count, so micro-batches and ranks add
 * up (sum gradients and counts over ranks in between). With several heads the loss is
 *     sum_h weight_h mean_h / sum_h weight_h,   over the heads h that have a target in the global batch,
 * and mean_h is over all rows of the global batch: model_weigh gives the factors for forward.scale, from counts by model_count. A head can have
 * several losses, its parts (head_kind.part): then this sum is over all of them. Arrays [nloss] have those of head 0, of head 1, ...
 *
 * A device can run behind the host (ops.queued). With forward.later and model_step_later a step is only queued, and the host packs the
 * next batch while the device works. model_collect gives loss and norm one step later. So the device never waits for the host.
 */
#pragma once

#include "nn/head.h"
#include "nn/optim.h"
#include "nn/params.h"

/* Cells packed end to end. All arrays are borrowed for the call. */
struct batch {
	size_t ncell;
	const uint32_t *offset; /* [ncell+1], offset[0] = 0; T = offset[ncell] */
	const uint32_t *id; /* [T] input token ids, < vocab_size */
	const uint32_t *rank; /* [T] position of each token, < max_position_embeddings; NULL: its place in the cell */
	const real *value; /* [T] value of each token, of a special one -(id + 1), for architectures that read values; or NULL */
	const uint32_t *count; /* [T] raw count of each token, or NULL */
	const uint32_t *group; /* [ncell] category of the cell's covariate, < num_groups; ROW_NONE: none; NULL: no cell has one */
	const uint32_t *key; /* [ncell] the cell's number in the global batch, for dropout; NULL: 0 .. ncell-1 */
	struct goal goal[HEADS_MAX]; /* of each head */
};

struct forward {
	int train; /* dropout on, activations kept for model_backward */
	uint64_t step; /* optimizer step, part of the dropout counter */
	int later; /* do not wait for the device: only loss.count is set; model_collect gives sum and correct */
	const double *scale; /* [nloss] what the gradient of each summed loss is multiplied by; NULL: their weights */
	struct moments *moments; /* private (recalibrate.c) */
};

struct model;

/* A preset of an architecture by name. vocab_size stays 0, for the caller to fill. -1: unknown name; the message has all names. */
int model_preset(struct model_config *c, const char *name, struct error *e);
const struct arch_preset *model_preset_at(size_t i); /* the i-th, NULL past the last */
/* Is this architecture possible? The message names the field. */
int model_check(const struct model_config *c, struct error *e);
/* How many tokens a cell can have; SIZE_MAX: any number. */
size_t model_positions(const struct model_config *c);

/*
 * A model with zero gradients and moments, its parameters drawn from `seed` (a tensor's values depend on seed, name and index alone).
 * The seed also keys dropout. head [nhead]: nhead 0 gives a model for embeddings only. The model keeps ops, which the caller
 * destroys after model_free. NULL with e set: the configuration or a head is impossible, or the device lacks an op that they need.
 */
struct model *model_new(
	const struct model_config *c, const struct head_spec *head, size_t nhead, struct ops *ops, uint64_t seed, struct error *e);
/* The same with parameters of 0, for weights that are loaded; model_draw gives a tensor what model_new would have given it. */
struct model *model_blank(
	const struct model_config *c, const struct head_spec *head, size_t nhead, struct ops *ops, uint64_t seed, struct error *e);
void model_draw(struct model *m, const struct tensor *t);
void model_free(struct model *m);
const struct model_config *model_config(const struct model *m);
size_t model_nhead(const struct model *m);
size_t model_nloss(const struct model *m);
size_t model_first_loss(const struct model *m, size_t head); /* its losses are this one and those after it */
const struct head_spec *model_head(const struct model *m, size_t i); /* [nhead] in one array; NULL: there is no i-th head */

/* The table, in the order of Hugging Face's module tree. */
size_t model_ntensor(const struct model *m);
const struct tensor *model_tensor(const struct model *m, size_t i);
const struct tensor *model_find(const struct model *m, const char *name); /* NULL: none */
const struct tensor *model_tied(const struct model *m); /* the embedding of tokens that decoders share, NULL: there is none */
/* Copy one tensor's n values to or from the host. */
void model_read(struct model *m, enum which w, const struct tensor *t, real *host);
void model_write(struct model *m, enum which w, const struct tensor *t, const real *host);
/* A whole array (all its tensors and the gaps between, which are 0): for all-reduce of gradients, and copies of the weights. */
size_t model_size(const struct model *m, enum which w); /* elements */
void model_read_all(struct model *m, enum which w, real *host);
void model_write_all(struct model *m, enum which w, const real *host);
void model_read_part(struct model *m, enum which w, size_t from, size_t to, real *host); /* elements [from, to) */
/* Buffers are the elements of PARAM from model_size(m, GRAD) on. */
void model_write_buffers(struct model *m, const real *host);
/* Learned parameters, without gaps. */
size_t model_nparam(const struct model *m);

/* Freeze the embeddings and the first n layers; 0: nothing. (Geneformer's freeze_layers leaves the embeddings trainable.) */
void model_freeze(struct model *m, size_t n);

/*
 * Several losses in one global batch, or one whose mean is also over cells without a target. model_counts_first: is it so? model_count:
 * count [2 nloss], loss.count of each in this batch at optimizer step `step`, then the same but 0 where it has no target; 0 for a head
 * that starts later. It checks the batch as model_forward does. Add up the counts of all parts of the batch and ranks; then model_weigh gives
 * scale [nloss] for forward.scale, and the count for model_step, 0 if no loss has a target. With one loss scale is 1.
 *     scale_h = weight_h / (sum of the weights of losses with targets) N_0 / N_h,   N_0 the count of the first loss with targets
 * model_mean_loss: the loss of the model, from the summed losses and their counts; NAN without a target.
 */
int model_counts_first(const struct model *m);
int model_count(const struct model *m, const struct batch *b, uint64_t step, double *count, struct error *e);
double model_weigh(const struct model *m, const double *count, double *scale);
double model_mean_loss(const struct model *m, const double *sum, const double *count);

/*
 * Forward pass and summed losses, loss [nloss]. Checks the batch (ids, lengths, rows and targets in range): -1 with e set naming
 * cell and value. A loss that is not finite is an error too. No row with a target for any head: sums and counts are 0.
 * With f->train, activations are kept until the next forward.
 */
int model_forward(struct model *m, const struct batch *b, const struct forward *f, struct loss *loss, struct error *e);
/* Add the gradient of the last training forward to GRAD. */
int model_backward(struct model *m, struct error *e);
void model_zero_grad(struct model *m);

/*
 * Elements [from, to) of GRAD in the order in which model_backward finishes them: heads, layers from the last to the first,
 * embeddings (where the tied decoder's part of the gradient is too), and everything without decay. The same for all models of
 * one configuration; frozen layers are left out.
 */
void model_grad_parts(struct model *m, params_part *f, void *arg);
/* Queue: GRAD becomes its sum over the group of the model's device (ops.h), which was joined. */
void model_sum_grad(struct model *m);
/* Let the next model_backward call f(arg, from, to) for these parts, each as soon as it will not change any more. A device that runs behind the
 * host (ops.queued) does not do it: call model_grad_parts afterwards. */
void model_on_grad(struct model *m, params_part *f, void *arg);

/*
 * One AdamW update with GRAD / count at rate o->lr * optim_factor(o, done), done = finished updates (this one is done + 1
 * for bias correction). *norm (may be NULL) is the gradient's norm before clipping. A norm that is not finite, or
 * count <= 0, is an error and changes nothing. GRAD is left as it is.
 */
int model_step(struct model *m, const struct optim *o, uint64_t done, double count, double *norm, struct error *e);
/*
 * Queue such an update; count > 0. model_collect waits for the oldest queued update and gives its norm, and the losses [nloss] of the
 * forwards with `later` since model_zero_grad; loss[0].count is `count`, the counts of others are 0. -1 with e set: the device
 * failed. At most two updates can be queued. model_check_step: -1 with e set if the norm or a sum of losses [nloss] is not finite; later
 * steps are then useless, too.
 */
void model_step_later(struct model *m, const struct optim *o, uint64_t done, double count);
int model_collect(struct model *m, struct loss *loss, double *norm, struct error *e);
int model_check_step(const struct model *m, const double *sum, double norm, uint64_t done, struct error *e);

/*
 * Hidden states, dropout off: h [T, hidden_size] out ([ncell, hidden_size] where the architecture is per_cell), of `layer` counted as
 * Geneformer does: 0 = output of the last layer, -1 = second to last, ..., -num_hidden_layers = the embeddings.
 */
int model_hidden(struct model *m, const struct batch *b, int layer, real *h, struct error *e);
/*
 * Queue the means of hidden states over tokens range[2i] .. range[2i+1] (indices into b->id), `per` of them for every cell, within the cell.
 * model_embedded waits for the oldest in the queue: x [ncell, per, hidden_size], NaN for an empty range. At most two can be queued.
 */
int model_embed(struct model *m, const struct batch *b, int layer, const uint32_t *range, size_t per, struct error *e);
int model_embedded(struct model *m, real *x, struct error *e);
/* Logits of head `head`, dropout off: [rows, outputs], rows as the head reads them (ROWS_LISTED: those of b->goal[head]). */
int model_logits(struct model *m, const struct batch *b, size_t head, real *logit, struct error *e);
/* The same of the last model_forward, without training, in which this head had a target. Not for the cross-entropy over the vocabulary, whose logits
 * are never whole. */
void model_last_logits(struct model *m, size_t head, real *logit);
/* The same of several heads at once: logit [nhead], NULL for the heads that are not wanted. */
int model_logits_of(struct model *m, const struct batch *b, real *const *logit, struct error *e);

/*
 * Give batch normalisation the statistics of these cells, in place of the running averages of the training: mean and variance (divisor n - 1) over
 * all cells, layer after layer, summed in double in the order of the cells. Each layer takes a pass over the cells. next: the next batch, 1; 0 at
 * the end of a pass, and the call after that starts another; -1 with e set. -1 with e set: fewer than two cells, or a model without such layers.
 */
typedef int model_next(void *arg, struct batch *b, struct error *e);
int model_recalibrate(struct model *m, model_next *next, void *arg, struct error *e);

/* Share of the rows worked on so far that are padding (ops.round_tokens), 0 .. 1. */
double model_padding(const struct model *m);
/* Bytes the model holds now: parameters, gradients and moments (the latter since the first step), activations and scratch. */
size_t model_bytes(const struct model *m);
