#include "base/layout.h"

#include <igraph/igraph.h>

static int lay_out(float *xy, const igraph_t *net, const igraph_vector_t *weight, uint32_t seed)
{
	igraph_matrix_t position;
	igraph_layout_drl_options_t options;
	int bad = igraph_matrix_init(&position, 0, 0);
	if (bad)
		return bad;
	igraph_rng_seed(igraph_rng_default(), seed);
	bad = igraph_layout_drl_options_init(&options, IGRAPH_LAYOUT_DRL_DEFAULT);
	if (!bad)
		bad = igraph_layout_drl(net, &position, 0, &options, weight);
	for (igraph_integer_t i = 0; !bad && i < igraph_vcount(net); i++) {
		xy[2 * i] = (float)MATRIX(position, i, 0);
		xy[2 * i + 1] = (float)MATRIX(position, i, 1);
	}
	igraph_matrix_destroy(&position);
	return bad;
}

static int create(igraph_t *net, size_t n, const uint32_t *ends, size_t m)
{
	igraph_vector_int_t v;
	int bad = igraph_vector_int_init(&v, (igraph_integer_t)(2 * m));
	if (bad)
		return bad;
	for (size_t i = 0; i < 2 * m; i++)
		VECTOR(v)[i] = ends[i];
	bad = igraph_create(net, &v, (igraph_integer_t)n, IGRAPH_UNDIRECTED);
	igraph_vector_int_destroy(&v);
	return bad;
}

int layout_graph(float *xy, size_t n, const uint32_t *ends, const float *weight, size_t m, uint32_t seed, struct error *e)
{
	igraph_t net;
	igraph_vector_t w;
	igraph_set_error_handler(igraph_error_handler_ignore);
	int bad = igraph_vector_init(&w, (igraph_integer_t)m);
	if (!bad) {
		for (size_t i = 0; i < m; i++)
			VECTOR(w)[i] = weight ? (double)weight[i] : 1;
		bad = create(&net, n, ends, m);
		if (!bad) {
			bad = lay_out(xy, &net, &w, seed);
			igraph_destroy(&net);
		}
		igraph_vector_destroy(&w);
	}
	return bad ? error_set(e, "igraph: %s", igraph_strerror((igraph_error_t)bad)) : 0;
}
