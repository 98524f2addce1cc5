/*
 * scgenes genesets: do the edges of graphs of genes join genes of one known set, and what sets are the modules of a graph? The genes are those that
 * are in a set and have an edge in one of the graphs, the same for all graphs. Pairs of genes that share a set are the truth.
 */
#include "genesets.h"
#include "cli.h"
#include "cli_genes.h"

#include "base/option.h"
#include "eval/bootstrap.h"
#include "eval/hypergeometric.h"
#include "base/rng.h"
#include "base/sort.h"

#include <math.h>

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

/* ---- input ---- */

static void open_graph(struct genesets *s, int i)
{
	RELEASED(stream_free_at) struct stream *in = cli_open(&genesets_cli, i);
	const struct header *h = stream_header(in);
	must_kind(in, "graph");
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

/* The pairs of genes that share a set, each once, in order: s->pair [s->pairs]. */
static void find_pairs(struct genesets *s)
{
	for (size_t k = 0; k < s->sets.n; k++) {
		uint64_t n = s->sets.start[k + 1] - s->sets.start[k];
		s->pairs += n * (n - 1) / 2;
	}
	s->pair = xmalloc((s->pairs + 1) * sizeof *s->pair);
	s->pairs = 0;
	for (size_t k = 0; k < s->sets.n; k++)
		for (uint64_t i = s->sets.start[k]; i < s->sets.start[k + 1]; i++)
			for (uint64_t j = s->sets.start[k]; j < i; j++)
				s->pair[s->pairs++] = (uint64_t)s->place[s->sets.gene[j]] << 32 | (uint64_t)s->place[s->sets.gene[i]];
	qsort(s->pair, s->pairs, sizeof *s->pair, compare_u64);
	size_t kept = 0;
	for (size_t i = 0; i < s->pairs; i++)
		if (!kept || s->pair[kept - 1] != s->pair[i])
			s->pair[kept++] = s->pair[i];
	s->pairs = kept;
	s->together = xcalloc(s->n * s->n / 8 + 1, 1);
	for (size_t i = 0; i < kept; i++) {
		size_t u = s->pair[i] >> 32, v = (uint32_t)s->pair[i], at[] = {u * s->n + v, v * s->n + u};
		for (int k = 0; k < 2; k++)
			s->together[at[k] / 8] |= (uint8_t)(1 << at[k] % 8);
	}
}

static int share_a_set(const struct genesets *s, size_t u, size_t v)
{
	size_t at = u * s->n + v;
	return s->together[at / 8] >> at % 8 & 1;
}

COMPARE(by_weight, struct scored, ORDER(b->weight, a->weight) ?: ORDER(a->u, b->u) ?: ORDER(a->v, b->v))

/* The edges between the genes, the largest weights first: of edge [*n], malloced. */
static struct scored *edges_of(const struct genesets *s, const struct graph *g, size_t *n)
{
	struct scored *edge = xmalloc((g->offset[g->n] / 2 + 1) * sizeof *edge);
	*n = 0;
	for (uint32_t u = 0; u < g->n; u++)
		for (uint64_t i = g->offset[u]; i < g->offset[u + 1]; i++)
			if (g->neighbour[i] > u)
				edge[(*n)++] = (struct scored){g->weight[i], u, g->neighbour[i], 0};
	qsort(edge, *n, sizeof *edge, by_weight);
	if (strongest && (uint64_t)strongest < *n)
		*n = (size_t)strongest;
	size_t kept = 0;
	for (size_t i = 0; i < *n; i++) {
		int32_t u = s->place[edge[i].u], v = s->place[edge[i].v];
		if (u < 0 || v < 0)
			continue;
		edge[kept] = (struct scored){edge[i].weight, (uint32_t)u, (uint32_t)v, 0};
		edge[kept++].shared = share_a_set(s, (uint32_t)u, (uint32_t)v);
	}
	*n = kept;
	return edge;
}

/* A pair counts times[u] times[v]. All other pairs have the weight 0, between positive and negative ones; equal weights are half right. */
static void genesets_score(struct scores *r, const struct genesets *s, const struct scored *edge, size_t n, const double *times)
{
	double all = 0, square = 0, shared = 0, edge_all = 0, edge_shared = 0, right = 0;
	for (size_t i = 0; i < s->n; i++) {
		all += times[i];
		square += times[i] * times[i];
	}
	for (size_t i = 0; i < s->pairs; i++)
		shared += times[s->pair[i] >> 32] * times[(uint32_t)s->pair[i]];
	for (size_t i = 0; i < n; i++) {
		edge_all += times[edge[i].u] * times[edge[i].v];
		edge_shared += edge[i].shared ? times[edge[i].u] * times[edge[i].v] : 0;
	}
	all = (all * all - square) / 2;
	double others = all - shared, seen = 0; /* pairs of no set; of these, above the pairs at i */
	int rest = 0; /* the pairs without an edge have had their place */
	for (size_t i = 0, j = 0; i < n || !rest; i = j) {
		double yes = 0, no = 0;
		int zero = i == n || edge[i].weight <= 0;
		if (!rest && zero) {
			yes = shared - edge_shared;
			no = others - (edge_all - edge_shared);
			rest = 1;
			for (j = i; j < n && edge[j].weight == 0; j++) /* NOLINT: an edge of weight 0 is like none */
				*(edge[j].shared ? &yes : &no) += times[edge[j].u] * times[edge[j].v];
		} else {
			for (j = i; j < n && edge[j].weight == edge[i].weight; j++) /* NOLINT: equal weights */
				*(edge[j].shared ? &yes : &no) += times[edge[j].u] * times[edge[j].v];
		}
		right += yes * (others - seen - no / 2);
		seen += no;
	}
	*r = (struct scores){.auroc = right / (shared * others), .fold = edge_shared / edge_all / (shared / all), .shared = edge_shared};
}

/* 95 % intervals from a bootstrap of the genes: [0, 1] of the AUROC, [2, 3] of the fold. */
static void intervals(double low_high[4], const struct genesets *s, const struct scored *edge, size_t n)
{
	FREED double *auroc = xmalloc(DRAWS * sizeof *auroc), *fold = xmalloc(DRAWS * sizeof *fold), *times = xmalloc(s->n * sizeof *times);
	size_t na = 0, nf = 0;
	for (uint64_t r = 0; r < DRAWS; r++) {
		struct rng g = rng_at((uint32_t)genesets_cli.seed, RNG_BOOTSTRAP, r, 0);
		struct scores one;
		memset(times, 0, s->n * sizeof *times);
		for (size_t i = 0; i < s->n; i++)
			times[rng_below(&g, (uint32_t)s->n)]++;
		genesets_score(&one, s, edge, n, times);
		if (isfinite(one.auroc))
			auroc[na++] = one.auroc;
		if (isfinite(one.fold))
			fold[nf++] = one.fold;
	}
	for (int i = 0; i < 4; i++) {
		size_t m = i < 2 ? na : nf;
		low_high[i] = m < 2 ? (double)NAN : bootstrap_quantile(i < 2 ? auroc : fold, m, i % 2 ? 0.975 : 0.025);
	}
}

/* How often a graph has at least as many edges within a set if its genes are permuted, so that it keeps its hubs, and the genes their sets:
 * p of the hypothesis that graph and sets have nothing to do with each other. */
static double permuted(const struct genesets *s, const struct scored *edge, size_t n, double shared)
{
	FREED uint32_t *to = xcalloc(s->n, sizeof *to);
	size_t hits = 1;
	for (uint64_t r = 0; r < DRAWS; r++) {
		struct rng g = rng_at((uint32_t)genesets_cli.seed, RNG_TEST, r, 1);
		size_t inside = 0;
		for (uint32_t i = 0; i < s->n; i++) {
			uint32_t j = rng_below(&g, i + 1);
			to[i] = to[j];
			to[j] = i;
		}
		for (size_t i = 0; i < n; i++)
			inside += (size_t)share_a_set(s, to[edge[i].u], to[edge[i].v]);
		hits += (double)inside >= shared;
	}
	return n ? (double)hits / (DRAWS + 1) : NAN;
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
	double *one = xmalloc(s->n * sizeof *one), all = (double)s->n * (double)(s->n - 1) / 2;
	find_pairs(s);
	for (size_t i = 0; i < s->n; i++)
		one[i] = 1;
	fputs("graph\tgenes\tpairs\tset_pairs\tedges\tset_edges\tshare\texpected\tfold\tfold_low\tfold_high\tp\tauroc\tauroc_low\tauroc_high\n",
		f);
	for (int i = 0; i < s->ngraph; i++) {
		size_t n;
		struct scores r;
		double around[4];
		struct scored *edge = edges_of(s, &s->graph[i], &n);
		genesets_score(&r, s, edge, n, one);
		intervals(around, s, edge, n);
		char *name = tsv_escaped(s->name[i]);
		fprintf(f, "%s\t%zu\t%.0f\t%zu\t%zu\t%.0f", name, s->n, all, s->pairs, n, r.shared);
		genesets_put(f, r.shared / (double)n);
		genesets_put(f, (double)s->pairs / all);
		genesets_put(f, r.fold);
		genesets_put(f, around[2]);
		genesets_put(f, around[3]);
		genesets_put(f, permuted(s, edge, n, r.shared));
		genesets_put(f, r.auroc);
		genesets_put(f, around[0]);
		genesets_put(f, around[1]);
		fputc('\n', f);
		free_all(name, edge);
		progress("%d of %d graphs", i + 1, s->ngraph);
	}
	free(one);
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
	FREED double *p = xmalloc((tests + 1) * sizeof *p);
	for (size_t i = 0; i < tests; i++)
		p[i] = r[i].p;
	correct_bh(p, tests);
	for (size_t i = 0; i < tests; i++)
		r[i].q = p[i];
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
	struct genesets s = {0};
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
	cli_measured("genes", (double)s.n);
	cli_measured("sets", (double)s.sets.n);
	cli_report(&genesets_cli, "%zu genes, %zu sets", s.n, s.sets.n);
	for (int i = 0; i < s.ngraph; i++) {
		graph_release(&s.graph[i]);
		free(s.name[i]);
	}
	gene_sets_release(&s.sets);
	vocab_release(&s.vocab);
	free_all(s.graph, s.name, s.place, s.pair, s.together);
	return 0;
}
