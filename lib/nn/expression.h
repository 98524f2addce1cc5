/* What the heads of expression share: a layer [BMFM-RNA; transformers BertPredictionHeadTransform], and two predictions for each gene of a row. */
#pragma once

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

/* A row is a listed position, of one gene, or a cell, of all genes of the vocabulary. */
struct expression {
	struct head h;
	struct transform t;
	size_t w, b; /* offsets of the decoder; row 2 g is the value of gene g, row 2 g + 1 the logit that it is not expressed */
	void *z; /* [N, 2 genes] predictions; their gradient after the backward */
	void *dy; /* [N, C] */
};

/* Functions of struct head_kind that both heads have. */
size_t expression_outputs(const struct head *h, const struct model *m);
void expression_carve(struct head *h, struct model *m, struct arena *a, const struct shape *s);
void expression_forward(struct head *h, struct model *m, const struct forward *f, const void *x);
void expression_loss(struct head *h, struct model *m, double *sum);
const void *expression_logits(struct head *h, struct model *m);
void expression_backward(struct head *h, struct model *m, const struct forward *f, void *dx);

/* A metric: the mean of a part. */
#define EXPRESSION_MEAN(name, part, what) \
	static double name(const struct loss *l, const struct head_spec *s) \
	{ \
		return l[part].what / l[part].count; \
	}

#define EXPRESSION_NEEDS OP(linear), OP(linear_back), OP(norm), OP(norm_back), OP(expression_loss), OP(expression_loss_back)
