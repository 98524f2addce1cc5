/*
 * Learning-rate schedules and the settings of AdamW, as transformers' Trainer has them; the update itself is an op
 * (ops.h: adamw), applied to a model by model_step.
 */
#pragma once

#include "nn/ops.h"

enum schedule {
	SCHEDULE_LINEAR, /* warm-up, then down to 0 at `total` */
	SCHEDULE_COSINE, /* warm-up, then (1 + cos(pi x)) / 2, x = share of the rest that is done */
	SCHEDULE_CONSTANT, /* warm-up, then 1 */
};

/* Is the decay a part of the gradient, which the moments then have too? */
static inline int adamw_is_l2(enum adamw variant)
{
	switch (variant) {
	case ADAMW_L2:
		return 1;
	case ADAMW_TORCH:
		break;
	}
	return 0;
}

struct optim {
	enum adamw variant;
	enum schedule schedule;
	double lr; /* peak */
	double beta1, beta2, eps; /* 0.9, 0.999, 1e-8 */
	double weight_decay; /* of the tensors with decay set: all but biases and LayerNorm */
	double max_norm; /* gradient clipping, 0 = none */
	uint64_t warmup, total; /* updates */
};

/* Geneformer V1's: torch variant, linear, lr 1e-3, decay 0.001, clip 1, warm-up 0, total 0. */
void optim_init(struct optim *o);

/* Names as on a command line. */
extern const char *const schedule_words[SCHEDULE_CONSTANT + 1], *const adamw_words[ADAMW_L2 + 1];

/*
 * Factor on the peak rate after `done` finished updates [transformers optimization.py]: linear is
 *     done / max(1, warmup) while done < warmup, else max(0, (total - done) / max(1, total - warmup))
 * so with warm-up the first update has rate 0.
 */
double optim_factor(const struct optim *o, uint64_t done);
