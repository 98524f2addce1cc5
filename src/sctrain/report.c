/* The output of a training: a row of train.tsv for every finished step, the progress line, and a summary with -v. */
#include "sctrain.h"
#include "cli.h"

#include "base/clock.h"
#include "nn/device.h"

#include <errno.h>
#include <unistd.h>

/*
 * The columns after the first six. One objective: its metrics on --eval. Several, named a and b:
 *     loss.a loss.b eval_loss eval_loss.a eval_METRIC.a ... eval_loss.b ...
 * An objective whose head has several losses, parts p and q: loss.p loss.q, or with several objectives loss.a.p loss.a.q.
 * with eval_loss that of the model. x: the values of a row; NULL: the names of the columns.
 */
struct row {
	const struct totals *totals;
	const struct scores *scores; /* NULL: this step was not validated */
};

static void report_put(FILE *f, const char *name, double value, int names, const char *of)
{
	if (names)
		fprintf(f, "\t%s%s%s", name, *of ? "." : "", of);
	else if (isnan(value))
		fputs("\tNA", f);
	else
		fprintf(f, "\t%.9g", value);
}

/* The means of the losses of a head, if the model has several losses. */
static void loss_columns(FILE *f, const struct train *t, const struct objective *o, int several, const struct row *x)
{
	const struct head_part *part = o->head.kind->part;
	size_t first = model_first_loss(t->model, o->index);
	for (size_t k = 0; (several || part) && k < head_parts(o->head.kind); k++) {
		FREED char *of = !part ? xstrdup(objective_name(o))
			: several      ? xasprintf("%s.%s", objective_name(o), part[k].name)
				       : xstrdup(part[k].name);
		report_put(f, "loss", x ? x->totals->loss[first + k] / x->totals->count[first + k] : 0, !x, of);
	}
}

static void more_columns(FILE *f, const struct train *t, const struct row *x)
{
	const struct objectives *list = &t->objectives;
	int several = list->n > 1, scored = x && x->scores;
	for (size_t i = 0; i < list->n; i++)
		loss_columns(f, t, &list->one[i], several, x);
	if (!t->validation.source.in)
		return;
	if (several)
		report_put(f, "eval_loss", scored ? x->scores->loss : NAN, !x, "");
	for (size_t i = 0; i < list->n; i++) {
		const struct head_kind *k = list->one[i].head.kind;
		for (size_t c = 0; c < metric_count(k); c++) {
			char name[64];
			snprintf(name, sizeof name, "eval_%s", metric_name(k, c));
			report_put(f, name, scored ? x->scores->value[i][c] : NAN, !x, several ? objective_name(&list->one[i]) : "");
		}
	}
}

static void open_log(struct train *t, uint64_t step)
{
	struct report *p = &t->report;
	FREED char *columns = NULL;
	size_t n;
	FILE *f = xmemopen(&columns, &n);
	fputs("step\tloss\tlr\tgrad_norm\ttokens_per_s\tseconds", f);
	more_columns(f, t, NULL);
	fputc('\n', f);
	xmemclose(f, &columns);
	p->log = checkpoint_log(t->cli->output, CHECKPOINT_TRAIN, step, columns, &failure);
	must(!p->log);
}

void report_open(struct train *t)
{
	struct report *p = &t->report;
	p->seconds_before = t->state.seconds;
	if (t->ranks.rank)
		return;
	if (t->replaces)
		p->log = xmemopen(&p->early, &p->early_size);
	else
		open_log(t, t->state.step);
}

/* The training has learned something: now it takes the place of the earlier one. */
static void replace(struct train *t)
{
	struct report *p = &t->report;
	t->replaces = 0;
	if (t->ranks.rank)
		return;
	xmemclose(p->log, &p->early);
	train_clear(t, 1);
	open_log(t, 0);
	fputs(p->early, p->log);
	free(p->early);
	p->early = NULL;
}

static void report_add(struct totals *sum, const struct totals *x)
{
	for (size_t i = 0; i < LOSSES_MAX; i++) {
		sum->loss[i] += x->loss[i];
		sum->count[i] += x->count[i];
	}
	sum->tokens += x->tokens;
	sum->cells += x->cells;
}

/* tokens_per_s does not include the time of validations. */
void report_step(struct train *t, const struct step_result *r)
{
	struct report *p = &t->report;
	const struct totals *sum = &r->totals;
	uint64_t step = r->step, done = step + 1, steps = t->info.steps;
	int measured = validation_due(t, done);
	double rate = sum->tokens / (clock_seconds() - p->last), lr = t->optim.lr * optim_factor(&t->optim, step);
	char loss[32] = "NA", norm[32] = "NA";
	t->state.step = done;
	t->state.epoch = (double)done * (double)t->info.epochs / (double)steps;
	report_add(&p->totals, sum);
	p->measured += !isnan(r->loss);
	if (t->replaces && p->measured)
		replace(t);
	if (measured)
		validation_run(t);
	p->last = clock_seconds();
	double spent = p->last - p->start, rest = spent / (double)++p->steps * (double)(steps - done);
	if (t->ranks.rank)
		return;
	if (!isnan(r->loss)) {
		p->first = p->measured > 1 ? p->first : r->loss;
		p->recent = p->measured > 1 ? .9 * p->recent + .1 * r->loss : r->loss;
		snprintf(loss, sizeof loss, "%.9g", r->loss);
		snprintf(norm, sizeof norm, "%.9g", r->norm);
	}
	fprintf(p->log, "%llu\t%s\t%.9g\t%s\t%.1f\t%.3f", (unsigned long long)done, loss, lr, norm, rate, p->seconds_before + spent);
	more_columns(p->log, t, &(struct row){sum, measured ? &t->validation.last : NULL});
	fputc('\n', p->log);
	if (fflush(p->log))
		die("%s/train.tsv: cannot write: %s", t->cli->output, strerror(errno));
	progress("step %llu/%llu, loss %s, %.0f tokens/s, %02d:%02d:%02d to go", (unsigned long long)done, (unsigned long long)steps, loss,
		p->totals.tokens / spent, (int)(rest / 3600), (int)(rest / 60) % 60, (int)rest % 60);
}

void report_close(struct train *t)
{
	if (!t->ranks.rank && (fsync(fileno(t->report.log)) | fclose(t->report.log)))
		die("%s/train.tsv: cannot write", t->cli->output);
}

/* "120 labels", or of several "120 labels of a, 80 numbers of b" (malloced). */
static char *targets_text(const struct train *t)
{
	const struct objectives *list = &t->objectives;
	char *text = xstrdup("");
	for (size_t i = 0; i < list->n; i++) {
		const struct objective *o = &list->one[i];
		xappend(&text, "%s%.0f %s", i ? ", " : "", t->report.totals.count[model_first_loss(t->model, o->index)], o->kind->counted);
		if (list->n > 1)
			xappend(&text, " of %s", objective_name(o));
	}
	return text;
}

/* For --report: targets, or of several targets.a, targets.b. */
static void measure_targets(const struct train *t)
{
	const struct objectives *list = &t->objectives;
	for (size_t i = 0; i < list->n; i++) {
		FREED char *name = list->n > 1 ? xasprintf("targets.%s", objective_name(&list->one[i])) : xstrdup("targets");
		cli_measured(name, t->report.totals.count[model_first_loss(t->model, list->one[i].index)]);
	}
}

/* A training that made the loss worse is no failure, but its model is of no use. Losses under a curriculum do not compare: it weighs them anew. */
static void warn_diverged(const struct train *t)
{
	const struct report *p = &t->report;
	if (!t->objectives.one[0].head.curriculum.ratios && !t->ranks.rank && p->first > 0 && p->recent > 2 * p->first)
		warn("the loss rose from %.3g to %.3g: the training diverged; lower --lr", p->first, p->recent);
}

void report_run(struct train *t)
{
	warn_diverged(t);
	const struct totals *sum = &t->report.totals;
	char waited[64] = "", gpu[384] = "", *targets = targets_text(t);
	const double rate = sum->tokens / fmax(t->report.last - t->report.start, 1e-9);
	device_report(t->ops, model_padding(t->model), gpu, sizeof gpu);
	if (t->ranks.size > 1)
		snprintf(waited, sizeof waited, ", %.2f s of it this rank waited for the others", t->ranks.waited);
	cli_measured_all({"steps", (double)t->state.steps}, {"cells", sum->cells}, {"tokens", sum->tokens}, {"tokens_per_s", rate});
	measure_targets(t);
	cli_measured_all({"parameters", (double)model_nparam(t->model)}, {"array_mb", (double)model_bytes(t->model) / 1e6});
	cli_report(t->cli, "%llu step%s, %.0f cells, %.0f tokens (%.0f tokens/s%s), %s; %zu parameters, %.0f MB of arrays%s",
		(unsigned long long)t->state.steps, t->state.steps == 1 ? "" : "s", sum->cells, sum->tokens, rate, waited, targets,
		model_nparam(t->model), (double)model_bytes(t->model) / 1e6, gpu);
	free(targets);
}
