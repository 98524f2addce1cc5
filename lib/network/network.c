#include "network/network.h"

#include <igraph/igraph.h>

static int failed(igraph_error_t bad, struct error *e)
{
	return bad ? error_set(e, "igraph: %s", igraph_strerror(bad)) : 0;
}

static int open_directed(igraph_t *net, const struct network *g, int directed, struct error *e)
{
	RELEASED(igraph_vector_int_destroy) igraph_vector_int_t end = {0};
	igraph_set_error_handler(igraph_error_handler_ignore);
	igraph_error_t bad = igraph_vector_int_init(&end, (igraph_integer_t)(2 * g->m));
	for (size_t i = 0; !bad && i < 2 * g->m; i++)
		VECTOR(end)[i] = g->end[i];
	return failed(bad ?: igraph_create(net, &end, g->n, directed), e);
}

static int open_net(igraph_t *net, const struct network *g, struct error *e)
{
	return open_directed(net, g, IGRAPH_UNDIRECTED, e);
}

#define GAIN 1e-10 /* of modularity: less is rounding */

/* Iterations of Leiden until one gains nothing. (igraph 0.10.2 stops after the first where it is asked for all.) */
static igraph_error_t leiden(
	const igraph_t *net, const igraph_vector_t *edge, double resolution, igraph_vector_int_t *of, igraph_integer_t *found)
{
	RELEASED(igraph_vector_destroy) igraph_vector_t strength = {0};
	RELEASED(igraph_vector_int_destroy) igraph_vector_int_t next = {0};
	igraph_integer_t n = igraph_vcount(net), parts;
	igraph_real_t quality, best = -INFINITY;
	igraph_error_t bad = igraph_vector_init(&strength, n) ?: igraph_vector_int_init_range(&next, 0, n);
	int more = 1;
	bad = bad ?: igraph_strength(net, &strength, igraph_vss_all(), IGRAPH_ALL, IGRAPH_LOOPS, edge);
	/* modularity is the constant Potts model with strengths as node weights and resolution / 2m */
	double per_pair = resolution / (2 * igraph_vector_sum(edge));
	while (!bad && more) {
		bad = igraph_community_leiden(net, edge, &strength, per_pair, 0.01, 1, 1, &next, &parts, &quality);
		more = !bad && quality > best + GAIN;
		if (more) {
			best = quality;
			*found = parts;
			bad = igraph_vector_int_update(of, &next);
		}
	}
	return bad;
}

int network_leiden(const struct network *g, const double *weight, double resolution, uint32_t seed, uint32_t *member, struct error *e)
{
	igraph_t net;
	igraph_vector_t edge;
	RELEASED(igraph_vector_int_destroy) igraph_vector_int_t of = {0};
	igraph_integer_t found = 0;
	if (open_net(&net, g, e))
		return -1;
	igraph_vector_view(&edge, weight, (igraph_integer_t)g->m);
	igraph_rng_seed(igraph_rng_default(), seed);
	igraph_error_t bad = igraph_vector_int_init(&of, g->n) ?: leiden(&net, &edge, resolution, &of, &found);
	for (uint32_t i = 0; !bad && i < g->n; i++)
		member[i] = (uint32_t)VECTOR(of)[i];
	igraph_destroy(&net);
	return bad ? failed(bad, e) : (int)found;
}

/* A copy as igraph's integers; 0 or igraph's error. */
static igraph_error_t take_members(igraph_vector_int_t *to, const uint32_t *member, size_t n)
{
	igraph_error_t bad = igraph_vector_int_init(to, (igraph_integer_t)n);
	for (size_t i = 0; !bad && i < n; i++)
		VECTOR(*to)[i] = member[i];
	return bad;
}

int network_agreement(const uint32_t *a, const uint32_t *b, size_t n, double *nmi, double *ari, struct error *e)
{
	RELEASED(igraph_vector_int_destroy) igraph_vector_int_t x = {0}, y = {0};
	igraph_set_error_handler(igraph_error_handler_ignore);
	*nmi = *ari = 1;
	if (n < 2) /* igraph has no index of one item */
		return 0;
	igraph_error_t bad = take_members(&x, a, n) ?: take_members(&y, b, n);
	bad = bad ?: igraph_compare_communities(&x, &y, nmi, IGRAPH_COMMCMP_NMI);
	bad = bad ?: igraph_compare_communities(&x, &y, ari, IGRAPH_COMMCMP_ADJUSTED_RAND);
	if (isnan(*ari)) /* 0 / 0: one part both times, or only parts of one item */
		*ari = 1;
	return failed(bad, e);
}

static void take_positions(float *xy, const igraph_matrix_t *position)
{
	for (igraph_integer_t i = 0; i < igraph_matrix_nrow(position); i++) {
		xy[2 * i] = (float)MATRIX(*position, i, 0);
		xy[2 * i + 1] = (float)MATRIX(*position, i, 1);
	}
}

int network_springs(const struct network *g, const double *weight, uint32_t seed, float *xy, struct error *e)
{
	igraph_t net;
	RELEASED(igraph_matrix_destroy) igraph_matrix_t position = {0};
	RELEASED(igraph_vector_destroy) igraph_vector_t edge = {0};
	if (open_net(&net, g, e))
		return -1;
	igraph_rng_seed(igraph_rng_default(), seed);
	igraph_error_t bad = igraph_vector_init(&edge, (igraph_integer_t)g->m) ?: igraph_matrix_init(&position, 0, 0);
	for (size_t i = 0; !bad && i < g->m; i++)
		VECTOR(edge)[i] = fmax(weight[i], 0.01); /* igraph refuses 0 */
	if (!bad)
		bad = igraph_layout_fruchterman_reingold(
			&net, &position, 0, 500, sqrt((double)g->n) / 10, IGRAPH_LAYOUT_NOGRID, &edge, NULL, NULL, NULL, NULL);
	if (!bad)
		take_positions(xy, &position);
	igraph_destroy(&net);
	return failed(bad, e);
}

int network_members(const struct network *g, int strong, uint32_t *member, uint32_t *components, struct error *e)
{
	igraph_t net;
	RELEASED(igraph_vector_int_destroy) igraph_vector_int_t of = {0};
	igraph_integer_t n = 0;
	if (open_directed(&net, g, strong, e))
		return -1;
	igraph_error_t bad = igraph_vector_int_init(&of, 0);
	bad = bad ?: igraph_connected_components(&net, &of, NULL, &n, strong ? IGRAPH_STRONG : IGRAPH_WEAK);
	for (uint32_t i = 0; !bad && i < g->n; i++)
		member[i] = (uint32_t)VECTOR(of)[i];
	*components = (uint32_t)n;
	igraph_destroy(&net);
	return failed(bad, e);
}
