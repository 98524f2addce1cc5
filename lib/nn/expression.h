/* What the heads of expression share: a layer (transform.h) and two predictions for each gene of a row. */
#pragma once

#include "nn/transform.h"

/* A row is a listed position, of one gene, or a cell, of all genes of the vocabulary. */
struct expression {
	struct head h; /* z [N, 2 genes]: their gradient after the backward */
	struct transform t;
	size_t w, b; /* offsets of the decoder; row 2 g is the value of gene g, row 2 g + 1 the logit that it is not expressed */
	void *dy; /* [N, C] */
};

/* Functions of struct head_kind that both heads have. */
size_t expression_outputs(const struct head *h, const struct model *m);
void expression_carve(struct head *h, struct model *m, struct arena *a, const struct shape *s);
void expression_forward(struct head *h, struct model *m, const struct forward *f, const void *x);
void expression_loss(struct head *h, struct model *m, double *sum);
void expression_backward(struct head *h, struct model *m, const struct forward *f, void *dx);

#define EXPRESSION_HEAD \
	.size = sizeof(struct expression), .outputs = expression_outputs, .carve = expression_carve, .forward = expression_forward, \
	.loss = expression_loss, .backward = expression_backward
