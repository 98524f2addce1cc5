/*
 * scsample: sample and filter cells, and join streams.
 * Filters on one row need one pass. Choices over the whole input (numbers, fractions, splits, classes) need two: the first one
 * collects a few bytes per cell and chooses (lib/cells/sample.h), the second one writes the chosen rows in order.
 */
#include "scsample.h"
#include "cli.h"
#include "cli_labels.h"

#include "stream/concat.h"

struct scsample_options sample_set = {
	.number = -1, .min_genes = -1, .fraction = -1, .test_fraction = -1, .max_mito = -1, .part = PART_NONE, .flavor = HVG_SEURAT};

static struct option_def options[] = {
	{0, "Sample", OPT_GROUP},
	{'n', "number", OPT_INT, &sample_set.number, "N", "keep N cells", 0, 1e15, .changes = 1, .excludes = "fraction"},
	{'f', "fraction", OPT_REAL, &sample_set.fraction, "F", "keep this share of the cells", 0, 1, .changes = 1},
	{0, "Split", OPT_GROUP},
	{0, "test-fraction", OPT_REAL, &sample_set.test_fraction, "F", "split off this share as the test part", 0, 1, .changes = 1,
		.needs = "part"},
	{0, "part", OPT_CHOICE, &sample_set.part, OPT_ENUM([PART_TRAIN] = "train", [PART_TEST] = "test"),
		"which part of the split to write", .changes = 1, .needs = "test-fraction"},
	{0, "group", OPT_STRING, &sample_set.group, "COL", "split by whole groups of COL, such as donors", .changes = 1,
		.needs = "test-fraction"},
	{0, "stratify", OPT_STRING, &sample_set.stratify, "COL", "-n, -f, --test-fraction: keep the proportions of COL's classes",
		.changes = 1, .needs = "number fraction test-fraction", .excludes = "balance"},
	{0, "Classes", OPT_GROUP},
	{0, "balance", OPT_STRING, &sample_set.balance, "COL[,COL]",
		"take equal numbers of cells from the classes of COL, or of pairs of classes, as far as available", .changes = 1},
	{0, "cap", OPT_LIST, &sample_set.cap, "COL:N", "keep at most N cells of each class of COL (repeatable)", .changes = 1},
	{0, "min-class", OPT_STRING, &sample_set.min_class, "COL:N", "drop classes of COL of fewer than N cells (below 1: a share)",
		.changes = 1},
	{KEEP_UNKNOWN_LABELS, .needs = "group stratify balance cap min-class batch-key"},
	{0, "Filters", OPT_GROUP},
	{0, "where", OPT_LIST, &sample_set.where, "COND", "keep cells where COL=VALUE, !=, <, <=, >, >= (repeatable)", .changes = 1},
	{0, "min-genes", OPT_INT, &sample_set.min_genes, "N", "drop cells with fewer genes (counts and tokens streams)", 0, 1e9,
		.changes = 1},
	{0, "max-mito", OPT_REAL, &sample_set.max_mito, "F", "drop cells with a larger share of mitochondrial counts", 0, 1, .changes = 1},
	{0, "Genes", OPT_GROUP},
	{0, "keep-genes", OPT_INPUT, &sample_set.keep_genes, "FILE", "keep the genes of this list, or vocabulary (counts streams)",
		.changes = 1, .excludes = "hvg"},
	{0, "hvg", OPT_INT, &sample_set.hvg, "N", "keep the N most highly variable genes (counts streams)", 1, 1e9, .changes = 1},
	{0, "flavor", OPT_CHOICE, &sample_set.flavor,
		OPT_ENUM([HVG_SEURAT] = "seurat", [HVG_SEURAT_V3] = "seurat_v3", [HVG_CELL_RANGER] = "cell_ranger"),
		"--hvg: the rule, as in scanpy (default seurat)", .changes = 1, .needs = "hvg"},
	{0, "batch-key", OPT_STRING, &sample_set.batch_key, "COL", "--hvg: choose genes in each batch of this column, then combine them",
		.changes = 1, .needs = "hvg"},
	{0, "Depth", OPT_GROUP},
	{0, "thin", OPT_REAL, &sample_set.thin, "P", "keep each molecule with probability P (counts streams)", 1e-6, 1 - 1e-6, .changes = 1,
		.excludes = "hvg"},
	{0, "complement", OPT_FLAG, &sample_set.complement, NULL, "write the molecules that --thin leaves out instead of those it keeps",
		.changes = 1, .needs = "thin"},
	{0},
};
struct cli scsample_cli = {.name = "scsample",
	.operands = "[FILE...]",
	.options = options,
	.common = CLI_STREAM_OUT | CLI_SEED,
	.summary = "Sample, split, filter, balance and join streams of cells (counts, tokens, embedding, prediction)."};
#define cli scsample_cli

static const char *const reason_text[] = {[KEPT] = "",
	[BY_WHERE] = "--where",
	[BY_GENES] = "--min-genes",
	[BY_MITO] = "--max-mito",
	[BY_NO_LABEL] = "missing labels",
	[BY_NO_GROUP] = "missing groups",
	[BY_RARE] = "--min-class",
	[BY_PART] = "the other part",
	[BY_CAP] = "--cap",
	[BY_SAMPLE] = "sampling"};
EVERY_ROW(reason_text, REASONS);
static uint64_t dropped[REASONS];

/* ---- inputs ---- */

struct inputs {
	size_t n;
	struct stream **s;
	struct concat all; /* how they are joined */
	int indexed;
	size_t at; /* next input */
	struct block raw, row;
};

static void open_inputs(struct inputs *in)
{
	size_t n = cli.noperand ? (size_t)cli.noperand : 1;
	FREED const struct header **h = xmalloc(n * sizeof *h);
	FREED const char **name = xmalloc(n * sizeof *name);
	FREED char *warning = NULL;
	*in = (struct inputs){.n = n, .s = xcalloc(n, sizeof *in->s)};
	for (size_t i = 0; i < n; i++) {
		in->s[i] = cli_open(&cli, (int)i);
		h[i] = stream_header(in->s[i]);
		name[i] = stream_name(in->s[i]);
		if (!kind_sampled(h[i]->kind))
			die("%s: a %s stream has no cells to sample; expected counts, tokens, embedding or prediction", name[i],
				kind_name(h[i]->kind));
	}
	must(concat_init(&in->all, h, name, n, &warning, &failure));
	if (warning)
		warn("%s", warning);
}

static void rewind_inputs(struct inputs *in)
{
	for (size_t i = 0; i < in->n && !in->indexed; i++)
		must(stream_index(in->s[i], &failure));
	in->indexed = 1;
	in->at = 0;
	in->all.cells = 0;
}

/* Rows of all inputs, at most. */
static uint64_t expected(const struct inputs *in)
{
	uint64_t n = 0;
	for (size_t i = 0; i < in->n; i++)
		n = rows_add(n, stream_expected(in->s[i]));
	return n;
}

/* Next block of the joined stream, or NULL at the end. */
static const struct block *scsample_next_block(struct inputs *in)
{
	for (;; in->at++) {
		if (in->at == in->n)
			return NULL;
		struct stream *s = in->s[in->at];
		if (!must_read(s, &in->raw))
			continue;
		if (in->n == 1)
			return &in->raw;
		must(concat_block(&in->all, in->at, &in->raw, &in->row, &failure));
		return &in->row;
	}
}

/* ---- output ---- */

struct sink {
	struct stream *to;
	struct block out;
	int *map;
	uint32_t *row;
	size_t cap;
	struct genes *genes; /* NULL: all genes and molecules stay */
};

/* Append the kept rows of b, in one piece if the limit of rows allows it. */
static void emit(struct sink *s, const struct block *b, const uint8_t *keep)
{
	size_t n = 0;
	grow(s->row, s->cap, b->rows);
	for (size_t i = 0; i < b->rows; i++) {
		if (keep[i])
			s->row[n++] = (uint32_t)i;
	}
	for (size_t i = 0; i < n;) {
		size_t m = BLOCK_ROWS - s->out.rows;
		m = n - i < m ? n - i : m;
		block_take(&s->out, s->map, b, s->row + i, m);
		if (s->genes)
			genes_fill(s->genes, &s->out, b, s->row + i, m);
		i += m;
		if (block_full(&s->out))
			must_flush(s->to, &s->out);
	}
}

static int two_passes(void)
{
	const struct scsample_options *o = &sample_set;
	return o->number >= 0 || o->fraction >= 0 || o->test_fraction >= 0 || o->balance || o->cap.n || o->min_class || o->hvg;
}

/* First pass: choose among the cells that pass the filters. Returns a byte for each row of the input: whether it is kept. */
static uint8_t *first_pass(struct inputs *in, struct filter *f)
{
	struct choice c = {0};
	choice_init(&c, &in->all.header, stream_name(in->s[0]));
	rewind_inputs(in);
	uint64_t at = 0;
	for (const struct block *b; (b = scsample_next_block(in)); at += b->rows) {
		filter_rows(f, b, dropped);
		choice_add(&c, b, f->keep, in->all.cell);
		progress("%" PRIu64 " of %" PRIu64 " cells looked at", at, expected(in));
	}
	choice_make(&c, dropped);
	uint8_t *keep = c.keep;
	c.keep = NULL;
	choice_release(&c);
	rewind_inputs(in);
	return keep;
}

/* Choose genes: those of a list, or by the chosen cells in one or two more passes; or all, for --thin. */
static void choose_kept_genes(struct inputs *in, const uint8_t *chosen, struct genes *g)
{
	genes_init(g, &in->all.header, stream_name(in->s[0]));
	if (sample_set.keep_genes)
		genes_listed(g);
	if (!sample_set.hvg)
		return;
	do {
		uint64_t at = 0;
		rewind_inputs(in);
		for (const struct block *b; (b = scsample_next_block(in)); at += b->rows) {
			genes_add(g, b, chosen + at);
			progress("genes of %" PRIu64 " of %" PRIu64 " cells", at, expected(in));
		}
	} while (genes_again(g));
	rewind_inputs(in);
}

/* ", N dropped by REASON" for every reason (malloced), which is also measured. */
static char *drop_report(void)
{
	char *report = xstrdup("");
	for (int r = 1; r < REASONS; r++) {
		if (!dropped[r])
			continue;
		FREED char *name = xasprintf("dropped:%s", reason_text[r] + strspn(reason_text[r], "-"));
		xappend(&report, ", %" PRIu64 " dropped by %s", dropped[r], reason_text[r]);
		cli_measured(name, (double)dropped[r]);
	}
	return report;
}

/* chosen: as first_pass returns it, or NULL */
static struct stream *create_output(const struct inputs *in, const struct header *like, const uint8_t *chosen)
{
	RELEASED(header_release) struct header h;
	uint64_t all = expected(in), n = chosen ? 0 : all;
	for (uint64_t i = 0; chosen && i < all; i++)
		n += chosen[i] != 0;
	header_copy(&h, like);
	cli_provenance(&cli, &h, "");
	return cli_create(&cli, &h, n);
}

int main(int argc, char **argv)
{
	static struct inputs in;
	const struct scsample_options *o = &sample_set;
	cli_init(&cli, argc, argv);
	if (o->stratify && o->group && o->number < 0 && o->fraction < 0)
		usage_error("--stratify does not go with --group, which splits whole groups");
	open_inputs(&in);
	struct filter f = {0};
	filter_init(&f, &in.all.header, stream_name(in.s[0]));
	uint8_t *chosen = two_passes() ? first_pass(&in, &f) : NULL;
	static struct genes genes;
	const int some = o->keep_genes || o->hvg || o->thin > 0; /* not all genes or molecules */
	if (some)
		choose_kept_genes(&in, chosen, &genes);
	const struct header *like = some ? &genes.header : &in.all.header;
	struct sink s = {.to = create_output(&in, like, chosen), .map = xmalloc(like->ncol * sizeof *s.map), .genes = some ? &genes : NULL};
	if (some)
		memcpy(s.map, genes.map, like->ncol * sizeof *s.map);
	else
		header_map(stream_header(s.to), &in.all.header, s.map);
	block_reset(&s.out, stream_header(s.to));
	uint64_t seen = 0;
	for (const struct block *b; (b = scsample_next_block(&in)); seen += b->rows) {
		if (!chosen)
			filter_rows(&f, b, dropped);
		emit(&s, b, chosen ? chosen + seen : f.keep);
		progress("%s; %" PRIu64 " out", cells_done(seen, expected(&in)), stream_rows(s.to));
	}
	must_flush(s.to, &s.out);
	uint64_t written = stream_rows(s.to);
	cli_measured_all({"cells_in", (double)seen}, {"cells_out", (double)written});
	char *report = drop_report(); /* memory can run out here, and not after the output is in place */
	must_commit(s.to);
	if (seen && !written)
		warn("none of the %" PRIu64 " cells is left", seen);
	cli_report(&cli, "%" PRIu64 " cells in, %" PRIu64 " out%s", seen, written, report);
	return 0;
}
