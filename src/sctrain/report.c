/* The output of a training: a row of train.tsv for every finished step, the progress line, and a summary with -v. */
#include "sctrain.h"

#include "base/clock.h"
#include "nn/device.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void report_open(struct train *t)
{
	struct error e;
	struct report *p = &t->report;
	p->seconds_before = t->state.seconds;
	if (t->ranks.rank)
		return;
	char eval[256] = "";
	for (size_t i = 0; t->validation.source.in && i < metric_count(t->task->head); i++)
		snprintf(eval + strlen(eval), sizeof eval - strlen(eval), "\teval_%s", metric_name(t->task->head, i));
	char *columns = xasprintf("step\tloss\tlr\tgrad_norm\ttokens_per_s\tseconds%s\n", eval);
	p->log = checkpoint_log(t->cli->output, t->state.step, columns, &e);
	if (!p->log)
		die("%s", e.msg);
	free(columns);
}

static void add(struct totals *sum, const struct totals *x)
{
	sum->loss += x->loss;
	sum->labels += x->labels;
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
	add(&p->totals, sum);
	if (measured)
		validation_run(t);
	p->last = clock_seconds();
	double spent = p->last - p->start, rest = spent / (double)++p->steps * (double)(steps - done);
	if (t->ranks.rank)
		return;
	if (sum->labels > 0) {
		snprintf(loss, sizeof loss, "%.9g", sum->loss / sum->labels);
		snprintf(norm, sizeof norm, "%.9g", r->norm);
	}
	fprintf(p->log, "%llu\t%s\t%.9g\t%s\t%.1f\t%.3f", (unsigned long long)done, loss, lr, norm, rate, p->seconds_before + spent);
	for (size_t i = 0; t->validation.source.in && i < metric_count(t->task->head); i++) {
		if (measured)
			fprintf(p->log, "\t%.9g", t->validation.value[i]);
		else
			fputs("\tNA", p->log);
	}
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

void report_run(struct train *t)
{
	const struct totals *sum = &t->report.totals;
	char waited[64] = "", gpu[384] = "";
	const double rate = sum->tokens / fmax(t->report.last - t->report.start, 1e-9);
	device_report(t->ops, model_padding(t->model), gpu, sizeof gpu);
	if (t->ranks.size > 1)
		snprintf(waited, sizeof waited, ", %.2f s of it this rank waited for the others", t->ranks.waited);
	cli_measured("steps", (double)t->state.steps);
	cli_measured("cells", sum->cells);
	cli_measured("tokens", sum->tokens);
	cli_measured("tokens_per_s", rate);
	cli_measured("targets", sum->labels);
	cli_measured("parameters", (double)model_nparam(t->model));
	cli_measured("array_mb", (double)model_bytes(t->model) / 1e6);
	cli_report(t->cli, "%llu step%s, %.0f cells, %.0f tokens (%.0f tokens/s%s), %.0f %s; %zu parameters, %.0f MB of arrays%s",
		(unsigned long long)t->state.steps, t->state.steps == 1 ? "" : "s", sum->cells, sum->tokens, rate, waited, sum->labels,
		t->task->counted, model_nparam(t->model), (double)model_bytes(t->model) / 1e6, gpu);
}
