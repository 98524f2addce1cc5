/* sctrain eval: loss and accuracy of a masked-token model on masked streams. */
#include "sctrain.h"

#include "cli_model.h"
#include "base/file.h"
#include "train/weights.h"

#include <stdlib.h>

static const char *model_dir;
static long long batch_tokens_max = 16384;
static struct cli cli;

static struct option_def options[] = {
	{.letter = 'M', .name = "model", .kind = OPT_STRING, .to = &model_dir, .arg = "DIR", .help = "the model directory (required)"},
	{.name = "batch-tokens",
		.kind = OPT_INT,
		.to = &batch_tokens_max,
		.arg = "N",
		.min = 1,
		.max = 1e9,
		.help = "compute about N tokens at a time (default 16384)"},
	{0},
};

static struct cli cli = {.name = "sctrain eval",
	.operands = "[FILE]",
	.summary = "Evaluate a model on a masked stream: loss and accuracy, as TSV.",
	.options = options,
	.common = CLI_OUT | CLI_DEVICE | CLI_THREADS};

static struct model *load_model(const struct stream *in, struct ops *ops)
{
	struct error e;
	struct vocab v;
	struct weights_report report;
	struct model *m = model_dir_load(model_dir, &(struct head_spec){.kind = mlm_task.head}, 1, ops, 1, &v, &report, &e);
	if (!m)
		die("%s", e.msg);
	if (report.fresh)
		die("%s has no '%s': it is not a masked-token model", model_dir, report.first_fresh);
	cli_same_vocab(&v, model_config(m), model_dir, in);
	vocab_release(&v);
	return m;
}

static void write_metrics(struct score *y)
{
	struct error e;
	double value[METRICS_MAX]; /* loss, accuracy, perplexity */
	score_metrics(y, value);
	char *text = xasprintf("metric\tvalue\nloss\t%.9g\nperplexity\t%.9g\naccuracy\t%.9g\nmasked\t%.0f\ntokens\t%llu\ncells\t%llu\n",
		value[0], value[2], value[1], y->sum.count, (unsigned long long)y->tokens, (unsigned long long)y->cells);
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
	if (source_init(&source, &mlm_task, in, &e))
		die("%s", e.msg);
	struct ops *ops = cli_device(&cli);
	struct model *m = load_model(in, ops);
	score_reset(&y, &mlm_task, m);
	while ((got = stream_read(in, &b, &e)) > 0) {
		score_block(&y, m, &source, &b, (size_t)batch_tokens_max);
		progress("%llu cells", (unsigned long long)y.cells);
	}
	if (got < 0)
		die("%s", e.msg);
	if (!(y.sum.count > 0))
		die("%s: it has no masked position", source.name);
	write_metrics(&y);
	cli_report(&cli, "%llu cells, %llu tokens, %.0f masked", (unsigned long long)y.cells, (unsigned long long)y.tokens, y.sum.count);
	score_release(&y);
	block_release(&b);
	model_free(m);
	ops->destroy(ops);
	stream_free(in);
	return 0;
}
