/* Before the first step: the masked stream, the model directory, the model, and its first weights or its checkpoint. */
#include "sctrain.h"
#include "cli.h"

#include "cli_model.h"
#include "nn/blas.h"

#include <unistd.h>

#define WARMUP_MAX 10000 /* warm-up of Geneformer */

typedef unsigned long long ull; /* for messages */

/* ---- streams ---- */

static int learns_masks(const struct train *t)
{
	int masks = 0;
	for (size_t i = 0; i < t->objectives.n; i++)
		masks |= !t->objectives.one[i].kind->label && t->objectives.one[i].kind->input != INPUT_CELLS;
	return masks;
}

/* An objective that learns masked tokens needs some: say so now, not after hours. A stream of short cells may have none at any rate: see finish. */
static void check_masks(const struct train *t, const char *name)
{
	const char *strategy = cJSON_GetStringValue(masked_value(t->header, "strategy"));
	const cJSON *rate = masked_value(t->header, "rate");
	if (!learns_masks(t))
		return;
	if (strategy && !strcmp(strategy, "none"))
		die("%s: no token is masked, as maskgen had --strategy none: expected masks, such as those of --strategy random", name);
	if (cJSON_IsNumber(rate) && rate->valuedouble == 0)
		die("%s: no token is masked, as maskgen had --rate 0: expected a rate above 0, such as 0.15", name);
}

static void open_source(struct train *t)
{
	struct stream *in = cli_open(t->cli, 0);
	const char *name = stream_name(in);
	t->header = stream_header(in);
	objectives_choose(&t->objectives, t->header);
	must(source_init(&t->source, &t->objectives, t->task->name, in, &failure));
	must(masked_info_parse(&t->info, t->header, name, &failure));
	if (!t->header->vocab.n)
		die("%s: no vocabulary in the header", name);
	train_check_shard(&t->ranks, &t->info, name);
	if (!t->info.steps)
		die("%s: no cells to train on", name);
	check_masks(t, name);
	if (t->info.steps > UINT32_MAX)
		die("%s: %llu steps: at most %u", name, (ull)t->info.steps, UINT32_MAX);
	t->source.shard = (uint32_t)t->info.shard;
	t->source.shards = (uint32_t)t->info.shards;
}

static void open_validation(struct train *t)
{
	const struct masked_info *m = &t->info;
	if (!t->options->eval)
		return;
	validation_open(t);
	t->eval_every = t->options->eval_every ? (uint64_t)t->options->eval_every : m->epochs > 1 ? m->steps / m->epochs : m->steps;
}

/* ---- the model ---- */

static int has_field(const struct arch *a, const char *key)
{
	const struct config_field *f = a->field;
	while (f->key && strcmp(f->key, key))
		f++;
	return f->key != NULL;
}

static void choose_config(struct model_config *c, const struct train *t)
{
	const struct train_options *o = t->options;
	const struct vocab *v = &t->header->vocab;
	const char *what = o->config ? o->config : o->init ? o->init : t->task->config;
	struct model_config first;
	must(config_get(c, what, &failure));
	if (o->init) {
		must(config_get(&first, o->init, &failure));
		cli_same_positions(&first, o->init, t->source.in);
	}
	c->shared_positions = t->source.col.rank >= 0;
	c->cls_tokens = cli_cls_tokens(t->source.in);
	if (!c->vocab_size) {
		int64_t pad = vocab_token(v, TOKEN_PAD);
		c->vocab_size = (uint32_t)v->n;
		c->pad_token_id = pad > 0 ? (uint32_t)pad : 0;
	} else if (c->vocab_size != v->n) {
		die("%s: vocab_size is %u, but the vocabulary of %s has %zu tokens", what, c->vocab_size, t->source.name, v->n);
	}
	if (o->dropout >= 0 && !has_field(c->arch, "hidden_dropout_prob"))
		die("--dropout: architecture %s has none", c->arch->name);
	if (o->dropout >= 0)
		c->hidden_dropout_prob = c->attention_probs_dropout_prob = o->dropout;
}

/* `loaded`: the weights come from a file. */
static void make_model(struct train *t, const struct model_config *c, int loaded)
{
	long long freeze = t->options->freeze;
	t->ops = cli_device(t->cli);
	uint64_t seed = (uint64_t)t->cli->seed;
	struct head_spec head[HEADS_MAX];
	size_t n = t->objectives.n;
	for (size_t i = 0; i < n; i++)
		head[i] = t->objectives.one[i].head;
	t->model = loaded ? model_blank(c, head, n, t->ops, seed, &failure) : model_new(c, head, n, t->ops, seed, &failure);
	must(!t->model);
	if ((uint64_t)freeze > c->num_hidden_layers)
		die("--freeze %lld: the model has %u layers", freeze, c->num_hidden_layers);
	model_freeze(t->model, (size_t)freeze);
	for (struct objective *o = t->objectives.one; o < t->objectives.one + t->objectives.n; o++)
		if (o->kind->ready)
			o->kind->ready(o, t);
}

/* Those of the architecture, if it has its own. */
static uint64_t default_warmup(const struct train *t, const struct optim *d)
{
	uint64_t steps = t->info.steps, own = d->warmup ? d->warmup : t->task->warmup;
	if (own == WARMUP_NONE)
		return 0;
	if (own) /* Geneformer warms up for 500 steps, even of 834 */
		return steps * 6 / 10 < own ? steps * 6 / 10 : own;
	return steps / 10 < WARMUP_MAX ? steps / 10 : WARMUP_MAX;
}

/* A network as small as the preset tiny learns little at the rate of Geneformer's fine-tuning. Measured on 3,740 cells of the lung (Kim 2020) with
 * 9 types, ten epochs: macro F1 .51 at 5e-5, .73 at 2e-4, .93 at 1e-3. */
static double default_rate(const struct model_config *c, double rate)
{
	enum { SMALL = 128 };
	return c->hidden_size < SMALL && rate < 1e-3 ? 1e-3 : rate;
}

static void choose_optim(struct train *t, const struct model_config *c)
{
	const struct train_options *in = t->options;
	struct optim *o = &t->optim;
	const struct optim *d = c->arch->optim ? c->arch->optim : &t->task->optim;
	uint64_t steps = t->info.steps;
	optim_init(o);
	o->beta2 = d->beta2 > 0 ? d->beta2 : o->beta2;
	o->variant = d->variant;
	o->schedule = in->schedule < 0 ? d->schedule : (enum schedule)in->schedule;
	o->lr = in->lr < 0 ? default_rate(c, d->lr) : in->lr;
	o->weight_decay = in->weight_decay < 0 ? d->weight_decay : in->weight_decay;
	o->max_norm = in->clip < 0 ? d->max_norm : in->clip;
	o->total = steps;
	o->warmup = in->warmup < 0 ? default_warmup(t, d) : (uint64_t)(in->warmup < 1 ? in->warmup * (double)steps : in->warmup);
}

/* ---- --init ---- */

/*
 * from [heads of the model]: the heads in config.json of --init whose weights they take. A head that is the same takes them; else one that is
 * fitted to classes or numbers takes none, and any other takes what has the names of its tensors.
 */
static void choose_heads(const struct head_spec **from, const struct config_heads *there, const struct train *t)
{
	for (const struct objective *o = t->objectives.one; o < t->objectives.one + t->objectives.n; o++) {
		from[o->index] = head_labels(o->head.kind) ? NULL : &o->head;
		for (size_t i = 0; i < there->n; i++)
			if (head_same(&o->head, &there->head[i]))
				from[o->index] = &there->head[i];
	}
}

/* What the heads that take no weights of --init are for: "cell_type, donor" (malloced). */
static char *new_heads(const struct head_spec *const *from, const struct train *t)
{
	char *names = xstrdup("");
	for (const struct objective *o = t->objectives.one; o < t->objectives.one + t->objectives.n; o++)
		if (!from[o->index])
			xappend(&names, "%s%s", *names ? ", " : "", o->what);
	return names;
}

/* A head of numbers whose column has another mean or standard deviation now: its predictions, mean + scale * output, stay what they were. */
static void keep_unit(struct model *m, size_t i, const struct head_spec *now, const struct head_spec *was)
{
	double from = was->scale == 0 ? 1 : was->scale, to = now->scale == 0 ? 1 : now->scale;
	head_value_rescale(m, i, from / to, (was->mean - now->mean) / to);
}

/* Load weights by name. If the model has a vocabulary, it must be the same. A classifier that is not the same head is not loaded. */
static void load_init(struct train *t)
{
	struct weights_report report;
	RELEASED(vocab_release) struct vocab v = {0};
	const char *dir = t->options->init;
	const struct model_config *c = model_config(t->model);
	FREED char *vocab = xasprintf("%s/vocab.tsv", dir), *weights = xasprintf("%s/model.safetensors", dir),
		   *config = xasprintf("%s/config.json", dir);
	const struct head_spec *from[HEADS_MAX];
	RELEASED(config_heads_release) struct config_heads heads;
	if (access(vocab, F_OK) == 0)
		must(vocab_load(&v, vocab, &failure));
	cli_same_vocab(&v, c, dir, t->source.in);
	config_heads_load(&heads, config, NULL); /* of a model that has none that we know, the heads go by the names of tensors */
	choose_heads(from, &heads, t);
	must(weights_load_heads(t->model, weights, from, &report, &failure));
	for (const struct objective *o = t->objectives.one; o < t->objectives.one + t->objectives.n; o++)
		if (o->head.kind->target == TARGET_VALUE && from[o->index])
			keep_unit(t->model, o->index, &o->head, from[o->index]);
	FREED char *fresh = new_heads(from, t);
	if (report.fresh && *fresh)
		info("the head for %s is new: it starts from random weights", fresh);
	else if (report.fresh)
		warn("%s has no '%s' (%zu such tensors of the head): they start from random values", weights, report.first_fresh,
			report.fresh);
}

/* ---- --mpi ---- */

/* Check the settings that must be the same on all ranks. */
static void check_ranks(struct train *t)
{
	FREED char *config = config_print(model_config(t->model), model_head(t->model, 0), model_nhead(t->model)),
		   *settings = cJSON_PrintUnformatted(t->state.settings);
	const struct {
		const char *what, *text;
	} same[] = {{"--device", t->ops->name}, {"configuration", config}, {"options", settings}, {"masked stream", t->state.digest}};
	for (size_t i = 0; i < sizeof same / sizeof *same; i++)
		train_check_same(&t->ranks, same[i].what, same[i].text);
}

/* Copy rank 0's state and weights to all ranks. */
static void share_start(struct train *t, int resume)
{
	struct train_state x = t->state; /* the digest is equal already; this rank keeps its own JSON */
	must(ranks_share(&t->ranks, &x, sizeof x, &failure));
	must(ranks_share_model(&t->ranks, t->model, resume, &failure));
	x.settings = t->state.settings;
	x.stream = t->state.stream;
	t->state = x;
	if (t->info.first_step > x.step)
		die("%s starts at step %llu, but rank 0 resumes after step %llu: earlier batches are missing", t->source.name,
			(ull)t->info.first_step, (ull)x.step);
	if (resume)
		t->saved = x.step;
}

static void join_devices(struct train *t)
{
	struct error e, what;
	int joined = ranks_join_devices(&t->ranks, t->ops, &what, &e);
	if (joined < 0)
		die("--mpi: %s", e.msg);
	if (joined)
		info("gradients are summed on the GPUs, by %s", what.msg);
	else if (what.msg[0])
		info("gradients pass through the memory of the host: %s", what.msg);
}

/* ---- kernels ---- */

static void describe_kernels(const struct train *t, char *text, size_t n)
{
	if (!t->ops->host)
		snprintf(text, n, "%s", t->ops->name);
	else if (t->cli->bf16)
		snprintf(text, n, CPU_DESCRIBE_BF16);
	else
		cpu_kernels(text, n);
}

/* The first rank whose kernels `now` [n] are others than `was`, or -1; then `now` are those of that rank, in all ranks. */
static int unlike_rank(struct train *t, const char *was, char *now, size_t n)
{
	int first = 0, size = t->ranks.comm ? t->ranks.size : 1;
	FREED double *x = xcalloc((size_t)size, sizeof *x);
	x[t->ranks.rank] = strcmp(was, now) != 0;
	must(ranks_sum(&t->ranks, x, (size_t)size, &failure));
	while (first < size && !(x[first] > 0))
		first++;
	if (first < size)
		must(ranks_share_text(&t->ranks, first, now, n, &failure));
	return first < size ? first : -1;
}

/* The kernels of this process become those of the state, which had those of the checkpoint or of rank 0: they should be the same. */
static void settle_kernels(struct train *t, int resume)
{
	char now[sizeof t->state.kernels] = "", was[sizeof now], variables[100], mine[100];
	memcpy(was, t->state.kernels, sizeof was);
	describe_kernels(t, now, sizeof now);
	memcpy(t->state.kernels, now, sizeof now);
	int rank = *was ? unlike_rank(t, was, now, sizeof now) : -1;
	if (rank < 0)
		return;
	FREED char *who = t->ranks.comm ? xasprintf("rank %d", rank) : xstrdup("this process");
	cpu_variables(was, variables, sizeof variables);
	cpu_variables(now, mine, sizeof mine);
	const char *advice = "makes them equal, where the processor can";
	if (!*variables) {
		snprintf(variables, sizeof variables, "CORRMASK_CPU=portable");
		advice = "from the start is the same on every processor with AVX2";
	} else if (!strcmp(variables, mine)) {
		snprintf(variables, sizeof variables, "the same version of OpenBLAS");
		advice = "makes them equal";
	}
	FREED char *message = xasprintf("%s computes with '%s', %s with '%s': weights will differ by rounding; %s %s", who, now,
		resume ? "and the checkpoint was computed" : "and rank 0", was, variables, advice);
	if (t->options->same_kernels)
		die("%s (--same-kernels)", message);
	warn("%s", message);
}

/* ---- all of it ---- */

/* Set the weights and the state to start from. resume: after `step` finished steps. */
static void start_weights(struct train *t, int resume, uint64_t step, const char *damaged)
{
	t->saved = UINT64_MAX;
	if (!resume && t->info.first_step)
		die("%s starts at step %llu, and there is no checkpoint to resume from", t->source.name, (ull)t->info.first_step);
	if (resume && !t->ranks.rank)
		resume_load(t, step, damaged);
	else if (t->options->init && !t->ranks.rank)
		load_init(t);
	if (!resume)
		describe_kernels(t, t->state.kernels, sizeof t->state.kernels);
	if (t->ranks.comm) {
		check_ranks(t);
		share_start(t, resume);
		join_devices(t);
	}
	settle_kernels(t, resume);
}

/* A head can read the tokens that stand before the genes of every cell, or the first token, whatever it is. */
static void check_position(const struct train *t, const struct head_spec *s, const struct model_config *c)
{
	if (s->direct && c->arch->per_cell)
		die("--head %s: position: architecture %s has no hidden states of tokens", s->name, c->arch->name);
	cli_has_position(s, t->source.in);
	if (t->validation.source.in)
		cli_has_position(s, t->validation.source.in);
}

/* A network without a value encoder learns from tokens with counts, but not from the counts. */
static void warn_ignored_values(const struct train *t, const struct model_config *c)
{
	if (c->value.kind != VALUE_NONE || header_find(t->header, "input_value") < 0)
		return;
	warn("%s: this network reads no values, so it sees only which genes a cell has%s: expected a configuration with value_encoder, "
	     "such as --config bmfm-tiny",
		t->source.name, c->arch->positions ? ", at positions that mean nothing (their order is random)" : "");
}

/* The streams, and what they make of the heads and of the configuration. */
static void open_all(struct train *t, struct model_config *c)
{
	choose_config(c, t);
	open_validation(t);
	for (struct objective *o = t->objectives.one; o < t->objectives.one + t->objectives.n; o++) {
		if (o->kind->open)
			o->kind->open(o, t);
		if (o->kind->configure)
			o->kind->configure(o, t, c);
		check_position(t, &o->head, c);
		if (o->head.from && o->head.from >= t->info.steps)
			die("%s: %llu steps: column '%s' is to be learned from step %llu on", t->source.name,
				(unsigned long long)t->info.steps, o->head.column, (unsigned long long)o->head.from);
	}
	cli_needs_values(c, t->source.in);
	if (t->validation.source.in)
		cli_needs_values(c, t->validation.source.in);
	choose_optim(t, c);
	t->state = (struct train_state){.steps = t->info.steps, .stream = masked_description(t->header), .settings = options_settings(t)};
	masked_digest(t->header, t->state.digest);
}

int train_start(struct train *t)
{
	struct model_config c;
	RELEASED(train_state_release) struct train_state was = {0};
	enum train_progress progress = TRAIN_NEW;
	FREED char *damaged = NULL;
	if (t->options->mpi)
		train_join(&t->ranks, t->cli);
	open_source(t);
	if (!t->ranks.rank)
		progress = resume_open(t, &was, &damaged);
	open_all(t, &c);
	if (progress != TRAIN_NEW)
		resume_check(t, &c, progress, &was);
	must(ranks_share(&t->ranks, &progress, sizeof progress, &failure));
	uint64_t step = was.step;
	if (progress == TRAIN_FINISHED) {
		resume_nothing(t);
		return 0;
	}
	int resume = progress == TRAIN_UNFINISHED;
	if (!t->ranks.rank)
		warn_ignored_values(t, &c);
	make_model(t, &c, t->options->init || resume);
	start_weights(t, resume, step, damaged);
	if (!t->ranks.rank)
		validation_check(t);
	t->replaces = t->options->force;
	if (!t->ranks.rank && !t->replaces)
		train_clear(t, 0);
	report_open(t);
	return 1;
}
