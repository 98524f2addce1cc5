/* Probes and neighbours of embeddings in memory, for ctaprobe cells and transfer. */
#pragma once

#include "ctaprobe.h"
#include "eval/probe.h"

/* A logistic regression has only the classes of its training cells. */
struct fitted {
	struct probe p;
	uint32_t *local, *back; /* class -> class of the probe or MISSING_CODE [all classes]; class of the probe -> class */
	size_t all;
};

/* Train on rows row[0..n) of d, whose classes are c, of column `label`. o->start is taken if it has as many classes as these rows. Dies with `what` in the message if there are fewer than two. */
void fitted_train(struct fitted *f, const struct embeddings *d, const uint32_t *row, size_t n, const struct classes *c, const char *label,
	const struct probe_options *o, const char *what);
void fitted_release(struct fitted *f); /* accepts a zeroed struct */

/* logit [all classes] of a row x; -INFINITY: not among the training cells. */
void fitted_logits(const struct fitted *f, const float *x, double *logit);

/* Rows row[0..n) of d, malloced. */
float *rows_taken(const struct embeddings *d, const uint32_t *row, size_t n);

/* What the features are divided by before distances are taken: their standard deviation over rows row[0..n) of d, [d->d]; 1 for a feature that is
 * constant but for rounding, or with as_given. Malloced. */
double *rows_scale(const struct embeddings *d, const uint32_t *row, size_t n, int as_given);
