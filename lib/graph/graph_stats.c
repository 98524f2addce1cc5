#include "graph/graph_stats.h"

#include "base/sort.h"

#include "network/network.h"

#include <math.h>

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

/* Of each edge of linked_init, its weight or that without sign, its overlap, or a further number (NULL: not known). */
enum edge_value { WEIGHT, ABSOLUTE, OVERLAP, VALUE };
static double *edge_values(const struct graph *g, enum edge_value what)
{
	if (what >= VALUE && !g->value[what - VALUE])
		return NULL;
	double *out = xmalloc((g->offset[g->n] / 2 + 1) * sizeof *out);
	size_t k = 0;
	for (uint32_t u = 0; u < g->n; u++)
		for (uint64_t i = g->offset[u]; i < g->offset[u + 1]; i++)
			if (g->neighbour[i] > u)
				out[k++] = what == OVERLAP ? (double)g->overlap[i]
					: what >= VALUE    ? (double)g->value[what - VALUE][i]
					: what == ABSOLUTE ? fabs((double)g->weight[i])
							   : (double)g->weight[i];
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
	double *weight = edge_values(g, ABSOLUTE), total = 0;
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
	FREED double *weight = edge_values(g, ABSOLUTE);
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

int graph_graphml(const struct graph *g, const struct vocab *v, const char *weight, char *const *name, int32_t *const *module,
	size_t nmodule, FILE *f, struct error *e)
{
	RELEASED(linked_release) struct linked l;
	linked_init(&l, g);
	size_t n = l.net.n;
	double *number = xcalloc((nmodule + 1) * n, sizeof *number);
	struct network_values edge[GRAPH_VALUES + 3] = {
		{weight, edge_values(g, WEIGHT), NULL}, {graph_overlap(weight), edge_values(g, OVERLAP), NULL}};
	for (int i = 0; i < GRAPH_VALUES && g->value[i]; i++)
		edge[2 + i] = (struct network_values){graph_values(weight)[i], edge_values(g, VALUE + (unsigned)i), NULL};
	FREED const char **text = xcalloc(3 * n, sizeof *text);
	FREED struct network_values *vertex = xcalloc(nmodule + 5, sizeof *vertex);
	for (size_t i = 0; i < n; i++) {
		number[i] = l.token[i];
		text[i] = v->id[l.token[i]];
		text[n + i] = v->symbol[l.token[i]];
		text[2 * n + i] = *text[n + i] ? text[n + i] : text[i];
		for (size_t k = 0; k < nmodule; k++)
			number[(k + 1) * n + i] = module[k][l.token[i]];
	}
	vertex[0] = (struct network_values){"token", number, NULL};
	vertex[1] = (struct network_values){"gene", NULL, text};
	vertex[2] = (struct network_values){"symbol", NULL, text + n};
	vertex[3] = (struct network_values){"name", NULL, text + 2 * n}; /* by which Cytoscape labels */
	for (size_t k = 0; k < nmodule; k++)
		vertex[4 + k] = (struct network_values){name[k], number + (k + 1) * n, NULL};
	int bad = network_graphml(&l.net, vertex, edge, f, e);
	for (int i = 0; edge[i].name; i++)
		free((void *)edge[i].number);
	free(number);
	return bad;
}
