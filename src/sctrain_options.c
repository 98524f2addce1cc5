/* The command line of a training, and the settings that a checkpoint keeps. */
#include "sctrain.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

static struct train_options options = {.lr = -1,
	.warmup = -1,
	.dropout = -1,
	.weight_decay = -1,
	.clip = -1,
	.schedule = -1,
	.adam = -1,
	.best = -1,
	.accum = 1,
	.save_every = 1000,
	.keep = 2};

static struct cli cli;

static struct option_def table[] = {
	{.kind = OPT_GROUP, .name = "Model"},
	{.letter = 'o',
		.name = "output",
		.kind = OPT_STRING,
		.to = &cli.output,
		.arg = "MODEL",
		.help = "the model directory to write (required)"},
	{.letter = 'c',
		.name = "config",
		.kind = OPT_STRING,
		.to = &options.config,
		.arg = "NAME|FILE",
		.changes = 1,
		.help = "a config.json, or a preset: corrmask-paper (default), geneformer-v1-10m or tiny; for nb mlp-nb (default) or mlp-nb-tiny; with --init: that of the model"},
	{.name = "init", .kind = OPT_STRING, .to = &options.init, .arg = "DIR", .help = "start from the weights of this model directory"},
	{.name = "dropout",
		.kind = OPT_REAL,
		.to = &options.dropout,
		.arg = "P",
		.max = 0.999,
		.changes = 1,
		.help = "dropout probability of hidden values and attention (default: as in the configuration)"},
	{.kind = OPT_GROUP, .name = "Optimisation"},
	{.name = "lr",
		.kind = OPT_REAL,
		.to = &options.lr,
		.arg = "X",
		.max = 1e3,
		.changes = 1,
		.help = "peak learning rate (default 0.001; fine-tuning of networks of width 128 or more: 5e-5)"},
	{.name = "warmup",
		.kind = OPT_REAL,
		.to = &options.warmup,
		.arg = "N",
		.max = 1e12,
		.changes = 1,
		.help = "steps of warm-up; below 1, a share of all steps (default: a tenth of all steps, at most 10000; fine-tuning: 500, at most 60 %; nb: none)"},
	{.name = "schedule",
		.kind = OPT_CHOICE,
		.to = &options.schedule,
		.arg = "linear|cosine|constant",
		.changes = 1,
		.help = "schedule of the learning rate after the warm-up (default linear; nb: constant)"},
	{.name = "weight-decay",
		.kind = OPT_REAL,
		.to = &options.weight_decay,
		.arg = "X",
		.max = 1e3,
		.changes = 1,
		.help = "weight decay of all weights except biases and LayerNorm (default 0.001; nb: of all weights, default 0.0001)"},
	{.name = "clip",
		.kind = OPT_REAL,
		.to = &options.clip,
		.arg = "NORM",
		.max = FLT_MAX,
		.changes = 1,
		.help = "scale larger gradients down to this norm; 0 turns clipping off (default 1; nb: 0)"},
	{.name = "adam",
		.kind = OPT_CHOICE,
		.to = &options.adam,
		.arg = "torch|hf46|l2",
		.changes = 1,
		.help = "AdamW as in PyTorch (default), as in transformers 4.6, or Adam with the decay in the gradient (default of nb)"},
	{.name = "accum",
		.kind = OPT_INT,
		.to = &options.accum,
		.arg = "N",
		.min = 1,
		.max = 65536,
		.changes = 1,
		.help = "compute each batch in N parts, which needs less memory (default 1)"},
	{.name = "freeze",
		.kind = OPT_INT,
		.to = &options.freeze,
		.arg = "N",
		.max = 65535,
		.changes = 1,
		.help = "do not train the first N layers; embeddings, other layers and head are trained (default 0)"},
	{.kind = OPT_GROUP, .name = "Checkpoints"},
	{.name = "save-every",
		.kind = OPT_INT,
		.to = &options.save_every,
		.arg = "N",
		.min = 1,
		.max = 1e15,
		.help = "write a checkpoint every N steps (default 1000)"},
	{.name = "keep-checkpoints",
		.kind = OPT_INT,
		.to = &options.keep,
		.arg = "K",
		.min = 1,
		.max = 1e6,
		.help = "keep the newest K checkpoints (default 2)"},
	{.kind = OPT_GROUP, .name = "Validation"},
	{.name = "eval",
		.kind = OPT_STRING,
		.to = &options.eval,
		.arg = "FILE",
		.help = "validate on this masked stream of other cells, and keep the best weights"},
	{.name = "eval-every",
		.kind = OPT_INT,
		.to = &options.eval_every,
		.arg = "N",
		.min = 1,
		.max = 1e15,
		.changes = 1,
		.help = "validate every N steps and after the last step (default: once per epoch)"},
	{.name = "best",
		.kind = OPT_CHOICE,
		.to = &options.best,
		.arg = "loss|accuracy|macro-f1|last",
		.changes = 1,
		.help = "which validation is the best: smallest loss, highest accuracy or macro-F1, or the last (default loss; genes: last)"},
	{.name = "patience",
		.kind = OPT_INT,
		.to = &options.patience,
		.arg = "K",
		.min = 1,
		.max = 1e15,
		.changes = 1,
		.help = "stop after K validations in a row that are not better than the best (default: never)"},
	{.kind = OPT_GROUP, .name = "Run"},
	{.name = "resume",
		.kind = OPT_FLAG,
		.to = &options.resume,
		.help = "continue from the newest checkpoint in MODEL, or start if there is none"},
	{.name = "force", .kind = OPT_FLAG, .to = &options.force, .help = "replace the model or the checkpoints in MODEL"},
	{.name = "mpi", .kind = OPT_FLAG, .to = &options.mpi, .help = "run as one of several ranks, started by mpirun or srun"},
	{0},
};

static struct cli cli = {.operands = "[FILE]", .shared = table, .common = CLI_SEED | CLI_DEVICE | CLI_THREADS};

/* ---- --best ---- */

static const struct {
	const char *name, *metric;
} best[] = {
	[BEST_LOSS] = {"loss", "loss"},
	[BEST_ACCURACY] = {"accuracy", "accuracy"},
	[BEST_MACRO_F1] = {"macro-f1", "macro_f1"},
	[BEST_LAST] = {"last", "loss"},
};

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

static void check_best(const struct train_task *task)
{
	char known[128] = "";
	size_t n = metric_count(task->head);
	if (best_metric(task->head, (enum best)options.best) >= 0)
		return;
	for (size_t i = 0; i < n; i++) {
		size_t at = strlen(known);
		snprintf(known + at, sizeof known - at, "%s%s", !i ? "" : i + 1 < n ? ", " : " and ", metric_name(task->head, i));
	}
	usage_error("--best %s: %s measures %s", best_name((enum best)options.best), task->name, known);
}

/* ---- reading ---- */

struct train_options *options_read(const struct train_task *task, int argc, char **argv, struct cli **c)
{
	*c = &cli;
	cli.name = task->name;
	cli.summary = task->summary;
	cli.options = task->options;
	cli_init(&cli, argc, argv);
	if (!cli.output)
		usage_error("no model directory: -o MODEL");
	if (options.resume && options.force)
		usage_error("--resume and --force exclude each other");
	if (!options.eval && (options.eval_every || options.patience || options.best >= 0))
		usage_error("--eval-every, --best and --patience need a validation stream: --eval FILE");
	if (options.best < 0)
		options.best = task->best;
	check_best(task);
	if (options.best == BEST_LAST && options.patience)
		usage_error("--patience needs a measure: --best loss, accuracy or macro-f1");
	if (task->check)
		task->check();
	return &options;
}

/* ---- settings of a checkpoint ---- */

cJSON *options_settings(const struct train *t)
{
	const struct optim *o = &t->optim;
	cJSON *j = cJSON_CreateObject();
	cJSON_AddStringToObject(j, "task", strchr(t->task->name, ' ') + 1);
	cJSON_AddNumberToObject(j, "seed", (double)t->cli->seed);
	cJSON_AddNumberToObject(j, "accum", (double)options.accum);
	cJSON_AddNumberToObject(j, "freeze", (double)options.freeze);
	cJSON_AddNumberToObject(j, "lr", o->lr);
	cJSON_AddStringToObject(j, "schedule", schedule_name(o->schedule));
	cJSON_AddNumberToObject(j, "warmup", (double)o->warmup);
	cJSON_AddNumberToObject(j, "weight-decay", o->weight_decay);
	cJSON_AddNumberToObject(j, "clip", o->max_norm);
	cJSON_AddStringToObject(j, "adam", adamw_name(o->variant));
	if (options.eval) {
		char digest[33];
		masked_digest(stream_header(t->validation.source.in), digest);
		cJSON_AddStringToObject(j, "eval", digest);
		cJSON_AddNumberToObject(j, "eval-every", (double)t->eval_every);
		cJSON_AddStringToObject(j, "best", best_name((enum best)options.best));
		cJSON_AddNumberToObject(j, "patience", (double)options.patience);
	}
	if (t->task->settings)
		t->task->settings(t, j);
	return j;
}

void options_check_settings(const cJSON *was, const cJSON *is, const char *model)
{
	for (const cJSON *x = is->child; x; x = x->next) {
		const cJSON *y = cJSON_GetObjectItemCaseSensitive(was, x->string);
		if (y && cJSON_Compare(x, y, 1))
			continue;
		char *a = y ? cJSON_PrintUnformatted(y) : xstrdup("nothing"), *b = cJSON_PrintUnformatted(x);
		die("--resume: %s was trained with %s %s, not %s: give the same options again", model, x->string, a, b);
	}
	for (const cJSON *y = was->child; y; y = y->next)
		if (!cJSON_GetObjectItemCaseSensitive(is, y->string))
			die("--resume: %s was trained with %s: give the same options again", model, y->string);
}
