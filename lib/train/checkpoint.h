/*
 * A model on disk. A model directory has Hugging Face's layout,
 *     MODEL/config.json  model.safetensors  vocab.tsv  trainer_state.json       written at the end, model.safetensors last
 *     MODEL/README.md                                            a card to read, which belongs to who reads it
 *     MODEL/genes.tsv, groups.tsv ...                            tables that some models have
 *     MODEL/train.tsv                                            one row a finished step, grows while training
 *     MODEL/checkpoint-STEP/config.json  model.safetensors  vocab.tsv  optimizer.safetensors  trainer_state.json
 * so a directory with a model.safetensors is a finished model. A checkpoint is written as checkpoint-STEP.tmp. Every file and the
 * folder are fsynced, then the folder is renamed, so checkpoint-STEP is always complete. STEP counts finished global steps.
 *
 * optimizer.safetensors holds exp_avg.NAME and exp_avg_sq.NAME for every parameter NAME, without bias correction.
 * best.safetensors is there in a training with --eval: the weights with the best validation so far.
 *
 * model.safetensors has the digests of config.json, vocab.tsv and the tables (safetensors.h), trainer_state.json its own.
 */
#pragma once

#include "train/train_state.h"
#include "train/weights.h"

/* What a model directory or a checkpoint has besides the current weights. */
struct model_files {
	const struct vocab *vocab;
	const struct text_file *file; /* [nfile] tables, such as the labels of genes on which it was trained */
	size_t nfile;
	const real *best; /* checkpoints: weights of the best step so far, as model_read_all gives them, or NULL */
};

/* Read MODEL/checkpoint-STEP, of this configuration: its state, parameters and both moments into m, and best.safetensors into *best (malloced, NULL
 * where the state has no best step). */
int checkpoint_load(struct train_state *s, struct model *m, real **best, const char *model, uint64_t step, struct error *e);

/* Write MODEL/checkpoint-STEP (replacing one of that number), then delete all but the newest `keep` (>= 1). */
int checkpoint_save(
	const char *model, struct model *m, const struct train_state *s, const struct model_files *files, int keep, struct error *e);

/* Write the top-level files. s is the state at the end, but for its seconds. */
int checkpoint_finish(const char *model, struct model *m, const struct train_state *s, const struct model_files *files, struct error *e);

/* Make the directory if need be and lock it against a second trainer. Returns a descriptor that holds the lock, or -1. */
int checkpoint_lock(const char *model, struct error *e);
/* Delete what training writes, and only that: temporaries of checkpoints; unless `file` is NULL, checkpoints, weights and these files, too (ends with
 * NULL). */
int checkpoint_clear(const char *model, const char *const *file, struct error *e);

/*
 * Open MODEL/name, a table whose first column is the step, to append rows after `step` finished steps: rows of later steps are cut off, and
 * it is made with the line of column names (tabs between, a line break at the end) when it does not start with it. NULL with e set.
 */
#define CHECKPOINT_TRAIN "train.tsv"
FILE *checkpoint_log(const char *model, const char *name, uint64_t step, const char *columns, struct error *e);
