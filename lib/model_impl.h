/* What model.c (the table, the optimiser step) and model_bert.c (forward, backward) share. */
#ifndef MODEL_IMPL_H
#define MODEL_IMPL_H

#include "model.h"

/* Offsets of one encoder layer's tensors; query, key and value lie together, so they are one [3C, C] matrix. */
struct layer_at {
	size_t qkv_w, qkv_b, out_w, out_b, norm1_w, norm1_b;
	size_t up_w, up_b, down_w, down_b, norm2_w, norm2_b;
};

struct head_at {
	size_t dense_w, dense_b, norm_w, norm_b, bias; /* cls.predictions */
	size_t pool_w, pool_b, class_w, class_b;
};

/* A layer's activations [T, .] kept for the backward pass; without training all layers share one set. */
struct layer_act {
	void *qkv, *ctx, *r1, *x1, *pre, *up, *r2, *x2;
	real *lse, *stat1, *stat2;
};

struct arrays { /* a batch, on the device or on its way there */
	uint32_t *step, *offset, *id, *pos, *cell, *key, *tile, *order, *start, *mask, *target, *range;
	int32_t *label;
};

/* The host's side of a batch: filled while the device works on the one before. */
struct stage {
	char *host; /* laid out as the arrays at the start of the arena */
	size_t cap;
};

/* Marks of ops: a stage has been copied to the device; a result has come back. */
enum {
	MARK_STAGE = 0,
	MARK_RESULT = 2,
};

struct result {
	double *sums; /* [4], from host_alloc: as model.sums */
	double host[3], count;
	uint64_t done;
	size_t cells; /* model_embed */
	real *x;
	size_t cap;
};

struct model {
	struct model_config c;
	enum task task;
	struct ops *o;
	uint64_t seed;
	struct tensor *tensor;
	size_t ntensor, size, nparam;
	size_t decayed;      /* weight decay is for the elements before this one */
	real *array[4];      /* by enum which, [size], device; NULL: zeros that nobody has asked for yet (model_array) */
	real *class_weight;  /* [num_labels] device, or NULL */
	real *host_weight;   /* the same on the host */
	double focal;
	real *host_logit;    /* focal loss: [N, num_labels] */
	size_t host_logit_cap;
	double *sums;        /* [4] device: squares of the gradient; losses, hits and weights since model_zero_grad */
	double host_sum[3];  /* focal loss: those three */
	size_t frozen;       /* encoder layers */

	size_t word, posw, type, norm_w, norm_b; /* offsets of the embedding tensors */
	struct layer_at *at;                     /* [num_hidden_layers] */
	struct head_at head;

	/* One allocation for activations, grown to the largest batch so far; the pointers are carved from it per batch. */
	char *arena;
	size_t arena_cap;
	struct arrays dev;
	struct seq seq;
	void *x0;
	real *stat0;
	struct layer_act *act; /* [num_hidden_layers] */
	void *h, *z, *zpre, *y, *logit, *dlogit; /* head */
	real *stat_head, *lse_head;
	void *dx, *da, *dctx, *dbig, *dh, *dz;   /* gradients */
	real *pooled;         /* model_embed: [B,C] */
	struct stage stage[2];
	unsigned turn;        /* the stage of the batch that is on the device */
	struct result result[2];
	uint64_t posted, taken; /* results asked for, and collected */
	size_t nrow;          /* rows of the head: masked positions, cells or tokens, filled up as ops.round_* says */
	uint64_t tokens, rows; /* of all batches: theirs, and with what filled them up */
	struct forward last;  /* the training forward that model_backward belongs to */
	model_part *on_grad;  /* of the next backward, or NULL */
	void *on_grad_arg;
	int ready;            /* 1: activations of a training forward are there; 2: it had nothing to learn */
};

real *model_array(struct model *m, enum which w);

/* Give f the part of GRAD that is finished with `layer` (num_hidden_layers: the head, -1: the rest). */
void model_grad_part(struct model *m, int layer, model_part *f, void *arg);

#endif
