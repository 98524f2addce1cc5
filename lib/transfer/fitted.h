/* Logistic regression of classes of which the cells that it learns from need not have all. */
#pragma once

#include "base/classes.h"
#include "cells/embeddings.h"
#include "eval/probe.h"

struct fitted {
	struct probe p; /* has only the classes of its cells */
	uint32_t *local, *back; /* class -> class of the probe or MISSING_CODE [all classes]; class of the probe -> class */
	size_t all;
};

/* Learn from rows row[0..n) of d, whose classes are c, of column `label`. o->start is taken if it has as many classes as these rows. -1
 * with e set: they have fewer than two, or probe_fit fails. */
int fitted_train(struct fitted *f, const struct embeddings *d, const uint32_t *row, size_t n, const struct classes *c, const char *label,
	const struct probe_options *o, struct error *e);
void fitted_release(struct fitted *f); /* accepts a zeroed struct */

/* logit [all classes] of a row x; -INFINITY: not among the cells. */
void fitted_logits(const struct fitted *f, const float *x, double *logit);
