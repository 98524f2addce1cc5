/*
 * --recalibrate COUNTS: batch normalisation of a model of counts by the statistics of these cells under the masks of the input, in place of the
 * running averages over all masks of the training (model_recalibrate). The functions die on errors.
 *
 *     struct recalibration *x = recalibration_new(path, model, dir, in);
 *     for each block of the input: recalibration_fit(x, &columns, &block, name);
 */
#pragma once

#include "cli_inference.h"

struct recalibration {
	struct inference of; /* of the cells */
	struct block *block; /* [n] all cells, in memory */
	size_t n;
	size_t at, from; /* the next cells of a pass */
	uint32_t *masked, nmasked; /* the genes masked now */
	size_t masked_cap;
	int ready; /* the model has the statistics of these masks */
};

#define RECALIBRATE_ROW(variable) \
	{ \
		0, "recalibrate", OPT_INPUT, &(variable), "COUNTS", \
			"models of counts: normalise by the statistics of these cells, under the masks of the input", .changes = 1 \
	}

/* in: the input, which has the vocabulary of the model; dir: of the model. path NULL: NULL, with which the others do nothing. */
struct recalibration *recalibration_new(const char *path, struct model *m, const char *dir, const struct stream *in);
/* For a block of the input, whose columns are c: the rows must have the same masked genes, if any. */
void recalibration_fit(struct recalibration *x, const struct masked_columns *c, const struct block *b, const char *name);
/* Warn once if the masks of a block hide more genes than those of the model's training did. */
void masks_beyond(const struct model_config *m, const struct masked_columns *c, const struct block *b, const char *name);
