/* depgraph: the gene dependency graph of a corpus, CorrMask's Algorithm 1. */
#include "depgraph.h"
#include "cli_labels.h"

#include "base/clock.h"
#include "base/option.h"
#include "graph/graph_stats.h"
#include "graph/pmi.h"
#include "graph/correlation_graph.h"

#include <malloc.h>

static long long cells = 100000, max_len = 2048, min_overlap = 200, neighbours = 50, min_cells = 50, top_genes = 2000;
static long long min_count = 10, clusters, halves, strongest;
static const char *within, *other, *states;
static double rho_min = 0.2, tau = 0.5;
static int positive, pmi;
static int format, shuffle;
static const char *modules_text;

enum { GRAPH, STATS, TSV, LAYOUT, GRAPHML }; /* --format */
enum { RHO = 1, PMI = 2, READ = 4, WITHIN = 8 }; /* modes: build one of the graphs, or read one */

static struct option_def options[] = {
	{0, "Cells", OPT_GROUP},
	{'n', "cells", OPT_INT, &cells, "N", "number of cells to sample (default 100000)", 1, 1e6, .changes = 1, .modes = RHO | PMI},
	{0, "max-len", OPT_INT, &max_len, "L", "use the first L tokens of each cell; the value at position i is L - i (default 2048)", 1,
		65535, .changes = 1, .modes = RHO | PMI},
	{0, "Graph", OPT_GROUP},
	{0, "top-genes", OPT_INT, &top_genes, "N", "use only the N most highly expressed genes; 0 means all (default 2000)", 0, 16777216,
		.changes = 1, .modes = RHO},
	{0, "min-cells", OPT_INT, &min_cells, "N", "leave out genes found in fewer cells (default 50)", 1, 1e6, .changes = 1,
		.modes = RHO | WITHIN},
	{0, "candidates", OPT_INT, &neighbours, "N",
		"candidates per gene: those with the largest |rho| over all cells, or the largest score (default 50)", 1, 1e6, .changes = 1,
		.modes = RHO | WITHIN},
	{0, "rho-min", OPT_REAL, &rho_min, "R", "drop candidates with a smaller |rho| (default 0.2)", 0, 1, .changes = 1, .modes = RHO},
	{0, "min-overlap", OPT_INT, &min_overlap, "N", "drop candidates that share fewer cells with the gene (default 200)", 1, 1e6,
		.changes = 1, .modes = RHO},
	{0, "positive", OPT_FLAG, &positive, NULL, "drop edges with a negative weight", .changes = 1, .modes = RHO},
	{0, "shuffle", OPT_FLAG, &shuffle, NULL, "control: permute the genes that have partners", .changes = 1},
	{0, "PMI graph", OPT_GROUP},
	{0, "pmi", OPT_FLAG, &pmi, NULL, "build the PMI graph instead: genes that are adjacent more often than by chance", .changes = 1,
		.mode = PMI},
	{0, "tau", OPT_REAL, &tau, "T", "pmi: minimum NPMI of an edge (default 0.5)", -1, 1, .changes = 1, .modes = PMI},
	{0, "min-count", OPT_INT, &min_count, "N", "pmi: minimum number of times two genes are adjacent (default 10)", 1, 4294967295.0,
		.changes = 1, .modes = PMI},
	{0, "Graph within strata", OPT_GROUP},
	{0, "within", OPT_STRING, &within, "COL,...",
		"build the graph of correlation within donors and types of counted cells instead; the first column names the donors",
		.changes = 1, .mode = WITHIN},
	{0, "clusters", OPT_INT, &clusters, "K", "also within K clusters of the cells (k-means)", 2, 1000, .changes = 1, .modes = WITHIN},
	{0, "halves", OPT_INT, &halves, "N", "print how far the strongest edges recur between N random halves of the donors", 1, 1000,
		.modes = WITHIN, .excludes = "format leiden shuffle strongest"},
	{0, "states", OPT_STRING, &states, "COL", "print how edges differ between two states of the donors, such as healthy and sick",
		.changes = 1, .modes = WITHIN, .excludes = "format leiden shuffle halves"},
	{KEEP_UNKNOWN_LABELS, .modes = WITHIN},
	{0, "Modules", OPT_GROUP},
	{0, "leiden", OPT_STRING, &modules_text, "R,...",
		"add Leiden modules at these resolutions, as column module, or module_R for several resolutions", .changes = 1,
		.excludes = "format=stats format=tsv"},
	{0, "compare", OPT_INPUT, &other, "GRAPH", "print which edges a graph shares with this one, by module too if it has column module",
		.mode = READ, .excludes = "format leiden shuffle strongest"},
	{0, "Output", OPT_GROUP},
	{0, "strongest", OPT_INT, &strongest, "N", "keep only the N edges of largest |weight| (default: all)", 1, 1e12, .changes = 1},
	{'O', "format", OPT_CHOICE, &format,
		OPT_ENUM([GRAPH] = "graph", [STATS] = "stats", [TSV] = "tsv", [LAYOUT] = "layout", [GRAPHML] = "graphml"),
		"the graph (default); a table of its statistics, its edges, or its genes with layout positions; or GraphML"},
	{0},
};

struct cli depgraph_cli = {.name = "depgraph",
	.operands = "[FILE...]",
	.summary = "Build the gene dependency graph of tokenised cells, or analyse a graph.",
	.options = options,
	.common = CLI_STREAM_OUT | CLI_SEED | CLI_THREADS};
#define cli depgraph_cli

/* --leiden: numbers above 0, each written once. */
static void check_modules(void)
{
	size_t n;
	char **text = opt_list(modules_text, &n);
	for (size_t i = 0; i < n; i++) {
		char *end;
		double r = decimal_read(text[i], &end);
		if (end == text[i] || *end || !(r > 0) || r > 1e6)
			usage_error("--leiden: '%s' is not a resolution above 0", text[i]);
		for (size_t j = 0; j < i; j++)
			if (!strcmp(text[i], text[j]))
				usage_error("--leiden: %s is given twice", text[i]);
	}
	free_list(text, n);
}

static void read_corpus(struct corpus *c, struct stream *in)
{
	const struct header *h = stream_header(in);
	must_kind(in, STREAM_TOKENS);
	int cell = must_column(in, "cell", U64, SCALAR), token = must_column(in, "token", U32, RAGGED);
	c->nspecial = (uint32_t)h->vocab.nspecial;
	struct block b = {0};
	while (must_read_cells(in, &b)) {
		if (corpus_add(c, &b, cell, token, &failure))
			die("%s: %s", stream_name(in), failure.msg);
		progress_cells(c->seen, stream_expected(in));
	}
	block_release(&b);
	corpus_sort(c);
	if (!c->n)
		die("%s: no cells", stream_name(in));
}

static const struct graph_weight *made_weight(void)
{
	return &graph_weights[within ? GRAPH_SCORE : pmi ? GRAPH_NPMI : GRAPH_RHO];
}

static void depgraph_describe(struct header *h, uint32_t used, uint32_t genes, size_t edges)
{
	cJSON_DeleteItemFromObjectCaseSensitive(h->extra, "graph");
	cJSON *o = cJSON_AddObjectToObject(h->extra, "graph");
	cJSON_AddStringToObject(o, "weight", made_weight()->name);
	cJSON_AddNumberToObject(o, "cells", used);
	cJSON_AddNumberToObject(o, "genes", genes);
	cJSON_AddNumberToObject(o, "edges", (double)edges);
	cli_measured("cells", used);
}

/* Edges by Algorithm 1. The cells are freed after they were converted to columns. */
static struct edge *spearman(struct corpus *c, uint32_t vocab, uint32_t *genes, size_t *n)
{
	struct correlation_params p = {
		.neighbours = (uint32_t)neighbours, .min_overlap = (uint32_t)min_overlap, .rho_min = rho_min, .positive = positive};
	RELEASED(correlation_columns_release) struct correlation_columns x;
	struct correlation_stats stats;
	double start = clock_seconds();
	must(correlation_columns_init(&x, c, vocab, (uint32_t)min_cells, (uint32_t)top_genes, &failure));
	corpus_release(c);
	malloc_trim(0);
	double columns = clock_seconds() - start;
	struct edge *edge = correlation_edges(&x, &p, n, &stats);
	if (cli.verbose)
		info("columns %.2f s, all pairs %.2f s, %llu candidate pairs exactly %.2f s", columns, stats.screen_s,
			(unsigned long long)stats.pairs, stats.exact_s);
	*genes = x.genes;
	return edge;
}

static uint32_t genes_with_partners(const struct graph *g)
{
	uint32_t n = 0;
	for (uint32_t u = 0; u < g->n; u++)
		n += g->offset[u + 1] > g->offset[u];
	return n;
}

/* The number of edges; if there are few, also what gives more. */
static void say_edges(const struct graph *g, uint32_t genes, uint32_t cells_used)
{
	size_t n = g->offset[g->n] / 2;
	uint32_t linked = genes_with_partners(g);
	uint32_t fitting = cells_used / 20 < 10 ? 10 : cells_used / 20; /* --min-overlap for this many cells (docs/guide/settings.md) */
	if (!n && (pmi || fitting >= min_overlap))
		warn("no edges among %u genes of %u cells; lower %s for a corpus this small", genes, cells_used,
			pmi ? "--tau or --min-count" : "--min-overlap, --min-cells or --rho-min");
	else if (!n)
		warn("no edges among %u genes of %u cells; lower --min-overlap, such as --min-overlap %u, --min-cells or --rho-min", genes,
			cells_used, fitting);
	else if (!pmi && n < genes / 2 && fitting < min_overlap)
		info("few edges (%zu; %u of %u genes have partners); with %u cells try --min-overlap %u", n, linked, genes, cells_used,
			fitting);
	else
		info("%zu edge%s in %u cells; %u of %u genes have partners", n, n == 1 ? "" : "s", cells_used, linked, genes);
}

/* Make a graph of the cells of a tokens stream. */
static void build(struct graph *g, struct header *h, struct stream *in)
{
	struct corpus corpus = {.seed = (uint32_t)cli.seed, .size = (uint64_t)cells, .max_len = (uint32_t)max_len};
	double t0 = clock_seconds();
	if (h->vocab.n == h->vocab.nspecial) /* without any vocabulary, tokens have no bound either */
		die("%s: the vocabulary has no genes", stream_name(in));
	read_corpus(&corpus, in);
	double t1 = clock_seconds();
	struct corpus sample = corpus; /* keeps the counts when the cells are freed */
	uint32_t genes = (uint32_t)(h->vocab.n - h->vocab.nspecial);
	size_t n;
	FREED struct edge *edge = pmi
		? pmi_edges(&corpus, (uint32_t)h->vocab.n, &(struct pmi_params){tau, (uint32_t)min_count, (int)cli.threads}, &n)
		: spearman(&corpus, (uint32_t)h->vocab.n, &genes, &n);
	corpus_release(&corpus);
	if (cli.verbose)
		info("read %.2f s, graph %.2f s; %u of %llu cells, %u genes of %zu", t1 - t0, clock_seconds() - t1, sample.n,
			(unsigned long long)sample.seen, genes, h->vocab.n - h->vocab.nspecial);
	depgraph_describe(h, sample.n, genes, n);
	graph_build(g, (uint32_t)h->vocab.n, edge, n, !pmi);
	say_edges(g, genes, sample.n);
}

/* Write a table instead of a graph, and end. */
static void end_with(FILE *f, char **text)
{
	xmemclose(f, text);
	cli_write_table(&cli, *text);
	cli_report(&cli, "a table");
	exit(0);
}

static void print_compared(struct graph *g, struct header *h, const char *name)
{
	char *text = NULL;
	FILE *f = xmemopen(&text, &(size_t){0});
	must(vocab_index(&h->vocab, name, &failure));
	compare_graphs(g, &h->vocab, name, other, f);
	end_with(f, &text);
}

/* Make one of the cells of a counts stream, or print what --halves or --states asks for, and end. */
static void build_within(struct graph *g, struct header *h, struct stream *in)
{
	struct within_options o = {within, states, clusters, min_cells, neighbours, halves, strongest};
	uint32_t genes, used;
	size_t n;
	cli_blas(&cli);
	if (halves || states) {
		char *text = NULL;
		FILE *f = xmemopen(&text, &(size_t){0});
		(halves ? within_halves : within_states)(in, &o, f);
		end_with(f, &text);
	}
	FREED struct edge *edge = within_edges(in, &o, &genes, &used, &n);
	depgraph_describe(h, used, genes, n);
	graph_build(g, (uint32_t)h->vocab.n, edge, n, GRAPH_VALUES);
}

struct modules {
	size_t n;
	char **name;
	int32_t **of; /* [n, vocab] */
};

static void find_modules(struct modules *m, const struct graph *g)
{
	char **text = opt_list(modules_text, &m->n);
	m->name = xcalloc(m->n, sizeof *m->name);
	m->of = xcalloc(m->n, sizeof *m->of);
	for (size_t i = 0; i < m->n; i++) {
		double r = strtod(text[i], NULL);
		m->name[i] = m->n == 1 ? xstrdup("module") : xasprintf("module_%s", text[i]);
		m->of[i] = xcalloc(g->n, sizeof **m->of);
		int found = graph_modules(g, r, (uint32_t)cli.seed, m->of[i], &failure);
		must(found < 0);
		if (cli.verbose)
			info("%d modules at resolution %s", found, text[i]);
	}
	free_list(text, m->n);
}

static void print_stats(FILE *f, const struct graph *g)
{
	static const char *const quantile[] = {"min", "q05", "q25", "median", "q75", "q95", "max"};
	struct graph_stats s;
	must(graph_stats(g, &s, &failure));
	fprintf(f, "metric\tvalue\nvocabulary\t%u\ngenes_with_neighbours\t%llu\nedges\t%llu\nnegative_share\t%.6f\n", g->n,
		(unsigned long long)s.linked, (unsigned long long)s.edges, s.edges ? (double)s.negative / (double)s.edges : 0);
	for (int i = 0; i < 7; i++)
		fprintf(f, "degree_%s\t%u\n", quantile[i], s.degree[i]);
	fprintf(f, "degree_mean\t%.4f\ncomponents\t%u\nlargest_component\t%u\n", s.mean_degree, s.components, s.largest);
}

static void print_edges(FILE *f, const struct graph *g, const struct vocab *v, const struct graph_weight *weight)
{
	fprintf(f, "token_a\tgene_a\tsymbol_a\ttoken_b\tgene_b\tsymbol_b\t%s\t%s", weight->name, weight->overlap);
	for (int i = 0; i < GRAPH_VALUES && g->value[i]; i++)
		fprintf(f, "\t%s", weight->value[i].name);
	fputc('\n', f);
	for (uint32_t a = 0; a < g->n; a++)
		for (uint64_t k = g->offset[a]; k < g->offset[a + 1]; k++) {
			uint32_t b = g->neighbour[k];
			if (b < a)
				continue;
			fprintf(f, "%u\t%s\t%s\t%u\t%s\t%s\t%.9g\t%u", a, v->id[a], v->symbol[a], b, v->id[b], v->symbol[b],
				(double)g->weight[k], g->overlap[k]);
			for (int i = 0; i < GRAPH_VALUES && g->value[i]; i++)
				fprintf(f, isnan(g->value[i][k]) ? "\tNA" : "\t%.9g", (double)g->value[i][k]);
			fputc('\n', f);
		}
}

static void print_layout(FILE *f, const struct graph *g, const struct vocab *v, const struct modules *m)
{
	FREED float *xy = xmalloc(((size_t)g->n * 2 + 1) * sizeof *xy);
	must(graph_layout(g, (uint32_t)cli.seed, xy, &failure));
	fputs("token\tgene\tsymbol\tdegree", f);
	for (size_t k = 0; k < m->n; k++)
		fprintf(f, "\t%s", m->name[k]);
	fputs("\tx\ty\n", f);
	for (uint32_t u = 0; u < g->n; u++) {
		if (g->offset[u + 1] == g->offset[u])
			continue;
		fprintf(f, "%u\t%s\t%s\t%llu", u, v->id[u], v->symbol[u], (unsigned long long)(g->offset[u + 1] - g->offset[u]));
		for (size_t k = 0; k < m->n; k++)
			fprintf(f, "\t%d", m->of[k][u]);
		fprintf(f, "\t%.6g\t%.6g\n", (double)xy[2 * u], (double)xy[2 * u + 1]);
	}
}

/* Write one of the texts. The file appears only when it is complete. */
static void write_text(const struct graph *g, const struct vocab *v, const struct graph_weight *weight, const struct modules *m)
{
	struct outfile out;
	must(outfile_open(&out, cli.output, 0, &failure));
	FREED char *text = NULL;
	size_t n;
	FILE *f = xmemopen(&text, &n);
	if (format == STATS)
		print_stats(f, g);
	else if (format == TSV)
		print_edges(f, g, v, weight);
	else if (format == LAYOUT)
		print_layout(f, g, v, m);
	else
		graph_graphml(g, v, weight, m->name, m->of, m->n, f);
	xmemclose(f, &text);
	must(outfile_write(&out, text, n, &failure));
	must(outfile_commit(&out, &failure));
}

int main(int argc, char **argv)
{
	cli_init(&cli, argc, argv);
	if (format || halves || states || other)
		refuse("is for streams, not for --format", &cli.raw);
	check_modules();
	struct stream *in = cli_open_all(&cli);
	RELEASED(header_release) struct header h = {0};
	RELEASED(graph_release) struct graph g;
	header_copy(&h, stream_header(in));
	const struct graph_weight *weight = made_weight();
	if (h.kind == STREAM_GRAPH) {
		cli_mode(READ, "%s is a graph already", stream_name(in));
		weight = graph_weight(&h);
		must(graph_read(&g, in, weight, other && header_find(&h, "module") >= 0 ? "module" : NULL, &failure));
	} else if (other) {
		must_kind(in, STREAM_GRAPH);
	} else if (within) {
		build_within(&g, &h, in);
	} else {
		build(&g, &h, in);
	}
	if (other)
		print_compared(&g, &h, stream_name(in));
	stream_free(in);
	if (strongest)
		graph_strongest(&g, (size_t)strongest);
	if (shuffle)
		graph_shuffle(&g, (uint32_t)cli.seed);
	struct modules m = {0};
	find_modules(&m, &g);
	if (format) {
		write_text(&g, &h.vocab, weight, &m);
	} else {
		while (h.ncol)
			header_drop(&h, h.col[h.ncol - 1].name);
		h.kind = STREAM_GRAPH;
		graph_columns(&h, &g, weight, m.name, m.n);
		cli_provenance(&cli, &h, "");
		struct stream *out = cli_create(&cli, &h, ROWS_UNKNOWN);
		must(graph_write(&g, m.of, m.n, out, &failure));
		must_commit(out);
	}
	uint32_t linked = genes_with_partners(&g);
	cli_measured_all({"genes_with_neighbours", linked}, {"edges", (double)(g.offset[g.n] / 2)});
	cli_report(&cli, "%u genes with partners, %llu edges", linked, (unsigned long long)g.offset[g.n] / 2);
	for (size_t i = 0; i < m.n; i++)
		free_all(m.name[i], m.of[i]);
	free_all(m.name, m.of);
	return 0;
}
