/* depgraph --compare: the edges that two graphs share, in all and by module. */
#include "depgraph.h"

#include "cli_genes.h"

/* What is counted of some edges, those of all genes or of a module. */
struct shared_edges {
	double genes; /* with partners in one of the graphs */
	double edges, other, shared;
	double x, y, xx, yy, xy; /* sums of the weights of the shared edges */
};

static void compare_edges(struct shared_edges *s, double a, double b)
{
	s->shared++;
	s->x += a;
	s->y += b;
	s->xx += a * a;
	s->yy += b * b;
	s->xy += a * b;
}

static int has_partners(const struct graph *g, uint32_t u)
{
	return g->offset[u + 1] > g->offset[u];
}

/* s [1 + modules] out: all edges, and those within each module of a. */
static void count_edges(struct shared_edges *s, const struct graph *a, const struct graph *b, const int32_t *module)
{
	for (uint32_t u = 0; u < a->n; u++) {
		int32_t m = module ? module[u] : -1;
		s->genes += has_partners(a, u) || has_partners(b, u);
		if (m >= 0)
			s[1 + m].genes++;
		for (uint64_t k = a->offset[u]; k < a->offset[u + 1]; k++) {
			uint32_t v = a->neighbour[k];
			int64_t same = u < v ? graph_find(b, u, v) : -1;
			int within = u < v && m >= 0 && module[v] == m;
			s->edges += u < v;
			s[within ? 1 + m : 0].edges += within;
			if (same >= 0)
				compare_edges(s, (double)a->weight[k], (double)b->weight[same]);
			if (same >= 0 && within)
				compare_edges(&s[1 + m], (double)a->weight[k], (double)b->weight[same]);
		}
		for (uint64_t k = b->offset[u]; k < b->offset[u + 1]; k++) {
			s->other += u < b->neighbour[k];
			if (u < b->neighbour[k] && m >= 0 && module[b->neighbour[k]] == m)
				s[1 + m].other++;
		}
	}
}

static void print_shared(FILE *f, const struct shared_edges *s, const char *name)
{
	double n = s->shared, pairs = s->genes * (s->genes - 1) / 2, expected = pairs > 0 ? s->edges * s->other / pairs : 0,
	       xx = s->xx - s->x * s->x / n, yy = s->yy - s->y * s->y / n;
	fprintf(f, "%s\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.6g", name, s->genes, s->edges, s->other, n, s->edges - n, s->other - n,
		expected);
	fprintf(f, n > 2 && xx > 0 && yy > 0 ? "\t%.6f\n" : "\tNA\n", (s->xy - s->x * s->y / n) / sqrt(xx * yy));
}

void compare_graphs(struct graph *g, const struct vocab *v, const char *name, const char *path, FILE *f)
{
	RELEASED(graph_release) struct graph other;
	RELEASED(stream_free_at) struct stream *in = must_open(path);
	const struct vocab *from = &stream_header(in)->vocab;
	FREED uint32_t *row = xmalloc((from->n + 1) * sizeof *row);
	struct gene_tables t = {.from = from, .to = v, .from_name = path, .to_name = name, .once = 1};
	struct gene_matched matched;
	int32_t modules = 0;
	must_kind(in, STREAM_GRAPH);
	must(graph_read(&other, in, graph_weight(stream_header(in)), NULL, &failure));
	must(gene_match(row, &t, &matched, &failure));
	say_matched(path, name, &matched);
	graph_renumber(&other, row, (uint32_t)v->n);
	for (uint32_t u = 0; u < g->n && g->module; u++) {
		if (g->module[u] >= (int64_t)g->n)
			die("%s: module %d, but there are %u genes: expected numbers from 0", name, g->module[u], g->n);
		modules = g->module[u] >= modules ? g->module[u] + 1 : modules;
	}
	FREED struct shared_edges *s = xcalloc(2 + (size_t)modules, sizeof *s);
	count_edges(s, g, &other, g->module);
	fputs("of\tgenes\tedges\tother_edges\tshared\talone\tother_alone\texpected\tpearson\n", f);
	print_shared(f, s, "all");
	struct shared_edges *equal = s + 1 + modules;
	size_t n = (size_t)(s->edges < s->other ? s->edges : s->other);
	for (int32_t m = 0; m < modules; m++) {
		FREED char *text = xasprintf("module_%d", m);
		print_shared(f, &s[1 + m], text);
	}
	graph_strongest(g, n);
	graph_strongest(&other, n);
	count_edges(equal, g, &other, NULL);
	print_shared(f, equal, "strongest");
	cli_measured("shared", s->shared);
}
