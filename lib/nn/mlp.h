/*
 * The layers of multilayer perceptrons on cells, for mlp_nb.c and head_nb.c:  y = ReLU(BN(z)), z from a linear layer without bias, because
 * the normalisation would remove it. Weight decay is for all tensors, as torch.optim.Adam's is.
 */
#pragma once

#include "nn/model_impl.h"

struct mlp_layer {
	size_t gamma, beta, mean, var; /* offsets */
	void *z, *y; /* act [N,C] before and after */
	real *stat;
};

/* NAME.weight [out, in], drawn with the variance of torch.nn.Linear, 1 / (3 in); NAME.bias [out] = 0 if wanted. */
void mlp_add_linear(struct params *p, int layer, size_t out, size_t in, int bias, const char *name);
/* NAME.weight [rows, C] of the op bag: the same layer for `in` inputs in all, stored by input. rows 0: none. */
void mlp_add_bag(struct params *p, int layer, size_t rows, size_t C, size_t in, const char *name);

/* The normalisation: NAME.weight, .bias and the buffers .running_mean, .running_var, all [C]. */
void mlp_add_norm(struct params *p, int layer, size_t C, const char *name);
void mlp_resolve(struct mlp_layer *l, const struct params *p, const char *name);
void mlp_carve(struct mlp_layer *l, struct arena *a, size_t N, size_t C);
/* y from z, of the batch's cells; and in place, dz from dy. */
void mlp_forward(struct mlp_layer *l, struct model *m, const struct forward *f, size_t C);
void mlp_back(struct mlp_layer *l, struct model *m, void *dy, size_t C);

enum { MLP_EPS, MLP_MOMENTUM }; /* in model_config.own */
