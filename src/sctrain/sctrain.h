/*
 * The subcommands of sctrain (argv[0] is the subcommand's name) and the functions that they share.
 *
 *     mlm.c value.c wced.c cells.c genes.c nb.c   one task per file: its options, and the objectives that they ask for (struct train_task)
 *     heads.c                              --head: objectives of cells.c, and of every other training
 *     label.c hce.c number.c               their kinds
 *     objectives.c                         the list of objectives, their batches, and their files in the model directory
 *     train.c                              the training loop, the same for every task
 *     options.c                            its command line
 *     start.c                              its streams and its model, before the first step
 *     resume.c                             --resume: is what is in the model directory of this training, and how far
 *     report.c                             train.tsv and progress
 *     card.c                               README.md
 *     validation.c                         --eval and --best
 *     score.c                              the metrics of a model; also for eval.c
 *     by_gene.c                            and those of each gene
 *     ranks.c                              --mpi
 */
#pragma once

#include "train/batch.h"
#include "train/checkpoint.h"
#include "train/config.h"
#include "train/step.h"
#include "mask/masked.h"
#include "cli_stream.h"
#include "eval/gene_errors.h"
#include "eval/metrics.h"

int sctrain_eval(int argc, char **argv);

struct train;
struct objective;

/* ---- objectives ---- */

/* What a model reads: the stream of a training or an evaluation. */
enum input {
	INPUT_TOKENS, /* masked, with tokens as targets */
	INPUT_VALUES, /* masked, with values beside the targets */
	INPUT_CELLS, /* masked, with whole cells as targets */
	INPUT_COUNTS, /* masked-counts */
	INPUTS
};

/* A masked stream. */
struct masked_source {
	struct stream *in; /* NULL: there is none */
	const char *name;
	struct masked_columns col;
	uint32_t shard, shards;
	int validation; /* the stream of --eval */
};

/*
 * A kind of objective: a head, and where its targets come from. One file has one, or two that are alike; sctrain.c has the table of all. No other
 * code tests which kind an objective is. Functions may be NULL; they die on errors.
 */
struct objective_kind {
	const char *name; /* the subcommand that trains it, for messages */
	const struct head_kind *head;
	enum input input;
	const struct objective_kind *valued; /* takes its place if the input has values (maskgen of tokens with counts); NULL: none */
	const char *counted; /* name of a target in the report */
	const char *file; /* of the model directory, in which it keeps a table (train_add_file), or NULL */
	size_t size; /* bytes of its state */
	/* Called when the stream, and that of --eval if given, is open: read labels, complete o->head. */
	void (*open)(struct objective *o, struct train *t);
	void (*configure)(struct objective *o, const struct train *t, struct model_config *c); /* called after it */
	void (*ready)(struct objective *o, struct train *t); /* called when the model is made */
	/* Add the options that change the weights, and are in neither the configuration nor the stream. */
	void (*settings)(const struct objective *o, cJSON *j);
	/* Rows [from, to) of b, from s, are packed in p: fill p->b.goal[o->index] from their labels, or other fields of p->b. NULL: the goal is
	 * p->masked. */
	void (*label)(struct objective *o, const struct masked_source *s, struct packed *p, const struct block *b, size_t from, size_t to);
	/* sctrain eval: before the first block, what the model in dir has beside its weights; and after the last cell. */
	void (*eval_open)(struct objective *o, const char *dir, const struct masked_source *s);
	void (*eval_close)(struct objective *o, const struct masked_source *s, uint64_t cells);
};

/* One objective of a training: a head of its model. */
struct objective {
	const struct objective_kind *kind;
	struct head_spec head;
	size_t index; /* of the head in the model */
	const char *what; /* it predicts, for messages: a column, or its name */
	void *state; /* of the kind, zeros at first */
};

struct objectives {
	size_t n;
	struct objective one[HEADS_MAX];
};

extern const struct objective_kind mlm_objective, value_objective, expression_objective, wced_objective, label_objective, hce_objective,
	number_objective, genes_objective, nb_objective;
const struct objective_kind *objective_kind_at(size_t i); /* the i-th, NULL past the last */
const struct objective_kind *objective_reading(enum input input); /* such a stream, without columns */
/*
 * Add one. name: of its head, and of the column of its targets; NULL: the head of the training itself, which has the name of its kind. The first
 * of a training has no prefix. A column that is called like that kind is predicted by the head column.NAME. Usage error: the name occurs twice,
 * or cannot be one.
 */
struct objective *objective_add(struct objectives *list, const struct objective_kind *kind, const char *name);
const char *objective_name(const struct objective *o);
void objective_add_losses(const struct objective *o, cJSON *j); /* the weights of its losses, for `settings` */

/* ---- batches with labels (objectives.c) ---- */

/* Objectives that have another kind for streams with values as input become of that kind. */
void objectives_choose(struct objectives *list, const struct header *h);
/* Find the columns of an open stream for the objectives. program: "sctrain mlm". -1 with e set. */
int source_init(struct masked_source *s, const struct objectives *list, const char *program, struct stream *in, struct error *e);
/* Pack rows [from, to) with the targets of all objectives. limit: positions of the model. -1 with e set. */
int objectives_pack(struct packed *p, struct objectives *list, const struct masked_source *s, const struct block *b, size_t from, size_t to,
	size_t limit, struct error *e);

/* Tokens of one forward pass without training. A counted gene costs one row of one layer, a token all layers. */
size_t input_tokens_max(const struct objectives *list);

/* ---- scores of a model on cells that are not for training (score.c) ---- */

/* Metrics of a head (nn/head.h), by number: 0 is the mean loss, i > 0 is head_kind.metric[i - 1]. */
#define METRICS_MAX 8
size_t metric_count(const struct head_kind *k);
const char *metric_name(const struct head_kind *k, size_t i);
int metric_better(const struct head_kind *k, size_t i, double a, double b); /* is a better than b? */

struct score {
	struct objectives *list;
	struct {
		struct loss sum[PARTS_MAX]; /* its losses; for classes: plain cross-entropy, also if training uses another loss */
		struct metrics classes; /* for a head of classes */
		real *logit;
		size_t logit_cap;
	} of[HEADS_MAX]; /* each head of the model */
	uint64_t cells, tokens;
	struct packed packed;
	double *row; /* [classes] */
	size_t row_cap;
	int by_gene; /* 0: `genes` is not wanted; threads that it may use */
	struct gene_errors genes; /* [vocabulary] */
};

/* Values of the metrics: value[i][k] is metric k of head i; loss is that of the model. */
struct scores {
	double loss, value[HEADS_MAX][METRICS_MAX];
};

void score_reset(struct score *y, struct objectives *list, const struct model *m);
/* Add a block, about tokens_max tokens at a time. Dies on errors. */
void score_block(struct score *y, struct model *m, const struct masked_source *s, const struct block *b, size_t tokens_max);
double score_count(const struct score *y); /* targets so far, of all heads */
/* The metrics over all added blocks; NaN for a head without a target. */
void score_metrics(struct score *y, const struct model *m, struct scores *x);

/* ---- the errors of each gene (by_gene.c) ---- */

int by_gene_predicts(const struct objective *o); /* does it predict the expression of genes? */
void by_gene_reset(struct score *y, const struct model *m);
/* Add the predictions of the packed cells by the head of o: those in its `logit`. Dies if one is not finite. */
void by_gene_add(struct score *y, const struct model *m, const struct objective *o);
/* The same, of the last model_forward. */
void by_gene_forward(struct score *y, struct model *m, const struct objective *o);
/* Write a table with a row for every gene of v. Dies on errors. */
void by_gene_write(struct score *y, const struct vocab *v, const char *path);

/* ---- a task ---- */

/* Choices of --best, in the option's order. */
enum best { BEST_LOSS, BEST_ACCURACY, BEST_MACRO_F1, BEST_LAST };
const char *best_name(enum best best);
int best_metric(const struct head_kind *k, enum best best); /* number of the metric, -1: the head has none of that name */

/* A subcommand that trains: its options, its defaults, and the objectives that they ask for. */
struct train_task {
	const char *name, *summary; /* "sctrain mlm"; of the help */
	struct option_def *options; /* its own */
	const int *balanced; /* its option of class weights, or NULL */
	const char *config; /* default configuration */
	struct optim optim; /* defaults: variant, schedule, lr, weight_decay, max_norm */
	uint64_t warmup; /* default steps of warm-up, at most 60 % of all; WARMUP_TENTH: a tenth of all; WARMUP_NONE */
	enum best best; /* default of --best */
	const struct objective_kind *objective; /* its only one, but for those of --head; or NULL, and then: */
	/* Called when the command line is read: check it (usage_error), and add its objectives; those of --head follow. */
	void (*objectives)(struct objectives *list);
};
extern const struct train_task mlm_task, value_task, wced_task, cells_task, genes_task, nb_task;

enum { WARMUP_TENTH = 0 };
#define WARMUP_NONE UINT64_MAX

/* AdamW as Geneformer's pre-training and fine-tuning have it, but for the rate. */
#define OPTIM_TRANSFORMER(rate) \
	{ \
		.variant = ADAMW_TORCH, .schedule = SCHEDULE_LINEAR, .lr = rate, .weight_decay = 0.001, .max_norm = 1 \
	}

int train_main(const struct train_task *task, int argc, char **argv);

/* ---- the command line of a training (options.c) ---- */

struct train_options {
	const char *config, *init, *eval; /* NULL: not given */
	double lr, warmup, dropout; /* -1: not given */
	double weight_decay, clip; /* the same */
	int schedule; /* enum schedule; -1 */
	int best; /* enum best */
	int resume, force, mpi, same_kernels;
	long long accum, freeze, save_every, keep;
	long long eval_every, patience; /* 0: not given */
};

/* Read and check the command line, and make the objectives. Both structs are static. */
struct train_options *options_read(const struct train_task *task, int argc, char **argv, struct cli **cli, struct objectives *list);
/* All options that change the weights and are not in the configuration or the stream, for checkpoints; two of them are not in those of earlier
 * versions. */
cJSON *options_settings(const struct train *t);
#define SETTING_INIT "init"
#define SETTING_EVAL_CELLS "eval-cells"

/* ---- --resume (resume.c) ---- */

/* Lock the model directory and see what it holds, and its state. Dies where the options do not allow to go on. *damaged: of a later checkpoint. */
enum train_progress resume_open(const struct train *t, struct train_state *was, char **damaged);
/* Die unless the model directory's stream, configuration and settings are the present ones: a resumed training must give the same weights as an
 * uninterrupted one, and a finished model must be the one that was asked for. */
void resume_check(const struct train *t, const struct model_config *c, enum train_progress progress, const struct train_state *was);
void resume_load(struct train *t, uint64_t step, const char *damaged); /* the checkpoint; later ones, which are damaged, get another name */
void resume_nothing(struct train *t); /* a finished model: read what comes through a pipe, so that the program before us does not fail */

/* ---- several ranks (ranks.c) ---- */

/* Join the other ranks. After this, messages name the rank, ranks above 0 print errors only, and a rank that exits without train_leave ends
 * all others. Chooses the rank's GPU. These functions die on errors. */
void train_join(struct ranks *r, struct cli *cli);
void train_leave(struct ranks *r); /* waits for all ranks; then r is a single rank */
/* From now on say which ranks a long step waits for, and give up a while after the signal *stop. */
void train_watch(struct ranks *r, const volatile sig_atomic_t *stop);
/* Die if a text is not the same on all ranks. Of JSON the message has the first value that is not. */
void train_check_same(struct ranks *r, const char *what, const char *text);
void train_check_shard(const struct ranks *r, const struct masked_info *m, const char *name);

/* ---- one training ---- */

/* --eval. */
struct validation {
	struct masked_source source; /* in NULL: no --eval */
	struct block block;
	struct score score;
	struct scores last; /* on all ranks */
};

/* train.tsv, and the totals of this run. */
struct report {
	FILE *log; /* rank 0 */
	char *early; /* [early_size] the text of `log` while train.replaces */
	size_t early_size;
	uint64_t steps;
	struct totals totals;
	double start, last; /* clock_seconds: of the first step, of the newest row */
	double seconds_before; /* of the training, in earlier runs */
	double first, recent; /* loss: of the first step; a running mean, mostly of the last ten */
	uint64_t measured; /* steps with a loss */
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
	struct objectives objectives;
	struct model *model;
	struct optim optim;
	struct train_state state;
	uint64_t saved; /* step of the newest checkpoint, UINT64_MAX: none */
	const struct block *block; /* of the current step */
	struct packed packed;
	struct step_queue steps;
	struct report report;
	int replaces; /* --force, and no step has had a loss yet: what an earlier training left is untouched */
	struct validation validation;
	uint64_t eval_every;
	real *best; /* [model_size of PARAM] weights of state.best_step, NULL: none yet */
	struct text_file file[HEADS_MAX];
	size_t nfile;
};

/* Keep this text (malloced; the training frees it) under objective_kind.file in the model's directory. Returns it. */
const char *train_add_file(struct train *t, const struct objective *o, char *text);

const char *const *train_files(void); /* names of what stands beside the weights, ends with NULL */
void train_clear(const struct train *t, int all); /* delete what an earlier training left; all: its result too */

/* Everything before the first step (start.c). 0 if the model is finished already. */
int train_start(struct train *t);

/* report_open opens train.tsv; with --force that waits for the first step with a loss. report_step takes a finished step: it updates the state,
 * validates if it is due, and writes a row and the progress line. They die on errors. */
void report_open(struct train *t);
void report_step(struct train *t, const struct step_result *r);
void report_close(struct train *t);
void report_run(struct train *t); /* the summary for -v */

void card_write(const struct train *t); /* README.md; dies on errors */

/* Open the stream of --eval, which must have the training's vocabulary. These functions die on errors. */
void validation_open(struct train *t);
void validation_check(struct train *t); /* does it have what --best needs? */
int validation_due(const struct train *t, uint64_t step); /* is there a validation after this many finished steps? */
/* Validate the present weights, with the same result on all ranks. Copy them to t->best if they are the best so far. */
void validation_run(struct train *t);
