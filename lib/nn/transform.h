/* The layer before predictions [transformers BertPredictionHeadTransform; BMFM-RNA]: y = LN(act(x W + b)), [N, C]. */
#pragma once

#include "nn/model_impl.h"

struct transform {
	size_t dense_w, dense_b, norm_w, norm_b; /* offsets */
	const void *x;
	void *z, *zpre, *y; /* [N, C] */
	real *stat;
};

/* The names of its tensors begin with the prefix of the kind of head. */
void transform_tensors(struct params *p, const struct model_config *c, const struct head_kind *of);
void transform_resolve(struct transform *t, const struct model *m, const struct head_kind *of);
void transform_carve(struct transform *t, const struct head *h, const struct model *m, struct arena *a);
const void *transform_forward(struct transform *t, const struct head *h, struct model *m, const void *x);
/* dy [N, C], which is overwritten, to dx. */
void transform_back(struct transform *t, const struct head *h, struct model *m, void *dx, void *dy);
