#include "eval/map.h"

#include "eval/neighbours.h"
#include "eval/pca.h"
#include "eval/umap.h"

#include <igraph/igraph.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static int drl(float *xy, const uint32_t *neighbour, size_t n, size_t k, uint32_t seed, struct error *e)
{
	igraph_t net;
	igraph_set_error_handler(igraph_error_handler_ignore);
	int bad = join(&net, neighbour, n, k);
	if (!bad) {
		bad = lay_out(xy, &net, seed);
		igraph_destroy(&net);
	}
	return bad ? error_set(e, "igraph: %s", igraph_strerror((igraph_error_t)bad)) : 0;
}

/* The rows minus their mean, in float64. */
static double *centred(const float *x, size_t n, size_t d)
{
	double *c = xmalloc(n * d * sizeof *c);
	for (size_t j = 0; j < d; j++) {
		double mean = 0;
		for (size_t i = 0; i < n; i++)
			mean += (double)x[i * d + j] / (double)n;
		for (size_t i = 0; i < n; i++)
			c[i * d + j] = (double)x[i * d + j] - mean;
	}
	return c;
}

/* The first two principal components, scaled so that the largest value is WIDE. Rows that are all equal stay at 0. */
static int start(float *xy, const float *x, size_t n, size_t d, int threads, struct error *e)
{
	const double WIDE = 10;
	struct pca p;
	double *c = centred(x, n, d), most = 0;
	size_t k = d < 2 ? d : 2;
	memset(xy, 0, 2 * n * sizeof *xy);
	pca_init(&p, d);
	pca_add(&p, c, n, threads);
	int bad = n > 1 && pca_solve(&p, k, e);
	for (size_t i = 0; !bad && n > 1 && i < n; i++)
		for (size_t q = 0; q < k; q++) {
			double v = 0;
			for (size_t j = 0; j < d; j++)
				v += c[i * d + j] * p.w[j * k + q];
			xy[2 * i + q] = (float)v;
			most = fmax(most, fabs(v));
		}
	for (size_t i = 0; most > 0 && i < 2 * n; i++)
		xy[i] *= (float)(WIDE / most);
	pca_release(&p);
	free(c);
	return bad;
}

int map_rows(float *xy, const float *x, size_t n, size_t d, enum map_method method, size_t k, uint32_t seed, int threads, struct error *e)
{
	k = k < n ? k : n - 1;
	uint32_t *neighbour = xmalloc((n * k + 1) * sizeof *neighbour);
	double *distance = xmalloc((n * k + 1) * sizeof *distance);
	nearest_neighbours(x, n, d, k, threads, neighbour, distance);
	int bad = method == MAP_DRL ? drl(xy, neighbour, n, k, seed, e) : start(xy, x, n, d, threads, e);
	if (!bad && method == MAP_UMAP)
		umap_rows(xy, neighbour, distance, n, k, seed);
	free(neighbour);
	free(distance);
	return bad;
}
