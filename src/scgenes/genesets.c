/*
 * scgenes genesets: do the edges of graphs of genes join genes of one known set, and what sets are the modules of a graph? The genes are those that
 * are in a set and have an edge in one of the graphs, the same for all graphs. Pairs of genes that share a set are the truth.
 */
#include "scgenes.h"
#include "cli.h"
#include "cli_genes.h"

#include "base/option.h"
#include "base/sort.h"
#include "base/tsv.h"
#include "eval/hypergeometric.h"
#include "eval/pair_sets.h"
#include "eval/paired.h"
#include "graph/graph.h"
#include "label/gene_sets.h"

static const char *sets_path, *modules_name;
static long long strongest;

enum { SMALLEST = 3, LARGEST = 200 }; /* genes of a set */
enum { DRAWS = 1000 }; /* of the intervals and of p */
#define Q_MOST 0.05 /* of a row of --module */

static struct option_def options[] = {
	{0, "sets", OPT_INPUT, &sets_path, "FILE", "the gene sets (.gmt, plain or gzip): required"},
	{0, "Edges", OPT_GROUP},
	{0, "strongest", OPT_INT, &strongest, "N", "use only the N edges of each graph with the largest weights (default: all)", 1, 1e12},
	{0, "Modules", OPT_GROUP},
	{0, "module", OPT_STRING, &modules_name, "COL", "instead of edges: the sets that the modules in this column are enriched in",
		.excludes = "strongest"},
	{0},
};
struct cli genesets_cli = {.name = "scgenes genesets",
	.operands = "GRAPH...",
	.options = options,
	.common = CLI_OUT | CLI_SEED,
	.summary = "Score the edges or the modules of graphs of genes against known gene sets."};

struct genesets {
	int ngraph;
	struct graph *graph; /* [ngraph] */
	char **name; /* [ngraph] */
	struct vocab vocab; /* of all graphs */
	struct gene_sets sets;
	size_t n; /* genes */
	int32_t *place; /* [vocab.n] their numbers, -1: another gene */
};

/* A test of a module and a set. */
struct rich {
	size_t module, set;
	uint64_t both;
	double p, q;
};

/* ---- input ---- */

static void open_graph(struct genesets *s, int i)
{
	RELEASED(stream_free_at) struct stream *in = cli_open(&genesets_cli, i);
	const struct header *h = stream_header(in);
	must_kind(in, STREAM_GRAPH);
	if (!i)
		vocab_copy(&s->vocab, &h->vocab);
	else if (!vocab_equal(&s->vocab, &h->vocab))
		die("%s: its genes are not those of %s: expected graphs of one vocabulary", stream_name(in), s->name[0]);
	if (modules_name && header_find(h, modules_name) < 0)
		die("%s: no column '%s' of modules: depgraph --leiden makes one", stream_name(in), modules_name);
	must(graph_read(&s->graph[i], in, graph_weight(h), modules_name, &failure));
	s->name[i] = xstrdup(stream_name(in));
}

/* The genes that are in a set and have an edge (or a module): s->place of the others is -1. */
static void choose_scored_genes(struct genesets *s)
{
	FREED uint8_t *keep = xcalloc(s->vocab.n, 1);
	for (size_t g = 0; g < s->vocab.n; g++)
		for (int i = 0; i < s->ngraph; i++)
			keep[g] |= modules_name ? s->graph[i].module[g] >= 0 : s->graph[i].offset[g + 1] > s->graph[i].offset[g];
	if (!memchr(keep, 1, s->vocab.n))
		die("%s: no gene has %s", s->name[0], modules_name ? "a module" : "an edge");
	gene_sets_filter(&s->sets, keep, SMALLEST, LARGEST);
	s->place = xmalloc(s->vocab.n * sizeof *s->place);
	for (size_t g = 0; g < s->vocab.n; g++)
		s->place[g] = -1;
	for (size_t j = 0; j < s->sets.start[s->sets.n]; j++)
		s->place[s->sets.gene[j]] = 0;
	for (size_t g = 0; g < s->vocab.n; g++)
		if (s->place[g] == 0)
			s->place[g] = (int32_t)s->n++;
	if (s->n < 2)
		die("%s: no set has %d to %d genes that have %s", sets_path, SMALLEST, LARGEST, modules_name ? "a module" : "an edge");
}

/* ---- edges ---- */

/* The edges between the genes, the largest weights first: of edge [*n], malloced. */
static struct pair_edge *edges_of(const struct genesets *s, const struct pair_sets *p, const struct graph *g, size_t *n)
{
	struct pair_edge *edge = xmalloc((g->offset[g->n] / 2 + 1) * sizeof *edge);
	*n = 0;
	for (uint32_t u = 0; u < g->n; u++)
		for (uint64_t i = g->offset[u]; i < g->offset[u + 1]; i++)
			if (g->neighbour[i] > u)
				edge[(*n)++] = (struct pair_edge){g->weight[i], u, g->neighbour[i], 0};
	pair_edges_sort(edge, *n);
	if (strongest && (uint64_t)strongest < *n)
		*n = (size_t)strongest;
	size_t kept = 0;
	for (size_t i = 0; i < *n; i++) {
		int32_t u = s->place[edge[i].u], v = s->place[edge[i].v];
		if (u >= 0 && v >= 0)
			edge[kept++] = (struct pair_edge){edge[i].weight, (uint32_t)u, (uint32_t)v, 0};
	}
	*n = kept;
	pair_edges_mark(p, edge, kept);
	return edge;
}

/* The genes of all sets by their numbers, malloced. */
static uint32_t *places(const struct genesets *s)
{
	uint64_t n = s->sets.start[s->sets.n];
	uint32_t *place = xmalloc((n + 1) * sizeof *place);
	for (uint64_t i = 0; i < n; i++)
		place[i] = (uint32_t)s->place[s->sets.gene[i]];
	return place;
}

static void genesets_put(FILE *f, double v)
{
	if (isfinite(v))
		fprintf(f, "\t%.12g", v);
	else
		fputs("\tNA", f);
}

static void score_edges(struct genesets *s, FILE *f)
{
	double all = (double)s->n * (double)(s->n - 1) / 2;
	RELEASED(pair_sets_release) struct pair_sets pairs;
	FREED uint32_t *member = places(s);
	pair_sets_init(&pairs, s->n, s->sets.start, member, s->sets.n);
	fputs("graph\tgenes\tpairs\tset_pairs\tedges\tset_edges\tshare\texpected\tfold\tfold_low\tfold_high\tp\tauroc\tauroc_low\tauroc_high\n",
		f);
	for (int i = 0; i < s->ngraph; i++) {
		size_t n;
		struct pair_scores r;
		FREED struct pair_edge *edge = edges_of(s, &pairs, &s->graph[i], &n);
		pair_sets_score(&r, &pairs, edge, n, DRAWS, (uint32_t)genesets_cli.seed);
		const double column[] = {r.shared / (double)n, (double)pairs.pairs / all, r.fold, r.fold_low, r.fold_high, r.p, r.auroc,
			r.auroc_low, r.auroc_high};
		FREED char *name = tsv_escaped(s->name[i]);
		fprintf(f, "%s\t%zu\t%.0f\t%zu\t%zu\t%.0f", name, s->n, all, pairs.pairs, n, r.shared);
		for (size_t k = 0; k < sizeof column / sizeof *column; k++)
			genesets_put(f, column[k]);
		fputc('\n', f);
		progress("%d of %d graphs", i + 1, s->ngraph);
	}
}

/* ---- modules ---- */

COMPARE(by_module, struct rich, ORDER(a->module, b->module) ?: ORDER(a->p, b->p) ?: ORDER(a->set, b->set))

/* How many of the n genes of each module are in each set: a test for each module and set. Modules of one gene are not tested. */
static struct rich *test_modules(const struct genesets *s, uint64_t *size, size_t modules, size_t *tests)
{
	const struct gene_sets *sets = &s->sets;
	FREED uint64_t *both = xcalloc(modules, sizeof *both);
	struct rich *r = xmalloc((modules * sets->n + 1) * sizeof *r);
	*tests = 0;
	for (size_t k = 0; k < sets->n; k++) {
		uint64_t K = sets->start[k + 1] - sets->start[k];
		memset(both, 0, modules * sizeof *both);
		for (uint64_t i = sets->start[k]; i < sets->start[k + 1]; i++)
			both[s->graph[0].module[sets->gene[i]]]++;
		for (size_t m = 0; m < modules; m++)
			if (size[m] > 1)
				r[(*tests)++] = (struct rich){m, k, both[m], hypergeometric_tail(both[m], s->n, K, size[m]), 0};
		progress("%zu of %zu sets", k + 1, sets->n);
	}
	return r;
}

static void score_modules(struct genesets *s, FILE *f)
{
	const struct graph *g = &s->graph[0];
	const struct gene_sets *sets = &s->sets;
	size_t modules = 0, tests;
	for (uint32_t i = 0; i < g->n; i++)
		if (g->module[i] >= (int32_t)modules)
			modules = (size_t)g->module[i] + 1;
	if (modules > g->n)
		die("%s: module %zu, but there are %u genes: expected numbers from 0", s->name[0], modules - 1, g->n);
	FREED uint64_t *size = xcalloc(modules + 1, sizeof *size);
	for (uint32_t i = 0; i < g->n; i++)
		if (s->place[i] >= 0)
			size[g->module[i]]++;
	FREED struct rich *r = test_modules(s, size, modules, &tests);
	for (size_t i = 0; i < tests; i++)
		r[i].q = r[i].p;
	correct_bh(&r->q, tests, sizeof *r);
	qsort(r, tests, sizeof *r, by_module);
	fputs("module\tgenes\tset\tset_genes\tboth\texpected\tfold\tp\tq\n", f);
	for (size_t i = 0; i < tests; i++) {
		uint64_t K = sets->start[r[i].set + 1] - sets->start[r[i].set];
		double expected = (double)size[r[i].module] * (double)K / (double)s->n;
		if (!(r[i].q <= Q_MOST) || !r[i].both)
			continue;
		FREED char *name = tsv_escaped(sets->name[r[i].set]);
		fprintf(f, "%zu\t%llu\t%s\t%llu\t%llu", r[i].module, (unsigned long long)size[r[i].module], name, (unsigned long long)K,
			(unsigned long long)r[i].both);
		genesets_put(f, expected);
		genesets_put(f, (double)r[i].both / expected);
		genesets_put(f, r[i].p);
		genesets_put(f, r[i].q);
		fputc('\n', f);
	}
	cli_measured("tests", (double)tests);
}

int scgenes_genesets(int argc, char **argv)
{
	static struct genesets s;
	char *text = NULL;
	cli_init(&genesets_cli, argc, argv);
	if (!sets_path)
		usage_error("--sets FILE is required: the gene sets");
	s.ngraph = genesets_cli.noperand ? genesets_cli.noperand : 1;
	if (modules_name && s.ngraph > 1)
		usage_error("--module: one graph at a time");
	s.graph = xcalloc((size_t)s.ngraph, sizeof *s.graph);
	s.name = xcalloc((size_t)s.ngraph, sizeof *s.name);
	for (int i = 0; i < s.ngraph; i++)
		open_graph(&s, i);
	must(vocab_index(&s.vocab, s.name[0], &failure));
	must(gene_sets_load(&s.sets, sets_path, &s.vocab, &failure));
	size_t sets = s.sets.n;
	if (2 * s.sets.no_description > sets)
		warn("%s: %zu of %zu sets have a gene where their description belongs, which is not read: expected name, description, genes",
			sets_path, s.sets.no_description, sets);
	say_ambiguous(sets_path, s.sets.ambiguous);
	choose_scored_genes(&s);
	info("%zu of %zu sets have %d to %d of the genes; %zu of %zu names of genes are not in the vocabulary", s.sets.n, sets, SMALLEST,
		LARGEST, s.sets.absent, s.sets.listed);
	FILE *f = xmemopen(&text, &(size_t){0});
	if (modules_name)
		score_modules(&s, f);
	else
		score_edges(&s, f);
	xmemclose(f, &text);
	cli_write(genesets_cli.output, text);
	cli_measured_all({"genes", (double)s.n}, {"sets", (double)s.sets.n});
	cli_report(&genesets_cli, "%zu genes, %zu sets", s.n, s.sets.n);
	return 0;
}
