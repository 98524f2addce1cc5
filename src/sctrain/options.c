/* The command line of a training, and the settings that a checkpoint keeps. */
#include "heads.h"
#include "cli.h"
#include "cli_labels.h"

#include "base/option.h"

#include <float.h>

static struct train_options options = {.lr = -1,
	.warmup = -1,
	.dropout = -1,
	.weight_decay = -1,
	.clip = -1,
	.schedule = -1,
	.best = -1,
	.accum = 1,
	.save_every = 1000,
	.keep = 2};

static struct cli cli;

/* --best: which metric of the first head decides. */
static const struct {
	const char *name, *metric;
} best[] = {
	[BEST_LOSS] = {"loss", "loss"},
	[BEST_ACCURACY] = {"accuracy", "accuracy"},
	[BEST_MACRO_F1] = {"macro-f1", "macro_f1"},
	[BEST_LAST] = {"last", "loss"},
};

static struct option_def table[] = {
	{0, "Model", OPT_GROUP},
	{'o', "output", OPT_FOLDER, &cli.output, "MODEL", "the model directory to write (required)"},
	{'c', "config", OPT_INPUT, &options.config, "NAME|FILE",
		"a config.json, or a preset: corrmask-paper (default), geneformer-v1-10m, tiny, bmfm-47m (default of wced), bmfm-32m or bmfm-tiny; for nb mlp-nb (default) or mlp-nb-tiny; with --init: that of the model",
		.changes = 1},
	{0, "init", OPT_INPUT, &options.init, "DIR", "start from the weights of this model directory"},
	{0, "dropout", OPT_REAL, &options.dropout, "P",
		"dropout probability of hidden values and attention (default: as in the configuration)", 0, 0.999, .changes = 1},
	{0, "Columns of the cells", OPT_GROUP},
	{0, "head", OPT_LIST, &head_option, "COL:LOSS[,NAME=VALUE...]",
		"also predict this column, with the loss " HEAD_LOSSES
		", and position=K, weight=W, gamma=G, reverse=L, mean=known, from=STEP (repeatable)",
		.changes = 1},
	{0, "ontology", OPT_INPUT, &ontology_option, "FILE", "with --head COL:hce: the ontology of the labels, as OBO"},
	{KEEP_UNKNOWN_LABELS},
	{0, "Optimisation", OPT_GROUP},
	{0, "lr", OPT_REAL, &options.lr, "X",
		"peak learning rate (default 0.001; networks of width 128 or more: fine-tuning 5e-5, bmfm 0.0001)", 0, 1e3, .changes = 1},
	{0, "warmup", OPT_REAL, &options.warmup, "N",
		"steps of warm-up; below 1, a share of all steps (default: a tenth of all steps, at most 10000; fine-tuning: 500, at most 60 %; bmfm: 1000, at most 60 %; nb: none)",
		0, 1e12, .changes = 1},
	{0, "schedule", OPT_CHOICE, &options.schedule, OPT_WORDS(schedule_words),
		"schedule of the learning rate after the warm-up (default linear; bmfm, nb: constant)", .changes = 1},
	{0, "weight-decay", OPT_REAL, &options.weight_decay, "X",
		"weight decay of all weights except biases and LayerNorm (default 0.001; bmfm: 0.1; nb: of all weights, default 0.0001)", 0,
		1e3, .changes = 1},
	{0, "clip", OPT_REAL, &options.clip, "NORM",
		"scale larger gradients down to this norm; 0 turns clipping off (default 1; bmfm: 0.5; nb: 0)", 0, FLT_MAX, .changes = 1},
	{0, "accum", OPT_INT, &options.accum, "N", "compute a batch in N parts, with less memory (default 1)", 1, 65536, .changes = 1},
	{0, "freeze", OPT_INT, &options.freeze, "N", "do not train the embeddings and the first N layers (default 0: train all)", 0, 65535,
		.changes = 1},
	{0, "Checkpoints", OPT_GROUP},
	{0, "save-every", OPT_INT, &options.save_every, "N", "write a checkpoint every N steps (default 1000)", 1, 1e15},
	{0, "keep-checkpoints", OPT_INT, &options.keep, "K", "keep the newest K checkpoints (default 2)", 1, 1e6},
	{0, "Validation", OPT_GROUP},
	{0, "eval", OPT_INPUT, &options.eval, "FILE", "validate on this masked stream of other cells, and keep the best weights"},
	{0, "eval-every", OPT_INT, &options.eval_every, "N", "validate every N steps and after the last step (default: once per epoch)", 1,
		1e15, .changes = 1, .needs = "eval"},
	{0, "best", OPT_CHOICE, &options.best, OPT_WORDS(best),
		"which validation is the best: lowest loss, highest accuracy or macro F1, or the last (default loss; genes: last)",
		.changes = 1, .needs = "eval"},
	{0, "patience", OPT_INT, &options.patience, "K", "stop after K validations in a row without a new best (default: never)", 1, 1e15,
		.changes = 1, .needs = "eval"},
	{0, "Run", OPT_GROUP},
	{0, "resume", OPT_FLAG, &options.resume, NULL, "go on from the newest checkpoint, or start if there is none", .excludes = "force"},
	{0, "same-kernels", OPT_FLAG, &options.same_kernels, NULL,
		"fail if a resumed training or a rank uses other kernels, which round differently (default: warn)"},
	{0, "force", OPT_FLAG, &options.force, NULL, "replace the model or the checkpoints in MODEL"},
	{0, "mpi", OPT_FLAG, &options.mpi, NULL, "run as one of several ranks, started by mpirun or srun"},
	{0},
};

static struct cli cli = {.operands = "[FILE]", .shared = table, .common = CLI_SEED | CLI_DEVICE | CLI_THREADS};

/* ---- --best ---- */

const char *best_name(enum best b)
{
	return best[b].name;
}

int best_metric(const struct head_kind *k, enum best b)
{
	for (size_t i = 0; i < metric_count(k); i++)
		if (strcmp(metric_name(k, i), best[b].metric) == 0)
			return (int)i;
	return -1;
}

/* With several objectives the measures, but for the loss, are those of the first. */
static void check_best(const struct train_task *task, const struct head_kind *head)
{
	const char *text = "";
	if (best_metric(head, (enum best)options.best) >= 0)
		return;
	for (size_t b = 0, n = sizeof best / sizeof *best; b < n; b++)
		if (best_metric(head, (enum best)b) >= 0)
			text = xasprintf("%s%s%s", text, !*text ? "" : b + 1 < n ? ", " : " or ", best_name((enum best)b));
	usage_error("--best %s: %s does not measure it: expected %s", best_name((enum best)options.best), task->name, text);
}

/* ---- reading ---- */

struct train_options *options_read(const struct train_task *task, int argc, char **argv, struct cli **c, struct objectives *list)
{
	*c = &cli;
	cli.name = task->name;
	cli.summary = task->summary;
	cli.options = task->options;
	cli_init(&cli, argc, argv);
	if (!cli.output)
		usage_error("no model directory: -o MODEL");
	if (options.best < 0)
		options.best = task->best;
	if (task->objective)
		objective_add(list, task->objective, NULL);
	else
		task->objectives(list);
	heads_add(list, task->balanced);
	check_best(task, list->one[0].kind->head);
	int labels = 0;
	for (size_t i = 0; i < list->n; i++)
		labels |= list->one[i].kind->label != NULL;
	if (!labels)
		refuse("needs --head COL:LOSS", &keep_unknown_labels);
	if (options.best == BEST_LAST && options.patience)
		usage_error("--patience needs a measure: --best loss, accuracy or macro-f1");
	return &options;
}

/* ---- settings of a checkpoint ---- */

/* What --init and --eval name, by their content. */
static void add_files(cJSON *j, const struct train *t)
{
	char digest[DIGEST_SIZE], *path = options.init ? xasprintf("%s/model.safetensors", options.init) : NULL;
	if (path) {
		must(weights_digest(path, digest, &failure));
		cJSON_AddStringToObject(j, SETTING_INIT, digest);
	}
	free(path);
	if (!options.eval)
		return;
	masked_digest(stream_header(t->validation.source.in), digest);
	cJSON_AddStringToObject(j, "eval", digest);
	stream_digest(t->validation.source.in, digest);
	cJSON_AddStringToObject(j, SETTING_EVAL_CELLS, digest);
}

cJSON *options_settings(const struct train *t)
{
	const struct optim *o = &t->optim;
	cJSON *j = cJSON_CreateObject();
	cJSON_AddStringToObject(j, "task", strchr(t->task->name, ' ') + 1);
	cJSON_AddNumberToObject(j, "seed", (double)t->cli->seed);
	cJSON_AddNumberToObject(j, "accum", (double)options.accum);
	cJSON_AddNumberToObject(j, "freeze", (double)options.freeze);
	cJSON_AddNumberToObject(j, "lr", o->lr);
	cJSON_AddStringToObject(j, "schedule", schedule_words[o->schedule]);
	cJSON_AddNumberToObject(j, "warmup", (double)o->warmup);
	cJSON_AddNumberToObject(j, "weight-decay", o->weight_decay);
	cJSON_AddNumberToObject(j, "clip", o->max_norm);
	cJSON_AddStringToObject(j, "adam", adamw_words[o->variant]);
	if (t->cli->bf16)
		cJSON_AddStringToObject(j, "precision", "bf16");
	if (keep_unknown_labels)
		cJSON_AddBoolToObject(j, "keep-unknown-labels", 1);
	add_files(j, t);
	if (options.eval) {
		cJSON_AddNumberToObject(j, "eval-every", (double)t->eval_every);
		cJSON_AddStringToObject(j, "best", best_name((enum best)options.best));
		cJSON_AddNumberToObject(j, "patience", (double)options.patience);
	}
	for (const struct objective *x = t->objectives.one; x < t->objectives.one + t->objectives.n; x++)
		if (x->kind->settings)
			x->kind->settings(x, j);
	return j;
}
