#include "eval/map.h"

#include "eval/neighbours.h"

#include <igraph/igraph.h>
#include <stdlib.h>

static int is_neighbour(const uint32_t *neighbour, size_t k, uint32_t row)
{
	for (size_t i = 0; i < k; i++)
		if (neighbour[i] == row)
			return 1;
	return 0;
}

/* The graph of neighbours; each pair once, although both may be neighbours of each other. */
static int join(igraph_t *net, const uint32_t *neighbour, size_t n, size_t k)
{
	igraph_vector_int_t ends;
	igraph_integer_t m = 0;
	int bad = igraph_vector_int_init(&ends, (igraph_integer_t)(2 * n * k));
	if (bad)
		return bad;
	for (uint32_t i = 0; i < n; i++)
		for (size_t j = 0; j < k; j++) {
			uint32_t other = neighbour[i * k + j];
			if (other < i && is_neighbour(neighbour + other * k, k, i))
				continue;
			VECTOR(ends)[m++] = i;
			VECTOR(ends)[m++] = other;
		}
	bad = igraph_vector_int_resize(&ends, m);
	if (!bad)
		bad = igraph_create(net, &ends, (igraph_integer_t)n, IGRAPH_UNDIRECTED);
	igraph_vector_int_destroy(&ends);
	return bad;
}

static int lay_out(float *xy, const igraph_t *net, uint32_t seed)
{
	igraph_matrix_t position;
	igraph_layout_drl_options_t options;
	int bad = igraph_matrix_init(&position, igraph_vcount(net), 2); /* igraph 0.10 does not look whether it could make it larger */
	if (bad)
		return bad;
	igraph_rng_seed(igraph_rng_default(), seed);
	bad = igraph_layout_drl_options_init(&options, IGRAPH_LAYOUT_DRL_DEFAULT);
	if (!bad)
		bad = igraph_layout_drl(net, &position, 0, &options, NULL);
	for (igraph_integer_t i = 0; !bad && i < igraph_vcount(net); i++) {
		xy[2 * i] = (float)MATRIX(position, i, 0);
		xy[2 * i + 1] = (float)MATRIX(position, i, 1);
	}
	igraph_matrix_destroy(&position);
	return bad;
}

int map_rows(float *xy, const float *x, size_t n, size_t d, size_t k, uint32_t seed, int threads, struct error *e)
{
	k = k < n ? k : n - 1;
	uint32_t *neighbour = xmalloc((n * k + 1) * sizeof *neighbour);
	double *distance = xmalloc((n * k + 1) * sizeof *distance);
	igraph_t net;
	nearest_neighbours(x, n, d, k, threads, neighbour, distance);
	igraph_set_error_handler(igraph_error_handler_ignore);
	int bad = join(&net, neighbour, n, k);
	if (!bad) {
		bad = lay_out(xy, &net, seed);
		igraph_destroy(&net);
	}
	free(neighbour);
	free(distance);
	return bad ? error_set(e, "igraph: %s", igraph_strerror((igraph_error_t)bad)) : 0;
}
