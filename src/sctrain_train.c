/*
 * Training, the same for every task. One block of the masked stream is one optimiser step; maskgen has decided order,
 * batches, masks and their number, so the weights are a function of stream, options and initial weights alone.
 */
#include "sctrain.h"

#include "config.h"
#include "device.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define WARMUP_MAX 10000        /* what Geneformer warmed up for */

static const char *config_name, *init_dir, *eval_path;
static double lr = -1, weight_decay = 0.001, clip = 1, dropout = -1, warmup = -1;
static int schedule, adam, want_resume, want_force, want_mpi;
static long long accum = 1, save_every = 1000, keep = 2, freeze, eval_every, patience;
enum { BEST_LOSS, BEST_ACCURACY, BEST_MACRO_F1, BEST_LAST };
static const char *const best_name[] = {"loss", "accuracy", "macro-f1", "last"};
static int best_by = -1;

static struct cli cli;

static struct option_def options[] = {
	{.letter = 'o', .name = "output", .kind = OPT_STRING, .to = &cli.output, .arg = "MODEL",
	 .help = "the model directory to make (required)"},
	{.letter = 'c', .name = "config", .kind = OPT_STRING, .to = &config_name, .arg = "NAME|FILE", .changes = 1,
	 .help = "tiny, corrmask-paper, geneformer-v1-10m, or a config.json (default corrmask-paper, or that of --init)"},
	{.name = "init", .kind = OPT_STRING, .to = &init_dir, .arg = "DIR", .help = "start from the weights of this model directory"},
	{.name = "dropout", .kind = OPT_REAL, .to = &dropout, .arg = "P", .max = 0.999, .changes = 1,
	 .help = "dropout of hidden values and attention (default: as the configuration says)"},
	{.name = "lr", .kind = OPT_REAL, .to = &lr, .arg = "X", .max = 1e3, .changes = 1, .help = "peak learning rate (default 0.001 for mlm, 5e-5 for fine-tuning)"},
	{.name = "warmup", .kind = OPT_REAL, .to = &warmup, .arg = "N", .max = 1e12, .changes = 1,
	 .help = "steps of warm-up; below 1, a share of all steps (default: a tenth of all steps, at most 10000; fine-tuning: 500, at most 60 %)"},
	{.name = "schedule", .kind = OPT_CHOICE, .to = &schedule, .arg = "linear|cosine|constant", .changes = 1,
	 .help = "the learning rate after the warm-up (default linear)"},
	{.name = "weight-decay", .kind = OPT_REAL, .to = &weight_decay, .arg = "X", .max = 1e3, .changes = 1,
	 .help = "decay of all weights but biases and LayerNorm (default 0.001)"},
	{.name = "clip", .kind = OPT_REAL, .to = &clip, .arg = "NORM", .max = FLT_MAX, .changes = 1,
	 .help = "scale gradients down to this norm, 0: never (default 1)"},
	{.name = "adam", .kind = OPT_CHOICE, .to = &adam, .arg = "torch|hf46", .changes = 1,
	 .help = "AdamW as in PyTorch, or as in transformers 4.6 (default torch)"},
	{.name = "accum", .kind = OPT_INT, .to = &accum, .arg = "N", .min = 1, .max = 65536, .changes = 1,
	 .help = "work through a batch in N parts, for less memory (default 1)"},
	{.name = "freeze", .kind = OPT_INT, .to = &freeze, .arg = "N", .max = 65535, .changes = 1,
	 .help = "leave the first N layers as they are; embeddings and the rest learn (default 0)"},
	{.name = "save-every", .kind = OPT_INT, .to = &save_every, .arg = "N", .min = 1, .max = 1e15,
	 .help = "write a checkpoint every N steps (default 1000)"},
	{.name = "keep-checkpoints", .kind = OPT_INT, .to = &keep, .arg = "K", .min = 1, .max = 1e6,
	 .help = "keep the newest K checkpoints (default 2)"},
	{.name = "eval", .kind = OPT_STRING, .to = &eval_path, .arg = "FILE",
	 .help = "measure on this masked stream of other cells, and keep the best weights"},
	{.name = "eval-every", .kind = OPT_INT, .to = &eval_every, .arg = "N", .min = 1, .max = 1e15, .changes = 1,
	 .help = "measure every N steps, and after the last (default: once an epoch)"},
	{.name = "best", .kind = OPT_CHOICE, .to = &best_by, .arg = "loss|accuracy|macro-f1|last", .changes = 1,
	 .help = "which weights are the best: of --eval's least loss, most accuracy ... (default loss; genes: last)"},
	{.name = "patience", .kind = OPT_INT, .to = &patience, .arg = "K", .min = 1, .max = 1e15, .changes = 1,
	 .help = "stop when K measurements in a row were no better (default: never)"},
	{.name = "resume", .kind = OPT_FLAG, .to = &want_resume,
	 .help = "go on from the newest checkpoint in MODEL, from the start if there is none"},
	{.name = "force", .kind = OPT_FLAG, .to = &want_force, .help = "replace a model or checkpoints that MODEL holds"},
	{.name = "mpi", .kind = OPT_FLAG, .to = &want_mpi, .help = "be one of several ranks that mpirun or srun has started"},
	{0},
};

static struct cli cli = {.operands = "[FILE]", .shared = options, .common = CLI_SEED | CLI_DEVICE | CLI_THREADS};

static volatile sig_atomic_t stop;      /* the signal that asked us to */

static void on_stop(int sig)
{
	stop = sig;
}

/* The first signal ends the training at the next step; a second one kills, as always. */
static void catch_signals(void)
{
	struct sigaction a = {.sa_handler = on_stop, .sa_flags = SA_RESETHAND | SA_RESTART};
	sigemptyset(&a.sa_mask);
	sigaction(SIGINT, &a, NULL);
	sigaction(SIGTERM, &a, NULL);
	if (signal(SIGHUP, SIG_IGN) != SIG_IGN)         /* nohup */
		sigaction(SIGHUP, &a, NULL);
}

static double now(void)
{
	struct timespec x;
	clock_gettime(CLOCK_MONOTONIC, &x);
	return (double)x.tv_sec + 1e-9 * (double)x.tv_nsec;
}

/* ---- before the first step ---- */

static int same_folder(const char *a, const char *b)
{
	struct stat x, y;
	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* May we write here? */
enum folder { FOLDER_FRESH, FOLDER_RESUME, FOLDER_FINISHED };

static enum folder check_folder(const char *model, uint64_t *step)
{
	struct error e;
	if (init_dir && same_folder(init_dir, model))
		die("--init %s is the model to be written: choose another -o", init_dir);
	if (checkpoint_lock(model, &e) < 0)     /* the descriptor stays open: it is the lock */
		die("%s", e.msg);
	if (want_force)
		return FOLDER_FRESH;
	if (checkpoint_finished(model)) {
		if (!want_resume)
			die("%s holds a finished model: --force replaces it", model);
		info("%s is finished already: nothing to do", model);
		return FOLDER_FINISHED;
	}
	int have = checkpoint_latest(model, step, &e);
	if (have < 0)
		die("%s", e.msg);
	if (have && !want_resume)
		die("%s holds an unfinished training (checkpoint-%llu): --resume goes on with it, --force starts anew", model,
		    (unsigned long long)*step);
	return have ? FOLDER_RESUME : FOLDER_FRESH;
}

static void open_stream(struct train *t)
{
	struct error e;
	if (cli.noperand > 1)
		usage_error("one masked stream at a time: '%s' is one too many", cli.operand[1]);
	t->in = cli_open(&cli, 0);
	t->header = stream_header(t->in);
	const char *name = stream_name(t->in);
	if (masked_columns(&t->col, t->header, name, &e) || loader_parse(&t->loader, t->header, name, &e))
		die("%s", e.msg);
	if (!t->header->vocab.n)
		die("%s: no vocabulary in the header", name);
	ranks_check_shard(&t->ranks, &t->loader, name);
	if (!t->loader.steps)
		die("%s: no cells to train on", name);
	if (t->loader.steps > UINT32_MAX)
		die("%s: %llu steps: at most %u", name, (unsigned long long)t->loader.steps, UINT32_MAX);
}

static void choose_config(struct model_config *c, const struct header *h, const char *stream)
{
	struct error e;
	const char *what = config_name ? config_name : init_dir ? init_dir : "corrmask-paper";
	if (config_get(c, what, &e))
		die("%s", e.msg);
	if (!c->vocab_size) {
		int64_t pad = vocab_find(&h->vocab, "<pad>");
		c->vocab_size = (uint32_t)h->vocab.n;
		c->pad_token_id = pad > 0 ? (uint32_t)pad : 0;
	} else if (c->vocab_size != h->vocab.n) {
		die("%s: vocab_size is %u, but the vocabulary of %s has %zu tokens", what, c->vocab_size, stream, h->vocab.n);
	}
	if (dropout >= 0)
		c->hidden_dropout_prob = c->attention_probs_dropout_prob = dropout;
}

/* A classifier of other classes is no start for ours. */
static int same_classes(const struct model_config *c, enum task task, const char *dir)
{
	struct config_head h;
	char *path = xasprintf("%s/config.json", dir);
	int same = config_head_load(&h, path, NULL) == 0 && h.task == task && h.nlabel == c->num_labels;
	for (size_t i = 0; same && i < h.nlabel; i++)
		same = strcmp(h.label[i], c->label[i]) == 0;
	config_head_release(&h);
	free(path);
	return same;
}

/* --init: weights by name; the vocabulary must be the model's where it has one. */
static void load_init(struct train *t)
{
	struct error e;
	struct weights_report report;
	struct vocab v = {0};
	char *vocab = xasprintf("%s/vocab.tsv", init_dir), *weights = xasprintf("%s/model.safetensors", init_dir);
	if (access(vocab, F_OK) == 0 && vocab_load(&v, vocab, &e))
		die("%s", e.msg);
	int same = vocab_same(&v, model_config(t->model), init_dir, t->header, stream_name(t->in), &e);
	if (same < 0)
		die("%s", e.msg);
	if (same)
		warn("%s", e.msg);
	int other = t->task->task != TASK_MLM && !same_classes(model_config(t->model), t->task->task, init_dir);
	if (weights_load_except(t->model, weights, other ? "classifier." : NULL, &report, &e))
		die("%s", e.msg);
	if (report.fresh && t->task->task != TASK_MLM)
		info("%s has no '%s' for these classes: %zu tensors of the head start from random values", init_dir, report.first_fresh, report.fresh);
	else if (report.fresh)
		warn("%s has no '%s' (%zu such tensors of the head): they start from random values", weights, report.first_fresh, report.fresh);
	vocab_release(&v);
	free(vocab);
	free(weights);
}

static void choose_optim(struct train *t)
{
	struct optim *o = &t->optim;
	uint64_t steps = t->loader.steps;
	optim_init(o);
	o->variant = adam ? ADAMW_HF46 : ADAMW_TORCH;
	o->schedule = (enum schedule)schedule;
	o->lr = lr < 0 ? t->task->lr : lr;
	o->weight_decay = weight_decay;
	o->max_norm = clip;
	o->total = steps;
	if (warmup < 0 && t->task->warmup)      /* Geneformer warms up for 500 steps, even of 834 */
		o->warmup = steps * 6 / 10 < t->task->warmup ? steps * 6 / 10 : t->task->warmup;
	else if (warmup < 0)
		o->warmup = steps / 10 < WARMUP_MAX ? steps / 10 : WARMUP_MAX;
	else
		o->warmup = (uint64_t)(warmup < 1 ? warmup * (double)steps : warmup);
}

static cJSON *make_settings(const struct train *t)
{
	const struct optim *o = &t->optim;
	cJSON *j = cJSON_CreateObject();
	cJSON_AddStringToObject(j, "task", strchr(t->task->name, ' ') + 1);
	cJSON_AddNumberToObject(j, "seed", (double)cli.seed);
	cJSON_AddNumberToObject(j, "accum", (double)accum);
	cJSON_AddNumberToObject(j, "freeze", (double)freeze);
	cJSON_AddNumberToObject(j, "lr", o->lr);
	cJSON_AddStringToObject(j, "schedule", schedule_name(o->schedule));
	cJSON_AddNumberToObject(j, "warmup", (double)o->warmup);
	cJSON_AddNumberToObject(j, "weight-decay", o->weight_decay);
	cJSON_AddNumberToObject(j, "clip", o->max_norm);
	cJSON_AddStringToObject(j, "adam", adamw_name(o->variant));
	if (eval_path) {
		char digest[33];
		masked_digest(stream_header(t->held.in), digest);
		cJSON_AddStringToObject(j, "eval", digest);
		cJSON_AddNumberToObject(j, "eval-every", (double)eval_every);
		cJSON_AddStringToObject(j, "best", best_name[best_by]);
		cJSON_AddNumberToObject(j, "patience", (double)patience);
	}
	if (t->task->settings)
		t->task->settings(t, j);
	return j;
}

/* Weights after a resume are those of a run that was never cut, so everything that shapes them must be as it was. */
static void check_settings(const cJSON *was, const cJSON *is, const char *model)
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

static void load_checkpoint(struct train *t, uint64_t step, const char *model)
{
	struct error e;
	char digest[33];
	cJSON *settings = t->state.settings;
	if (checkpoint_load(&t->state, t->model, &t->best, model, step, &e))
		die("--resume: %s", e.msg);
	masked_digest(t->header, digest);
	if (strcmp(digest, t->state.digest))
		die("--resume: %s is not the masked stream that %s was trained on (digest %s, expected %s)", stream_name(t->in), model,
		    digest, t->state.digest);
	if (t->loader.first_step > step)
		die("--resume: %s starts at step %llu, but %s has finished %llu: earlier batches are missing", stream_name(t->in),
		    (unsigned long long)t->loader.first_step, model, (unsigned long long)step);
	check_settings(t->state.settings, settings, model);
	cJSON_Delete(settings);
	t->saved = step;
	info("%s: going on after step %llu of %llu", model, (unsigned long long)step, (unsigned long long)t->loader.steps);
}

/* Options, configuration and stream of all ranks are the same, and rank 0's state and weights. */
static void share_start(struct train *t, int resume)
{
	char *config = config_print(model_config(t->model), t->task->task), *settings = cJSON_PrintUnformatted(t->state.settings);
	struct { uint64_t step, best_step, stale; double epoch, seconds, best; } x = {t->state.step, t->state.best_step, t->state.stale,
		t->state.epoch, t->state.seconds, t->state.best};
	const struct { const char *what, *text; } same[] = {{"--device", t->ops->name}, {"configuration", config},
		{"options", settings}, {"masked stream", t->state.digest}};
	for (size_t i = 0; i < sizeof same / sizeof *same; i++)
		if (!ranks_same(&t->ranks, same[i].text))
			die("--mpi: the ranks differ in %s, this one's is %s", same[i].what, same[i].text);
	ranks_share(&t->ranks, &x, sizeof x);
	ranks_share_model(&t->ranks, t->model, resume);
	t->state.step = x.step;
	t->state.epoch = x.epoch;
	t->state.seconds = x.seconds;
	t->state.best_step = x.best_step;
	t->state.best = x.best;
	t->state.stale = x.stale;
	if (t->loader.first_step > x.step)
		die("%s starts at step %llu, but rank 0 goes on after step %llu: earlier batches are missing", stream_name(t->in),
		    (unsigned long long)t->loader.first_step, (unsigned long long)x.step);
	if (resume)
		t->saved = x.step;
	free(config);
	free(settings);
}

static void start(struct train *t, const char *model, int resume, uint64_t step)
{
	struct error e;
	struct model_config c;
	const struct train_task *task = t->task;
	choose_config(&c, t->header, stream_name(t->in));
	c.num_labels = 0;
	if (eval_path)
		held_open(&t->held, eval_path, t->header);
	if (eval_path && !eval_every)
		eval_every = t->loader.epochs > 1 ? (long long)(t->loader.steps / t->loader.epochs) : (long long)t->loader.steps;
	if (t->task->open)
		t->task->open(t, &c);
	char device[256];
	t->ops = device_open(cli.device, (int)cli.threads, device, sizeof device, &e);
	if (!t->ops)
		die("%s", e.msg);
	if (cli.verbose || strcmp(t->ops->name, "cpu"))
		info("device: %s", device);
	t->model = (init_dir || resume ? model_blank : model_new)(&c, t->task->task, t->ops, (uint64_t)cli.seed, &e);
	if (!t->model)
		die("%s", e.msg);
	if ((uint64_t)freeze > c.num_hidden_layers)
		die("--freeze %lld: the model has %u layers", freeze, c.num_hidden_layers);
	model_freeze(t->model, (size_t)freeze);
	if (t->task->ready)
		t->task->ready(t);
	choose_optim(t);
	t->state = (struct train_state){.steps = t->loader.steps, .settings = make_settings(t)};
	masked_digest(t->header, t->state.digest);
	t->saved = UINT64_MAX;
	if (!resume && t->loader.first_step)
		die("%s starts at step %llu, and there is no checkpoint to go on from", stream_name(t->in),
		    (unsigned long long)t->loader.first_step);
	if (resume && !t->ranks.rank)
		load_checkpoint(t, step, model);
	else if (init_dir && !t->ranks.rank)
		load_init(t);
	if (t->ranks.comm)
		share_start(t, resume);
	if (!t->ranks.rank && checkpoint_clear(model, want_force && !resume, &e))
		die("%s", e.msg);
	const char *held = !t->held.in ? "" : task->task == TASK_MLM ? "\teval_loss\teval_accuracy\teval_perplexity" : "\teval_loss\teval_accuracy\teval_macro_f1";
	char *columns = xasprintf("step\tloss\tlr\tgrad_norm\ttokens_per_s\tseconds%s\n", held);
	if (!t->ranks.rank && !(t->log = checkpoint_log(model, t->state.step, columns, &e)))
		die("%s", e.msg);
	free(columns);
	t->seconds_before = t->state.seconds;
}

/* ---- steps ---- */

static struct model_files files_of(const struct train *t)
{
	return (struct model_files){.vocab = &t->header->vocab, .genes = t->genes, .best = t->best};
}

static void save(struct train *t, const char *model)
{
	struct error e;
	if (t->saved == t->state.step)
		return;
	t->state.seconds = t->seconds_before + now() - t->start;
	if (!ranks_same_weights(&t->ranks, t->model))
		die("after step %llu the weights are no longer the same on all ranks: do they run on different processors or libraries?",
		    (unsigned long long)t->state.step);
	if (!t->ranks.rank && (fflush(t->log) || fsync(fileno(t->log))))
		die("%s/train.tsv: cannot write", model);
	struct model_files files = files_of(t);
	if (!t->ranks.rank && checkpoint_save(model, t->model, &t->state, &files, (int)keep, &e))
		die("%s", e.msg);
	t->saved = t->state.step;
}

static const char *saved_where(const struct train *t)
{
	static char text[64];
	if (t->saved == UINT64_MAX)
		return "there is no checkpoint yet";
	snprintf(text, sizeof text, "the newest checkpoint is checkpoint-%llu", (unsigned long long)t->saved);
	return text;
}

/* The block's rows must be of the step that its place in the stream says. */
static int check_step(const struct train *t, const struct block *b, uint64_t step, struct error *e)
{
	const uint32_t *col = b->col[t->col.step].data;
	for (size_t i = 0; i < b->rows; i++)
		if (col[i] != step)
			return error_set(e, "%s: block %llu: row %zu is of step %u, expected %llu", stream_name(t->in),
					 (unsigned long long)(step - t->loader.first_step), i, col[i], (unsigned long long)step);
	return 0;
}

/* The next block: 1, 0 after the last, -1. */
static int next_block(struct train *t, struct block *b, uint64_t step, struct error *e)
{
	unsigned long long steps = t->loader.steps;
	int got = stream_read(t->in, b, e);
	if (got > 0 && step == steps)
		return error_set(e, "%s: more blocks than the %llu steps of the header", stream_name(t->in), steps);
	if (got == 0 && step < steps)
		return error_set(e, "%s: ends after %llu of %llu steps", stream_name(t->in), (unsigned long long)step, steps);
	return got > 0 && check_step(t, b, step, e) ? -1 : got;
}

/* Measure on --eval when it is time; the weights are kept where they are the best so far. Returns whether it measured. */
static int evaluate(struct train *t)
{
	struct held *h = &t->held;
	struct train_state *s = &t->state;
	if (!h->in || (s->step % (uint64_t)eval_every && s->step != s->steps))
		return 0;
	double result[3] = {0};
	if (!t->ranks.rank) {
		held_measure(h, t);
		memcpy(result, (double[]){h->loss, h->accuracy, h->macro_f1}, sizeof result);
	}
	ranks_share(&t->ranks, result, sizeof result);
	h->loss = result[0];
	h->accuracy = result[1];
	h->macro_f1 = result[2];
	double value = best_by == BEST_LOSS ? h->loss : best_by == BEST_ACCURACY ? h->accuracy : h->macro_f1;
	if (best_by == BEST_LAST)
		return 1;
	if (s->best_step && (best_by == BEST_LOSS ? value >= s->best : value <= s->best)) {
		s->stale++;
		return 1;
	}
	s->best_step = s->step;
	s->best = value;
	s->stale = 0;
	if (t->ranks.rank)
		return 1;
	t->best = t->best ? t->best : xcalloc(model_size(t->model), sizeof *t->best);
	model_read_all(t->model, PARAM, t->best);
	return 1;
}

/* A row of train.tsv, and the progress line. */
static void report_step(struct train *t, uint64_t step, const struct tally *sum, double norm)
{
	double rate = sum->tokens / (now() - t->last);
	int measured = evaluate(t);
	const struct held *h = &t->held;
	double x = now(), spent = x - t->start;
	double rest = spent / (double)++t->done * (double)(t->loader.steps - step - 1), lr_now = t->optim.lr * optim_factor(&t->optim, step);
	char a[32] = "NA", g[32] = "NA";
	t->last = x;
	if (t->ranks.rank)
		return;
	if (sum->labels > 0) {
		snprintf(a, sizeof a, "%.9g", sum->loss / sum->labels);
		snprintf(g, sizeof g, "%.9g", norm);
	}
	fprintf(t->log, "%llu\t%s\t%.9g\t%s\t%.1f\t%.3f", (unsigned long long)step + 1, a, lr_now, g, rate, t->seconds_before + spent);
	if (measured)
		fprintf(t->log, "\t%.9g\t%.9g\t%.9g", h->loss, h->accuracy, t->task->task == TASK_MLM ? exp(h->loss) : h->macro_f1);
	else if (h->in)
		fputs("\tNA\tNA\tNA", t->log);
	fputc('\n', t->log);
	if (fflush(t->log))
		die("%s/train.tsv: cannot write: %s", cli.output, strerror(errno));
	progress("step %llu/%llu, loss %s, %.0f tokens/s, %02d:%02d:%02d to go", (unsigned long long)step + 1,
		 (unsigned long long)t->loader.steps, a, t->sum.tokens / spent, (int)(rest / 3600), (int)(rest / 60) % 60, (int)rest % 60);
}

static void finish_step(struct train *t);

/* A signal or a fault of any rank: save what is finished, where that is sound, and end, all ranks alike. */
static _Noreturn void end_early(struct train *t, enum fault mine, const struct error *e)
{
	finish_step(t);
	struct news news = t->ranks.news;
	int rank = t->ranks.rank;
	if (news.fault != FAULT_STEP && (t->state.step || news.signal))
		save(t, cli.output);
	if (news.signal && news.fault != FAULT_STEP)
		info("interrupted after step %llu of %llu: --resume goes on from %s/checkpoint-%llu", (unsigned long long)t->state.step,
		     (unsigned long long)t->state.steps, cli.output, (unsigned long long)t->saved);
	else if (mine)
		complain("%s; %s", e->msg, saved_where(t));
	else if (!rank)
		complain("rank %d has stopped; %s", news.who, saved_where(t));
	ranks_leave(&t->ranks);
	if (!news.signal || news.fault == FAULT_STEP)
		exit(1);
	signal(news.signal, SIG_DFL);
	raise(news.signal);
	_exit(128 + news.signal);
}

/* Rows [from, to) of the batch forward. */
static int forward_part(struct train *t, const struct block *b, size_t from, size_t to, uint64_t step, struct tally *sum, struct error *e)
{
	struct loss loss;
	struct forward f = {.train = 1, .step = step, .later = !t->ranks.comm};
	if (batch_masked(&t->packed, &t->col, b, from, to, model_config(t->model)->max_position_embeddings, (uint32_t)t->loader.shard,
			 (uint32_t)t->loader.shards, stream_name(t->in), e))
		return -1;
	if (t->task->label)
		t->task->label(t, 0, &t->packed, b, from, to);
	if (model_forward(t->model, &t->packed.b, &f, &loss, e))
		return -1;
	sum->loss += loss.sum;
	sum->labels += loss.count;
	sum->correct += loss.correct;
	sum->tokens += t->packed.b.offset[to - from];
	sum->cells += (double)(to - from);
	return 0;
}

/* Are the weights as they are after this step looked at? */
static int weights_wanted(const struct train *t, uint64_t step)
{
	return (step + 1) % (uint64_t)save_every == 0 || step + 1 == t->loader.steps || (t->held.in && (step + 1) % (uint64_t)eval_every == 0);
}

/* What came of the step that was asked for last. */
static void finish_step(struct train *t)
{
	struct pending p = t->pending;
	struct error e;
	struct loss loss;
	t->pending.live = 0;
	if (!p.live)
		return;
	if (p.asked && model_collect(t->model, &loss, &p.norm, &e)) {
		error_prefix(&e, "step %llu", (unsigned long long)p.step + 1);
		t->ranks.news.fault = FAULT_STEP;
		end_early(t, FAULT_STEP, &e);
	}
	if (p.asked) {
		p.sum.loss = loss.sum;
		p.sum.correct = loss.correct;
	}
	t->state.step = p.step + 1;
	t->state.epoch = (double)(p.step + 1) * (double)t->loader.epochs / (double)t->loader.steps;
	t->sum.loss += p.sum.loss;
	t->sum.labels += p.sum.labels;
	t->sum.correct += p.sum.correct;
	t->sum.tokens += p.sum.tokens;
	t->sum.cells += p.sum.cells;
	report_step(t, p.step, &p.sum, p.norm);
}

/*
 * One update from one block; NULL when this rank has none because of *e. A batch without a masked position changes nothing, but
 * its step counts. On return the step before is finished, and this one where its weights are wanted.
 */
static void train_step(struct train *t, const struct block *b, uint64_t step, struct error *e)
{
	struct tally here = {0};
	struct pending p = {.live = 1, .step = step, .norm = NAN};
	enum fault fault = b ? FAULT_NONE : FAULT_STREAM;
	model_zero_grad(t->model);
	for (long long part = 0; part < accum; part++) {
		size_t n = b ? b->rows : 0, from = n * (size_t)part / (size_t)accum, to = n * (size_t)(part + 1) / (size_t)accum;
		int forward = from < to && !fault;
		if (forward && forward_part(t, b, from, to, step, &here, e)) {
			error_prefix(e, "step %llu", (unsigned long long)step + 1);
			fault = FAULT_STEP;
		}
		if (part + 1 == accum)
			ranks_begin(&t->ranks, t->model, &here, fault, stop);
		if (forward && !fault && model_backward(t->model, e))
			die("step %llu: %s; %s", (unsigned long long)step + 1, e->msg, saved_where(t));
	}
	ranks_end(&t->ranks);
	if (t->ranks.news.fault)
		end_early(t, fault, e);
	p.sum = t->ranks.total;
	p.asked = !t->ranks.comm && p.sum.labels > 0;
	if (p.asked) {
		model_step_later(t->model, &t->optim, step, p.sum.labels);
	} else if (p.sum.labels > 0 && model_step(t->model, &t->optim, step, p.sum.labels, &p.norm, e)) {
		error_prefix(e, "step %llu", (unsigned long long)step + 1);
		t->ranks.news.fault = FAULT_STEP;       /* of all ranks, but one message will do */
		end_early(t, t->ranks.rank ? FAULT_NONE : FAULT_STEP, e);
	}
	finish_step(t);
	t->pending = p;
	if (!t->ops->queued || weights_wanted(t, step))
		finish_step(t);
}

/* The weights to hand out: the last, or with --eval the best. */
static void choose_best(struct train *t)
{
	const struct train_state *s = &t->state;
	if (!t->best)
		return;
	model_write_all(t->model, PARAM, t->best);
	info("best held-out %s, %.6g, after step %llu of %llu: these weights are kept", best_name[best_by], s->best,
	     (unsigned long long)s->best_step, (unsigned long long)s->steps);
}

/* Stopped early: read the rest, so that the producer of a pipe ends well. */
static void read_rest(struct train *t, struct block *b)
{
	struct error e;
	info("no better for %lld measurements: stopping after step %llu of %llu", patience, (unsigned long long)t->state.step,
	     (unsigned long long)t->state.steps);
	while (stream_read(t->in, b, &e) > 0)
		;
}

static void train(struct train *t)
{
	struct error e;
	struct block b = {0};
	uint64_t step = t->loader.first_step;   /* of the next block */
	int got;
	catch_signals();
	t->start = t->last = now();
	while ((got = next_block(t, &b, step, &e)) > 0) {
		int fresh = step >= t->state.step;      /* else done before the checkpoint */
		if (fresh)
			train_step(t, &b, step, &e);
		step++;
		if (!t->ranks.comm)
			t->ranks.news.signal = stop;
		if (t->ranks.news.signal)
			end_early(t, FAULT_NONE, &e);
		if (fresh && patience && step < t->state.steps && t->state.stale >= (uint64_t)patience) {
			read_rest(t, &b);
			got = 0;
			break;
		}
		if (fresh && step % (uint64_t)save_every == 0 && step < t->state.steps)
			save(t, cli.output);
	}
	block_release(&b);
	if (got < 0 && t->state.step < t->loader.steps)
		train_step(t, NULL, t->state.step, &e); /* the other ranks are in this one */
	ranks_begin(&t->ranks, NULL, &(struct tally){0}, got < 0 ? FAULT_STREAM : FAULT_NONE, got < 0 ? stop : 0);
	ranks_end(&t->ranks);
	if (t->ranks.news.fault)
		end_early(t, got < 0 ? FAULT_STREAM : FAULT_NONE, &e);
}

int train_main(const struct train_task *task, int argc, char **argv)
{
	struct train t = {.task = task, .cli = &cli, .ranks.size = 1};
	struct error e;
	uint64_t step = 0;
	enum folder folder = FOLDER_FRESH;
	cli.name = task->name;
	cli.summary = task->summary;
	cli.options = task->options;
	cli_init(&cli, argc, argv);
	if (!cli.output)
		usage_error("no model directory: -o MODEL");
	if (want_resume && want_force)
		usage_error("--resume and --force exclude each other");
	if (!eval_path && (eval_every || patience || best_by >= 0))
		usage_error("--eval-every, --best and --patience need held-out data: --eval FILE");
	if (best_by < 0)
		best_by = task->task == TASK_GENES ? BEST_LAST : BEST_LOSS;
	if (task->task == TASK_MLM && best_by == BEST_MACRO_F1)
		usage_error("--best macro-f1: mlm has loss and accuracy");
	if (best_by == BEST_LAST && patience)
		usage_error("--patience needs a measure: --best loss, accuracy or macro-f1");
	if (task->check)
		task->check();
	if (want_mpi)
		ranks_join(&t.ranks, &cli);
	open_stream(&t);
	if (!t.ranks.rank)
		folder = check_folder(cli.output, &step);
	ranks_share(&t.ranks, &folder, sizeof folder);
	if (folder == FOLDER_FINISHED) {
		ranks_leave(&t.ranks);
		return 0;
	}
	start(&t, cli.output, folder == FOLDER_RESUME, step);
	train(&t);
	choose_best(&t);
	struct model_files files = files_of(&t);
	if (!t.ranks.rank && checkpoint_finish(cli.output, t.model, &files, &e))
		die("%s", e.msg);
	if (!t.ranks.rank && (fsync(fileno(t.log)) | fclose(t.log)))
		die("%s/train.tsv: cannot write", cli.output);
	char waited[64] = "", gpu[64] = "";
	device_report(t.ops, model_padding(t.model), gpu, sizeof gpu);
	if (t.ranks.size > 1)
		snprintf(waited, sizeof waited, ", %.2f s of it this rank waited for the others", t.ranks.waited);
	cli_report(&cli, "%llu steps, %.0f cells, %.0f tokens (%.0f tokens/s%s), %.0f %s; %zu parameters, %.0f MB of arrays%s",
		   (unsigned long long)t.state.steps, t.sum.cells, t.sum.tokens, t.sum.tokens / fmax(t.last - t.start, 1e-9), waited, t.sum.labels,
		   task->task == TASK_MLM ? "masked" : "labels", model_nparam(t.model), (double)model_bytes(t.model) / 1e6, gpu);
	ranks_leave(&t.ranks);
	train_state_release(&t.state);
	packed_release(&t.packed);
	held_release(&t.held);
	free(t.best);
	free(t.genes);
	model_free(t.model);
	t.ops->destroy(t.ops);
	stream_free(t.in);
	return 0;
}
