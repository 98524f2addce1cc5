#include "graph/graph_stats.h"

#include <igraph/igraph.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The undirected graph of the genes with neighbours. token [vertices]: their rows. */
static int to_igraph(igraph_t *net, const struct graph *g, uint32_t **token, struct error *e)
{
	uint32_t *vertex = xcalloc(g->n, sizeof *vertex), n = 0;
	*token = xcalloc(g->n, sizeof **token);
	for (uint32_t u = 0; u < g->n; u++)
		if (g->offset[u + 1] > g->offset[u]) {
			vertex[u] = n;
			(*token)[n++] = u;
		}
	igraph_set_error_handler(igraph_error_handler_ignore);
	igraph_vector_int_t ends;
	int bad = igraph_vector_int_init(&ends, (igraph_integer_t)g->offset[g->n]);
	if (!bad) {
		igraph_integer_t k = 0;
		for (uint32_t u = 0; u < g->n; u++)
			for (uint64_t i = g->offset[u]; i < g->offset[u + 1]; i++)
				if (g->neighbour[i] > u) {
					VECTOR(ends)[k++] = vertex[u];
					VECTOR(ends)[k++] = vertex[g->neighbour[i]];
				}
		bad = igraph_create(net, &ends, n, IGRAPH_UNDIRECTED);
		igraph_vector_int_destroy(&ends);
	}
	free(vertex);
	if (!bad)
		return 0;
	free(*token);
	return error_set(e, "igraph: %s", igraph_strerror((igraph_error_t)bad));
}

/* Weights in the order of to_igraph's edges. */
static void edge_values(const struct graph *g, const float *weight, igraph_vector_t *out, int absolute)
{
	igraph_integer_t k = 0;
	for (uint32_t u = 0; u < g->n; u++)
		for (uint64_t i = g->offset[u]; i < g->offset[u + 1]; i++)
			if (g->neighbour[i] > u)
				VECTOR(*out)[k++] = absolute ? fabs((double)weight[i]) : (double)weight[i];
}

struct size {
	igraph_integer_t community;
	uint64_t members;
	uint32_t first; /* lowest token */
};

static int by_members_down(const void *a, const void *b)
{
	const struct size *p = a, *q = b;
	if (p->members != q->members)
		return p->members < q->members ? 1 : -1;
	return (p->first > q->first) - (p->first < q->first);
}

static void number_modules(const igraph_vector_int_t *member, igraph_integer_t n, const uint32_t *token, int32_t *module)
{
	struct size *size = xcalloc((size_t)n, sizeof *size);
	int32_t *rank = xcalloc((size_t)n, sizeof *rank);
	for (igraph_integer_t c = 0; c < n; c++)
		size[c] = (struct size){c, 0, UINT32_MAX};
	for (igraph_integer_t i = igraph_vector_int_size(member); i-- > 0;) {
		size[VECTOR(*member)[i]].members++;
		size[VECTOR(*member)[i]].first = token[i];
	}
	qsort(size, (size_t)n, sizeof *size, by_members_down);
	for (igraph_integer_t c = 0; c < n; c++)
		rank[size[c].community] = (int32_t)c;
	for (igraph_integer_t i = 0; i < igraph_vector_int_size(member); i++)
		module[token[i]] = rank[VECTOR(*member)[i]];
	free(rank);
	free(size);
}

int graph_modules(const struct graph *g, double resolution, uint32_t seed, int32_t *module, struct error *e)
{
	igraph_t net;
	uint32_t *token;
	igraph_vector_t weight, strength;
	igraph_vector_int_t member;
	igraph_integer_t found = 0;
	for (uint32_t u = 0; u < g->n; u++)
		module[u] = -1;
	if (!g->offset[g->n])
		return 0;
	if (to_igraph(&net, g, &token, e))
		return -1;
	igraph_integer_t n = igraph_vcount(&net), m = igraph_ecount(&net);
	igraph_rng_seed(igraph_rng_default(), seed);
	int bad = igraph_vector_init(&weight, m) || igraph_vector_init(&strength, n) || igraph_vector_int_init(&member, n);
	if (bad)
		return error_set(e, "igraph: out of memory");
	edge_values(g, g->weight, &weight, 1);
	bad = igraph_strength(&net, &strength, igraph_vss_all(), IGRAPH_ALL, IGRAPH_LOOPS, &weight);
	double total = igraph_vector_sum(&weight);
	if (!bad && !(total > 0)) /* igraph would not come to an end */
		bad = IGRAPH_EINVAL;
	/* modularity is the constant Potts model with strengths as node weights and resolution / 2m */
	if (!bad)
		bad = igraph_community_leiden(&net, &weight, &strength, resolution / (2 * total), 0.01, 0, -1, &member, &found, NULL);
	if (!bad)
		number_modules(&member, found, token, module);
	igraph_vector_int_destroy(&member);
	igraph_vector_destroy(&strength);
	igraph_vector_destroy(&weight);
	igraph_destroy(&net);
	free(token);
	if (bad && !(total > 0))
		return error_set(e, "no modules: all weights of the graph are 0");
	return bad ? error_set(e, "igraph: %s", igraph_strerror((igraph_error_t)bad)) : (int)found;
}

int graph_layout(const struct graph *g, uint32_t seed, float *xy, struct error *e)
{
	igraph_t net;
	igraph_matrix_t position;
	igraph_vector_t weight;
	uint32_t *token;
	for (size_t i = 0; i < 2 * (size_t)g->n; i++)
		xy[i] = NAN;
	if (!g->offset[g->n])
		return 0;
	if (to_igraph(&net, g, &token, e))
		return -1;
	igraph_integer_t n = igraph_vcount(&net);
	igraph_rng_seed(igraph_rng_default(), seed);
	int bad = igraph_vector_init(&weight, igraph_ecount(&net)) || igraph_matrix_init(&position, 0, 0);
	if (bad)
		return error_set(e, "igraph: out of memory");
	edge_values(g, g->weight, &weight, 1);
	for (igraph_integer_t i = 0; i < igraph_ecount(&net); i++)
		VECTOR(weight)[i] = fmax(VECTOR(weight)[i], 0.01); /* igraph refuses 0 */
	bad = igraph_layout_fruchterman_reingold(
		&net, &position, 0, 500, sqrt((double)n) / 10, IGRAPH_LAYOUT_NOGRID, &weight, NULL, NULL, NULL, NULL);
	for (igraph_integer_t i = 0; !bad && i < n; i++) {
		xy[2 * (size_t)token[i]] = (float)MATRIX(position, i, 0);
		xy[2 * (size_t)token[i] + 1] = (float)MATRIX(position, i, 1);
	}
	igraph_matrix_destroy(&position);
	igraph_vector_destroy(&weight);
	igraph_destroy(&net);
	free(token);
	return bad ? error_set(e, "igraph: %s", igraph_strerror((igraph_error_t)bad)) : 0;
}

static int by_value(const void *a, const void *b)
{
	uint32_t p = *(const uint32_t *)a, q = *(const uint32_t *)b;
	return (p > q) - (p < q);
}

int graph_stats(const struct graph *g, struct graph_stats *s, struct error *e)
{
	static const double share[] = {0, 0.05, 0.25, 0.5, 0.75, 0.95, 1};
	*s = (struct graph_stats){.edges = g->offset[g->n] / 2};
	if (!s->edges)
		return 0;
	igraph_t net;
	uint32_t *token, *degree = xcalloc(g->n, sizeof *degree);
	for (uint32_t u = 0; u < g->n; u++)
		if (g->offset[u + 1] > g->offset[u])
			degree[s->linked++] = (uint32_t)(g->offset[u + 1] - g->offset[u]);
	for (uint64_t i = 0; i < g->offset[g->n]; i++)
		s->negative += g->weight[i] < 0;
	s->negative /= 2;
	s->mean_degree = 2 * (double)s->edges / (double)s->linked;
	qsort(degree, s->linked, sizeof *degree, by_value);
	for (int i = 0; i < 7; i++)
		s->degree[i] = degree[(size_t)(share[i] * (double)(s->linked - 1))];
	free(degree);
	if (to_igraph(&net, g, &token, e))
		return -1;
	igraph_vector_int_t size;
	igraph_integer_t n = 0;
	int bad = igraph_vector_int_init(&size, 0);
	if (!bad) {
		bad = igraph_connected_components(&net, NULL, &size, &n, IGRAPH_WEAK);
		s->components = (uint64_t)n;
		s->largest = bad ? 0 : (uint64_t)igraph_vector_int_max(&size);
		igraph_vector_int_destroy(&size);
	}
	igraph_destroy(&net);
	free(token);
	return bad ? error_set(e, "igraph: %s", igraph_strerror((igraph_error_t)bad)) : 0;
}

int graph_graphml(const struct graph *g, const struct vocab *v, const char *weight, char *const *name, int32_t *const *module,
	size_t nmodule, FILE *f, struct error *e)
{
	igraph_t net;
	uint32_t *token;
	igraph_set_attribute_table(&igraph_cattribute_table);
	if (to_igraph(&net, g, &token, e))
		return -1;
	int bad = 0;
	igraph_integer_t n = igraph_vcount(&net);
	for (igraph_integer_t i = 0; i < n && !bad; i++) {
		bad = SETVAN(&net, "token", i, token[i]) || SETVAS(&net, "gene", i, v->id[token[i]]) ||
			SETVAS(&net, "symbol", i, v->symbol[token[i]]);
		for (size_t k = 0; k < nmodule && !bad; k++)
			bad = SETVAN(&net, name[k], i, module[k][token[i]]);
	}
	igraph_vector_t value;
	bad = bad || igraph_vector_init(&value, igraph_ecount(&net));
	if (!bad) {
		edge_values(g, g->weight, &value, 0);
		bad = SETEANV(&net, weight, &value);
		igraph_integer_t k = 0;
		for (uint32_t u = 0; u < g->n; u++)
			for (uint64_t i = g->offset[u]; i < g->offset[u + 1]; i++)
				if (g->neighbour[i] > u)
					VECTOR(value)[k++] = g->overlap[i];
		bad = bad || SETEANV(&net, strcmp(weight, "rho") ? "count" : "overlap", &value) || igraph_write_graph_graphml(&net, f, 0);
		igraph_vector_destroy(&value);
	}
	igraph_destroy(&net);
	free(token);
	return bad ? error_set(e, "igraph: the graph could not be written") : 0;
}
