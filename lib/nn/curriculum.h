/*
 * A curriculum of genes: weights of the genes in the loss, which a small network learns with the model [Dong et al. 2025, appendices A.3 and
 * C: "CL" and "R2MAE + CL"; the idea is that of CL-MAE, Madan et al. 2024].
 *
 *     x [G]     mean of log(1 + count) over the cells of the batch, masked genes too
 *     s [G, K]  = sigmoid(ReLU(ReLU(x W1 + b1) W2 + b2) W3 + b3) + 1e-9       128 and 256 hidden values
 *     w         = Sinkhorn(s), 10 iterations (sinkhorn.h): the mean weight of a gene over the K masking ratios is 1, and that of a
 *                 ratio over the genes too (equation 9)
 *     loss      = sum over the masked genes of w_gk loss_g, k the ratio of the batch
 *
 * The gradient of the network is multiplied by a slope. 1 learns low weights for genes of large loss; -1 learns high ones. `hard` starts with
 * 1 and goes to -1 in a line between an eighth and a half of all steps; else the slope is 1. The network does not learn in the first
 * fiftieth of the steps.
 *
 * The host computes w and its gradient, on every backend in the same way: they are few numbers. So the host waits for the device in every step.
 */
#pragma once

#include "nn/model_impl.h"
#include "nn/sinkhorn.h"

#define CURRICULUM_PREFIX "curriculum."

struct curriculum_net {
	struct curriculum c; /* ratios 0: there is none, and the functions below do nothing */
	size_t G;
	struct {
		size_t w, b, out; /* offsets, width */
		void *y, *dy; /* act [out]; of the last one, y is before the sigmoid */
	} layer[3];
	void *x; /* act [G] */
	real *weight, *loss; /* [G] on the device: of the batch's ratio; of the genes, see struct gene_weight */
	uint32_t ratio; /* of the batch */
	struct sinkhorn scaling;
	real *host; /* [G K] */
	double *gene; /* [G] */
};

/* What the gradient of the network is multiplied by at `step` (from 0), and the step from which on it learns. */
double curriculum_slope(const struct curriculum *c, uint64_t step);
uint64_t curriculum_start(const struct curriculum *c);

void curriculum_tensors(const struct curriculum *c, struct params *p, int layer, size_t G);
void curriculum_resolve(struct curriculum_net *n, const struct curriculum *c, struct model *m);
void curriculum_carve(struct curriculum_net *n, struct arena *a);
/* Set n->weight from the counts of the batch. */
void curriculum_weigh(struct curriculum_net *n, struct model *m, const struct batch *b, uint32_t ratio);
/* Add the network's gradients of scale * sum_g weight_g loss_g. */
void curriculum_back(struct curriculum_net *n, struct model *m, uint64_t step, double scale);
void curriculum_release(struct curriculum_net *n);
