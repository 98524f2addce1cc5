/* rankenc: a counts stream to a tokens stream (rank value encoding), or to a vocabulary (--fit). */
#include "rankenc.h"

#include "cli_rank.h"

#include <stdlib.h>

static const char *vocab_path, *map_path;
static int fit;
static long long min_cells = 1;

static struct option_def options[] = {
	{.kind = OPT_GROUP, .name = "Vocabulary"},
	{.letter = 'm',
		.name = "medians",
		.kind = OPT_STRING,
		.to = &vocab_path,
		.arg = "FILE",
		.help = "vocabulary with medians (TSV: token, gene_id, symbol, median; gzip accepted)"},
	{.name = "map",
		.kind = OPT_STRING,
		.to = &map_path,
		.arg = "FILE",
		.help = "first translate gene ids by this table of key and id (TSV, gzip accepted)"},
	{.kind = OPT_GROUP, .name = "Learning a vocabulary"},
	{.name = "fit",
		.kind = OPT_FLAG,
		.to = &fit,
		.help = "learn a vocabulary with non-zero medians from the input and write it as TSV"},
	{.name = "min-cells",
		.kind = OPT_INT,
		.to = &min_cells,
		.arg = "N",
		.min = 1,
		.max = 1e15,
		.help = "with --fit: leave out genes found in fewer cells (default 1)"},
	{0},
};

static struct cli cli = {
	.name = "rankenc",
	.operands = "[FILE...]",
	.summary = "Encode cells of a counts stream as tokens ranked by count over median; learn medians with --fit.",
	.options = options,
	.shared = rank_options,
	.common = CLI_STREAM_OUT | CLI_THREADS,
};

static int encode(void)
{
	struct error e;
	struct block b[2] = {0};
	int got;
	if (cli.noperand > 1)
		usage_error("one stream at a time: scsample joins several");
	if (!vocab_path)
		usage_error("a vocabulary is needed: -m FILE (make one with rankenc --fit)");
	struct ranking *r = ranking_new(&cli, vocab_path);
	struct stream *in = cli_open(&cli, 0);
	ranking_start(r, stream_header(in), stream_name(in), map_path);
	for (int k = 0; (got = stream_read(in, b + k, &e)) > 0; k = !k)
		ranking_add(r, b + k);
	if (got < 0)
		die("%s", e.msg);
	ranking_commit(r);
	char *summary = ranking_summary(r);
	cli_report(&cli, "%s", summary);
	free(summary);
	ranking_free(r);
	stream_free(in);
	block_release(b);
	block_release(b + 1);
	return 0;
}

int main(int argc, char **argv)
{
	cli_init(&cli, argc, argv);
	if (!fit)
		return encode();
	if (vocab_path || rank_given.tokens)
		usage_error("--fit makes a vocabulary: it does not take one (-m, -t)");
	return fit_main(&(struct fit_options){&cli, rank_given.encode.style == STYLE_V2, min_cells});
}
