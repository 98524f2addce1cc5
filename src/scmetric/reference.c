/*
 * scmetric reference: what two tables without a network lose on masked genes (lookup.h). For values (maskgen --objective value), what two means
 * lose: that of all values, and that of the gene's values.
 */
#include "scmetric.h"
#include "cli.h"

#include "base/option.h"
#include "eval/lookup.h"
#include "mask/masked.h"

static const char *train_path;
enum { TOKENS = 1000000 }; /* that are learned from, at most */

static struct option_def options[] = {
	{0, "train", OPT_INPUT, &train_path, "FILE",
		"the cells to learn from: tokens, or a masked stream without masks; - is standard input"},
	{0},
};
struct cli reference_cli = {.name = "scmetric reference",
	.operands = "MASKED...",
	.options = options,
	.common = CLI_OUT,
	.summary = "Losses of masked genes by tables without a network: frequencies, and medians of neighbours."};

/* A stream and its columns; -1: no such list. */
struct source {
	struct stream *s;
	int input, rank, position, target, value;
	struct block b;
	uint32_t *token, *gene; /* of one cell; its targets */
	uint8_t *masked;
	size_t token_cap, gene_cap, masked_cap;
};

/* What was learned: a table, or sums of values. */
struct reference {
	struct vocab vocab;
	struct lookup lookup;
	int values, ranked;
	double *sum, total; /* [V] of values */
	uint64_t *n, all; /* [V] */
};

/* The loss of both tables over masked genes; in order of the stream. */
struct losses {
	double first, second;
	uint64_t n;
};

/* ---- streams ---- */

static int beside(const struct header *h, const char *name, enum column_type type, int c, const char *file)
{
	int k = header_beside(h, name, type, c, file, &failure);
	must(k < -1);
	return k;
}

static void open_source(struct source *in, const char *path, int training)
{
	*in = (struct source){.s = must_open(path), .position = -1, .target = -1};
	const struct header *h = stream_header(in->s);
	const char *file = stream_name(in->s);
	if (h->kind != STREAM_TOKENS || !training) {
		must_kind(in->s, STREAM_MASKED);
		in->input = must_column(in->s, "input", U32, RAGGED);
	} else {
		in->input = must_column(in->s, "token", U32, RAGGED);
	}
	in->rank = beside(h, "rank", U16, in->input, file);
	const char *strategy = cJSON_GetStringValue(masked_value(h, "strategy"));
	if (training && strategy && strcmp(strategy, "none"))
		die("--train: %s: its tokens are masked (maskgen --strategy %s): expected tokens, or --strategy none", file, strategy);
	if (training) {
		in->value = beside(h, "value", F32, in->input, file);
		return;
	}
	in->position = must_column(in->s, "position", U16, RAGGED);
	in->target = must_column(in->s, "target", U32, RAGGED);
	in->value = beside(h, "value", F32, in->target, file);
	if (h->col[in->position].group != h->col[in->target].group)
		die("%s: columns position and target are not in one group", file);
}

static void close_source(struct source *in)
{
	block_release(&in->b);
	stream_free(in->s);
	free_all(in->token, in->gene, in->masked);
}

static const uint64_t *list_of(const struct source *in, int c, size_t row)
{
	return in->b.group[in->b.header->col[c].group].offset + row;
}

static struct lookup_cell cell_of(struct source *in, size_t row)
{
	const uint64_t *o = list_of(in, in->input, row);
	struct lookup_cell cell = {.n = (size_t)(o[1] - o[0])};
	grow(in->token, in->token_cap, cell.n + 1);
	for (size_t i = 0; i < cell.n; i++)
		in->token[i] = block_id(&in->b, in->input, o[0] + i);
	cell.token = in->token;
	cell.rank = in->rank < 0 ? NULL : (const uint16_t *)in->b.col[in->rank].data + o[0];
	return cell;
}

/* ---- learning ---- */

static void add_values(struct reference *r, struct source *in)
{
	const float *v = in->b.col[in->value].data;
	for (size_t i = 0; i < block_items(&in->b, in->b.header->col[in->input].group); i++) {
		uint32_t g = block_id(&in->b, in->input, i);
		r->sum[g] += (double)v[i];
		r->total += (double)v[i];
		r->n[g]++;
		r->all++;
	}
}

static void learn(struct reference *r, struct source *in)
{
	int full = 0;
	while (must_read(in->s, &in->b)) /* to the end, so that a stream that was cut is refused */
		if (r->values)
			add_values(r, in);
		else
			for (size_t row = 0; row < in->b.rows && !full; row++) {
				struct lookup_cell cell = cell_of(in, row);
				full = r->lookup.cells && r->lookup.tokens + cell.n > TOKENS;
				if (!full)
					lookup_add(&r->lookup, &cell);
			}
	if (r->values ? !r->all : !r->lookup.tokens)
		die("%s: no cells to learn from", stream_name(in->s));
	if (!r->values)
		lookup_fit(&r->lookup);
}

/* ---- scoring ---- */

static void score_values(const struct reference *r, const struct source *in, struct losses *l)
{
	const float *v = in->b.col[in->value].data;
	double mean = r->total / (double)r->all;
	for (size_t i = 0; i < block_items(&in->b, in->b.header->col[in->target].group); i++) {
		uint32_t g = block_id(&in->b, in->target, i);
		double a = (double)v[i] - mean, b = (double)v[i] - (r->sum[g] + mean) / (double)(r->n[g] + 1);
		l->first += a * a;
		l->second += b * b;
		l->n++;
	}
}

static void score_cell(const struct reference *r, struct source *in, size_t row, struct losses *l)
{
	const uint64_t *o = list_of(in, in->target, row);
	const uint16_t *at = in->b.col[in->position].data;
	struct lookup_cell cell = cell_of(in, row);
	grow(in->masked, in->masked_cap, cell.n + 1);
	memset(in->masked, 0, cell.n);
	for (uint64_t i = o[0]; i < o[1]; i++) {
		if (at[i] >= cell.n)
			die("%s: position %u of a cell with %zu tokens", stream_name(in->s), at[i], cell.n);
		in->masked[at[i]] = 1;
	}
	cell.masked = in->masked;
	grow(in->gene, in->gene_cap, (size_t)(o[1] - o[0]) + 1);
	for (uint64_t i = o[0]; i < o[1]; i++) {
		uint32_t g = in->gene[i - o[0]] = block_id(&in->b, in->target, i);
		if (g < r->vocab.nspecial)
			die("%s: a target is the special token %s, expected a gene", stream_name(in->s), r->vocab.id[g]);
	}
	lookup_score(&r->lookup, &cell, at + o[0], in->gene, (size_t)(o[1] - o[0]), &l->first, &l->second);
	l->n += o[1] - o[0];
}

static void check_vocabulary(const struct reference *r, const struct stream *s)
{
	if (!vocab_equal(&r->vocab, &stream_header(s)->vocab))
		die("%s: another vocabulary than that of --train", stream_name(s));
}

static void reference_score(struct record *to, const struct reference *r, struct source *in, const char *path)
{
	struct losses l = {0};
	check_vocabulary(r, in->s);
	while (must_read(in->s, &in->b))
		if (r->values)
			score_values(r, in, &l);
		else
			for (size_t row = 0; row < in->b.rows; row++)
				score_cell(r, in, row, &l);
	FREED char *name = file_stem(path, ".masked");
	record_text(to, "masks", name);
	record_numbers(to, {r->values ? "mean" : "frequency", l.n ? l.first / (double)l.n : NAN},
		{r->values ? "gene_mean" : "medians", l.n ? l.second / (double)l.n : NAN}, {"n", (double)l.n});
	record_end(to);
}

/* What the training cells have must be what the masks need. */
static void reference_start(struct reference *r, const struct source *train, const struct source *test)
{
	const struct header *h = stream_header(train->s);
	const char *file = stream_name(train->s), *other = stream_name(test->s);
	vocab_copy(&r->vocab, &h->vocab);
	r->values = test->value >= 0;
	r->ranked = !r->values && test->rank >= 0;
	if (r->values && train->value < 0)
		die("%s: no column value, but %s has values to predict (rankenc --value makes it)", file, other);
	if (!r->values && (train->rank >= 0) != r->ranked)
		die("%s has %s, but %s has %s: encode both by the same --ties", file, r->ranked ? "no ranks" : "ranks", other,
			r->ranked ? "some" : "none");
	r->sum = xcalloc(r->vocab.n, sizeof *r->sum);
	r->n = xcalloc(r->vocab.n, sizeof *r->n);
	lookup_init(&r->lookup, r->vocab.n, r->vocab.nspecial, r->vocab.median, r->ranked);
}

int scmetric_reference(int argc, char **argv)
{
	static struct reference r;
	struct record to;
	struct source train, test;
	cli_init(&reference_cli, argc, argv);
	if (!train_path)
		usage_error("no --train FILE: the cells to learn from");
	if (!reference_cli.noperand)
		usage_error("no masked genes: name at least one masked stream");
	record_open(&to);
	for (int i = 0; i < reference_cli.noperand; i++) {
		const char *path = reference_cli.operand[i];
		open_source(&test, path, 0);
		if (!i) {
			open_source(&train, train_path, 1);
			reference_start(&r, &train, &test);
			learn(&r, &train);
			close_source(&train);
		}
		if ((test.value >= 0) != r.values || (!r.values && (test.rank >= 0) != r.ranked))
			die("%s: not of one kind with %s", stream_name(test.s), reference_cli.operand[0]);
		reference_score(&to, &r, &test, path);
		close_source(&test);
	}
	uint64_t learned = r.values ? r.all : r.lookup.tokens;
	cli_write(reference_cli.output, record_print(&to));
	cli_report(&reference_cli, "%" PRIu64 " tokens, %d masked %s", learned, reference_cli.noperand,
		reference_cli.noperand == 1 ? "stream" : "streams");
	return 0;
}
