/*
 * Numbers of a cell that a model computes, and their gradients with respect to what the cell's tokens bring into the network.
 *
 * A token brings the vector v_t = gene_t + value_t [C]; without a value encoder value_t is 0. The network reads LayerNorm(v_t + rest_t), where
 * rest_t is what no gene changes: position and type of BERT, nothing of bmfm_llama. A caller takes the vectors, changes them, and asks what
 * the model makes of them:
 *
 *     input_vectors(m, &b, v, e)                        v [T,C]
 *     input_forward(m, &b, v, &to, y, deviation, e)     y = f(v) [ncell, outputs]
 *     input_backward(m, dy, dv, presence, e)            dv = sum over y of dy df/dv [T,C], of the last input_forward
 *
 * Cells do not see each other, so dv has the gradient of every cell's own number. All arrays are the caller's, on the host; T and the tokens are
 * those of b, and f has no dropout. With the vectors of input_vectors f gives the logits, or the states, of the model, but for rounding.
 * Memory is that of a training step of the batch. The gradient of parameters (GRAD) is undefined afterwards. Gradients that a head reverses
 * in its training are not reversed here.
 *
 * presence [T] is the same derivative by the presence g_j of each token, at 1: a token of presence g counts as g keys in every attention, and g
 * times in a mean of states. So -presence_j is the change of the number, to first order, if token j is deleted and all others keep their
 * places. A head that reads the state of the token itself is not covered.
 */
#pragma once

#include "nn/ops.h"

struct model;
struct batch;

/* What f is. */
struct input_to {
	const uint32_t *range; /* [2 ncell] as in model_embed: the mean of states over these tokens, outputs = hidden_size; NULL: a head */
	int layer; /* of these states, as in model_embed */
	size_t head; /* else: its logits, outputs = classes, or 1 for a number; heads of one row a cell */
};

/* Can it? -1 with e set: the architecture has no vectors of tokens; the model has no such head, or one that reads tokens or counts. */
int input_check(const struct model *m, const struct input_to *to, struct error *e);

int input_vectors(struct model *m, const struct batch *b, real *v, struct error *e);

/* d [T,C]: what is added to the vector of a token if it stands one place further ahead: position_(t-1) - position_t; 0 for the first token, without
 * positions, and with shared ones (struct batch, rank). */
int input_ahead(struct model *m, const struct batch *b, real *d, struct error *e);

/* deviation [T], may be NULL: what the first LayerNorm divides each token by, sqrt(variance of v_t + rest_t, + eps). A mean over no tokens is
 * NaN; its dy counts as 0. */
int input_forward(
	struct model *m, const struct batch *b, const real *v, const struct input_to *to, real *y, real *deviation, struct error *e);
/* presence NULL: not wanted. -1 with e set, too, if the device lacks the op for it. */
int input_backward(struct model *m, const real *dy, real *dv, real *presence, struct error *e);
