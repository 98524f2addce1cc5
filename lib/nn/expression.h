/* What the heads of expression share: the layer before their predictions [BMFM-RNA; transformers BertPredictionHeadTransform]. */
#ifndef EXPRESSION_H
#define EXPRESSION_H

#include "nn/model_impl.h"

/* y = LN(act(x W + b)), [N, C]. Its tensors are cls.predictions.predictions.transform. */
struct transform {
	size_t dense_w, dense_b, norm_w, norm_b; /* offsets */
	const void *x;
	void *z, *zpre, *y; /* [N, C] */
	real *stat;
};

void transform_tensors(struct params *p, const struct model_config *c);
void transform_resolve(struct transform *t, const struct model *m);
void transform_carve(struct transform *t, const struct head *h, const struct model *m, struct arena *a, const struct shape *s);
const void *transform_forward(struct transform *t, const struct head *h, struct model *m, const void *x);
/* dy [N, C], which is overwritten, to dx. */
void transform_back(struct transform *t, const struct head *h, struct model *m, void *dx, void *dy);

#define EXPRESSION_NEEDS OP(linear), OP(linear_back), OP(norm), OP(norm_back), OP(expression_loss), OP(expression_loss_back)

#endif
