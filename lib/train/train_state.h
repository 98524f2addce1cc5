/*
 * How far a training has got: trainer_state.json of its checkpoints, and the folders these are in. The loader reads it as well as
 * the trainer, so nothing here depends on a model.
 */
#pragma once

#include "base/error.h"

#include <cjson/cJSON.h>

#define TRAIN_STATE "trainer_state.json"

struct train_state {
	uint64_t step, steps; /* finished, total */
	double epoch; /* finished, with its fraction */
	double seconds; /* training time so far; 0 for a finished model, whose files depend on no clock */
	char digest[33]; /* masked_digest of the stream */
	uint64_t best_step; /* with the best value of the validation so far; 0: not measured yet */
	double best; /* that value */
	uint64_t stale; /* validations since, none of them better */
	char kernels[96]; /* what computes: "OpenBLAS 0.3.21 Zen, avx2", "cuda"; empty: not known */
	cJSON *stream; /* masked_description of the stream; NULL: of an earlier version */
	cJSON *settings; /* object of numbers and strings: everything else that the weights depend on */
};

void train_state_release(struct train_state *s);

/* MODEL/checkpoint-STEP<suffix> (malloced), and the steps of all such folders of a model directory, ascending (malloced):
 * returns how many (0 if there is no such directory), or -1. */
char *checkpoint_path(const char *model, uint64_t step, const char *suffix);
int64_t checkpoint_list(const char *model, const char *suffix, uint64_t **steps, struct error *e);

/*
 * How far the training of a model directory is, which need not exist, and its state: of a finished model that of MODEL/trainer_state.json (earlier
 * versions wrote none; then that of a checkpoint, or TRAIN_UNKNOWN and no state), else of the newest checkpoint that is whole by its digests.
 * *damaged: what is wrong with one that is passed over (malloced), or NULL. NULL for damaged: only the states are read, and it is the oldest
 * checkpoint, from which all others can be reached. TRAIN_FAULT: e is set.
 */
enum train_progress { TRAIN_NEW, TRAIN_UNFINISHED, TRAIN_FINISHED, TRAIN_UNKNOWN, TRAIN_FAULT };
enum train_progress checkpoint_progress(struct train_state *s, const char *model, char **damaged, struct error *e);
int checkpoint_finished(const char *model); /* 1: there is a MODEL/model.safetensors */

/* Read a trainer_state.json, that of MODEL/checkpoint-STEP; the text of one (malloced). */
int train_state_load(struct train_state *s, const char *path, struct error *e);
int checkpoint_state(struct train_state *s, const char *model, uint64_t step, struct error *e);
char *train_state_print(const struct train_state *s);
