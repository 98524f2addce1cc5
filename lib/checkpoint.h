/*
 * A model on disk. A model directory has Hugging Face's layout,
 *     MODEL/config.json  model.safetensors  vocab.tsv            written at the end, model.safetensors last
 *     MODEL/train.tsv                                            one row a finished step, grows while training
 *     MODEL/checkpoint-STEP/config.json  model.safetensors  vocab.tsv  optimizer.safetensors  trainer_state.json
 * so a directory with a model.safetensors is a finished model. A checkpoint is written as checkpoint-STEP.tmp, every file
 * and the folder fsynced, then renamed: one that has its name is complete. STEP counts finished global steps.
 *
 * optimizer.safetensors holds exp_avg.NAME and exp_avg_sq.NAME for every parameter NAME, without bias correction.
 */
#ifndef CHECKPOINT_H
#define CHECKPOINT_H

#include "error.h"
#include "header.h"
#include "model.h"

#include <cjson/cJSON.h>
#include <stdio.h>

/* The key "loader" of a masked stream's header, as maskgen writes it. */
struct loader {
	uint64_t rows, epochs, batch;   /* 0: not said */
	uint64_t shards, shard;         /* default 1 and 0 */
	uint64_t steps;                 /* global batches of all epochs, >= first_step */
	uint64_t first_step;            /* step of the first block; > 0 after a resume */
};

/* -1 with e set when there is none, or it makes no sense. */
int loader_parse(struct loader *l, const struct header *h, const char *name, struct error *e);

/*
 * What a masked stream is made of, wherever it starts and whichever shard it is: XXH3-128, in hex, of the compact JSON
 *     {"loader":{all keys in their order, but first_step and shard},"vocab":DIGEST,"provenance":[...]}
 * with DIGEST from vocab_digest. Provenance must therefore not name a shard or a resumed start.
 */
void masked_digest(const struct header *h, char hex[33]);

struct train_state {
	uint64_t step, steps;           /* finished, total */
	double epoch;                   /* finished, with its fraction */
	double seconds;                 /* training time so far */
	char digest[33];                /* masked_digest of the stream */
	cJSON *settings;                /* object of numbers and strings: everything else that the weights depend on */
};

void train_state_release(struct train_state *s);

/* The highest complete checkpoint of a model directory: 1 and *step, 0 none (or no such directory), -1 error. */
int checkpoint_latest(const char *model, uint64_t *step, struct error *e);

/* Read MODEL/checkpoint-STEP: its state alone (maskgen --resume), or with parameters and both moments into m. */
int checkpoint_state(struct train_state *s, const char *model, uint64_t step, struct error *e);
int checkpoint_load(struct train_state *s, struct model *m, const char *model, uint64_t step, struct error *e);

/* Write MODEL/checkpoint-STEP (replacing one of that number), then delete all but the newest `keep` (>= 1). */
int checkpoint_save(const char *model, struct model *m, const struct train_state *s, const struct vocab *v, int keep,
		    struct error *e);

/* Write the top-level files. */
int checkpoint_finish(const char *model, struct model *m, const struct vocab *v, struct error *e);
int checkpoint_finished(const char *model);             /* 1: there is a MODEL/model.safetensors */

/* Make the directory if need be and lock it against a second trainer. Returns a descriptor that holds the lock, or -1. */
int checkpoint_lock(const char *model, struct error *e);
/* Delete what training writes, and only that: checkpoints, their temporaries and, with `all`, the top-level files. */
int checkpoint_clear(const char *model, int all, struct error *e);

/*
 * Open MODEL/train.tsv to append rows after `step` finished steps: rows of later steps are cut off, and it is made with a
 * line of column names (step loss lr grad_norm tokens_per_s seconds) when it is not there. NULL with e set.
 */
FILE *checkpoint_log(const char *model, uint64_t step, struct error *e);

/* Parameters of a model from any safetensors file of the same network, ours or transformers'. */
struct weights_report {
	size_t fresh;           /* head tensors the file lacks: they keep their initial values */
	size_t ignored;         /* tensors of other heads, position_ids, a tied decoder */
	char first_fresh[96];   /* name of one */
};

/*
 * Tensors go by name, with or without "bert." in front. Every tensor of embeddings and encoder must be there with its
 * shape (the message has the name and both shapes); a tensor with no place in the network is an error, as is an untied decoder.
 */
int weights_load(struct model *m, const char *path, struct weights_report *r, struct error *e);
int weights_save(struct model *m, const char *path, struct error *e);

/*
 * The model of a directory, for use: config.json, model.safetensors and vocab.tsv. vocab->n is 0 where there is no
 * vocab.tsv (a model of transformers'). NULL with e set.
 */
struct model *model_dir_load(const char *dir, enum task task, struct ops *o, uint64_t seed, struct vocab *v,
			     struct weights_report *r, struct error *e);

/*
 * Is a stream's vocabulary the one of the model? v as from model_dir_load. 0 yes; 1 yes, but the medians differ, or the
 * model has no vocab.tsv and only the size was compared (e says which); -1 no, with e set.
 */
int vocab_same(const struct vocab *v, const struct model_config *c, const char *dir, const struct header *h, const char *name,
	       struct error *e);

#endif
