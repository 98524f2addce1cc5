/*
 * The parameters of a model: one table of named tensors, which allocates, initialises, saves, loads, trains and gradient-checks them.
 *
 * A tensor is LEARNED or a BUFFER. A buffer, such as the running mean of a batch norm, is saved and loaded but has no gradient and no
 * update. The architecture writes it.
 *
 * Layout. Parameters, gradients and the two Adam moments are four arrays on the device. In each, learned tensors with weight decay come
 * first, learned tensors without decay next; the array of parameters ends with the buffers, which the other three do not have. So an
 * update of all parameters is one call of the adamw op, unless some are frozen. Starts are aligned for the backend, except that a
 * `joined` tensor follows the one before it without a gap.
 */
#pragma once

#include "nn/ops.h"

enum init {
	INIT_NORMAL, /* N(0, std^2) */
	INIT_ZERO,
	INIT_ONE,
	INIT_UNIFORM, /* of [-std, std] */
	INIT_DOUBLING, /* std, 2 std, 4 std, ... */
	INIT_VALUES, /* values */
};

enum role { LEARNED, BUFFER };

#define TENSOR_NAME 128

struct tensor {
	char name[TENSOR_NAME];
	int ndim;
	size_t shape[2];
	size_t n; /* elements */
	size_t at; /* offset in each array, in elements */
	enum init init;
	double std; /* see init; INIT_NORMAL: 0 means initializer_range */
	const double *values; /* INIT_VALUES: [n], borrowed */
	enum role role;
	int decay; /* takes part in weight decay */
	int joined; /* follows the tensor before it without a gap */
	int layer; /* -1 embeddings, 0 .. L-1 encoder, L heads */
	int head; /* the head that it belongs to, -1: none alone */
	int frozen; /* no gradient, no update */
	uint64_t start; /* updates of the model before its first one, from which its bias correction counts */
	size_t zero_row; /* this row starts as zeros (the embedding of <pad>); NO_ROW: none */
};

#define NO_ROW SIZE_MAX

enum which { PARAM, GRAD, MOMENT1, MOMENT2 };

struct params {
	struct ops *o;
	uint64_t seed;
	double init_range;
	int torch_init; /* linear layers start as PyTorch's: weight and bias uniform, up to 1 / sqrt(inputs) */
	const char *prefix; /* goes before the names of params_add and params_at, NULL: nothing */
	struct tensor *tensor; /* [n] in the order of Hugging Face's module tree */
	size_t n, cap;
	size_t decayed; /* weight decay is for the elements before this one */
	size_t learned; /* elements of GRAD, MOMENT1 and MOMENT2, gaps included */
	size_t size; /* elements of PARAM: learned, then buffers */
	size_t nparam; /* learned elements without gaps */
	real *array[4]; /* by enum which; NULL: still all zeros, not allocated (params_array) */
};

/* Add a tensor [d0, d1] (d1 = 0: one dimension). The caller may change the returned tensor until the next call. */
struct tensor *params_add(struct params *p, enum init init, int decay, int layer, size_t d0, size_t d1, const char *fmt, ...)
	__attribute__((format(printf, 7, 8)));
/* NAME.weight [out, in] and NAME.bias [out]; of the last layer of a head, whose bias always starts at 0; NAME.weight [C] and NAME.bias [C] of a
 * LayerNorm. */
void params_add_linear(struct params *p, int layer, size_t out, size_t in, const char *name);
void params_add_last(struct params *p, int layer, size_t out, size_t in, const char *name);
void params_add_norm(struct params *p, int layer, size_t C, const char *name);
/* A linear layer's weight alone. */
struct tensor *params_add_weight(struct params *p, int layer, size_t out, size_t in, const char *name);

/* After the last tensor was added: give every tensor its offset, and allocate PARAM. */
void params_place(struct params *p);
void params_release(struct params *p);

const struct tensor *params_find(const struct params *p, const char *name); /* NULL: none */
size_t params_at(const struct params *p, const char *fmt, ...) __attribute__((format(printf, 2, 3))); /* its offset; it must exist */

real *params_array(struct params *p, enum which w); /* the first call allocates it */
size_t params_size(const struct params *p, enum which w);

/* Draw a tensor's initial values: Philox, by seed, name and index alone. */
void params_draw(struct params *p, const struct tensor *t);
/* Copy one tensor's n values to or from the host. A buffer has no gradient and no moments. */
void params_read(struct params *p, enum which w, const struct tensor *t, real *host);
void params_write(struct params *p, enum which w, const struct tensor *t, const real *host);

/* Freeze the embeddings and the tensors of layers 0 .. n - 1; 0: nothing. */
void params_freeze(struct params *p, size_t n);

/* Give f the elements [from, to) of GRAD that are finished with `layer`: those with decay, and for layer -1 also all without. */
typedef void params_part(void *arg, size_t from, size_t to);
void params_grad_part(const struct params *p, int layer, params_part *f, void *arg);

/* Add the squares of GRAD to *sum on the device; make one AdamW update, a->t the model's. Both skip frozen tensors, and the update those that
 * have not started. */
void params_sum_squares(struct params *p, double *sum);
void params_update(struct params *p, const struct adamw_args *a, const double *norm2);
