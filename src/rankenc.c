/* rankenc: a counts stream to a tokens stream (rank value encoding), or to a vocabulary (--fit). */
#include "rankenc.h"

#include "base/idmap.h"
#include "base/threads.h"
#include "method/rank.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const char *vocab_path, *tokens_path, *map_path;
static int fit, style = -1, with_value, keep_empty;
static long long max_len, min_cells = 1;
static double min_genes = 20, min_counts = 50;

static struct option_def options[] = {
	{.kind = OPT_GROUP, .name = "Vocabulary"},
	{.letter = 'm',
		.name = "medians",
		.kind = OPT_STRING,
		.to = &vocab_path,
		.arg = "FILE",
		.help = "vocabulary with medians (TSV: token, gene_id, symbol, median; gzip accepted)"},
	{.letter = 't',
		.name = "tokens",
		.kind = OPT_STRING,
		.to = &tokens_path,
		.arg = "FILE",
		.help = "Geneformer's token table (TSV: token, id); -m is then its median table"},
	{.name = "map",
		.kind = OPT_STRING,
		.to = &map_path,
		.arg = "FILE",
		.help = "first translate gene ids by this table of key and id (TSV, gzip accepted)"},
	{.kind = OPT_GROUP, .name = "Encoding"},
	{.name = "vocab-style",
		.kind = OPT_CHOICE,
		.to = &style,
		.arg = "v1|v2",
		.changes = 1,
		.help = "v1: 2,048 tokens; v2: 4,096 with <cls> and <eos> (default: v2 if the vocabulary has them)"},
	{.name = "max-len",
		.kind = OPT_INT,
		.to = &max_len,
		.arg = "N",
		.min = 3,
		.max = 1 << 24,
		.changes = 1,
		.help = "largest number of tokens of a cell, including special tokens (default: by --vocab-style)"},
	{.name = "value",
		.kind = OPT_FLAG,
		.to = &with_value,
		.changes = 1,
		.help = "add a column value: log(1 + count / n_counts * 10,000)"},
	{.name = "keep-empty",
		.kind = OPT_FLAG,
		.to = &keep_empty,
		.changes = 1,
		.help = "keep cells without a known gene (default: drop them, with a warning)"},
	{.kind = OPT_GROUP, .name = "Checks"},
	{.name = "min-genes-matched",
		.kind = OPT_REAL,
		.to = &min_genes,
		.arg = "PERCENT",
		.max = 100,
		.help = "fail if a smaller share of the input's genes is in the vocabulary (default 20)"},
	{.name = "min-counts-matched",
		.kind = OPT_REAL,
		.to = &min_counts,
		.arg = "PERCENT",
		.max = 100,
		.help = "fail if a smaller share of the counts belongs to such genes (default 50)"},
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
	.common = CLI_STREAM_OUT | CLI_THREADS,
};

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
		char *plain = ensembl_id(id, strlen(id), &base) ? xstrndup(id, base) : xstrdup(id);
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
		    "like '%s'; --map FILE translates ids",
			stream_name(in->s), percent, tokens_path ? tokens_path : vocab_path, min_genes, genes->id[genes->n / 2],
			v->id[(v->nspecial + v->n) / 2]);
	rank_table_init(table, token, genes->n, v->median);
	free(token);
	idmap_release(&ids);
}

/* Scratch of each thread. */
struct scratch {
	struct rank_cell cell;
	uint32_t *gene; /* of a row, as u32 */
	size_t gene_cap;
};

struct encoder {
	struct rank_table table;
	size_t max_len;
	int64_t cls, eos; /* -1: none */
	int narrow;       /* tokens are u16 */
	void *out;        /* tokens of row r: out[start[r] + 2 r ...], u16 or u32 */
	float *value;
	size_t *length;
	size_t out_cap, value_cap, length_cap;
	struct scratch *scratch; /* [threads] */
	const struct counts_in *in;
	atomic_ullong known, all; /* counts */
	atomic_size_t wrong;      /* first row with a count above n_counts; rows of the block: none */
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
	const uint32_t *gene = counts_genes(enc->in, start[r], start[r + 1], &own->gene, &own->gene_cap);
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

#define GROUP 8 /* rows per call of the thread pool */

static void encode_group(void *arg, size_t group, int thread)
{
	struct encoder *enc = arg;
	size_t rows = enc->in->block.rows, end = (group + 1) * GROUP < rows ? (group + 1) * GROUP : rows;
	for (size_t r = group * GROUP; r < end; r++) {
		if (counts_wrong(enc->in, r)) {
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
		counts_die(enc->in, enc->wrong);
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
		die("%s: no token %s, which --vocab-style v2 needs", tokens_path ? tokens_path : vocab_path,
			enc->cls < 0 ? "<cls>" : "<eos>");
	if (style == 0)
		enc->cls = enc->eos = -1;
	enc->max_len = max_len ? (size_t)max_len : style ? 4096 : 2048;
}

/* The header of the tokens stream: the input's header without its genes. */
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

/* One run that encodes: input, output and counts. */
struct encoding {
	struct counts_in in;
	struct encoder enc;
	struct stream *to;
	struct block out;
	int *map, token, value; /* map: columns of the input for those of the output; token, value: the new columns */
	uint32_t *row;          /* rows of the block to write */
	size_t row_cap;
	uint64_t rows_in, rows_out, tokens, cut;
};

static void open_output(struct encoding *r, const struct vocab *v)
{
	struct header header;
	make_header(&header, &r->in, v, &r->token, &r->value);
	r->to = cli_create(&cli, &header);
	header_release(&header);
	const struct header *h = stream_header(r->to);
	r->map = xmalloc(h->ncol * sizeof *r->map);
	header_map(h, r->in.h, r->map);
	r->enc.narrow = h->col[r->token].type == U16;
	block_reset(&r->out, h);
}

static void flush_output(struct encoding *r)
{
	struct error e;
	if (r->out.rows && stream_write(r->to, &r->out, &e))
		die("%s", e.msg);
	block_reset(&r->out, stream_header(r->to));
}

/* Encode the block of the input and append its cells to the output. */
static void encode_block(struct encoding *r)
{
	const struct encoder *enc = &r->enc;
	size_t rows = r->in.block.rows, n = 0;
	encode_rows(&r->enc);
	grow(r->row, r->row_cap, rows);
	for (size_t i = 0; i < rows; i++) {
		if (enc->length[i] || keep_empty)
			r->row[n++] = (uint32_t)i;
		r->tokens += enc->length[i];
		r->cut += enc->length[i] == enc->max_len;
	}
	append_rows(&r->out, r->map, r->token, r->value, enc, &r->in, r->row, n);
	r->rows_out += n;
	r->rows_in += rows;
	r->in.row = r->rows_in;
	if (block_full(&r->out))
		flush_output(r);
	progress("%" PRIu64 " cells", r->rows_in);
}

/* Print how much of the input the vocabulary covers; too little is an error. */
static void check_matches(const struct encoding *r)
{
	double percent = r->enc.all ? 100 * (double)r->enc.known / (double)r->enc.all : 100;
	info("%.1f %% of the counts are in these genes", percent);
	if (percent < min_counts)
		die("%s: only %.1f %% of the counts are in genes of %s, expected at least %g %% (--min-counts-matched)",
			stream_name(r->in.s), percent, tokens_path ? tokens_path : vocab_path, min_counts);
	if (r->rows_in > r->rows_out)
		warn("%" PRIu64 " of %" PRIu64 " cells have no gene of the vocabulary and were dropped (--keep-empty keeps them)",
			r->rows_in - r->rows_out, r->rows_in);
}

static void encoding_release(struct encoding *r)
{
	for (long long i = 0; i < cli.threads; i++) {
		rank_cell_release(&r->enc.scratch[i].cell);
		free(r->enc.scratch[i].gene);
	}
	free(r->enc.scratch);
	free(r->enc.out);
	free(r->enc.value);
	free(r->enc.length);
	rank_table_release(&r->enc.table);
	stream_free(r->to);
	free(r->map);
	free(r->row);
	block_release(&r->out);
	counts_close(&r->in);
}

static int encode(void)
{
	struct error e;
	struct vocab v = {0};
	struct encoding r = {.enc = {.in = &r.in}};
	int got;
	if (cli.noperand > 1)
		usage_error("one stream at a time: scsample joins several");
	load_vocab(&v);
	special_tokens(&r.enc, &v);
	counts_open(&r.in, cli_open(&cli, 0));
	match(&r.enc.table, &r.in, &v);
	r.enc.scratch = xcalloc((size_t)cli.threads, sizeof *r.enc.scratch);
	open_output(&r, &v);
	while ((got = stream_read(r.in.s, &r.in.block, &e)) > 0)
		encode_block(&r);
	if (got < 0)
		die("%s", e.msg);
	flush_output(&r);
	check_matches(&r);
	if (stream_commit(r.to, &e))
		die("%s", e.msg);
	cli_report(&cli, "%" PRIu64 " cells in, %" PRIu64 " out, %" PRIu64 " tokens, %" PRIu64 " cells of full length (%zu)", r.rows_in,
		r.rows_out, r.tokens, r.cut, r.enc.max_len);
	encoding_release(&r);
	vocab_release(&v);
	return 0;
}

int main(int argc, char **argv)
{
	cli_init(&cli, argc, argv);
	if (!fit)
		return encode();
	if (vocab_path || tokens_path)
		usage_error("--fit makes a vocabulary: it does not take one (-m, -t)");
	return fit_main(&(struct fit_options){&cli, style == 1, min_cells});
}
