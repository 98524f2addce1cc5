/* scview: show any stream as a table, its header or statistics; check it; export it to numpy and AnnData. */
#include "scview.h"
#include "cli.h"

#include "base/option.h"
#include "train/model_dir.h"
#include "transfer/saved.h"

#include <sys/stat.h>
#include <unistd.h>

enum format { TSV, NPY, H5AD, FORMATS };

/* modes: -O, and the others */
enum {
	TABLE = 1 << TSV,
	ARRAY = 1 << NPY,
	ANNDATA = 1 << H5AD,
	HEADER = 1 << FORMATS,
	HEADER_TABLE = HEADER << 1,
	VOCAB = HEADER << 2,
	STATS = HEADER << 3,
	CHECK = HEADER << 4,
	REFERENCE = HEADER << 5
};

struct view view_set = {.limit = -1};
static const struct {
	const char *word;
	void (*show)(struct stream *in);
	int text; /* may be written to a terminal */
} formats[] = {
	[TSV] = {"tsv", view_table, .text = 1},
	[NPY] = {"npy", view_npy},
	[H5AD] = {"h5ad", view_h5ad},
};
EVERY_ROW(formats, FORMATS);
static int format, want_header, want_header_tsv, want_vocab, want_stats, want_check;

static struct option_def options[] = {
	{'c', "columns", OPT_STRING, &view_set.columns, "A,B", "show these columns, in this order (default: all)",
		.modes = TABLE | ARRAY | ANNDATA},
	{'n', "rows", OPT_INT, &view_set.limit, "N", "stop after N rows (default: all)", 0, 9e15, .modes = TABLE | ARRAY | ANNDATA},
	{0, "gene-names", OPT_CHOICE, &view_set.genes, OPT_ENUM([NUMBER] = "number", [ID] = "id", [SYMBOL] = "symbol"),
		"how genes and tokens are shown (default number)", .modes = TABLE},
	{'H', "header", OPT_FLAG, &want_header, NULL, "print the header, as JSON", .mode = HEADER},
	{0, "header-tsv", OPT_FLAG, &want_header_tsv, NULL, "print the header as a table of key and value", .mode = HEADER_TABLE},
	{0, "vocab", OPT_FLAG, &want_vocab, NULL, "print the vocabulary, as a table that rankenc reads", .mode = VOCAB},
	{'s', "stats", OPT_FLAG, &want_stats, NULL, "print statistics of every column", .mode = STATS},
	{0, "check", OPT_FLAG, &want_check, NULL,
		"read the whole input and report whether it is complete; several files and models allowed", .mode = CHECK},
	{'O', "format", OPT_CHOICE, &format, OPT_WORDS(formats), "output format (default tsv)", .mode = TABLE},
	{0, "into", OPT_INPUT, &view_set.into, "FILE",
		"with -O h5ad: add to this file, or to a copy of it with -o, matching cells by barcode", .modes = ANNDATA,
		.excludes = "rows"},
	{0, "key", OPT_STRING, &view_set.key, "NAME",
		"with --into: add obsm/X_NAME (a map: X_umap_NAME), or obs/NAME_predicted and more (default corrmask)", .needs = "into"},
	{0, "replace", OPT_FLAG, &view_set.replace, NULL, "with --into: overwrite what has these names", .needs = "into"},
	{0},
};

static struct cli cli = {
	.name = "scview",
	.operands = "[FILE...]",
	.summary = "Show a stream as a table, check it, or export it to numpy and AnnData.",
	.features = "HDF5",
	.options = options,
	.common = CLI_OUT,
};

static void show_vocab(struct stream *in)
{
	const struct vocab *v = &stream_header(in)->vocab;
	if (!v->n)
		die("%s: this stream has no vocabulary", stream_name(in));
	text_open();
	text_puts(v->alias ? "token\tgene_id\tsymbol\tmedian\taliases\n" : "token\tgene_id\tsymbol\tmedian\n");
	for (size_t i = 0; i < v->n; i++) {
		text_putf("%zu\t", i);
		text_field(v->id[i], strlen(v->id[i]));
		text_put("\t", 1);
		text_field(v->symbol[i], strlen(v->symbol[i]));
		text_put("\t", 1);
		text_real(v->median[i], 0);
		if (v->alias) {
			text_put("\t", 1);
			text_field(v->alias[i], strlen(v->alias[i]));
		}
		text_put("\n", 1);
	}
	text_commit();
}

static uint64_t checked; /* rows */

static int check_model(const char *dir)
{
	size_t tensors;
	int digest, bad = model_dir_check(dir, &tensors, &digest, &failure);
	if (bad)
		complain("%s", failure.msg);
	else
		text_putf("%s: complete, model, %zu tensors%s\n", dir, tensors, digest ? "" : ", no digest");
	return bad;
}

static int check_reference(const char *path)
{
	struct saved s;
	int bad = saved_open(&s, path, &failure);
	if (bad)
		complain("%s", failure.msg);
	else
		text_putf("%s: complete, reference of %zu types\n", path, s.classes.n);
	saved_release(&s);
	return bad;
}

static int check_inputs(int i)
{
	const char *path = i < cli.noperand ? cli.operand[i] : "-";
	struct stat st;
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return check_model(path);
	if (saved_is(path))
		return check_reference(path);
	RELEASED(stream_free_at) struct stream *in = stream_open(path, &failure);
	RELEASED(block_release) struct block b = {0};
	size_t blocks = 0;
	int got = -1;
	while (in && (got = stream_read(in, &b, &failure)) > 0)
		blocks++;
	if (got == 0)
		text_putf("%s: complete, %s, %" PRIu64 " row%s in %zu block%s\n", stream_name(in), kind_name(stream_header(in)->kind),
			stream_rows(in), stream_rows(in) == 1 ? "" : "s", blocks, blocks == 1 ? "" : "s");
	else
		complain("%s", failure.msg);
	if (in)
		checked += stream_rows(in);
	return got;
}

int main(int argc, char **argv)
{
	cli_init(&cli, argc, argv);
	view_set.output = cli.output;
	view_set.file = cli.noperand == 1 ? cli.operand[0] : NULL;
	if (!formats[format].text && !view_set.into && (!cli.output || strcmp(cli.output, "-") == 0) && isatty(STDOUT_FILENO))
		usage_error("-O %s is binary and will not be written to a terminal: use -o FILE", formats[format].word);
	if (want_check) {
		int bad = 0;
		text_open();
		for (int i = 0; i < (cli.noperand ? cli.noperand : 1); i++)
			bad |= check_inputs(i) != 0;
		text_commit();
		cli_measured("rows", (double)checked);
		cli_report(&cli, "%s", bad ? "not all files are complete" : "all files are complete");
		return bad;
	}
	if (view_set.file && saved_is(view_set.file)) {
		cli_mode(REFERENCE, "%s is a saved reference", view_set.file);
		view_reference(view_set.file);
		return 0;
	}
	RELEASED(stream_free_at) struct stream *in = cli_open_all(&cli);
	if (want_header)
		view_header(in);
	else if (want_header_tsv)
		view_header_tsv(in);
	else if (want_vocab)
		show_vocab(in);
	else if (want_stats)
		view_statistics(in);
	else if (view_set.into)
		view_into(in);
	else
		formats[format].show(in);
	uint64_t rows = stream_rows(in);
	if (view_set.limit >= 0 && rows > (uint64_t)view_set.limit)
		rows = (uint64_t)view_set.limit;
	cli_measured("rows", (double)rows);
	cli_report(&cli, "%" PRIu64 " row%s", rows, rows == 1 ? "" : "s");
	return 0;
}
