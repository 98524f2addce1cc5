#include "graph/graph_stats.h"

#include "base/sort.h"

#include "network/network.h"

/* The genes with neighbours, numbered from 0, and their edges. token [n]: their rows in the vocabulary. */
struct linked {
	struct network net;
	uint32_t *token;
};

static void linked_init(struct linked *l, const struct graph *g)
{
	FREED uint32_t *vertex = xcalloc(g->n, sizeof *vertex);
	*l = (struct linked){.net.end = xcalloc(g->offset[g->n], sizeof *l->net.end), .token = xcalloc(g->n, sizeof *l->token)};
	for (uint32_t u = 0; u < g->n; u++)
		if (g->offset[u + 1] > g->offset[u]) {
			vertex[u] = l->net.n;
			l->token[l->net.n++] = u;
		}
	for (uint32_t u = 0; u < g->n; u++)
		for (uint64_t i = g->offset[u]; i < g->offset[u + 1]; i++)
			if (g->neighbour[i] > u) {
				l->net.end[2 * l->net.m] = vertex[u];
				l->net.end[2 * l->net.m++ + 1] = vertex[g->neighbour[i]];
			}
}

static void linked_release(struct linked *l)
{
	free_all(l->net.end, l->token);
}

/* |weight| of each edge of linked_init */
static double *edge_sizes(const struct graph *g)
{
	double *out = xmalloc((g->offset[g->n] / 2 + 1) * sizeof *out);
	size_t k = 0;
	for (uint32_t u = 0; u < g->n; u++)
		for (uint64_t i = g->offset[u]; i < g->offset[u + 1]; i++)
			if (g->neighbour[i] > u)
				out[k++] = fabs((double)g->weight[i]);
	return out;
}

struct size {
	uint32_t community;
	uint64_t members;
	uint32_t first; /* lowest token */
};

COMPARE(by_members_down, struct size, ORDER(b->members, a->members) ?: ORDER(a->first, b->first))

static void number_modules(const uint32_t *member, size_t found, const struct linked *l, int32_t *module)
{
	FREED struct size *size = xcalloc(found, sizeof *size);
	FREED int32_t *rank = xcalloc(found, sizeof *rank);
	for (uint32_t c = 0; c < found; c++)
		size[c] = (struct size){c, 0, UINT32_MAX};
	for (uint32_t i = l->net.n; i-- > 0;) {
		size[member[i]].members++;
		size[member[i]].first = l->token[i];
	}
	qsort(size, found, sizeof *size, by_members_down);
	for (size_t c = 0; c < found; c++)
		rank[size[c].community] = (int32_t)c;
	for (uint32_t i = 0; i < l->net.n; i++)
		module[l->token[i]] = rank[member[i]];
}

int graph_modules(const struct graph *g, double resolution, uint32_t seed, int32_t *module, struct error *e)
{
	struct linked l;
	for (uint32_t u = 0; u < g->n; u++)
		module[u] = -1;
	if (!g->offset[g->n])
		return 0;
	double *weight = edge_sizes(g), total = 0;
	linked_init(&l, g);
	for (size_t i = 0; i < l.net.m; i++)
		total += weight[i];
	uint32_t *member = xcalloc(l.net.n, sizeof *member);
	int found = total > 0 ? network_leiden(&l.net, weight, resolution, seed, member, e)
			      : error_set(e, "no modules: all weights of the graph are 0"); /* igraph would not come to an end */
	if (found > 0)
		number_modules(member, (size_t)found, &l, module);
	free_all(member, weight);
	linked_release(&l);
	return found;
}

int graph_layout(const struct graph *g, uint32_t seed, float *xy, struct error *e)
{
	struct linked l;
	for (size_t i = 0; i < 2 * (size_t)g->n; i++)
		xy[i] = NAN;
	if (!g->offset[g->n])
		return 0;
	FREED double *weight = edge_sizes(g);
	linked_init(&l, g);
	FREED float *at = xcalloc(2 * (size_t)l.net.n, sizeof *at);
	int bad = network_springs(&l.net, weight, seed, at, e);
	for (uint32_t i = 0; !bad && i < l.net.n; i++)
		memcpy(xy + 2 * (size_t)l.token[i], at + 2 * (size_t)i, 2 * sizeof *at);
	linked_release(&l);
	return bad;
}

int graph_stats(const struct graph *g, struct graph_stats *s, struct error *e)
{
	static const double share[] = {0, 0.05, 0.25, 0.5, 0.75, 0.95, 1};
	*s = (struct graph_stats){.edges = g->offset[g->n] / 2};
	if (!s->edges)
		return 0;
	RELEASED(linked_release) struct linked l;
	uint32_t *degree = xcalloc(g->n, sizeof *degree);
	for (uint32_t u = 0; u < g->n; u++)
		if (g->offset[u + 1] > g->offset[u])
			degree[s->linked++] = (uint32_t)(g->offset[u + 1] - g->offset[u]);
	for (uint64_t i = 0; i < g->offset[g->n]; i++)
		s->negative += g->weight[i] < 0;
	s->negative /= 2;
	s->mean_degree = 2 * (double)s->edges / (double)s->linked;
	qsort(degree, s->linked, sizeof *degree, compare_u32);
	for (int i = 0; i < 7; i++)
		s->degree[i] = degree[(size_t)(share[i] * (double)(s->linked - 1))];
	free(degree);
	linked_init(&l, g);
	FREED uint32_t *member = xcalloc(l.net.n, sizeof *member), *size = xcalloc(l.net.n, sizeof *size);
	int bad = network_members(&l.net, 0, member, &s->components, e);
	for (uint32_t i = 0; i < l.net.n && !bad; i++)
		if (++size[member[i]] > s->largest)
			s->largest = size[member[i]];
	return bad;
}

static void put_key(FILE *f, const char *of, const char *name, const char *type)
{
	fprintf(f, "  <key id=\"%s\" for=\"%s\" attr.name=\"%s\" attr.type=\"%s\"/>\n", name, of, name, type);
}

static void put_number(FILE *f, const char *key, double x)
{
	if (!isnan(x))
		fprintf(f, "      <data key=\"%s\">%.9g</data>\n", key, x);
}

static void put_text(FILE *f, const char *key, const char *text)
{
	fprintf(f, "      <data key=\"%s\">", key);
	for (; *text; text++)
		if (*text == '&' || *text == '<' || *text == '>')
			fputs(*text == '&' ? "&amp;" : *text == '<' ? "&lt;" : "&gt;", f);
		else
			fputc(*text, f);
	fputs("</data>\n", f);
}

void graph_graphml(const struct graph *g, const struct vocab *v, const struct graph_weight *weight, char *const *name,
	int32_t *const *module, size_t nmodule, FILE *f)
{
	static const char *const text[] = {"gene", "symbol", "name"};
	const struct graph_value *value = weight->value;
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n", f);
	put_key(f, "node", "token", "int");
	for (size_t i = 0; i < sizeof text / sizeof *text; i++)
		put_key(f, "node", text[i], "string");
	for (size_t k = 0; k < nmodule; k++)
		put_key(f, "node", name[k], "int");
	put_key(f, "edge", weight->name, "double");
	put_key(f, "edge", weight->overlap, "int");
	for (int i = 0; i < GRAPH_VALUES && g->value[i]; i++)
		put_key(f, "edge", value[i].name, value[i].whole ? "int" : "double");
	fputs("  <graph edgedefault=\"undirected\">\n", f);
	for (uint32_t u = 0; u < g->n; u++) {
		if (g->offset[u + 1] == g->offset[u])
			continue;
		fprintf(f, "    <node id=\"n%u\">\n", u);
		put_number(f, "token", u);
		put_text(f, "gene", v->id[u]);
		put_text(f, "symbol", v->symbol[u]);
		put_text(f, "name", *v->symbol[u] ? v->symbol[u] : v->id[u]); /* by which Cytoscape labels */
		for (size_t k = 0; k < nmodule; k++)
			put_number(f, name[k], module[k][u]);
		fputs("    </node>\n", f);
	}
	for (uint32_t u = 0; u < g->n; u++)
		for (uint64_t k = g->offset[u]; k < g->offset[u + 1]; k++) {
			if (g->neighbour[k] < u)
				continue;
			fprintf(f, "    <edge source=\"n%u\" target=\"n%u\">\n", u, g->neighbour[k]);
			put_number(f, weight->name, (double)g->weight[k]);
			put_number(f, weight->overlap, g->overlap[k]);
			for (int i = 0; i < GRAPH_VALUES && g->value[i]; i++)
				put_number(f, value[i].name, (double)g->value[i][k]);
			fputs("    </edge>\n", f);
		}
	fputs("  </graph>\n</graphml>\n", f);
}
