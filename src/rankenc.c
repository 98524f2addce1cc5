/* rankenc: a counts stream to a tokens stream (rank value encoding), or to a vocabulary (--fit). */
#include "rankenc.h"
#include "cli.h"

#include "cli_rank.h"

static const char *vocab_path, *map_path;
static int fit, sums;
static const char *after;
static long long min_cells = 1;
enum { SUMS = 8 }; /* a mode, as RANKS and FITS */

static struct option_def options[] = {
	{0, "Vocabulary", OPT_GROUP},
	{'m', "vocab", OPT_INPUT, &vocab_path, "FILE", "vocabulary with medians (TSV: token, gene_id, symbol, median; gzip accepted)",
		.also = "medians", .modes = RANKS},
	{0, "map", OPT_INPUT, &map_path, "FILE", "first translate gene ids by this table of keys and ids (TSV or gzip)", .modes = RANKS},
	{0, "Learning a vocabulary", OPT_GROUP},
	{0, "fit", OPT_FLAG, &fit, NULL, "learn a vocabulary with non-zero medians from the input and write it as TSV", .mode = FITS,
		.modes = FITS | SUMS},
	{0, "sums", OPT_FLAG, &sums, NULL,
		"with --fit: write the sums of one pass over the input instead of a vocabulary; sums of parts of a corpus are inputs too",
		.mode = SUMS, .needs = "fit"},
	{0, "after", OPT_INPUT, &after, "FILE", "with --sums: the sums of all parts in the previous pass", .modes = SUMS},
	{0, "min-cells", OPT_INT, &min_cells, "N", "with --fit: leave out genes found in fewer cells (default 1)", 1, 1e15, .modes = FITS},
	{0},
};

static struct cli cli = {
	.name = "rankenc",
	.operands = "[FILE...]",
	.summary = "Encode cells of a counts stream as tokens ranked by count over median; learn medians with --fit.",
	.options = options,
	.shared = rank_options,
	.mode = RANKS,
	.common = CLI_STREAM_OUT | CLI_THREADS,
};

static int encode(void)
{
	static struct block b[2];
	if (cli.noperand > 1)
		usage_error("one stream at a time: scsample joins several");
	struct stream *in = cli_open(&cli, 0); /* what is no stream is told first */
	if (!vocab_path)
		usage_error("a vocabulary is needed: -m FILE (make one with rankenc --fit)");
	struct ranking *r = ranking_new(&cli, vocab_path);
	ranking_start(r, stream_header(in), stream_name(in), map_path, stream_expected(in));
	for (int k = 0; must_read(in, b + k); k = !k)
		ranking_add(r, b + k);
	FREED char *summary = ranking_commit(r);
	cli_report(&cli, "%s", summary);
	return 0;
}

int main(int argc, char **argv)
{
	cli_init(&cli, argc, argv);
	if (!fit)
		return encode();
	if (!sums)
		refuse("does not go with --fit, which writes a table", &cli.raw);
	return fit_main(&(struct fit_options){&cli, rank_given.encode.style, min_cells, sums, after});
}
