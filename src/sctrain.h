/*
 * The subcommands of sctrain, each with argv[0] = its own name, and what those that train share (sctrain_train.c): options,
 * stream, checkpoints, steps. A task adds its labels.
 */
#ifndef SCTRAIN_H
#define SCTRAIN_H

#include "batch.h"
#include "checkpoint.h"
#include "cli.h"

int mlm_main(int argc, char **argv);
int cells_main(int argc, char **argv);
int eval_main(int argc, char **argv);

/* One training, from the first block to the last. */
struct train {
	const struct train_task *task;
	struct cli *cli;
	struct stream *in;
	const struct header *header;    /* of in */
	struct masked_columns col;
	struct loader loader;
	struct ops *ops;
	struct model *model;
	struct optim optim;
	struct train_state state;
	uint64_t saved;                 /* step of the newest checkpoint, UINT64_MAX: none */
	FILE *log;
	struct packed packed;
	uint64_t done, cells, tokens;   /* of this run */
	double labels;                  /* predictions that counted in the loss, of this run */
	double start, last, seconds_before;
};

/* What a subcommand brings along. Functions may be NULL. */
struct train_task {
	enum task task;
	const char *name, *summary;     /* "mlm"; of the help */
	struct option_def *options;     /* its own */
	double lr;                      /* default peak learning rate */
	uint64_t warmup;                /* default steps of warm-up, 0: a tenth of all */
	void (*check)(void);                                            /* the command line is read: usage_error */
	void (*open)(struct train *t, struct model_config *c);          /* the stream is open: labels, c->num_labels */
	void (*ready)(struct train *t);                                 /* the model is there */
	void (*settings)(const struct train *t, cJSON *j);              /* what the weights depend on besides */
	/* Rows [from, to) of b are packed in p: point p->b.label to their labels. held: b is not of t->in, but of --eval. */
	void (*label)(struct train *t, int held, struct packed *p, const struct block *b, size_t from, size_t to);
};

int train_main(const struct train_task *task, int argc, char **argv);

#endif
