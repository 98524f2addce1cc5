/*
 * scsample: choose cells of streams, and join streams.
 * Filters on one row alone run in one pass. What depends on the whole input (numbers, fractions, splits, classes) runs in two: the
 * first gathers a few bytes a cell, lib/sample decides, the second writes the chosen rows in order.
 */
#include "cli.h"
#include "concat.h"
#include "label.h"
#include "sample.h"
#include "where.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { PART_NONE = -1, PART_TRAIN, PART_TEST };

static long long number, min_genes, min_counts;
static double fraction, test_fraction, max_mito;
static const char *by, *stratify, *balance, *min_class_text, *source_column;
static int part = PART_NONE;
static struct opt_values where_text, cap_text;

enum { NUMBER, FRACTION, TEST_FRACTION, PART, BY, STRATIFY, BALANCE, CAP, MIN_CLASS, WHERE, MIN_GENES, MIN_COUNTS, MAX_MITO, SOURCE };
static struct option_def options[] = {
	[NUMBER] = {'n', "number", OPT_INT, &number, "N", "keep N cells", 0, 1e15, .changes = 1},
	[FRACTION] = {'f', "fraction", OPT_REAL, &fraction, "F", "keep this share of the cells", 0, 1, .changes = 1},
	[TEST_FRACTION] = {0, "test-fraction", OPT_REAL, &test_fraction, "F", "split off this share as the test part", 0, 1, .changes = 1},
	[PART] = {0, "part", OPT_CHOICE, &part, "train|test", "which part of the split to write", .changes = 1},
	[BY] = {0, "by", OPT_STRING, &by, "COL", "split whole groups of COL (donors), not cells", .changes = 1},
	[STRATIFY] = {0, "stratify", OPT_STRING, &stratify, "COL", "-n, -f, --test-fraction: keep the proportions of COL's classes",
		.changes = 1},
	[BALANCE] = {0, "balance", OPT_STRING, &balance, "COL", "classes of COL take turns until N cells, or the smallest class, are used",
		.changes = 1},
	[CAP] = {0, "cap", OPT_LIST, &cap_text, "COL:N", "keep at most N cells of each class of COL (repeatable)", .changes = 1},
	[MIN_CLASS] = {0, "min-class", OPT_STRING, &min_class_text, "COL:N",
		"drop classes of COL with fewer than N cells, or a share below N < 1", .changes = 1},
	[WHERE] = {0, "where", OPT_LIST, &where_text, "COND", "keep cells where COL=VALUE, !=, <, <=, >, >= (repeatable)", .changes = 1},
	[MIN_GENES] = {0, "min-genes", OPT_INT, &min_genes, "N", "drop cells with fewer genes (counts, tokens)", 0, 1e9, .changes = 1},
	[MIN_COUNTS] = {0, "min-counts", OPT_INT, &min_counts, "N", "drop cells with fewer counts", 0, 1e15, .changes = 1},
	[MAX_MITO] = {0, "max-mito", OPT_REAL, &max_mito, "F", "drop cells with a larger share of mitochondrial counts", 0, 1, .changes = 1},
	[SOURCE] = {0, "source", OPT_STRING, &source_column, "COL", "add a column naming the input file of each cell", .changes = 1},
	{0},
};
static struct cli cli = {.name = "scsample", .operands = "[FILE...]", .options = options, .common = CLI_STREAM_OUT | CLI_SEED,
	.summary = "Sample, split, filter, balance and join streams of cells (counts, tokens, embedding, prediction)."};

enum { IN, BY_WHERE, BY_GENES, BY_COUNTS, BY_MITO, BY_RARE, BY_PART, BY_CAP, BY_SAMPLE, REASONS };
static const char *const reason_text[REASONS] = {[BY_WHERE] = "--where", [BY_GENES] = "--min-genes", [BY_COUNTS] = "--min-counts",
	[BY_MITO] = "--max-mito", [BY_RARE] = "--min-class", [BY_PART] = "the other part", [BY_CAP] = "--cap", [BY_SAMPLE] = "sampling"};
static uint64_t dropped[REASONS];

static int given(int option)
{
	return options[option].seen;
}

static struct error e;

/* ---- inputs ---- */

struct inputs {
	size_t n;
	struct stream **s;
	struct concat all;              /* how they become one */
	int joined;                     /* rows need rewriting: several inputs, or a source column */
	int indexed;
	size_t at, block;               /* next: input, and its block when indexed */
	struct block raw, row;
	uint64_t total;
};

static void open_inputs(struct inputs *in)
{
	size_t n = cli.noperand ? (size_t)cli.noperand : 1;
	const struct header **h = xmalloc(n * sizeof *h);
	const char **name = xmalloc(n * sizeof *name), **source = xmalloc(n * sizeof *source);
	char *warning = NULL;
	*in = (struct inputs){.n = n, .s = xcalloc(n, sizeof *in->s)};
	for (size_t i = 0; i < n; i++) {
		in->s[i] = cli_open(&cli, (int)i);
		h[i] = stream_header(in->s[i]);
		name[i] = stream_name(in->s[i]);
		if (strcmp(h[i]->kind, "masked") == 0 || strcmp(h[i]->kind, "graph") == 0)
			die("%s: a %s stream has no cells to sample; expected counts, tokens, embedding or prediction", name[i], h[i]->kind);
		const char *slash = strrchr(name[i], '/');
		source[i] = slash ? slash + 1 : name[i];
	}
	for (size_t i = 0; i < n && source_column; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(source[i], source[k]) == 0)
				die("--source: two inputs are called '%s'; rename one", source[i]);
	if (concat_init(&in->all, h, name, n, source_column, source, &warning, &e))
		die("%s", e.msg);
	if (warning)
		warn("%s", warning);
	free(warning);
	in->joined = n > 1 || source_column;
	free(h);
	free(name);
	free(source);
}

static void rewind_inputs(struct inputs *in)
{
	for (size_t i = 0; i < in->n && !in->indexed; i++) {
		if (stream_index(in->s[i], &e))
			die("%s", e.msg);
		in->total += stream_rows(in->s[i]);
	}
	in->indexed = 1;
	in->at = in->block = 0;
	in->all.cells = 0;
}

/* Next block of the joined stream, or NULL at the end. */
static const struct block *next_block(struct inputs *in)
{
	for (;; in->at++, in->block = 0) {
		if (in->at == in->n)
			return NULL;
		struct stream *s = in->s[in->at];
		int got;
		if (in->indexed)
			got = in->block == stream_blocks(s) ? 0 : stream_read_at(s, in->block++, &in->raw, &e) ? -1 : 1;
		else
			got = stream_read(s, &in->raw, &e);
		if (got < 0)
			die("%s", e.msg);
		if (!got)
			continue;
		if (!in->joined)
			return &in->raw;
		concat_block(&in->all, in->at, &in->raw, &in->row);
		return &in->row;
	}
}

static void close_inputs(struct inputs *in)
{
	for (size_t i = 0; i < in->n; i++)
		stream_free(in->s[i]);
	free(in->s);
	concat_release(&in->all);
	block_release(&in->raw);
	block_release(&in->row);
}

/* ---- filters on one row ---- */

struct filter {
	struct where where;
	int genes, counts, count;       /* ragged group of genes, columns n_counts and count; -1 */
	int gene;                       /* the id column */
	size_t special;                 /* ids below this are no genes */
	uint8_t *mito;                  /* [vocab.n] */
	uint8_t *keep;                  /* [rows] scratch */
	size_t cap;
};

/* The 13 protein genes of the human mitochondrion, for vocabularies without symbols. */
static const char *const mito_ids[] = {
	"ENSG00000198888", "ENSG00000198763", "ENSG00000198804", "ENSG00000198712", "ENSG00000228253", "ENSG00000198899", "ENSG00000198938",
	"ENSG00000198840", "ENSG00000212907", "ENSG00000198886", "ENSG00000198786", "ENSG00000198695", "ENSG00000198727",
};

static int is_mito(const struct vocab *v, size_t i)
{
	if (strncasecmp(v->symbol[i], "MT-", 3) == 0 || strncasecmp(v->id[i], "MT-", 3) == 0)
		return 1;
	for (size_t k = 0; k < sizeof mito_ids / sizeof *mito_ids; k++)
		if (strcmp(v->id[i], mito_ids[k]) == 0)
			return 1;
	return 0;
}

static int need(const struct header *h, const char *column, enum column_type type, enum column_shape shape, const char *file)
{
	int i = header_need(h, column, type, shape, file, &e);
	if (i < 0)
		die("%s", e.msg);
	return i;
}

static void filter_init(struct filter *f, const struct header *h, const char *file)
{
	*f = (struct filter){.genes = -1, .counts = -1, .count = -1, .gene = -1, .special = h->vocab.nspecial};
	for (size_t i = 0; i < where_text.n; i++)
		if (where_add(&f->where, where_text.item[i], &e))
			usage_error("--where: %s", e.msg);
	if (where_bind(&f->where, h, file, &e))
		die("--where: %s", e.msg);
	for (size_t i = 0; i < f->where.n; i++)
		if (!f->where.c[i].known)
			warn("%s: column '%s' has no category '%s'", file, f->where.c[i].column, f->where.c[i].value);
	if (given(MIN_COUNTS) || given(MAX_MITO))
		f->counts = need(h, "n_counts", U64, SCALAR, file);
	if (given(MIN_GENES) || given(MAX_MITO)) {
		int tokens = strcmp(h->kind, "tokens") == 0 && !given(MAX_MITO);
		f->gene = need(h, tokens ? "token" : "gene", U32, RAGGED, file);
		f->genes = h->col[f->gene].group;
	}
	if (!given(MAX_MITO))
		return;
	f->count = need(h, "count", U32, RAGGED, file);
	f->mito = xcalloc(h->vocab.n, 1);
	size_t n = 0;
	for (size_t i = 0; i < h->vocab.n; i++)
		n += f->mito[i] = (uint8_t)is_mito(&h->vocab, i);
	if (!n)
		die("%s: --max-mito: none of the %zu genes is mitochondrial (a symbol or id that begins with MT-)", file, h->vocab.n);
}

static uint64_t genes_of(const struct filter *f, const struct block *b, size_t row)
{
	const uint64_t *o = b->group[f->genes].offset;
	uint64_t n = 0;
	for (uint64_t i = o[row]; i < o[row + 1]; i++)
		n += block_id(b, f->gene, i) >= f->special;
	return n;
}

static double mito_share(const struct filter *f, const struct block *b, size_t row)
{
	const uint64_t *o = b->group[f->genes].offset;
	uint64_t n = 0, all = ((const uint64_t *)b->col[f->counts].data)[row];
	for (uint64_t i = o[row]; i < o[row + 1]; i++)
		n += f->mito[block_id(b, f->gene, i)] ? block_id(b, f->count, i) : 0;
	return all ? (double)n / (double)all : 0;
}

/* f->keep[i] = row i passes; the first filter that a row fails is charged with it. */
static void filter_rows(struct filter *f, const struct block *b)
{
	grow(f->keep, f->cap, b->rows);
	memset(f->keep, 1, b->rows);
	where_rows(&f->where, b, f->keep);
	for (size_t i = 0; i < b->rows; i++) {
		int why = IN;
		if (!f->keep[i])
			why = BY_WHERE;
		else if (given(MIN_GENES) && genes_of(f, b, i) < (uint64_t)min_genes)
			why = BY_GENES;
		else if (given(MIN_COUNTS) && ((const uint64_t *)b->col[f->counts].data)[i] < (uint64_t)min_counts)
			why = BY_COUNTS;
		else if (given(MAX_MITO) && mito_share(f, b, i) > max_mito)
			why = BY_MITO;
		f->keep[i] = why == IN;
		dropped[why]++;
	}
	dropped[IN] = 0;
}

static void filter_release(struct filter *f)
{
	where_release(&f->where);
	free(f->mito);
	free(f->keep);
}

/* ---- choices over the whole input ---- */

/* The class of every cell that passed the filters, by one column. Cells without a value are a class of their own. */
struct partition {
	char *column;
	struct labels labels;
	struct classes classes;
	uint32_t *class;        /* [cells] numbered in order of the names, missing last (after settle) */
	size_t cap, n;          /* n classes, the missing one included */
	int missing;            /* some cell has no value: it is class n - 1 */
};

static struct table {
	size_t n, cap;          /* cells that passed the filters */
	uint64_t *cell;
	uint8_t *keep;          /* [n] */
	uint64_t *draw;         /* [n] scratch */
	struct partition *part; /* [npart] */
	size_t npart;
} table;

static struct partition *partition_of(const char *column)
{
	for (size_t i = 0; i < table.npart; i++)
		if (strcmp(table.part[i].column, column) == 0)
			return &table.part[i];
	return NULL;
}

static void add_partition(const char *column)
{
	if (!column || partition_of(column))
		return;
	table.part = xrealloc(table.part, table.npart + 1, sizeof *table.part);
	table.part[table.npart++] = (struct partition){.column = xstrdup(column)};
}

/* "COL:N" taken apart at the last colon; the column name is malloced. */
static char *column_and_number(const char *option, const char *text, double least, double *n)
{
	const char *colon = strrchr(text, ':');
	char *end = NULL;
	*n = colon ? strtod(colon + 1, &end) : -1;
	if (!colon || colon == text || end == colon + 1 || *end || !(*n >= least && *n <= 1e15) || (*n >= 1 && *n != (double)(uint64_t)*n))
		usage_error("--%s: '%s' is not COL:N (a column, and a number of cells%s)", option, text, least > 0 ? "" : " or a share below 1");
	return xasprintf("%.*s", (int)(colon - text), text);
}

static void gather(const struct block *b, const uint8_t *keep, int cell)
{
	for (size_t i = 0; i < b->rows; i++) {
		if (!keep[i])
			continue;
		grow(table.cell, table.cap, table.n + 1);
		table.cell[table.n] = ((const uint64_t *)b->col[cell].data)[i];
		for (size_t k = 0; k < table.npart; k++) {
			struct partition *p = &table.part[k];
			grow(p->class, p->cap, table.n + 1);
			p->class[table.n] = label_at(&p->labels, b, i);
		}
		table.n++;
	}
}

/* Renumber classes by name, so that no choice depends on the order of cells; the missing class comes last. */
static void settle(struct partition *p)
{
	uint32_t *order = classes_sorted(&p->classes), *rank = xmalloc(p->classes.n * sizeof *rank);
	for (size_t k = 0; k < p->classes.n; k++)
		rank[order[k]] = (uint32_t)k;
	p->n = p->classes.n;
	for (size_t i = 0; i < table.n; i++) {
		p->missing |= p->class[i] == MISSING_CODE;
		p->class[i] = p->class[i] == MISSING_CODE ? (uint32_t)p->n : rank[p->class[i]];
	}
	p->n += (size_t)p->missing;
	free(order);
	free(rank);
}

/* Cells still kept in each class (malloced). */
static uint64_t *class_counts(const struct partition *p)
{
	uint64_t *count = xcalloc(p->n, sizeof *count);
	for (size_t i = 0; i < table.n; i++)
		count[p->class[i]] += table.keep[i];
	return count;
}

static uint64_t kept(void)
{
	uint64_t n = 0;
	for (size_t i = 0; i < table.n; i++)
		n += table.keep[i];
	return n;
}

static void draw(uint32_t purpose)
{
	for (size_t i = 0; i < table.n; i++)
		table.draw[i] = sample_draw((uint32_t)cli.seed, table.cell[i], purpose);
}

static void drop_rare(void)
{
	double least;
	char *column = column_and_number("min-class", min_class_text, 0, &least);
	struct partition *p = partition_of(column);
	uint64_t *count = class_counts(p), labelled = 0;
	size_t named = p->n - (size_t)p->missing;
	for (size_t c = 0; c < named; c++)
		labelled += count[c];
	double limit = least < 1 ? least * (double)labelled : least;
	for (size_t i = 0; i < table.n; i++)
		if (p->class[i] == named || (double)count[p->class[i]] < limit)
			table.keep[i] = 0;
	free(count);
	free(column);
}

/* Keep `total` cells, in the proportions of --stratify if asked. */
static void take(uint64_t total, uint32_t purpose)
{
	const struct partition *p = stratify ? partition_of(stratify) : NULL;
	uint64_t *quota = p ? xcalloc(p->n, sizeof *quota) : xcalloc(1, sizeof *quota);
	quota[0] = total;
	if (p && p->n) {
		uint64_t *count = class_counts(p);
		quota_proportional(count, p->n, total, quota);
		free(count);
	}
	draw(purpose);
	sample_quota(table.keep, table.draw, p ? p->class : NULL, table.n, quota, p ? p->n : 1);
	free(quota);
}

static void split_by_cell(void)
{
	uint8_t *before = xmalloc(table.n);
	memcpy(before, table.keep, table.n);
	take(share_of(test_fraction, kept()), SAMPLE_SPLIT);
	for (size_t i = 0; i < table.n && part == PART_TRAIN; i++)
		table.keep[i] = before[i] && !table.keep[i];
	free(before);
}

static void split_by_group(void)
{
	const struct partition *p = partition_of(by);
	uint64_t *count = class_counts(p), *draws = xmalloc(p->n * sizeof *draws);
	uint8_t *test = xcalloc(p->n, 1);
	uint32_t *order = classes_sorted(&p->classes);
	/* groups that other options emptied take no part */
	size_t m = 0, *group = xmalloc(p->n * sizeof *group);
	for (size_t c = 0; c < p->n; c++) {
		if (!count[c])
			continue;
		const char *name = c < p->classes.n ? p->classes.name[order[c]] : "";
		draws[m] = sample_draw_name((uint32_t)cli.seed, name, SAMPLE_GROUP);
		count[m] = count[c];
		group[m++] = c;
	}
	if (m < 2 && table.n)
		die("--by: column '%s' has %zu group%s in these cells; a split needs 2 at least", by, m, m == 1 ? "" : "s");
	uint8_t *chosen = xcalloc(m, 1);
	if (m)
		split_groups(count, draws, m, test_fraction, chosen);
	for (size_t k = 0; k < m; k++)
		test[group[k]] = chosen[k];
	for (size_t i = 0; i < table.n; i++)
		table.keep[i] = table.keep[i] && test[p->class[i]] == (part == PART_TEST);
	free(count);
	free(draws);
	free(test);
	free(order);
	free(group);
	free(chosen);
}

static void cap_classes(size_t k)
{
	double n;
	char *column = column_and_number("cap", cap_text.item[k], 1, &n);
	const struct partition *p = partition_of(column);
	uint64_t *quota = xmalloc(p->n * sizeof *quota);
	for (size_t c = 0; c < p->n; c++)
		quota[c] = (uint64_t)n;
	draw(SAMPLE_CAP + (uint32_t)k);
	sample_quota(table.keep, table.draw, p->class, table.n, quota, p->n);
	free(quota);
	free(column);
}

static void balance_classes(void)
{
	const struct partition *p = partition_of(balance);
	uint64_t *count = class_counts(p), *quota = xcalloc(p->n, sizeof *quota), total = (uint64_t)number;
	if (given(FRACTION))
		total = share_of(fraction, kept());
	else if (!given(NUMBER)) {
		uint64_t least = UINT64_MAX, open = 0;
		for (size_t c = 0; c < p->n; c++)
			if (count[c]) {
				least = count[c] < least ? count[c] : least;
				open++;
			}
		total = open ? least * open : 0;
	}
	quota_round_robin(count, p->n, total, quota);
	draw(SAMPLE_CLASS);
	sample_quota(table.keep, table.draw, p->class, table.n, quota, p->n);
	free(count);
	free(quota);
}

static void charge(int reason, uint64_t *before)
{
	uint64_t now = kept();
	dropped[reason] += *before - now;
	*before = now;
}

static void choose(void)
{
	table.keep = xmalloc(table.n);
	memset(table.keep, 1, table.n);
	table.draw = xmalloc(table.n * sizeof *table.draw);
	for (size_t k = 0; k < table.npart; k++)
		settle(&table.part[k]);
	uint64_t n = table.n;
	if (min_class_text)
		drop_rare();
	charge(BY_RARE, &n);
	if (given(TEST_FRACTION) && by)
		split_by_group();
	else if (given(TEST_FRACTION))
		split_by_cell();
	charge(BY_PART, &n);
	for (size_t k = 0; k < cap_text.n; k++)
		cap_classes(k);
	charge(BY_CAP, &n);
	if (balance) {
		balance_classes();
	} else if (given(NUMBER) || given(FRACTION)) {
		uint64_t want = given(NUMBER) ? (uint64_t)number : share_of(fraction, n);
		if (want > n)
			warn("%" PRIu64 " cells asked for, but there are %" PRIu64 "; all are kept", want, n);
		take(want, stratify ? SAMPLE_CLASS : SAMPLE_NUMBER);
	}
	charge(BY_SAMPLE, &n);
}

/* ---- output ---- */

struct sink {
	struct stream *to;
	struct block out;
	int *map;
	uint32_t *row;
	size_t cap;
};

static void flush_block(struct sink *s)
{
	if (s->out.rows && stream_write(s->to, &s->out, &e))
		die("%s", e.msg);
	block_reset(&s->out, stream_header(s->to));
}

/* Append the kept rows of b, as one piece where the limit of rows allows. */
static void emit(struct sink *s, const struct block *b, const uint8_t *keep)
{
	size_t n = 0;
	grow(s->row, s->cap, b->rows);
	for (size_t i = 0; i < b->rows; i++)
		if (keep[i])
			s->row[n++] = (uint32_t)i;
	for (size_t i = 0; i < n;) {
		size_t m = BLOCK_ROWS - s->out.rows;
		m = n - i < m ? n - i : m;
		block_take(&s->out, s->map, b, s->row + i, m);
		i += m;
		if (block_full(&s->out))
			flush_block(s);
	}
}

static void check_options(void)
{
	if (given(NUMBER) && given(FRACTION))
		usage_error("-n and -f exclude each other");
	if (given(TEST_FRACTION) != (part != PART_NONE))
		usage_error("--test-fraction and --part belong together");
	if (by && !given(TEST_FRACTION))
		usage_error("--by splits by groups: it needs --test-fraction and --part");
	if (stratify && balance)
		usage_error("--stratify keeps proportions and --balance levels them: give one");
	if (stratify && !given(NUMBER) && !given(FRACTION) && (by || !given(TEST_FRACTION)))
		usage_error("--stratify needs -n, -f, or --test-fraction without --by");
}

static int two_passes(void)
{
	return given(NUMBER) || given(FRACTION) || given(TEST_FRACTION) || given(BALANCE) || cap_text.n || given(MIN_CLASS);
}

/* First pass: cell numbers and classes of the cells that pass the filters, and a bit for each row. */
static uint8_t *first_pass(struct inputs *in, struct filter *f)
{
	const struct header *h = &in->all.header;
	add_partition(by);
	add_partition(stratify);
	add_partition(balance);
	for (size_t i = 0; i < cap_text.n + (min_class_text != NULL); i++) {
		double n;
		char *column = i < cap_text.n ? column_and_number("cap", cap_text.item[i], 1, &n)
					      : column_and_number("min-class", min_class_text, 0, &n);
		add_partition(column);
		free(column);
	}
	for (size_t k = 0; k < table.npart; k++) {
		struct partition *p = &table.part[k];
		if (labels_init(&p->labels, h, p->column, &p->classes, stream_name(in->s[0]), &e))
			die("%s", e.msg);
	}
	rewind_inputs(in);
	uint8_t *pass = xcalloc(in->total, 1);
	uint64_t at = 0;
	for (const struct block *b; (b = next_block(in)); at += b->rows) {
		filter_rows(f, b);
		gather(b, f->keep, in->all.cell);
		memcpy(pass + at, f->keep, b->rows);
		progress("%" PRIu64 " of %" PRIu64 " cells looked at", at, in->total);
	}
	choose();
	for (uint64_t i = 0, k = 0; i < in->total; i++)
		if (pass[i])
			pass[i] = table.keep[k++];
	rewind_inputs(in);
	return pass;
}

static void release_table(void)
{
	for (size_t k = 0; k < table.npart; k++) {
		labels_release(&table.part[k].labels);
		classes_release(&table.part[k].classes);
		free(table.part[k].class);
		free(table.part[k].column);
	}
	free(table.part);
	free(table.cell);
	free(table.keep);
	free(table.draw);
}

int main(int argc, char **argv)
{
	cli_init(&cli, argc, argv);
	check_options();
	struct inputs in;
	struct filter f;
	open_inputs(&in);
	filter_init(&f, &in.all.header, stream_name(in.s[0]));
	uint8_t *chosen = two_passes() ? first_pass(&in, &f) : NULL;

	struct header h;
	header_copy(&h, &in.all.header);
	char *how = cli_provenance(&cli);
	header_provenance(&h, "scsample", how);
	free(how);
	struct sink s = {.to = cli_create(&cli, &h), .map = xmalloc(h.ncol * sizeof *s.map)};
	header_map(stream_header(s.to), &in.all.header, s.map);
	block_reset(&s.out, stream_header(s.to));
	uint64_t seen = 0;
	for (const struct block *b; (b = next_block(&in)); seen += b->rows) {
		if (!chosen)
			filter_rows(&f, b);
		emit(&s, b, chosen ? chosen + seen : f.keep);
		progress("%" PRIu64 " cells in, %" PRIu64 " out", seen, stream_rows(s.to));
	}
	flush_block(&s);
	uint64_t written = stream_rows(s.to);
	if (stream_commit(s.to, &e))
		die("%s", e.msg);
	if (seen && !written)
		warn("none of the %" PRIu64 " cells is left", seen);
	char *why = xstrdup("");
	for (int r = 1; r < REASONS; r++) {
		if (!dropped[r])
			continue;
		char *more = xasprintf("%s, %" PRIu64 " dropped by %s", why, dropped[r], reason_text[r]);
		free(why);
		why = more;
	}
	cli_report(&cli, "%" PRIu64 " cells in, %" PRIu64 " out%s", seen, written, why);
	free(why);
	stream_free(s.to);
	block_release(&s.out);
	free(s.map);
	free(s.row);
	free(chosen);
	header_release(&h);
	filter_release(&f);
	release_table();
	close_inputs(&in);
	return 0;
}
