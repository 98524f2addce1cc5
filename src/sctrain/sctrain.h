/*
 * The subcommands of sctrain (argv[0] is the subcommand's name) and the functions that they share.
 *
 *     mlm.c value.c cells.c genes.c nb.c   one task per file: options, labels and metrics (struct train_task)
 *     train.c                              the training loop, the same for every task
 *     options.c                            its command line
 *     start.c                              its streams, model and checkpoint, before the first step
 *     report.c                             train.tsv and progress
 *     validation.c                         --eval and --best
 *     score.c                              batches with labels, and the metrics of a model on them; also for eval.c
 *     ranks.c                              --mpi
 */
#ifndef SCTRAIN_H
#define SCTRAIN_H

#include "train/batch.h"
#include "train/checkpoint.h"
#include "train/ranks.h"
#include "train/step.h"
#include "mask/masked.h"
#include "cli.h"
#include "eval/metrics.h"

int mlm_main(int argc, char **argv);
int value_main(int argc, char **argv);
int cells_main(int argc, char **argv);
int genes_main(int argc, char **argv);
int nb_main(int argc, char **argv);
int eval_main(int argc, char **argv);

struct score;
struct train;
struct train_task;

/* ---- a masked stream, and its batches (score.c) ---- */

struct masked_source {
	struct stream *in; /* NULL: there is none */
	const char *name;
	struct masked_columns col;
	uint32_t shard, shards;
	int validation; /* the stream of --eval */
};

/* Find the columns of an open stream, masked or masked-counts as the head of the task asks. -1 with e set. */
int source_init(struct masked_source *s, const struct train_task *task, struct stream *in, struct error *e);

/* Packed rows of a block, with the targets of the task. */
struct example {
	struct packed packed;
	size_t rows; /* predictions of the head, with or without a label: masked positions, cells or tokens */
};

/* Pack rows [from, to). limit: positions of the model. -1 with e set. */
int example_pack(struct example *x, const struct train_task *task, const struct masked_source *s, const struct block *b, size_t from,
	size_t to, size_t limit, struct error *e);

/* ---- scores of a model on cells that are not for training (score.c) ---- */

/* Of one forward pass. A counted gene costs one row of one layer, a token all layers. */
enum { TOKENS_MAX = 16384, COUNTS_MAX = 1 << 18 };

/* Metrics are those of the task's head (nn/head.h), by number: 0 is the mean loss, i > 0 is head_kind.metric[i - 1]. */
#define METRICS_MAX 8
size_t metric_count(const struct head_kind *k);
const char *metric_name(const struct head_kind *k, size_t i);
int metric_better(const struct head_kind *k, size_t i, double a, double b); /* is a better than b? */

struct score {
	const struct train_task *task;
	struct loss sum;        /* for classes: plain cross-entropy, also if training uses another loss */
	struct metrics classes; /* for a task with classes */
	uint64_t cells, tokens;
	struct example example;
	real *logit;
	double *row; /* [classes] */
	size_t logit_cap, row_cap;
};

void score_reset(struct score *y, const struct train_task *task, const struct model *m);
/* Add a block, about tokens_max tokens at a time. Dies on errors. */
void score_block(struct score *y, struct model *m, const struct masked_source *s, const struct block *b, size_t tokens_max);
/* The metrics over all added blocks; at least one row was added. */
void score_metrics(struct score *y, double value[METRICS_MAX]);
void score_release(struct score *y);

/* ---- a task ---- */

/* Choices of --best, in the option's order. */
enum best { BEST_LOSS, BEST_ACCURACY, BEST_MACRO_F1, BEST_LAST };
const char *best_name(enum best best);
int best_metric(const struct head_kind *k, enum best best); /* number of the metric, -1: the head has none of that name */

/* Defined by each subcommand. Functions may be NULL. */
struct train_task {
	const struct head_kind *head;
	const char *name, *summary; /* "sctrain mlm"; of the help */
	struct option_def *options; /* its own */
	const char *config;         /* default configuration */
	struct optim optim;         /* defaults: variant, schedule, lr, weight_decay, max_norm */
	uint64_t warmup;            /* default steps of warm-up, at most 60 % of all; WARMUP_TENTH: a tenth of all; WARMUP_NONE */
	enum best best;             /* default of --best */
	const char *counted;        /* name of a target in the report */
	void (*check)(void);        /* called when the command line is read: usage_error */
	/* Called when the stream, and that of --eval if given, is open: read labels, set the classes of t->head. */
	void (*open)(struct train *t);
	void (*configure)(struct train *t, struct model_config *c); /* called after it: change the configuration */
	void (*ready)(struct train *t);                             /* called when the model is loaded */
	void (*settings)(const struct train *t, cJSON *j);          /* add the task's options that change the weights */
	/* Rows [from, to) of b, from s, are packed in p: fill p->b.goal[0] from their labels, or p->b.group. Returns the number of rows that
	 * the head predicts. NULL: masked positions. */
	size_t (*label)(const struct masked_source *s, struct packed *p, const struct block *b, size_t from, size_t to);
};

enum { WARMUP_TENTH = 0 };
#define WARMUP_NONE UINT64_MAX

/* AdamW as Geneformer's pre-training and fine-tuning have it, but for the rate. */
#define OPTIM_TRANSFORMER(rate) \
	{ \
		.variant = ADAMW_TORCH, .schedule = SCHEDULE_LINEAR, .lr = rate, .weight_decay = 0.001, .max_norm = 1 \
	}

extern const struct train_task mlm_task, value_task, nb_task; /* also of sctrain eval */
/* For sctrain eval: the groups of the model in dir, for cells of s; and a warning if cells had none that the model knows. */
void nb_eval_open(const char *dir, const struct masked_source *s);
void nb_eval_warn(const struct masked_source *s, uint64_t cells);

int train_main(const struct train_task *task, int argc, char **argv);

/* ---- the command line of a training (options.c) ---- */

struct train_options {
	const char *config, *init, *eval; /* NULL: not given */
	double lr, warmup, dropout;       /* -1: not given */
	double weight_decay, clip;        /* the same */
	int schedule, adam;               /* enum schedule, enum adamw; -1 */
	int best;                         /* enum best */
	int resume, force, mpi;
	long long accum, freeze, save_every, keep;
	long long eval_every, patience; /* 0: not given */
};

/* Read and check the command line. Both structs are static. */
struct train_options *options_read(const struct train_task *task, int argc, char **argv, struct cli **cli);
/* All options that change the weights and are not in the configuration or the stream; for checkpoints. */
cJSON *options_settings(const struct train *t);
/* Die unless a checkpoint has the present settings, because a resumed training must give the same weights as an uninterrupted one. */
void options_check_settings(const cJSON *was, const cJSON *is, const char *model);

/* ---- several ranks (ranks.c) ---- */

/* Join the other ranks. After this, messages name the rank, ranks above 0 print errors only, and a rank that exits without train_leave ends
 * all others. Chooses the rank's GPU. These functions die on errors. */
void train_join(struct ranks *r, struct cli *cli);
void train_leave(struct ranks *r); /* waits for all ranks; then r is a single rank */
void train_check_shard(const struct ranks *r, const struct masked_info *m, const char *name);

/* ---- one training ---- */

/* --eval. */
struct validation {
	struct masked_source source; /* in NULL: no --eval */
	struct block block;
	struct score score;
	double value[METRICS_MAX]; /* of the last validation, on all ranks */
};

/* train.tsv, and the totals of this run. */
struct report {
	FILE *log; /* rank 0 */
	uint64_t steps;
	struct totals totals;
	double start, last;    /* clock_seconds: of the first step, of the newest row */
	double seconds_before; /* of the training, in earlier runs */
};

struct train {
	const struct train_task *task;
	const struct train_options *options;
	struct cli *cli;
	struct ranks ranks;
	struct masked_source source;
	const struct header *header; /* of the source */
	struct masked_info info;
	struct ops *ops;
	struct head_spec head;
	struct model *model;
	struct optim optim;
	struct train_state state;
	uint64_t saved;            /* step of the newest checkpoint, UINT64_MAX: none */
	const struct block *block; /* of the current step */
	struct example example;
	struct step_queue steps;
	struct report report;
	struct validation validation;
	uint64_t eval_every;
	real *best;           /* [model_size of PARAM] weights of state.best_step, NULL: none yet */
	char *genes, *groups; /* text of genes.tsv and groups.tsv, or NULL */
};

/* Everything before the first step (start.c). 0 if the model is finished already. */
int train_start(struct train *t);

/* report_open opens train.tsv. report_step takes a finished step: it updates the state, validates if it is due, and writes a row and the
 * progress line. They die on errors. */
void report_open(struct train *t);
void report_step(struct train *t, const struct step_result *r);
void report_close(struct train *t);
void report_run(struct train *t); /* the summary for -v */

/* Open the stream of --eval, which must have the training's vocabulary. These functions die on errors. */
void validation_open(struct train *t);
int validation_due(const struct train *t, uint64_t step); /* is there a validation after this many finished steps? */
/* Validate the present weights, with the same result on all ranks. Copy them to t->best if they are the best so far. */
void validation_run(struct train *t);
void validation_release(struct validation *v);

#endif
