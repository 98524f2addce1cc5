#include "cli_rank.h"
#include "cli.h"

#include "cli_genes.h"
#include "genes/gene_name.h"

struct rank_given rank_given = {.encode = {.style = STYLE_AUTO}, .min_matched = -1};

struct option_def rank_options[] = {
	{0, "Encoding", OPT_GROUP},
	{'t', "tokens", OPT_INPUT, &rank_given.tokens, "FILE",
		"Geneformer's token table (TSV: token, id); the vocabulary is then its median table", .modes = RANKS},
	{0, "vocab-style", OPT_CHOICE, &rank_given.encode.style, OPT_ENUM([STYLE_V1] = "v1", [STYLE_V2] = "v2", [STYLE_BMFM] = "bmfm"),
		"v1: 2,048 tokens; v2: 4,096 with <cls> and <eos> (default: v2 if the vocabulary has them); bmfm: all genes with their "
		"counts, between [CLS] and [SEP]",
		.changes = 1, .modes = RANKS | FITS},
	{0, "cls", OPT_INT, &rank_given.encode.cls, "K", "bmfm: the first K of [CLS] [CLS_0] [CLS_1] ... before each cell (default 1)", 1,
		CLS_MAX, .changes = 1, .modes = RANKS},
	{0, "max-len", OPT_INT, &rank_given.encode.max_len, "N",
		"maximum number of tokens per cell, including special tokens (default: by --vocab-style)", 3, 1 << 24, .changes = 1,
		.modes = RANKS},
	{0, "ties", OPT_CHOICE, &rank_given.encode.ties,
		OPT_ENUM([TIES_MEDIAN] = "median", [TIES_RANDOM] = "random", [TIES_GROUP] = "group"),
		"genes with equal counts: in the order of their medians (default), in an order that maskgen redraws every epoch, or at one position of the model",
		.changes = 1, .modes = RANKS},
	{0, "value", OPT_FLAG, &rank_given.encode.value, NULL, "add a column value: log(1 + count / n_counts * 10,000)", .changes = 1,
		.modes = RANKS},
	{0, "min-matched", OPT_REAL, &rank_given.min_matched, "PERCENT",
		"fail if a smaller share of the expressed genes, or of the counts, is in the vocabulary (default 20 and 50)", 0, 100,
		.modes = RANKS},
	{0},
};

struct ranking {
	const struct cli *cli;
	struct vocab v;
	struct encoder enc;
	struct stream *to;
	uint64_t expected; /* cells of the input */
	struct block out;
	const char *vocab; /* the file that messages name */
	char *like; /* a gene id of the input, for messages */
	size_t known, genes; /* genes of the input in the vocabulary; all */
};

struct ranking *ranking_new(const struct cli *c, const char *vocab)
{
	struct ranking *r = xcalloc(1, sizeof *r);
	struct vocab *v = &r->v;
	r->cli = c;
	r->vocab = rank_given.tokens ? rank_given.tokens : vocab;
	must(rank_given.tokens ? vocab_load_geneformer(v, rank_given.tokens, vocab, &failure) : vocab_load(v, vocab, &failure));
	rank_given.encode.threads = (int)c->threads;
	must(encoder_init(&r->enc, &rank_given.encode, v, r->vocab, &failure));
	const int bmfm = styles[r->enc.o.style].counted;
	if (rank_given.encode.cls && !bmfm)
		usage_error("--cls is for --vocab-style bmfm");
	for (size_t i = v->nspecial; i < v->n && !bmfm; i++)
		if (isnan(v->median[i]))
			die("%s: gene %s has no median", vocab, v->id[i]);
	return r;
}

enum { GENES = 20, COUNTS = 50 }; /* percent */

static double min_matched(int usual)
{
	return rank_given.min_matched < 0 ? usual : rank_given.min_matched;
}

static _Noreturn void unmatched(const struct ranking *r, const char *how_many, double lost)
{
	const char *there = r->v.id[(r->v.nspecial + r->v.n) / 2];
	size_t listed = r->v.n - r->v.nspecial;
	if (2 * r->known >= listed)
		die("%s: %s in %s, expected at least %g %% (--min-matched), and %.1f %% of the counts are lost; the ids agree: %zu of its "
		    "%zu genes are here; if it has few genes on purpose: --min-matched 0",
			r->enc.name, how_many, r->vocab, min_matched(GENES), lost, r->known, listed);
	die("%s: %s in %s, expected at least %g %% (--min-matched), and %.1f %% of the counts are lost; ids here are like '%s', there "
	    "like '%s'; %s",
		r->enc.name, how_many, r->vocab, min_matched(GENES), lost, r->like, there,
		gene_other_species(r->like, there)
			? "these are two species: --map FILE translates ids with a table of orthologs, one pair per line"
			: "--map FILE translates ids");
}

static double percent_of_counts(const struct encoder *enc)
{
	return enc->all ? 100 * (double)enc->known / (double)enc->all : 100;
}

/* Genes without a token are no fault if no cell has them, which only the last cell can tell. */
static void check_matched(struct ranking *r)
{
	encoder_count(&r->enc);
	double percent = r->enc.expressed ? 100 * (double)r->enc.matched / (double)r->enc.expressed : 100;
	if (percent < min_matched(GENES))
		unmatched(r, xasprintf("only %.1f %% of the expressed genes are", percent), 100 - percent_of_counts(&r->enc));
}

static void match(struct ranking *r, const struct vocab *genes, const char *map)
{
	struct idmap ids = {0};
	if (map)
		must(idmap_load(&ids, map, &failure));
	struct gene_tables t = {genes, &r->v, r->enc.name, r->vocab, map ? &ids : NULL, 0};
	struct gene_matched m;
	must(encoder_match(&r->enc, &t, &m, &failure));
	idmap_release(&ids);
	r->known = m.n;
	r->genes = genes->n;
	r->like = xstrdup(genes->id[genes->n / 2]);
	cli_measured("genes_by_alias", (double)m.by_alias);
	if (r->v.alias)
		info("%zu genes have old ids, symbols or synonyms: aliases in %s", m.by_alias, r->vocab);
	if (m.by_symbol || m.ambiguous)
		info("%zu %s matched by symbol, as %s ids are not Ensembl ids; %zu left out, as several genes of %s have %s symbol",
			m.by_symbol, m.by_symbol == 1 ? "gene is" : "genes are", m.by_symbol == 1 ? "its" : "their", m.ambiguous, r->vocab,
			m.ambiguous == 1 ? "its" : "their");
	if (!r->known && min_matched(GENES) > 0)
		unmatched(r, "none of the genes is", 100);
	check_shared(r->enc.name, r->vocab, &m, 1);
}

void ranking_start(struct ranking *r, const struct header *counts, const char *name, const char *map, uint64_t cells)
{
	struct header h;
	must(encoder_header(&r->enc, &h, counts, name, &r->v, &failure));
	match(r, &counts->vocab, map);
	for (int i = 0; i < (int)counts->ncol; i++)
		if (counts->col[i].shape == RAGGED && i != r->enc.in.gene && i != r->enc.in.count)
			warn("column %s does not follow the new order of genes and is dropped", counts->col[i].name);
	encoder_describe(&r->enc, &h);
	FREED char *how = opt_provenance((struct option_def *const[]){rank_options, NULL});
	header_provenance(&h, "rankenc", how);
	r->expected = cells;
	r->to = cli_create(r->cli, &h, cells);
	header_release(&h);
	block_reset(&r->out, stream_header(r->to));
}

/* Finish the block that is being encoded. */
static void finish_block(struct ranking *r)
{
	if (r->enc.block)
		must(encoder_finish(&r->enc, &r->out, &failure));
	if (!r->enc.enough) { /* enough even if all genes turn out to be expressed */
		encoder_count(&r->enc);
		r->enc.enough = 100 * (double)r->enc.matched / (double)r->genes >= min_matched(GENES);
	}
	if (block_full(&r->out))
		must_flush(r->to, &r->out);
	progress_cells(r->enc.cells, r->expected);
}

void ranking_add(struct ranking *r, const struct block *counts)
{
	finish_block(r);
	encoder_start(&r->enc, counts);
}

char *ranking_commit(struct ranking *r)
{
	const struct encoder *enc = &r->enc;
	finish_block(r);
	must_flush(r->to, &r->out);
	check_matched(r);
	double percent = percent_of_counts(enc);
	FREED char *share = enc->all ? xasprintf(", with %.1f %% of the counts,", percent) : xstrdup("");
	info("%zu of %zu genes%s are in the vocabulary", r->known, r->genes, share);
	if (!enc->all)
		warn("%s: %s", enc->name, enc->cells ? "all counts are 0" : "no cells");
	if (percent < min_matched(COUNTS))
		die("%s: only %.1f %% of the counts are in genes of %s, expected at least %g %% (--min-matched)%s", enc->name, percent,
			r->vocab, min_matched(COUNTS),
			2 * r->known >= r->v.n - r->v.nspecial ? "; if it has few genes on purpose: --min-matched 0" : "");
	if (enc->cells > enc->kept)
		warn("%" PRIu64 " of %" PRIu64 " cells have no gene of the vocabulary and were dropped", enc->cells - enc->kept,
			enc->cells);
	cli_measured_all({"cells_in", (double)enc->cells}, {"cells_out", (double)enc->kept},
		{"dropped:no_gene", (double)(enc->cells - enc->kept)}, {"tokens", (double)enc->tokens},
		{"cells_of_full_length", (double)enc->full});
	cli_cut(enc->cut, enc->cells, enc->lost, enc->tokens, enc->max_len);
	cli_measured("percent_of_counts", (double)percent);
	/* memory can run out here, and not after the output is in place */
	FREED char *full =
		enc->max_len == SIZE_MAX ? xstrdup("") : xasprintf(", %" PRIu64 " cells of full length (%zu)", enc->full, enc->max_len);
	char *summary = xasprintf("%" PRIu64 " cells in, %" PRIu64 " out, %" PRIu64 " tokens%s", enc->cells, enc->kept, enc->tokens, full);
	must_commit(r->to);
	return summary;
}
