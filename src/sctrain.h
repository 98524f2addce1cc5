/*
 * The subcommands of sctrain, each with argv[0] = its own name, and what those that train share (sctrain_train.c): options,
 * stream, checkpoints, steps. A task adds its labels.
 */
#ifndef SCTRAIN_H
#define SCTRAIN_H

#include "batch.h"
#include "checkpoint.h"
#include "cli.h"
#include "metrics.h"

int mlm_main(int argc, char **argv);
int cells_main(int argc, char **argv);
int genes_main(int argc, char **argv);
int eval_main(int argc, char **argv);

/* Sums over cells that are not learned from. */
struct score {
	struct loss sum;                /* of classes: plain cross-entropy, whatever the training's loss */
	struct metrics metrics;         /* of classes */
	uint64_t cells, tokens;
	struct packed packed;
	real *logit;
	size_t logit_cap;
};

/* The data of --eval, and what came of them last. */
struct held {
	struct stream *in;              /* NULL: no --eval */
	struct masked_columns col;
	struct block block;
	struct score score;
	double loss, accuracy, macro_f1;
};
#define HELD_TOKENS 16384               /* of one forward pass */

/* ---- several ranks (sctrain_ranks.c); a training without --mpi is rank 0 of 1, for which all this is immediate ---- */

enum fault { FAULT_NONE, FAULT_STREAM, FAULT_STEP };    /* of two, the larger counts */

/* What a step adds up over its batch. Doubles only. */
struct tally {
	double loss, labels, correct;   /* as in struct loss */
	double tokens, cells;
};

/* What the ranks tell each other with it. Ints only. */
struct news {
	int fault;                      /* enum fault, the worst */
	int who;                        /* the first rank that has a fault */
	int signal;                     /* that asked a rank to stop, or 0 */
};

struct ranks {
	int rank, size;
	struct comm *comm;              /* NULL without --mpi */
	struct model *model;            /* of the step under way */
	float *mine, *sum;              /* [model_size] gradients: this rank's, all ranks' */
	int sent;                       /* model_backward has sent them on */
	struct tally here, total;
	struct news told, news;
	double waited;                  /* seconds in ranks_end, of this run */
};

/* Join the other ranks: from here on messages name the rank, those after the first are silent but for errors, and a rank that
 * exits without ranks_leave ends all. Chooses the rank's GPU. All of these die when the others are lost. */
void ranks_join(struct ranks *r, struct cli *cli);
void ranks_leave(struct ranks *r);                              /* waits for all; r is one rank again */
void ranks_check_shard(const struct ranks *r, const struct loader *l, const char *name);
void ranks_share(struct ranks *r, void *data, size_t n);        /* rank 0's, to all */
void ranks_share_model(struct ranks *r, struct model *m, int moments);  /* the same; makes room for gradients */
int ranks_same(struct ranks *r, const char *text);              /* 1: all ranks have the same text */
int ranks_same_weights(struct ranks *r, struct model *m);

/*
 * A step: ranks_begin after the last forward, before its backward, which then sends gradients on as they are finished;
 * ranks_end after it. Then GRAD, r->total and r->news are of all ranks. All ranks do both whatever happened to them; a model of
 * NULL passes news only.
 */
void ranks_begin(struct ranks *r, struct model *m, const struct tally *here, enum fault fault, int signal);
void ranks_end(struct ranks *r);

/* ---- one training, from the first block to the last ---- */

/*
 * The step that was asked for last. A device that runs behind the host (ops.queued) is given the next one before this one's
 * loss is looked at, so it never waits for us.
 */
struct pending {
	int live, asked;                /* asked: model_collect has its loss and norm */
	uint64_t step;
	struct tally sum;
	double norm;
};

struct train {
	const struct train_task *task;
	struct cli *cli;
	struct ranks ranks;
	struct stream *in;
	const struct header *header;    /* of in */
	struct masked_columns col;
	struct loader loader;
	struct ops *ops;
	struct model *model;
	struct optim optim;
	struct train_state state;
	uint64_t saved;                 /* step of the newest checkpoint, UINT64_MAX: none */
	FILE *log;                      /* rank 0 */
	struct packed packed;
	struct pending pending;
	uint64_t done;                  /* steps of this run, and what they added up over all ranks */
	struct tally sum;
	double start, last, seconds_before;
	struct held held;
	real *best;                     /* [model_size] weights of state.best_step, NULL: none yet */
	char *genes;                    /* text of genes.tsv, or NULL */
};

/* What a subcommand brings along. Functions may be NULL. */
struct train_task {
	enum task task;
	const char *name, *summary;     /* "mlm"; of the help */
	struct option_def *options;     /* its own */
	double lr;                      /* default peak learning rate */
	uint64_t warmup;                /* default steps of warm-up, 0: a tenth of all */
	void (*check)(void);                                            /* the command line is read: usage_error */
	/* The stream is open, and that of --eval where there is one: labels, c->num_labels. */
	void (*open)(struct train *t, struct model_config *c);
	void (*ready)(struct train *t);                                 /* the model is there */
	void (*settings)(const struct train *t, cJSON *j);              /* what the weights depend on besides */
	/* Rows [from, to) of b are packed in p: point p->b.label to their labels. held: b is not of t->in, but of --eval. */
	void (*label)(struct train *t, int held, struct packed *p, const struct block *b, size_t from, size_t to);
};

/* Forget what was counted; then count blocks, about tokens_max tokens at a time. Labels of classes are t->task's. */
void score_reset(struct score *y, const struct model *m);
void score_block(struct score *y, struct model *m, const struct masked_columns *col, const struct block *b, size_t tokens_max,
		 struct train *t, const char *name);
void score_release(struct score *y);

/* Open path beside a training on this header; measure t->model on all of it; close. They die. */
void held_open(struct held *h, const char *path, const struct header *training);
void held_measure(struct held *h, struct train *t);
void held_release(struct held *h);

int train_main(const struct train_task *task, int argc, char **argv);

#endif
