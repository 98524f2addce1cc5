/*
 * scview: look at any stream. Records as a table, the header, statistics, an integrity check, and exports for numpy (lib/npy)
 * and AnnData (lib/export_h5ad).
 */
#include "cli.h"

#include "export_h5ad.h"
#include "file.h"
#include "npy.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum format { TSV, NPY, H5AD };
enum genes { NUMBER, ID, SYMBOL };

static const char *columns;
static long long limit = -1;
static int genes, format, want_header, want_vocab, want_stats, want_check;

static struct option_def options[] = {
	{'c', "columns", OPT_STRING, &columns, "A,B", "show these columns, in this order (default: all)", 0, 0, 0, 0},
	{'n', "rows", OPT_INT, &limit, "N", "stop after N rows (default: all)", 0, 9e15, 0, 0},
	{0, "genes", OPT_CHOICE, &genes, "number|id|symbol", "how genes and tokens are shown (default number)", 0, 0, 0, 0},
	{'H', "header", OPT_FLAG, &want_header, NULL, "print the header, as JSON", 0, 0, 0, 0},
	{0, "vocab", OPT_FLAG, &want_vocab, NULL, "print the vocabulary, as a table that rankenc reads", 0, 0, 0, 0},
	{'s', "stats", OPT_FLAG, &want_stats, NULL, "print statistics of every column", 0, 0, 0, 0},
	{0, "check", OPT_FLAG, &want_check, NULL, "read everything, report whether it is whole; several files allowed", 0, 0, 0, 0},
	{'O', "format", OPT_CHOICE, &format, "tsv|npy|h5ad", "output format (default tsv)", 0, 0, 0, 0},
	{0},
};

static struct cli cli = {
	.name = "scview",
	.operands = "[FILE]",
	.summary = "Show a stream as a table, check it, or export it to numpy and AnnData.",
	.features = "HDF5",
	.options = options,
	.common = CLI_OUT,
};

static struct error e;

/* ---- text out ---- */

static struct outfile out;
static char *text;
static size_t text_n, text_cap;

static void flush(void)
{
	if (outfile_write(&out, text, text_n, &e))
		die("%s", e.msg);
	text_n = 0;
}

static void open_out(void)
{
	if (outfile_open(&out, cli.output, 0, &e))
		die("%s", e.msg);
}

static void commit_out(void)
{
	flush();
	if (outfile_commit(&out, &e))
		die("%s", e.msg);
	free(text);
}

static void put(const char *s, size_t n)
{
	if (text_n + n > 1 << 16)
		flush();
	text = grow_bytes(text, &text_cap, text_n + n, 1);
	memcpy(text + text_n, s, n);
	text_n += n;
}

static void puts_out(const char *s)
{
	put(s, strlen(s));
}

static void __attribute__((format(printf, 1, 2))) putf(const char *fmt, ...)
{
	char line[512];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	put(line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

/* A field of the table: tabs and line breaks would break it, so they are written as \t \n \r, and \ as \\. */
static void put_field(const char *s, size_t n)
{
	size_t done = 0;
	for (size_t i = 0; i < n; i++) {
		const char *as = s[i] == '\t' ? "\\t" : s[i] == '\n' ? "\\n" : s[i] == '\r' ? "\\r" : s[i] == '\\' ? "\\\\" : NULL;
		if (!as)
			continue;
		put(s + done, i - done);
		put(as, 2);
		done = i + 1;
	}
	put(s + done, n - done);
}

/* The shortest decimal that reads back as the same number. */
static void put_real(double v, int single)
{
	char s[40];
	if (isnan(v)) {
		puts_out("NA");
		return;
	}
	for (int digits = single ? 6 : 15; ; digits++) {
		snprintf(s, sizeof s, "%.*g", digits, v);
		if (digits == (single ? 9 : 17) || (single ? (double)strtof(s, NULL) == v : strtod(s, NULL) == v))
			break;
	}
	puts_out(s);
}

static void put_uint(uint64_t v)
{
	char s[20];
	size_t n = 0;
	do
		s[sizeof s - ++n] = (char)('0' + v % 10);
	while (v /= 10);
	put(s + sizeof s - n, n);
}

static void put_int(int64_t v)
{
	if (v < 0)
		put("-", 1);
	put_uint(v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

/* ---- the table ---- */

struct shown {
	int col, missing;       /* index of NAME.missing, or -1 */
	int gene;               /* values are rows of the vocabulary */
};

static int missing_of(const struct header *h, int c)
{
	char *name = xasprintf("%s.missing", h->col[c].name);
	int m = header_find(h, name);
	free(name);
	return m >= 0 && h->col[m].type == U8 && h->col[m].shape == SCALAR && h->col[c].shape == SCALAR ? m : -1;
}

static int is_companion(const struct header *h, int c)
{
	const char *dot = strrchr(h->col[c].name, '.');
	if (!dot || strcmp(dot, ".missing"))
		return 0;
	char *name = xasprintf("%.*s", (int)(dot - h->col[c].name), h->col[c].name);
	int of = header_find(h, name);
	free(name);
	return of >= 0 && missing_of(h, of) == c;
}

/* The columns to show: those asked for, else all but the .missing companions, which show as NA. */
static struct shown *choose(const struct header *h, const char *file, size_t *n)
{
	size_t nname;
	char **name = opt_list(columns, &nname);
	struct shown *s = xcalloc(nname + h->ncol, sizeof *s);
	*n = 0;
	for (size_t i = 0; i < nname; i++) {
		int c = header_need(h, name[i], COLUMN_TYPES, SCALAR, file, &e);
		if (c < 0 && (c = header_find(h, name[i])) < 0)
			die("%s", e.msg);
		s[(*n)++].col = c;
	}
	for (size_t i = 0; !nname && i < h->ncol; i++)
		if (!is_companion(h, (int)i))
			s[(*n)++].col = (int)i;
	for (size_t i = 0; i < *n; i++) {
		s[i].missing = missing_of(h, s[i].col);
		s[i].gene = genes != NUMBER && h->vocab.n && block_is_id(&h->col[s[i].col]);
	}
	opt_list_free(name, nname);
	return s;
}

static void put_gene(const struct vocab *v, uint32_t i)
{
	const char *name = genes == SYMBOL && v->symbol[i][0] ? v->symbol[i] : v->id[i];
	put_field(name, strlen(name));
}

static void put_value(const struct block *b, const struct shown *s, size_t i)
{
	const struct column_spec *spec = &b->header->col[s->col];
	const void *p = b->col[s->col].data;
	uint32_t code;
	if (s->gene) {
		put_gene(&b->header->vocab, block_id(b, s->col, i));
		return;
	}
	switch (spec->type) {
	case U8: put_uint(((const uint8_t *)p)[i]); break;
	case U16: put_uint(((const uint16_t *)p)[i]); break;
	case U32: put_uint(((const uint32_t *)p)[i]); break;
	case U64: put_uint(((const uint64_t *)p)[i]); break;
	case I8: put_int(((const int8_t *)p)[i]); break;
	case I16: put_int(((const int16_t *)p)[i]); break;
	case I32: put_int(((const int32_t *)p)[i]); break;
	case I64: put_int(((const int64_t *)p)[i]); break;
	case F32: put_real((double)((const float *)p)[i], 1); break;
	case F64: put_real(((const double *)p)[i], 0); break;
	case CATEGORICAL:
		code = ((const uint32_t *)p)[i];
		if (code == MISSING_CODE)
			puts_out("NA");
		else
			put_field(spec->category[code], strlen(spec->category[code]));
		break;
	case STR: {
		size_t n;
		const char *v = block_str(b, s->col, i, &n);
		put_field(v, n);
		break;
	}
	case COLUMN_TYPES: break;
	}
}

static void put_cell(const struct block *b, const struct shown *s, size_t row)
{
	const struct column_spec *spec = &b->header->col[s->col];
	if (s->missing >= 0 && ((const uint8_t *)b->col[s->missing].data)[row]) {
		puts_out("NA");
		return;
	}
	size_t from = row * spec->n, to = from + spec->n;
	if (spec->shape == RAGGED) {
		from = b->group[spec->group].offset[row];
		to = b->group[spec->group].offset[row + 1];
	}
	for (size_t i = from; i < to; i++) {
		if (i > from)
			put(" ", 1);
		put_value(b, s, i);
	}
}

static void table(struct stream *in)
{
	const struct header *h = stream_header(in);
	size_t n;
	struct shown *s = choose(h, stream_name(in), &n);
	struct block b = {0};
	uint64_t left = limit < 0 ? UINT64_MAX : (uint64_t)limit;
	int got = 1;
	open_out();
	for (size_t i = 0; i < n; i++) {
		if (i)
			put("\t", 1);
		put_field(h->col[s[i].col].name, strlen(h->col[s[i].col].name));
	}
	put("\n", 1);
	while (left && (got = stream_read(in, &b, &e)) > 0)
		for (size_t r = 0; r < b.rows && left; r++, left--) {
			for (size_t i = 0; i < n; i++) {
				if (i)
					put("\t", 1);
				put_cell(&b, &s[i], r);
			}
			put("\n", 1);
		}
	if (got < 0) {
		flush();                /* what could be read is worth seeing */
		die("%s", e.msg);
	}
	commit_out();
	block_release(&b);
	free(s);
}

/* ---- header, check, statistics ---- */

/* As JSON; of the vocabulary only its size and digests (--vocab prints the rest). */
static void show_header(struct stream *in)
{
	const struct header *h = stream_header(in);
	char *compact = header_print(h);
	cJSON *j = cJSON_Parse(compact), *vocab = cJSON_GetObjectItemCaseSensitive(j, "vocab");
	if (vocab) {
		cJSON_DeleteItemFromObjectCaseSensitive(vocab, "id");
		cJSON_DeleteItemFromObjectCaseSensitive(vocab, "symbol");
		cJSON_DeleteItemFromObjectCaseSensitive(vocab, "median");
		cJSON_AddNumberToObject(vocab, "rows", (double)h->vocab.n);
	}
	char *pretty = cJSON_Print(j);
	if (!pretty)
		die("%s: the header cannot be printed", stream_name(in));
	open_out();
	puts_out(pretty);
	put("\n", 1);
	commit_out();
	free(pretty);
	free(compact);
	cJSON_Delete(j);
}

static void show_vocab(struct stream *in)
{
	const struct vocab *v = &stream_header(in)->vocab;
	if (!v->n)
		die("%s: this stream has no vocabulary", stream_name(in));
	open_out();
	puts_out("token\tgene_id\tsymbol\tmedian\n");
	for (size_t i = 0; i < v->n; i++) {
		putf("%zu\t", i);
		put_field(v->id[i], strlen(v->id[i]));
		put("\t", 1);
		put_field(v->symbol[i], strlen(v->symbol[i]));
		put("\t", 1);
		put_real(v->median[i], 0);
		put("\n", 1);
	}
	commit_out();
}

static int check(int i)
{
	const char *path = i < cli.noperand ? cli.operand[i] : "-";
	struct stream *in = stream_open(path, &e);
	struct block b = {0};
	size_t blocks = 0;
	int got = -1;
	while (in && (got = stream_read(in, &b, &e)) > 0)
		blocks++;
	if (got == 0)
		putf("%s: whole, %s, %" PRIu64 " rows in %zu blocks\n", stream_name(in), stream_header(in)->kind, stream_rows(in), blocks);
	else
		info("%s", e.msg);
	block_release(&b);
	stream_free(in);
	return got;
}

struct summary {                /* of one column, or the lengths of one group */
	uint64_t n, missing;
	double min, max, sum;
	uint64_t *count;        /* categories: [ncategory]; lengths: [cap] how many rows have this length */
	size_t cap;
};

static void add_number(struct summary *s, double v)
{
	if (isnan(v)) {
		s->missing++;
		return;
	}
	s->min = s->n && s->min < v ? s->min : v;
	s->max = s->n && s->max > v ? s->max : v;
	s->sum += v;
	s->n++;
}

static double number_at(const struct block *b, int c, size_t i)
{
	const void *p = b->col[c].data;
	switch (b->header->col[c].type) {
	case U8: return ((const uint8_t *)p)[i];
	case U16: return ((const uint16_t *)p)[i];
	case U32: return ((const uint32_t *)p)[i];
	case U64: return (double)((const uint64_t *)p)[i];
	case I8: return ((const int8_t *)p)[i];
	case I16: return ((const int16_t *)p)[i];
	case I32: return ((const int32_t *)p)[i];
	case I64: return (double)((const int64_t *)p)[i];
	case F32: return (double)((const float *)p)[i];
	case F64: return ((const double *)p)[i];
	default: return NAN;
	}
}

static void add_column(struct summary *s, const struct block *b, int c)
{
	const struct column_spec *spec = &b->header->col[c];
	int m = missing_of(b->header, c);
	size_t n = spec->shape == RAGGED ? block_items(b, spec->group) : b->rows * spec->n;
	for (size_t i = 0; i < n; i++) {
		if (m >= 0 && ((const uint8_t *)b->col[m].data)[i]) {
			s->missing++;
		} else if (spec->type == CATEGORICAL) {
			uint32_t code = ((const uint32_t *)b->col[c].data)[i];
			if (code == MISSING_CODE)
				s->missing++;
			else
				s->count[code]++, s->n++;
		} else if (spec->type == STR) {
			s->n++;
		} else {
			add_number(s, number_at(b, c, i));
		}
	}
}

static void add_lengths(struct summary *s, const struct block *b, size_t g)
{
	const uint64_t *o = b->group[g].offset;
	for (size_t r = 0; r < b->rows; r++) {
		size_t len = o[r + 1] - o[r], old = s->cap;
		s->count = grow_bytes(s->count, &s->cap, len + 1, sizeof *s->count);
		memset(s->count + old, 0, (s->cap - old) * sizeof *s->count);
		s->count[len]++;
		add_number(s, (double)len);
	}
}

/* The smallest length that at least q of the rows do not exceed. */
static size_t quantile(const struct summary *s, double q)
{
	uint64_t seen = 0;
	for (size_t len = 0; len < s->cap; len++)
		if ((seen += s->count[len]) && (double)seen >= q * (double)s->n)
			return len;
	return 0;
}

static void stat_row(const char *what, const char *key, double v)
{
	put_field(what, strlen(what));
	putf("\t%s\t", key);
	put_real(v, 0);
	put("\n", 1);
}

static void print_column_stats(const struct column_spec *spec, const struct summary *s)
{
	stat_row(spec->name, "values", (double)s->n);
	if (s->missing)
		stat_row(spec->name, "missing", (double)s->missing);
	for (size_t k = 0; k < spec->ncategory; k++) {
		put_field(spec->name, strlen(spec->name));
		puts_out("\t=");
		put_field(spec->category[k], strlen(spec->category[k]));
		putf("\t%" PRIu64 "\n", s->count[k]);
	}
	if (spec->type == STR || spec->type == CATEGORICAL || !s->n)
		return;
	stat_row(spec->name, "min", s->min);
	stat_row(spec->name, "mean", s->sum / (double)s->n);
	stat_row(spec->name, "max", s->max);
}

static void print_length_stats(const char *group, const struct summary *s)
{
	static const struct { const char *name; double q; } quantiles[] = {
		{"length_q05", 0.05}, {"length_q25", 0.25}, {"length_median", 0.5}, {"length_q75", 0.75}, {"length_q95", 0.95}};
	char *what = xasprintf("%s[]", group);
	stat_row(what, "items", s->sum);
	if (s->n) {
		stat_row(what, "length_min", s->min);
		for (size_t k = 0; k < sizeof quantiles / sizeof *quantiles; k++)
			stat_row(what, quantiles[k].name, (double)quantile(s, quantiles[k].q));
		stat_row(what, "length_max", s->max);
		stat_row(what, "length_mean", s->sum / (double)s->n);
	}
	free(what);
}

static void statistics(struct stream *in)
{
	const struct header *h = stream_header(in);
	struct summary *col = xcalloc(h->ncol, sizeof *col), *group = xcalloc(h->ngroup, sizeof *group);
	struct block b = {0};
	uint64_t blocks = 0, bytes = 0;
	int got;
	for (size_t i = 0; i < h->ncol; i++)
		if (h->col[i].type == CATEGORICAL)
			col[i].count = xcalloc(h->col[i].ncategory, sizeof *col[i].count);
	while ((got = stream_read(in, &b, &e)) > 0) {
		blocks++;
		bytes += block_bytes(&b);
		for (size_t i = 0; i < h->ncol; i++)
			add_column(&col[i], &b, (int)i);
		for (size_t g = 0; g < h->ngroup; g++)
			add_lengths(&group[g], &b, g);
	}
	if (got < 0)
		die("%s", e.msg);
	open_out();
	struct stat st;
	putf("column\tstatistic\tvalue\n-\tkind\t%s\n-\trows\t%" PRIu64 "\n-\tblocks\t%" PRIu64 "\n-\tbytes\t%" PRIu64 "\n",
	     h->kind, stream_rows(in), blocks, bytes);
	if (cli.noperand && stat(cli.operand[0], &st) == 0 && S_ISREG(st.st_mode))
		putf("-\tfile_bytes\t%lld\n", (long long)st.st_size);
	if (h->vocab.n)
		putf("-\tvocabulary\t%zu\n", h->vocab.n);
	for (size_t g = 0; g < h->ngroup; g++)
		print_length_stats(h->group[g], &group[g]);
	for (size_t i = 0; i < h->ncol; i++)
		print_column_stats(&h->col[i], &col[i]);
	commit_out();
	for (size_t i = 0; i < h->ncol; i++)
		free(col[i].count);
	for (size_t g = 0; g < h->ngroup; g++)
		free(group[g].count);
	free(col);
	free(group);
	block_release(&b);
}

/* ---- npy ---- */

/* The column to export: the one named, else the kind's matrix. */
static int npy_column(const struct header *h, const char *file)
{
	size_t n;
	char **name = opt_list(columns, &n);
	if (n > 1)
		usage_error("-O npy writes one array: name one column");
	const char *want = n ? name[0] : strcmp(h->kind, "embedding") == 0 ? "x" : strcmp(h->kind, "prediction") == 0 ? "logit" : NULL;
	if (!want)
		usage_error("-O npy: a %s stream has no matrix: name a column with --columns", h->kind);
	int c = header_find(h, want);
	if (c < 0)
		header_need(h, want, COLUMN_TYPES, SCALAR, file, &e), die("%s", e.msg);
	if (h->col[c].shape == RAGGED)
		die("%s: column '%s' has rows of different lengths and makes no array", file, want);
	if (h->col[c].type == STR)
		die("%s: column '%s' is text, and npy holds numbers here: use -O tsv or h5ad", file, want);
	opt_list_free(name, n);
	return c;
}

static void npy(struct stream *in)
{
	static const char *const descr[] = {[U8] = "|u1", [U16] = "<u2", [U32] = "<u4", [U64] = "<u8", [I8] = "|i1", [I16] = "<i2",
		[I32] = "<i4", [I64] = "<i8", [F32] = "<f4", [F64] = "<f8", [CATEGORICAL] = "<i4"};
	int c = npy_column(stream_header(in), stream_name(in));
	const struct column_spec *spec = &stream_header(in)->col[c];
	char head[NPY_HEADER];
	struct block b = {0};
	if (stream_index(in, &e))       /* the shape comes first in the file, so the rows must be known */
		die("%s", e.msg);
	uint64_t shape[2] = {stream_rows(in), spec->n};
	if (limit >= 0 && (uint64_t)limit < shape[0])
		shape[0] = (uint64_t)limit;
	npy_header(head, descr[spec->type], shape, spec->shape == FIXED ? 2 : 1);
	open_out();
	if (outfile_write(&out, head, sizeof head, &e))
		die("%s", e.msg);
	uint64_t left = shape[0];
	for (size_t k = 0; left; k++) {
		if (stream_read_at(in, k, &b, &e))
			die("%s", e.msg);
		size_t rows = left < b.rows ? left : b.rows;
		/* a missing code, 0xFFFFFFFF, is -1 when read as i4 */
		if (outfile_write(&out, b.col[c].data, rows * spec->n * type_size(spec->type), &e))
			die("%s", e.msg);
		left -= rows;
	}
	commit_out();
	block_release(&b);
}

/* ---- h5ad ---- */

static void copy_out(int fd)
{
	char buf[1 << 16];
	ssize_t n = lseek(fd, 0, SEEK_SET);
	while (n >= 0 && (n = read(fd, buf, sizeof buf)) > 0)
		if (outfile_write(&out, buf, (size_t)n, &e))
			die("%s", e.msg);
	if (n < 0)
		die("temporary file: cannot read: %s", strerror(errno));
}

/* HDF5 opens by name and seeks. What is no plain file (a pipe, standard output) gets a copy of one in $TMPDIR. */
static const char *temporary(struct outfile *spill)
{
	const char *dir = getenv("TMPDIR");
	char *path = xasprintf("%s/scview-%ld.h5ad", dir && *dir ? dir : "/tmp", (long)getpid());
	if (outfile_open(spill, path, 1, &e))
		die("%s", e.msg);
	free(path);
	return spill->tmp;
}

static void h5ad(struct stream *in)
{
	size_t nkeep;
	char **keep = opt_list(columns, &nkeep);
	struct outfile spill = {0};
	struct block b = {0};
	uint64_t left = limit < 0 ? UINT64_MAX : (uint64_t)limit;
	int got = 1;
	if (outfile_open(&out, cli.output, 1, &e))
		die("%s", e.msg);
	const char *path = out.direct ? temporary(&spill) : out.tmp;
	struct h5ad_writer *w = h5ad_writer_new(path, stream_header(in), keep, nkeep, stream_name(in), &e);
	if (!w)
		die("%s", e.msg);
	for (; left && (got = stream_read(in, &b, &e)) > 0; left -= b.rows < left ? b.rows : left) {
		if (h5ad_writer_add(w, &b, b.rows < left ? b.rows : (size_t)left, &e))
			die("%s", e.msg);
		progress("%" PRIu64 " rows", stream_rows(in));
	}
	if (got < 0 || h5ad_writer_finish(w, &e))
		die("%s", e.msg);
	h5ad_writer_free(w);
	if (out.direct) {
		unlink(spill.tmp);      /* before a closed pipe can kill us */
		copy_out(spill.fd);
	}
	outfile_abort(&spill);
	if (outfile_commit(&out, &e))
		die("%s", e.msg);
	opt_list_free(keep, nkeep);
	block_release(&b);
}

int main(int argc, char **argv)
{
	cli_init(&cli, argc, argv);
	if (want_header + want_vocab + want_stats + want_check + (format != TSV) > 1)
		usage_error("give one of -H, --vocab, -s, --check and -O");
	if (cli.noperand > 1 && !want_check)
		usage_error("one file at a time (several only with --check)");
	if (format != TSV && (!cli.output || strcmp(cli.output, "-") == 0) && isatty(STDOUT_FILENO))
		usage_error("-O %s is binary and will not be written to a terminal: use -o FILE", format == NPY ? "npy" : "h5ad");
	if (want_check) {
		int bad = 0;
		open_out();
		for (int i = 0; i < (cli.noperand ? cli.noperand : 1); i++)
			bad |= check(i) != 0;
		commit_out();
		return bad;
	}
	struct stream *in = cli_open(&cli, 0);
	if (want_header)
		show_header(in);
	else if (want_vocab)
		show_vocab(in);
	else if (want_stats)
		statistics(in);
	else if (format == NPY)
		npy(in);
	else if (format == H5AD)
		h5ad(in);
	else
		table(in);
	cli_report(&cli, "%" PRIu64 " rows", stream_rows(in));
	stream_free(in);
	return 0;
}
