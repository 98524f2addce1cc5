/* What the heads of classes and numbers share: their outputs are a linear layer of what they read, z = x W + b. Their names begin with the
 * prefix of the kind. */
#pragma once

#include "nn/model_impl.h"

struct linear_head {
	struct head h; /* dz: where loss or host_loss puts the gradient */
	size_t w, b; /* offsets */
	const void *x; /* [N, C] what it reads */
};

/* Functions of struct head_kind. */
void linear_tensors(const struct head_spec *s, struct params *p, const struct model_config *c);
void linear_resolve(struct head *h, struct model *m);
size_t linear_outputs(const struct head *h, const struct model *m);
void linear_carve(struct head *h, struct model *m, struct arena *a, const struct shape *s);
void linear_forward(struct head *h, struct model *m, const struct forward *f, const void *x);
void linear_backward(struct head *h, struct model *m, const struct forward *f, void *dx);

#define LINEAR_HEAD \
	.tensors = linear_tensors, .resolve = linear_resolve, .outputs = linear_outputs, .carve = linear_carve, .forward = linear_forward, \
	.backward = linear_backward
