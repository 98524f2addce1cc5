/*
 * screduce expression, screduce pca: embeddings without a model, as baselines. Counts are log-normalised, log(1 + 10^4 count / n_counts), and
 * the most variable genes are kept; pca takes their principal components. All is learned from the cells of --train, or else of the input.
 * Tokens with values (rankenc --value) have these numbers already, of the genes that a network reads.
 */
#include "screduce.h"
#include "cli.h"
#include "cli_genes.h"

#include "base/digest.h"
#include "base/option.h"
#include "base/sort.h"
#include "eval/pca.h"

#include <cblas.h>

#define CHUNK 512 /* cells of a matrix product */
#define GENES_MAX 16384 /* for pca: the covariance has 8 bytes for a pair of genes */

static const char *fit_path, *shared_path;
static long long components = 50, wanted = 2000;

static struct option_def pca_options[] = {
	{'k', "components", OPT_INT, &components, "K", "number of principal components (default 50)", 1, 16384, .changes = 1},
	{0},
};
static struct option_def shared[] = {
	{0, "hvg", OPT_INT, &wanted, "N", "number of most variable genes, 0: all (default 2000)", 0, 1e6, .changes = 1},
	{0, "train", OPT_INPUT, &fit_path, "FILE", "learn genes and components from these cells (default: the input)"},
	{0, "shared-with", OPT_INPUT, &shared_path, "FILE", "choose only genes that FILE has too"},
	{0},
};

struct cli expression_cli = {.name = "screduce expression",
	.operands = "[FILE...]",
	.summary = "Log-normalised expression of the most variable genes.",
	.shared = shared,
	.common = CLI_STREAM_OUT | CLI_THREADS};
struct cli pca_cli = {.name = "screduce pca",
	.operands = "[FILE...]",
	.summary = "Principal components of log-normalised expression.",
	.options = pca_options,
	.shared = shared,
	.common = CLI_STREAM_OUT | CLI_THREADS};

/* A stream of counts, or of tokens with values. */
struct source {
	struct stream *s;
	const struct header *h;
	const char *name;
	int gene, count, total, group; /* total -1: count is the column value */
	struct block b;
	uint64_t rows; /* to the end of this block */
};

struct baseline {
	size_t genes; /* kept */
	uint32_t *kept; /* [genes] rows of the vocabulary of the fitted stream, increasing */
	double *mean; /* [genes] */
	uint32_t *column; /* [vocabulary of the source] index into kept, or UINT32_MAX */
	struct pca pca;
	double *offset; /* [pca.k] components of the mean */
	size_t cells; /* fitted */
};

static void source_open(struct source *in, struct stream *s)
{
	*in = (struct source){.s = s, .h = stream_header(s), .name = stream_name(s)};
	const struct header *h = in->h;
	int tokens = h->kind == STREAM_TOKENS;
	enum column_type type = tokens ? F32 : U32;
	const char *gene = tokens ? "token" : "gene", *count = tokens ? "value" : "count";
	if (tokens && header_find(h, count) < 0)
		die("%s: tokens without values: expected counts, or tokens of rankenc --value", in->name);
	if (!tokens)
		must_kind(s, STREAM_COUNTS);
	in->gene = must_column(s, gene, U32, RAGGED);
	in->count = must_column(s, count, type, RAGGED);
	in->total = tokens ? -1 : must_column(s, "n_counts", U64, SCALAR);
	in->group = h->col[in->gene].group;
	if (h->col[in->count].type != type || h->col[in->count].group != in->group || !h->vocab.n)
		die("%s: columns %s and %s do not have the layout of a %s stream", in->name, gene, count, kind_name(h->kind));
}

/* 1; 0: the end, and the next call begins again if the stream was indexed. */
static int reduce_next_block(struct source *in)
{
	int got = must_read(in->s, &in->b);
	in->rows = got ? in->rows + in->b.rows : 0;
	return got;
}

/* Log-normalised expression of item i, which belongs to row r of the block. */
static double expression_at(const struct source *in, size_t r, uint64_t i)
{
	if (in->total < 0)
		return (double)((const float *)in->b.col[in->count].data)[i];
	uint64_t total = ((const uint64_t *)in->b.col[in->total].data)[r];
	uint32_t count = ((const uint32_t *)in->b.col[in->count].data)[i];
	if (count > total)
		die("%s: row %" PRIu64 ": a count of %" PRIu32 ", but n_counts is %" PRIu64, in->name, in->rows - in->b.rows + r, count,
			total);
	return log1p(1e4 * (double)count / (double)total);
}

/* ---- fit ---- */

/* there [vocabulary of `in`] out: is the gene in the table of genes of --shared-with too? All are without it. */
static void find_shared(uint8_t *there, const struct source *in)
{
	size_t V = in->h->vocab.n;
	memset(there, shared_path == NULL, V);
	if (!shared_path)
		return;
	RELEASED(stream_free_at) struct stream *s = must_open(shared_path);
	const struct vocab *other = &stream_header(s)->vocab;
	FREED uint32_t *row = xmalloc((other->n + 1) * sizeof *row);
	struct gene_tables t = {.from = other, .to = &in->h->vocab, .from_name = shared_path, .to_name = in->name, .once = 1};
	struct gene_matched matched;
	must(gene_match(row, &t, &matched, &failure));
	if (gene_share(matched.shared, matched.from, matched.to) == GENES_OTHER)
		check_shared(shared_path, in->name, &matched, 0);
	for (size_t i = 0; i < other->n; i++)
		if (row[i] != GENE_NONE)
			there[row[i]] = 1;
}

/* Keep the genes whose log-normalised expression has the largest variance. alike: cells that do not differ are right, too; then one gene is kept.
 * Returns whether genes vary. */
static int choose_reduced_genes(struct baseline *m, struct source *in, int alike)
{
	size_t V = in->h->vocab.n, n = 0;
	double *sum = xcalloc(2 * V, sizeof *sum), *square = sum + V;
	while (reduce_next_block(in)) {
		const uint64_t *offset = in->b.group[in->group].offset;
		for (size_t r = 0; r < in->b.rows; r++)
			for (uint64_t i = offset[r]; i < offset[r + 1]; i++) {
				double v = expression_at(in, r, i);
				sum[block_id(&in->b, in->gene, i)] += v;
				square[block_id(&in->b, in->gene, i)] += v * v;
			}
		n += in->b.rows;
		progress_cells(n, stream_expected(in->s));
	}
	if (n < (alike ? 1 : 2))
		die("%s: %s: expected at least %s to learn from", in->name, n ? "one cell" : "no cells", alike ? "one" : "two");
	struct ranked *all = xmalloc(V * sizeof *all);
	uint8_t *there = xmalloc(V + 1);
	size_t varying = 0;
	find_shared(there, in);
	for (size_t g = 0; g < V; g++) {
		double mean = sum[g] / (double)n, variance = square[g] / (double)n - mean * mean;
		if (there[g] && variance > 1e-12 * mean * mean)
			all[varying++] = (struct ranked){variance, (uint32_t)g};
	}
	int vary = varying > 0;
	for (size_t g = in->h->vocab.nspecial; g < V && !varying && alike; g++)
		if (there[g])
			all[varying++] = (struct ranked){0, (uint32_t)g};
	if (!varying)
		die("%s: no gene varies among the %zu cells", in->name, n);
	if (!vary)
		warn("%s: no gene varies among the %zu cells: all have one place", in->name, n);
	qsort(all, varying, sizeof *all, compare_ranked_down);
	m->cells = n;
	m->genes = wanted && (size_t)wanted < varying ? (size_t)wanted : varying;
	m->kept = xmalloc(m->genes * sizeof *m->kept);
	m->mean = xmalloc(m->genes * sizeof *m->mean);
	for (size_t i = 0; i < m->genes; i++)
		m->kept[i] = all[i].at;
	qsort(m->kept, m->genes, sizeof *m->kept, compare_u32);
	for (size_t i = 0; i < m->genes; i++)
		m->mean[i] = sum[m->kept[i]] / (double)n;
	free_all(sum, all, there);
	return vary;
}

/* Find the kept genes in the vocabulary of a stream. */
static void find_genes(struct baseline *m, const struct vocab *fitted, const struct source *in)
{
	size_t V = in->h->vocab.n, lost = m->genes;
	uint32_t *kept = xmalloc(fitted->n * sizeof *kept), *row = m->column = xrealloc(m->column, V, sizeof *row);
	struct gene_tables t = {.from = &in->h->vocab, .to = fitted, .from_name = in->name, .to_name = fit_path, .once = 1};
	struct gene_matched matched;
	if (t.from != t.to) {
		must(gene_match(row, &t, &matched, &failure));
		say_matched(in->name, fit_path, &matched);
	}
	for (size_t g = 0; g < V && t.from == t.to; g++)
		row[g] = g < t.to->nspecial ? GENE_NONE : (uint32_t)g;
	memset(kept, 0xff, fitted->n * sizeof *kept);
	for (size_t i = 0; i < m->genes; i++)
		kept[m->kept[i]] = (uint32_t)i;
	for (size_t g = 0; g < V; g++) {
		row[g] = row[g] == GENE_NONE ? UINT32_MAX : kept[row[g]];
		lost -= row[g] != UINT32_MAX;
	}
	free(kept);
	if (lost == m->genes)
		die("%s: none of the %zu genes of --train is in its table of genes", in->name, m->genes);
	if (lost)
		warn("%s: %zu of the %zu genes of --train are not in its table of genes: they count as 0", in->name, lost, m->genes);
}

/* Write row r of the block into x [genes]. */
static void dense_row(const struct baseline *m, const struct source *in, size_t r, double *x)
{
	const uint64_t *offset = in->b.group[in->group].offset;
	memset(x, 0, m->genes * sizeof *x);
	for (uint64_t i = offset[r]; i < offset[r + 1]; i++) {
		uint32_t c = m->column[block_id(&in->b, in->gene, i)];
		if (c != UINT32_MAX)
			x[c] = expression_at(in, r, i);
	}
}

static void fit_components(struct baseline *m, struct source *in, size_t k, int threads)
{
	FREED double *x = xmalloc(CHUNK * m->genes * sizeof *x);
	size_t n = 0;
	pca_init(&m->pca, m->genes);
	while (reduce_next_block(in))
		for (size_t r = 0; r < in->b.rows; r++) {
			double *row = x + n * m->genes;
			dense_row(m, in, r, row);
			for (size_t c = 0; c < m->genes; c++)
				row[c] -= m->mean[c];
			if (++n == CHUNK) {
				pca_add(&m->pca, x, n, threads);
				progress_cells(m->pca.n, stream_expected(in->s));
				n = 0;
			}
		}
	pca_add(&m->pca, x, n, threads);
	if (pca_solve(&m->pca, k, &failure))
		die("%s: %s", in->name, failure.msg);
	m->offset = xcalloc(k, sizeof *m->offset);
	cblas_dgemv(CblasRowMajor, CblasTrans, (int)m->genes, (int)k, 1, m->pca.w, (int)k, m->mean, 1, 0, m->offset, 1);
}

/* k: components, 0: none */
static void reduce_fit(struct baseline *m, struct source *in, size_t k, int threads)
{
	must(stream_index(in->s, &failure));
	int vary = choose_reduced_genes(m, in, k && !fit_path);
	find_genes(m, &in->h->vocab, in);
	size_t limit = m->cells < m->genes ? m->cells : m->genes;
	if (k > limit && vary)
		warn("--components %zu: %zu cells and %zu genes that vary have only %zu", k, m->cells, m->genes, limit);
	if (k && m->genes > GENES_MAX)
		die("--hvg: %zu genes: expected at most %d", m->genes, GENES_MAX);
	if (m->genes > FIXED_MAX)
		die("--hvg: %zu genes: expected at most %u", m->genes, FIXED_MAX);
	if (k)
		fit_components(m, in, k < limit ? k : limit, threads);
}

/* ---- embed ---- */

/* What was learned, so that embeddings of two runs can be compared: the genes, and their means and components. */
static void fit_digest(const struct baseline *m, const struct vocab *fitted, char hex[DIGEST_SIZE])
{
	XXH3_state_t *s = xchecked(XXH3_createState());
	XXH3_128bits_reset(s);
	for (size_t i = 0; i < m->genes; i++)
		XXH3_128bits_update(s, fitted->id[m->kept[i]], strlen(fitted->id[m->kept[i]]) + 1);
	if (m->pca.k) { /* without components, an embedding has the expression of the genes, and no means */
		XXH3_128bits_update(s, m->mean, m->genes * sizeof *m->mean);
		XXH3_128bits_update(s, m->pca.w, m->genes * m->pca.k * sizeof *m->pca.w);
	}
	digest_hex(XXH3_128bits_digest(s), hex);
	XXH3_freeState(s);
}

static void reduce_make_header(
	struct header *to, const struct source *in, const struct baseline *m, const struct vocab *fitted, const struct cli *cli)
{
	char hex[DIGEST_SIZE];
	fit_digest(m, fitted, hex);
	header_derive(to, STREAM_EMBEDDING, in->h);
	if (header_find(to, "x") >= 0)
		die("%s: has a column 'x', which is what the embedding will be called", in->name);
	header_add_fixed(to, "x", F32, (uint32_t)(m->pca.k ? m->pca.k : m->genes));
	FREED char *fit = xasprintf("--train %zu cells, %zu genes, xxh3:%s", m->cells, m->genes, hex);
	cli_provenance(cli, to, fit);
}

/* The vectors of rows [from, to) of the block. x [genes + components] scratch */
static void embed_rows(const struct baseline *m, const struct source *in, size_t from, size_t to, float *out, double *x)
{
	size_t k = m->pca.k;
	double *z = x + m->genes;
	for (size_t r = from; r < to; r++) {
		dense_row(m, in, r, x);
		for (size_t c = 0; !k && c < m->genes; c++)
			*out++ = (float)x[c];
		if (!k)
			continue;
		for (size_t c = 0; c < k; c++)
			z[c] = -m->offset[c];
		for (size_t g = 0; g < m->genes; g++)
			if (x[g] != 0)
				cblas_daxpy((int)k, x[g], m->pca.w + g * k, 1, z, 1);
		for (size_t c = 0; c < k; c++)
			*out++ = (float)z[c];
	}
}

/* Write the embeddings of all cells; returns their number. */
static uint64_t embed(const struct baseline *m, struct source *in, const struct vocab *fitted, const struct cli *cli)
{
	RELEASED(header_release) struct header h = {0};
	RELEASED(block_release) struct block out = {0};
	uint64_t cells = 0;
	reduce_make_header(&h, in, m, fitted, cli);
	struct stream *to = cli_create(cli, &h, stream_expected(in->s));
	int *map = xcalloc(h.ncol, sizeof *map), x = header_find(&h, "x");
	FREED double *scratch = xmalloc((m->genes + m->pca.k) * sizeof *scratch);
	size_t most = BLOCK_BYTES / (sizeof(float) * h.col[x].n) + 1;
	FREED uint32_t *row = xmalloc(most * sizeof *row);
	header_map(&h, in->h, map);
	block_reset(&out, stream_header(to));
	while (reduce_next_block(in)) {
		for (size_t from = 0, n; from < in->b.rows; from += n) {
			n = in->b.rows - from < most ? in->b.rows - from : most;
			for (size_t i = 0; i < n; i++)
				row[i] = (uint32_t)(from + i);
			block_take(&out, map, &in->b, row, n);
			embed_rows(m, in, from, from + n, out.col[x].data, scratch);
			must_flush(to, &out);
		}
		cells += in->b.rows;
		progress_cells(cells, stream_expected(in->s));
	}
	must_commit(to);
	free(map);
	return cells;
}

static int run(const struct cli *cli, size_t k)
{
	static struct baseline m;
	static struct source in, from;
	cli_blas(cli);
	source_open(&in, cli_open_all(cli));
	if (fit_path) {
		source_open(&from, must_open(fit_path));
		reduce_fit(&m, &from, k, (int)cli->threads);
		find_genes(&m, &from.h->vocab, &in);
	} else {
		reduce_fit(&m, &in, k, (int)cli->threads);
	}
	uint64_t cells = embed(&m, &in, fit_path ? &from.h->vocab : &in.h->vocab, cli);
	double share = 0;
	for (size_t c = 0; c < m.pca.k; c++)
		share += m.pca.total > 0 ? m.pca.variance[c] / m.pca.total : 0;
	cli_measured_all({"cells", (double)cells}, {"genes", (double)m.genes}, {"fit_cells", (double)m.cells});
	if (m.pca.k) {
		cli_measured_all({"components", (double)m.pca.k}, {"variance_percent", 100 * share});
	}
	if (m.pca.k)
		cli_report(cli, "%" PRIu64 " cells, %zu genes of %zu cells, %zu components with %.1f %% of the variance", cells, m.genes,
			m.cells, m.pca.k, 100 * share);
	else
		cli_report(cli, "%" PRIu64 " cells, %zu genes of %zu cells", cells, m.genes, m.cells);
	return 0;
}

int screduce_expression(int argc, char **argv)
{
	cli_init(&expression_cli, argc, argv);
	return run(&expression_cli, 0);
}

int screduce_pca(int argc, char **argv)
{
	cli_init(&pca_cli, argc, argv);
	return run(&pca_cli, (size_t)components);
}
