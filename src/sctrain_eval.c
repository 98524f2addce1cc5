/* sctrain eval: loss and accuracy of a masked-token model on masked streams. */
#include "sctrain.h"

#include "device.h"
#include "file.h"
#include "weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *model_dir;
static long long batch_tokens_max = 16384;
static struct cli cli;

static struct option_def options[] = {
	{.letter = 'M', .name = "model", .kind = OPT_STRING, .to = &model_dir, .arg = "DIR", .help = "the model directory (required)"},
	{.name = "batch-tokens", .kind = OPT_INT, .to = &batch_tokens_max, .arg = "N", .min = 1, .max = 1e9,
	 .help = "work on about N tokens at a time (default 16384)"},
	{0},
};

static struct cli cli = {.name = "sctrain eval", .operands = "[FILE]", .summary = "Loss and accuracy of a model on a masked stream, as TSV.",
			 .options = options, .common = CLI_OUT | CLI_DEVICE | CLI_THREADS};

static struct model *load_model(const struct header *h, const char *name, struct ops *ops)
{
	struct error e;
	struct vocab v;
	struct weights_report report;
	struct model *m = model_dir_load(model_dir, TASK_MLM, ops, 1, &v, &report, &e);
	if (!m)
		die("%s", e.msg);
	if (report.fresh)
		die("%s has no '%s': this is no masked-token model", model_dir, report.first_fresh);
	int same = vocab_same(&v, model_config(m), model_dir, h, name, &e);
	if (same < 0)
		die("%s", e.msg);
	if (same)
		warn("%s", e.msg);
	vocab_release(&v);
	return m;
}

static void write_totals(const struct score *t)
{
	struct error e;
	double loss = t->sum.sum / t->sum.count;
	char *text = xasprintf("metric\tvalue\nloss\t%.9g\nperplexity\t%.9g\naccuracy\t%.9g\nmasked\t%.0f\ntokens\t%llu\ncells\t%llu\n", loss,
			       exp(loss), t->sum.correct / t->sum.count, t->sum.count, (unsigned long long)t->tokens,
			       (unsigned long long)t->cells);
	if (outfile_text(cli.output, text, &e))
		die("%s", e.msg);
	free(text);
}

int eval_main(int argc, char **argv)
{
	struct error e;
	struct masked_columns col;
	struct block b = {0};
	struct score t = {0};
	int got;
	cli_init(&cli, argc, argv);
	if (!model_dir)
		usage_error("no model: -M DIR");
	if (cli.noperand > 1)
		usage_error("one masked stream at a time: '%s' is one too many", cli.operand[1]);
	struct stream *in = cli_open(&cli, 0);
	const char *name = stream_name(in);
	if (masked_columns(&col, stream_header(in), name, &e))
		die("%s", e.msg);
	char device[256];
	struct ops *ops = device_open(cli.device, (int)cli.threads, device, sizeof device, &e);
	if (!ops)
		die("%s", e.msg);
	if (cli.verbose || strcmp(ops->name, "cpu"))
		info("device: %s", device);
	struct model *m = load_model(stream_header(in), name, ops);
	while ((got = stream_read(in, &b, &e)) > 0) {
		score_block(&t, m, &col, &b, (size_t)batch_tokens_max, NULL, name);
		progress("%llu cells", (unsigned long long)t.cells);
	}
	if (got < 0)
		die("%s", e.msg);
	if (!(t.sum.count > 0))
		die("%s: no masked position in it", name);
	write_totals(&t);
	cli_report(&cli, "%llu cells, %llu tokens, %.0f masked", (unsigned long long)t.cells, (unsigned long long)t.tokens, t.sum.count);
	score_release(&t);
	block_release(&b);
	model_free(m);
	ops->destroy(ops);
	stream_free(in);
	return 0;
}
