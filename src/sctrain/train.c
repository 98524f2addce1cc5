/*
 * The training loop, the same for every task. One block of the masked stream is one optimiser step. maskgen has decided the
 * order, the batches and the masks, so the weights depend only on the stream, the options and the initial weights.
 */
#include "sctrain.h"
#include "cli.h"

#include "base/clock.h"

#include <unistd.h>

typedef unsigned long long ull; /* for messages */

static volatile sig_atomic_t stop; /* the signal that stops the training */

static void on_stop(int sig)
{
	stop = sig;
}

/* The first signal ends the training at the next step. A second one kills the program. */
static void catch_signals(void)
{
	struct sigaction a = {.sa_handler = on_stop, .sa_flags = SA_RESETHAND | SA_RESTART};
	sigemptyset(&a.sa_mask);
	sigaction(SIGINT, &a, NULL);
	sigaction(SIGTERM, &a, NULL);
	if (signal(SIGHUP, SIG_IGN) != SIG_IGN) /* nohup */
		sigaction(SIGHUP, &a, NULL);
}

/* ---- checkpoints ---- */

static struct model_files files_of(const struct train *t)
{
	return (struct model_files){.vocab = &t->header->vocab, .file = t->file, .nfile = t->nfile, .best = t->best};
}

static void save(struct train *t)
{
	const char *model = t->cli->output;
	FILE *log = t->report.log;
	if (t->saved == t->state.step || t->replaces)
		return;
	t->state.seconds = t->report.seconds_before + clock_seconds() - t->report.start;
	int same = ranks_same_weights(&t->ranks, t->model, &failure);
	must(same < 0);
	if (!same)
		die("after step %llu the weights are no longer the same on all ranks: do they run on different processors or libraries?",
			(ull)t->state.step);
	if (!t->ranks.rank && (fflush(log) || fsync(fileno(log))))
		die("%s/train.tsv: cannot write", model);
	struct model_files files = files_of(t);
	if (!t->ranks.rank)
		must(checkpoint_save(model, t->model, &t->state, &files, (int)t->options->keep, &failure));
	t->saved = t->state.step;
}

static int save_due(const struct train *t, uint64_t step)
{
	return step % (uint64_t)t->options->save_every == 0 && step < t->info.steps;
}

static const char *saved_where(const struct train *t)
{
	static char text[64];
	if (t->saved == UINT64_MAX)
		return "there is no checkpoint yet";
	snprintf(text, sizeof text, "the newest checkpoint is checkpoint-%llu", (ull)t->saved);
	return text;
}

/* ---- the end, before all steps are done ---- */

/* After a signal, or a fault of any rank (see t->steps): save the finished steps if they are sound, and end all ranks. */
static _Noreturn void end_early(struct train *t, struct error *e)
{
	struct step_queue *q = &t->steps;
	struct step_result r;
	if (q->lost && stop) { /* it may be that they do not answer, and the machine is about to be taken away */
		complain("signal %d, and %s; %s", (int)stop, e->msg, saved_where(t));
		signal(stop, SIG_DFL);
		raise(stop);
	}
	if (q->lost)
		die("%s; %s", e->msg, saved_where(t));
	if (step_drain(q, &r, e) > 0)
		report_step(t, &r);
	int failed = q->status.fault == FAULT_STEP, signaled = q->status.signal && !failed;
	int altered = stream_altered(t->source.in); /* the finished steps may have learned from other data */
	if (!failed && !altered && (t->state.step || signaled))
		save(t);
	if (signaled && t->replaces)
		info("interrupted before anything was learned: %s is as it was", t->cli->output);
	else if (signaled)
		info("interrupted after step %llu of %llu: --resume continues from %s/checkpoint-%llu", (ull)t->state.step,
			(ull)t->state.steps, t->cli->output, (ull)t->saved);
	else if (q->own)
		complain("%s; %s%s", e->msg, saved_where(t), altered ? ", and may be wrong too" : "");
	else if (!t->ranks.rank)
		complain("rank %d has stopped; %s", q->status.rank, saved_where(t));
	int sig = q->status.signal;
	train_leave(&t->ranks);
	if (!signaled)
		exit(1);
	signal(sig, SIG_DFL);
	raise(sig);
	_exit(128 + sig);
}

/* Training has stopped improving: read the stream to its end, so that the program before us in the pipe does not fail, and
 * its digest is checked. */
static int read_rest(struct train *t, struct block *b, struct error *e)
{
	int got;
	info("%lld validations in a row were not better: stopping after step %llu of %llu", t->options->patience, (ull)t->state.step,
		(ull)t->state.steps);
	while ((got = stream_read(t->source.in, b, e)) > 0)
		;
	return got;
}

/* ---- steps ---- */

/* Check that the block's rows belong to its step. */
static int check_step(const struct train *t, const struct block *b, uint64_t step, struct error *e)
{
	const uint32_t *col = b->col[t->source.col.step].data;
	for (size_t i = 0; i < b->rows; i++)
		if (col[i] != step)
			return error_set(e, "%s: block %llu: row %zu is of step %u, expected %llu", t->source.name,
				(ull)(step - t->info.first_step), i, col[i], (ull)step);
	return 0;
}

/* Read the next block. 1, 0 after the last, -1 with e set. */
static int train_next_block(struct train *t, struct block *b, uint64_t step, struct error *e)
{
	ull steps = t->info.steps;
	int got = stream_read(t->source.in, b, e);
	if (got > 0 && step == steps)
		return error_set(e, "%s: more blocks than the %llu steps of the header", t->source.name, steps);
	if (got == 0 && step < steps)
		return error_set(e, "%s: ends after %llu of %llu steps", t->source.name, (ull)step, steps);
	return got > 0 && check_step(t, b, step, e) ? -1 : got;
}

/* Part of the block as a batch with labels; see step_pack. */
static int pack_part(void *arg, size_t part, size_t parts, const struct batch **b, struct error *e)
{
	struct train *t = arg;
	size_t n = t->block->rows, from = n * part / parts, to = n * (part + 1) / parts;
	if (from == to)
		return 0;
	if (objectives_pack(&t->packed, &t->objectives, &t->source, t->block, from, to, model_positions(model_config(t->model)), e))
		return -1;
	*b = &t->packed.b;
	return 1;
}

/* Run one step from a block, or from NULL if there is none. If the weights are needed after this step, wait until it is finished. */
static void train_step(struct train *t, const struct block *b, uint64_t step, struct error *e)
{
	struct step_result r;
	t->block = b;
	int got = step_run(&t->steps, step, b != NULL, &r, e);
	if (got > 0)
		report_step(t, &r);
	if (got >= 0 && (save_due(t, step + 1) || validation_due(t, step + 1) || step + 1 == t->info.steps)) {
		got = step_drain(&t->steps, &r, e);
		if (got > 0)
			report_step(t, &r);
	}
	if (got < 0)
		end_early(t, e);
}

static int patience_is_over(const struct train *t)
{
	uint64_t patience = (uint64_t)t->options->patience;
	return patience && t->state.step < t->info.steps && t->state.stale >= patience;
}

/* Train to the end of the stream, or until validation stops improving. */
static void train(struct train *t)
{
	RELEASED(block_release) struct block b = {0};
	uint64_t step = t->info.first_step; /* of the next block */
	int got, over = 0;
	t->report.start = t->report.last = clock_seconds();
	while ((got = train_next_block(t, &b, step, &failure)) > 0) {
		int fresh = step >= t->state.step; /* else the step was done before the checkpoint */
		if (fresh)
			train_step(t, &b, step, &failure);
		step++;
		if (step_signal(&t->steps))
			end_early(t, &failure);
		if (fresh && patience_is_over(t)) {
			got = read_rest(t, &b, &failure);
			over = 1;
			break;
		}
		if (fresh && save_due(t, step))
			save(t);
	}
	if (got < 0 && !over && t->state.step < t->info.steps)
		train_step(t, NULL, t->state.step, &failure); /* the other ranks run this step */
	if (step_close(&t->steps, got < 0, &failure))
		end_early(t, &failure);
}

/* ---- the finished model ---- */

/* Put the weights kept by --best, if any, into the model. */
static void choose_best(struct train *t)
{
	const struct train_state *s = &t->state;
	if (!t->best)
		return;
	model_write_all(t->model, PARAM, t->best);
	info("best validation %s, %.6g, after step %llu of %llu: these weights are kept", best_name((enum best)t->options->best), s->best,
		(ull)s->best_step, (ull)s->steps);
}

/* Has the head had targets, of losses whose weight is not 0? */
static int has_learned(const struct train *t, const struct objective *o)
{
	const double *count = t->report.totals.count + model_first_loss(t->model, o->index);
	size_t k = 0, n = head_parts(o->head.kind);
	while (k < n && !(count[k] > 0 && head_part_weight(&o->head, k) > 0))
		k++;
	return k < n;
}

/* A training that was resumed may have learned before. */
static void check_learned(const struct train *t)
{
	const struct objectives *list = &t->objectives;
	const struct objective_kind *first = list->one[0].kind;
	ull steps = t->report.steps;
	if (steps < t->state.step)
		return;
	if (!t->report.measured)
		die("%s: %s in any of the %llu steps: nothing was learned", t->source.name,
			first->label                          ? "there is no label"
				: first->input == INPUT_CELLS ? "there is no target of a loss whose weight is above 0"
							      : "no token is masked",
			steps);
	for (const struct objective *o = list->one; o < list->one + list->n; o++)
		if (!has_learned(t, o))
			warn("%s: nothing to predict in any of the %llu steps: head %s has learned nothing", t->source.name, steps,
				objective_name(o));
}

static void train_finish(struct train *t)
{
	struct model_files files = files_of(t);
	check_learned(t);
	choose_best(t);
	report_close(t); /* before the weights, which make the folder a finished model */
	if (!t->ranks.rank)
		card_write(t);
	if (!t->ranks.rank)
		must(checkpoint_finish(t->cli->output, t->model, &t->state, &files, &failure));
	report_run(t);
}

int train_main(const struct train_task *task, int argc, char **argv)
{
	static struct train t;
	t.task = task;
	ranks_init(&t.ranks, NULL);
	t.options = options_read(task, argc, argv, &t.cli, &t.objectives);
	if (!train_start(&t)) {
		train_leave(&t.ranks);
		return 0;
	}
	t.steps = (struct step_queue){.model = t.model,
		.optim = &t.optim,
		.ranks = &t.ranks,
		.parts = (size_t)t.options->accum,
		.stop = &stop,
		.pack = pack_part,
		.arg = &t,
		.queued = t.ops->queued};
	catch_signals();
	train_watch(&t.ranks, &stop);
	train(&t);
	train_finish(&t);
	train_leave(&t.ranks);
	model_free(t.model);
	t.ops->destroy(t.ops); /* leaves the group of GPUs */
	return 0;
}
