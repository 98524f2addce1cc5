/*
 * Where a training stands: what its masked stream is, and trainer_state.json of its checkpoints. Both ends of the pipe need
 * this, so it knows nothing of models.
 */
#ifndef TRAIN_STATE_H
#define TRAIN_STATE_H

#include "error.h"
#include "header.h"

#include <cjson/cJSON.h>
#include <stdint.h>

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
	uint64_t best_step;             /* where held-out data were predicted best so far; 0: not measured yet */
	double best;                    /* the measure there */
	uint64_t stale;                 /* times measured since, without a better value */
	cJSON *settings;                /* object of numbers and strings: everything else that the weights depend on */
};

void train_state_release(struct train_state *s);

/* MODEL/checkpoint-STEP<suffix> (malloced), and the steps of all such folders of a model directory, ascending (malloced):
 * returns how many (0 where there is no such directory), or -1. */
char *checkpoint_path(const char *model, uint64_t step, const char *suffix);
int64_t checkpoint_list(const char *model, const char *suffix, uint64_t **steps, struct error *e);

/* The highest complete checkpoint of a model directory: 1 and *step, 0 none (or no such directory), -1 error. */
int checkpoint_latest(const char *model, uint64_t *step, struct error *e);

/* Read trainer_state.json of MODEL/checkpoint-STEP; write one. */
int checkpoint_state(struct train_state *s, const char *model, uint64_t step, struct error *e);
int train_state_save(const struct train_state *s, const char *path, struct error *e);

#endif
