/* sctrain eval: loss and accuracy of a masked-token model on a masked stream, or the loss of a model of counts on a masked-counts stream. */
#include "sctrain.h"

#include "cli_model.h"
#include "base/file.h"
#include "train/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *model_dir;
static long long batch_tokens_max;
static struct cli cli;

static struct option_def options[] = {
	{.letter = 'M', .name = "model", .kind = OPT_STRING, .to = &model_dir, .arg = "DIR", .help = "the model directory (required)"},
	{.name = "batch-tokens",
		.kind = OPT_INT,
		.to = &batch_tokens_max,
		.arg = "N",
		.min = 1,
		.max = 1e9,
		.help = "compute about N tokens, or counts, at a time (default 16384, of counts 262144)"},
	{0},
};

static struct cli cli = {.name = "sctrain eval",
	.operands = "[FILE]",
	.summary = "Evaluate a model on a masked or masked-counts stream: loss and accuracy, as TSV.",
	.options = options,
	.common = CLI_OUT | CLI_DEVICE | CLI_THREADS};

static struct model *load_model(const struct train_task *task, const struct stream *in, struct ops *ops)
{
	struct error e;
	struct vocab v;
	struct weights_report report;
	struct model *m = model_dir_load(model_dir, &(struct head_spec){.kind = task->head}, 1, ops, 1, &v, &report, &e);
	if (!m)
		die("%s", e.msg);
	if (report.fresh)
		die("%s has no '%s': it is not a model of %s", model_dir, report.first_fresh, task->name);
	cli_same_vocab(&v, model_config(m), model_dir, in);
	vocab_release(&v);
	return m;
}

static void write_metrics(struct score *y)
{
	struct error e;
	const struct head_kind *k = y->task->head;
	double value[METRICS_MAX];
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	if (!f)
		die("out of memory");
	score_metrics(y, value);
	fprintf(f, "metric\tvalue\nloss\t%.9g\n", value[0]);
	for (size_t i = metric_count(k); --i;)
		fprintf(f, "%s\t%.9g\n", metric_name(k, i), value[i]);
	fprintf(f, "masked\t%.0f\n%s\t%llu\ncells\t%llu\n", y->sum.count, k->counts ? "counts" : "tokens", (unsigned long long)y->tokens,
		(unsigned long long)y->cells);
	fclose(f);
	if (outfile_text(cli.output, text, &e))
		die("%s", e.msg);
	free(text);
}

int eval_main(int argc, char **argv)
{
	struct error e;
	struct masked_source source;
	struct block b = {0};
	struct score y = {0};
	int got;
	cli_init(&cli, argc, argv);
	if (!model_dir)
		usage_error("no model: -M DIR");
	if (cli.noperand > 1)
		usage_error("expected one masked stream, and '%s' is a second one", cli.operand[1]);
	struct stream *in = cli_open(&cli, 0);
	const struct train_task *task = strcmp(stream_header(in)->kind, "masked-counts") ? &mlm_task : &nb_task;
	if (source_init(&source, task, in, &e))
		die("%s", e.msg);
	struct ops *ops = cli_device(&cli);
	struct model *m = load_model(task, in, ops);
	if (task == &nb_task)
		nb_eval_open(model_dir, &source);
	if (!batch_tokens_max)
		batch_tokens_max = task->head->counts ? COUNTS_MAX : TOKENS_MAX;
	score_reset(&y, task, m);
	while ((got = stream_read(in, &b, &e)) > 0) {
		score_block(&y, m, &source, &b, (size_t)batch_tokens_max);
		progress("%llu cells", (unsigned long long)y.cells);
	}
	if (got < 0)
		die("%s", e.msg);
	if (!(y.sum.count > 0))
		die("%s: it has no masked position", source.name);
	if (task == &nb_task)
		nb_eval_warn(&source, y.cells);
	write_metrics(&y);
	cli_report(&cli, "%llu cells, %llu %s, %.0f masked", (unsigned long long)y.cells, (unsigned long long)y.tokens,
		task->head->counts ? "counts" : "tokens", y.sum.count);
	score_release(&y);
	block_release(&b);
	model_free(m);
	ops->destroy(ops);
	stream_free(in);
	return 0;
}
