/* rankenc: a counts stream to a tokens stream (rank value encoding), or to a vocabulary (--fit). */
#include "cli.h"

#include "file.h"
#include "pool.h"
#include "rank.h"
#include "strmap.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *vocab_path, *tokens_path, *map_path;
static int fit, style = -1, with_value, keep_empty;
static long long max_len, min_cells = 1;
static double min_genes = 20, min_counts = 50;

static struct option_def options[] = {
	{.letter = 'm', .name = "medians", .kind = OPT_STRING, .to = &vocab_path, .arg = "FILE",
	 .help = "vocabulary with medians (TSV: token, gene_id, symbol, median; gzip accepted)"},
	{.letter = 't', .name = "tokens", .kind = OPT_STRING, .to = &tokens_path, .arg = "FILE",
	 .help = "Geneformer's token table (TSV: token, id); -m is then its median table"},
	{.name = "map", .kind = OPT_STRING, .to = &map_path, .arg = "FILE",
	 .help = "look gene ids up through this table of key and id first (TSV, gzip accepted)"},
	{.name = "vocab-style", .kind = OPT_CHOICE, .to = &style, .arg = "v1|v2", .changes = 1,
	 .help = "v1: 2,048 tokens; v2: 4,096 with <cls> and <eos> (default: v2 if the vocabulary has them)"},
	{.name = "max-len", .kind = OPT_INT, .to = &max_len, .arg = "N", .min = 3, .max = 1 << 24, .changes = 1,
	 .help = "tokens a cell at most, special ones included (default: by style)"},
	{.name = "value", .kind = OPT_FLAG, .to = &with_value, .changes = 1,
	 .help = "add a column value: log(1 + count / n_counts * 10,000)"},
	{.name = "keep-empty", .kind = OPT_FLAG, .to = &keep_empty, .changes = 1,
	 .help = "keep cells without a known gene (default: drop and count them)"},
	{.name = "min-genes-matched", .kind = OPT_REAL, .to = &min_genes, .arg = "PERCENT", .max = 100,
	 .help = "fail when fewer genes of the input are in the vocabulary (default 20)"},
	{.name = "min-counts-matched", .kind = OPT_REAL, .to = &min_counts, .arg = "PERCENT", .max = 100,
	 .help = "fail when fewer counts are in such genes (default 50)"},
	{.name = "fit", .kind = OPT_FLAG, .to = &fit,
	 .help = "learn a vocabulary with non-zero medians from the input and write it as TSV"},
	{.name = "min-cells", .kind = OPT_INT, .to = &min_cells, .arg = "N", .min = 1, .max = 1e15,
	 .help = "with --fit: leave out genes found in fewer cells (default 1)"},
	{0},
};

static struct cli cli = {
	.name = "rankenc",
	.operands = "[FILE...]",
	.summary = "Encode cells of a counts stream as tokens ranked by count over median; learn medians with --fit.",
	.options = options,
	.common = CLI_STREAM_OUT | CLI_THREADS,
};

/* The columns of a counts stream. */
struct counts_in {
	struct stream *s;
	const struct header *h;
	int gene, count, total, group;
	struct block block;
	uint64_t row;                   /* rows before the block */
};

static void counts_open(struct counts_in *in, int operand)
{
	struct error e;
	*in = (struct counts_in){.s = cli_open(&cli, operand)};
	in->h = stream_header(in->s);
	const char *name = stream_name(in->s);
	if (header_kind(in->h, "counts", name, &e) ||
	    (in->gene = header_need(in->h, "gene", U32, RAGGED, name, &e)) < 0 ||
	    (in->count = header_need(in->h, "count", U32, RAGGED, name, &e)) < 0 ||
	    (in->total = header_need(in->h, "n_counts", U64, SCALAR, name, &e)) < 0)
		die("%s", e.msg);
	in->group = in->h->col[in->gene].group;
	if (in->h->col[in->count].type != U32 || in->h->col[in->count].group != in->group)
		die("%s: columns gene and count do not go together as a counts stream has them", name);
	if (!in->h->vocab.n)
		die("%s: no table of genes in the header", name);
}

static void counts_close(struct counts_in *in)
{
	stream_free(in->s);
	block_release(&in->block);
}

/* Genes of items [from, end) of the block: where they lie, or from u16 into wide. */
static const uint32_t *gene_ids(const struct counts_in *in, uint64_t from, uint64_t end, uint32_t **wide, size_t *cap)
{
	const struct column *c = in->block.col + in->gene;
	if (in->h->col[in->gene].type == U32)
		return (const uint32_t *)c->data + from;
	const uint16_t *narrow = (const uint16_t *)c->data + from;
	grow(*wide, *cap, end - from);
	for (size_t i = 0; i < end - from; i++)
		(*wide)[i] = narrow[i];
	return *wide;
}

/* The largest count of row r. */
static uint32_t row_most(const struct counts_in *in, size_t r)
{
	const struct block *b = &in->block;
	const uint64_t *start = b->group[in->group].offset;
	const uint32_t *count = b->col[in->count].data;
	uint32_t most = 0;
	for (uint64_t i = start[r]; i < start[r + 1]; i++)
		most = count[i] > most ? count[i] : most;
	return most;
}

/* Whether a count of row r is more than its n_counts. */
static int row_wrong(const struct counts_in *in, size_t r)
{
	return row_most(in, r) > ((const uint64_t *)in->block.col[in->total].data)[r];
}

static void die_wrong(const struct counts_in *in, size_t r)
{
	die("%s: row %" PRIu64 ": a count of %u, but n_counts is %" PRIu64, stream_name(in->s), in->row + r, row_most(in, r),
	    ((const uint64_t *)in->block.col[in->total].data)[r]);
}

/* Which token each gene of the input is. */
static void match(struct rank_table *table, const struct counts_in *in, const struct vocab *v)
{
	struct error e;
	struct idmap ids = {0};
	const struct vocab *genes = &in->h->vocab;
	uint32_t *token = xmalloc(genes->n * sizeof *token);
	size_t known = 0;
	if (map_path && idmap_load(&ids, map_path, &e))
		die("%s", e.msg);
	for (size_t i = 0; i < genes->n; i++) {
		const char *id = genes->id[i], *mapped = map_path ? idmap_find(&ids, id, strlen(id)) : NULL;
		size_t base;
		char *plain = ensembl_id(id, strlen(id), &base) ? strndup(id, base) : xstrdup(id);
		int64_t t = mapped ? vocab_find(v, mapped) : -1;
		if (t < 0)
			t = vocab_find(v, plain);
		free(plain);
		token[i] = t < (int64_t)v->nspecial ? RANK_UNKNOWN : (uint32_t)t;
		known += token[i] != RANK_UNKNOWN;
	}
	double percent = 100 * (double)known / (double)genes->n;
	info("%zu of %zu genes (%.1f %%) are in the vocabulary", known, genes->n, percent);
	if (percent < min_genes)
		die("%s: only %.1f %% of the genes are in %s, expected at least %g %% (--min-genes-matched); ids here are like '%s', there "
		    "like '%s'", stream_name(in->s), percent, tokens_path ? tokens_path : vocab_path, min_genes, genes->id[0],
		    v->id[v->n - 1]);
	rank_table_init(table, token, genes->n, v->median);
	free(token);
	idmap_release(&ids);
}

/* Of each thread. */
struct scratch {
	struct rank_cell cell;
	uint32_t *gene;                 /* of a row, as u32 */
	size_t gene_cap;
};

struct encoder {
	struct rank_table table;
	size_t max_len;
	int64_t cls, eos;               /* -1: none */
	int narrow;                     /* tokens are u16 */
	void *out;                      /* tokens of row r: out[start[r] + 2 r ...], u16 or u32 */
	float *value;
	size_t *length;
	size_t out_cap, value_cap, length_cap;
	struct scratch *scratch;        /* [threads] */
	const struct counts_in *in;
	atomic_ullong known, all;       /* counts */
	atomic_size_t wrong;            /* first row with a count above n_counts; rows of the block: none */
};

static inline void put(struct encoder *enc, size_t i, uint32_t token)
{
	if (enc->narrow)
		((uint16_t *)enc->out)[i] = (uint16_t)token;
	else
		((uint32_t *)enc->out)[i] = token;
}

static void encode_row(struct encoder *enc, size_t r, struct scratch *own)
{
	const struct block *b = &enc->in->block;
	struct rank_cell *c = &own->cell;
	const uint64_t *start = b->group[enc->in->group].offset;
	const uint32_t *gene = gene_ids(enc->in, start[r], start[r + 1], &own->gene, &own->gene_cap);
	const uint32_t *x = (uint32_t *)b->col[enc->in->count].data + start[r];
	size_t n = start[r + 1] - start[r], most = enc->max_len - (enc->cls >= 0) - (enc->eos >= 0);
	unsigned repeats = 0;
	uint64_t all = 0;
	for (size_t i = 1; i < n; i++)
		repeats |= gene[i] <= gene[i - 1];
	for (size_t i = 0; i < n; i++)
		all += x[i];
	atomic_fetch_add(&enc->all, all);
	atomic_fetch_add(&enc->known, all - rank_encode(c, &enc->table, gene, x, n, repeats != 0, with_value));
	enc->length[r] = 0;
	if (!c->n)
		return;
	size_t at = start[r] + 2 * r, k = at, keep = c->n < most ? c->n : most;
	if (enc->cls >= 0)
		put(enc, k++, (uint32_t)enc->cls);
	for (size_t i = 0; i < keep; i++)
		put(enc, k + i, c->token[i]);
	if (with_value) {
		double total = (double)((uint64_t *)b->col[enc->in->total].data)[r];
		float *v = enc->value;
		v[at] = 0;
		for (size_t i = 0; i < keep; i++)
			v[k + i] = (float)log1p((double)c->count[i] / total * 1e4);
		if (enc->eos >= 0)
			v[k + keep] = 0;
	}
	k += keep;
	if (enc->eos >= 0)
		put(enc, k++, (uint32_t)enc->eos);
	enc->length[r] = k - at;
}

#define GROUP 8                         /* rows a thread takes at a time */

static void encode_group(void *arg, size_t group, int thread)
{
	struct encoder *enc = arg;
	size_t rows = enc->in->block.rows, end = (group + 1) * GROUP < rows ? (group + 1) * GROUP : rows;
	for (size_t r = group * GROUP; r < end; r++) {
		if (row_wrong(enc->in, r)) {
			size_t first = atomic_load(&enc->wrong);
			while (r < first && !atomic_compare_exchange_weak(&enc->wrong, &first, r))
				;
			break;
		}
		encode_row(enc, r, enc->scratch + thread);
	}
}

/* Encode the rows of a block into enc->out. */
static void encode_rows(struct encoder *enc)
{
	const struct block *b = &enc->in->block;
	size_t room = block_items(b, enc->in->group) + 2 * b->rows;
	enc->out = grow_bytes(enc->out, &enc->out_cap, room, enc->narrow ? 2 : 4);
	grow(enc->length, enc->length_cap, b->rows);
	if (with_value)
		grow(enc->value, enc->value_cap, room);
	atomic_store(&enc->wrong, b->rows);
	pool_for((int)cli.threads, (b->rows + GROUP - 1) / GROUP, encode_group, enc);
	if (enc->wrong < b->rows)
		die_wrong(enc->in, enc->wrong);
}

/* Append rows row[0..n) of the input, with their tokens, to `to`. */
static void append_rows(struct block *to, const int *map, int token, int value, const struct encoder *enc, const struct counts_in *in,
			const uint32_t *row, size_t n)
{
	size_t first = to->rows, at = block_items(to, to->header->col[token].group), items = at, width = enc->narrow ? 2 : 4;
	int group = to->header->col[token].group;
	const uint64_t *start = in->block.group[in->group].offset;
	for (size_t i = 0; i < n; i++)
		items += enc->length[row[i]];
	block_take(to, map, &in->block, row, n);
	block_set_items(to, group, items);
	for (size_t i = 0; i < n; i++) {
		size_t len = enc->length[row[i]], from = start[row[i]] + 2 * row[i];
		memcpy((char *)to->col[token].data + at * width, (char *)enc->out + from * width, len * width);
		if (with_value)
			memcpy((float *)to->col[value].data + at, enc->value + from, len * sizeof(float));
		at += len;
		to->group[group].offset[first + i + 1] = at;
	}
}

static void load_vocab(struct vocab *v)
{
	struct error e;
	if (!vocab_path)
		usage_error("a vocabulary is needed: -m FILE (make one with rankenc --fit)");
	if (tokens_path ? vocab_load_geneformer(v, tokens_path, vocab_path, &e) : vocab_load(v, vocab_path, &e))
		die("%s", e.msg);
	for (size_t i = v->nspecial; i < v->n; i++)
		if (isnan(v->median[i]))
			die("%s: gene %s has no median", vocab_path, v->id[i]);
}

static void special_tokens(struct encoder *enc, const struct vocab *v)
{
	enc->cls = vocab_find(v, "<cls>");
	enc->eos = vocab_find(v, "<eos>");
	if (style < 0)
		style = enc->cls >= 0 && enc->eos >= 0;
	if (style == 1 && (enc->cls < 0 || enc->eos < 0))
		die("%s: no token %s, which --vocab-style v2 needs", tokens_path ? tokens_path : vocab_path, enc->cls < 0 ? "<cls>" : "<eos>");
	if (style == 0)
		enc->cls = enc->eos = -1;
	enc->max_len = max_len ? (size_t)max_len : style ? 4096 : 2048;
}

/* The header of the tokens stream: that of the input without its genes. */
static void make_header(struct header *h, const struct counts_in *in, const struct vocab *v, int *token, int *value)
{
	header_init(h, "tokens");
	for (size_t i = 0; i < in->h->ncol; i++) {
		const struct column_spec *s = in->h->col + i;
		if (s->shape != RAGGED) {
			if (!strcmp(s->name, "token") || !strcmp(s->name, "value"))
				die("%s: a column is called %s already", stream_name(in->s), s->name);
			header_add_like(h, s);
		} else if ((int)i != in->gene && (int)i != in->count) {
			warn("column %s does not follow the new order of genes and is dropped", s->name);
		}
	}
	*token = header_add_ragged(h, "token", id_type(v->n), "token");
	*value = with_value ? header_add_ragged(h, "value", F32, "token") : -1;
	vocab_copy(&h->vocab, v);
	cJSON_Delete(h->provenance);
	h->provenance = cJSON_Duplicate(in->h->provenance, 1);
	char *given = cli_provenance(&cli);
	header_provenance(h, "rankenc", given);
	free(given);
}

static int encode(void)
{
	struct error e;
	struct vocab v = {0};
	struct counts_in in;
	struct encoder enc = {.in = &in};
	struct header header;
	struct block out = {0};
	int token, value, got;
	uint64_t rows_in = 0, rows_out = 0, tokens = 0, cut = 0;
	if (cli.noperand > 1)
		usage_error("one stream at a time: scsample joins several");
	load_vocab(&v);
	special_tokens(&enc, &v);
	counts_open(&in, 0);
	match(&enc.table, &in, &v);
	enc.scratch = xcalloc((size_t)cli.threads, sizeof *enc.scratch);
	make_header(&header, &in, &v, &token, &value);
	struct stream *to = cli_create(&cli, &header);
	const struct header *h = stream_header(to);
	int *map = xmalloc(h->ncol * sizeof *map);
	header_map(h, in.h, map);
	enc.narrow = h->col[token].type == U16;
	uint32_t *row = NULL;
	size_t row_cap = 0;
	block_reset(&out, h);
	while ((got = stream_read(in.s, &in.block, &e)) > 0) {
		size_t n = 0;
		encode_rows(&enc);
		grow(row, row_cap, in.block.rows);
		for (size_t r = 0; r < in.block.rows; r++) {
			if (enc.length[r] || keep_empty)
				row[n++] = (uint32_t)r;
			tokens += enc.length[r];
			cut += enc.length[r] == enc.max_len;
		}
		append_rows(&out, map, token, value, &enc, &in, row, n);
		rows_out += n;
		rows_in += in.block.rows;
		in.row = rows_in;
		if (block_full(&out)) {
			if (stream_write(to, &out, &e))
				die("%s", e.msg);
			block_reset(&out, h);
		}
		progress("%" PRIu64 " cells", rows_in);
	}
	if (got < 0 || (out.rows && stream_write(to, &out, &e)))
		die("%s", e.msg);
	double percent = enc.all ? 100 * (double)enc.known / (double)enc.all : 100;
	info("%.1f %% of the counts are in these genes", percent);
	if (percent < min_counts)
		die("%s: only %.1f %% of the counts are in genes of %s, expected at least %g %% (--min-counts-matched)",
		    stream_name(in.s), percent, tokens_path ? tokens_path : vocab_path, min_counts);
	if (rows_in > rows_out)
		warn("%" PRIu64 " of %" PRIu64 " cells have no gene of the vocabulary and were dropped (--keep-empty keeps them)",
		     rows_in - rows_out, rows_in);
	if (stream_commit(to, &e))
		die("%s", e.msg);
	stream_free(to);
	cli_report(&cli, "%" PRIu64 " cells in, %" PRIu64 " out, %" PRIu64 " tokens, %" PRIu64 " cells of full length (%zu)", rows_in,
		   rows_out, tokens, cut, enc.max_len);
	for (long long i = 0; i < cli.threads; i++) {
		rank_cell_release(&enc.scratch[i].cell);
		free(enc.scratch[i].gene);
	}
	free(enc.scratch);
	free(enc.out);
	free(enc.value);
	free(enc.length);
	rank_table_release(&enc.table);
	free(map);
	free(row);
	block_release(&out);
	header_release(&header);
	counts_close(&in);
	vocab_release(&v);
	return 0;
}

static int by_id(const void *a, const void *b, void *vocab)
{
	const struct vocab *v = vocab;
	return strcmp(v->id[*(const uint32_t *)a], v->id[*(const uint32_t *)b]);
}

/* Write the genes that have a median, in the order of their ids, behind the special tokens of the style. */
static size_t write_vocab(const struct vocab *genes, const struct rank_fit *f)
{
	static const char *const special[] = {"<pad>", "<mask>", "<cls>", "<eos>"};
	struct error e;
	struct vocab v = {0};
	struct outfile file;
	uint32_t *by = xmalloc(genes->n * sizeof *by);
	for (size_t i = 0; i < genes->n; i++)
		by[i] = (uint32_t)i;
	qsort_r(by, genes->n, sizeof *by, by_id, (void *)genes);
	for (int i = 0; i < (style == 1 ? 4 : 2); i++)
		vocab_push(&v, special[i], "", NAN);
	for (size_t i = 0; i < genes->n; i++)
		if (f->gene[by[i]].n >= (uint64_t)min_cells)
			vocab_push(&v, genes->id[by[i]], genes->symbol[by[i]], f->gene[by[i]].median);
	size_t n = v.n - v.nspecial;
	if (!n)
		die("no gene was found in %lld or more cells, so there is no vocabulary", min_cells);
	if (outfile_open(&file, cli.output, 0, &e))
		die("%s", e.msg);
	int copy = dup(file.fd);
	FILE *to = copy < 0 ? NULL : fdopen(copy, "w");
	if (!to || vocab_save(&v, to) || fclose(to))
		die("%s: writing failed", cli.output ? cli.output : "standard output");
	if (outfile_commit(&file, &e))
		die("%s", e.msg);
	free(by);
	vocab_release(&v);
	return n;
}

static int learn(void)
{
	struct error e;
	struct vocab genes = {0};
	struct strmap row = {0};
	struct rank_fit f;
	int n = cli.noperand ? cli.noperand : 1, passes = 0;
	uint64_t cells = 0;
	uint32_t *wide = NULL;
	size_t wide_cap = 0;
	struct counts_in *in = xcalloc((size_t)n, sizeof *in);
	uint32_t **to = xcalloc((size_t)n, sizeof *to);
	if (vocab_path || tokens_path)
		usage_error("--fit makes a vocabulary: it does not take one (-m, -t)");
	for (int i = 0; i < n; i++) {
		counts_open(in + i, i);
		if (stream_index(in[i].s, &e))
			die("%s", e.msg);
		const struct vocab *v = &in[i].h->vocab;
		to[i] = xmalloc(v->n * sizeof *to[i]);
		for (size_t k = 0; k < v->n; k++) {
			to[i][k] = strmap_put(&row, v->id[k], strlen(v->id[k]), (uint32_t)genes.n);
			if (to[i][k] == genes.n)
				vocab_push(&genes, v->id[k], v->symbol[k], NAN);
		}
	}
	rank_fit_init(&f, genes.n);
	do {
		passes++;
		cells = 0;
		for (int i = 0; i < n; i++) {
			struct counts_in *c = in + i;
			c->row = 0;
			for (size_t k = 0; k < stream_blocks(c->s); k++) {
				if (stream_read_at(c->s, k, &c->block, &e))
					die("%s", e.msg);
				const struct block *b = &c->block;
				for (size_t r = 0; r < b->rows; r++)
					if (row_wrong(c, r))
						die_wrong(c, r);
				const uint32_t *gene = gene_ids(c, 0, block_items(b, c->group), &wide, &wide_cap);
				rank_fit_add(&f, b->rows, b->group[c->group].offset, gene, b->col[c->count].data,
					     b->col[c->total].data, to[i], (int)cli.threads);
				c->row += b->rows;
				cells += b->rows;
				progress("pass %d, %" PRIu64 " cells", passes, cells);
			}
		}
	} while (rank_fit_next(&f));
	size_t kept = write_vocab(&genes, &f);
	info("%zu genes of %" PRIu64 " cells", kept, cells);
	cli_report(&cli, "%" PRIu64 " cells, %zu genes, %zu in the vocabulary, %d passes", cells, genes.n, kept, passes);
	for (int i = 0; i < n; i++) {
		counts_close(in + i);
		free(to[i]);
	}
	free(in);
	free(to);
	free(wide);
	rank_fit_release(&f);
	strmap_release(&row);
	vocab_release(&genes);
	return 0;
}

int main(int argc, char **argv)
{
	cli_init(&cli, argc, argv);
	return fit ? learn() : encode();
}
