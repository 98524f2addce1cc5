#include "eval/map.h"

#include "base/layout.h"
#include "eval/neighbours.h"

#include <stdlib.h>

static int is_neighbour(const uint32_t *neighbour, size_t k, uint32_t row)
{
	for (size_t i = 0; i < k; i++)
		if (neighbour[i] == row)
			return 1;
	return 0;
}

int map_rows(float *xy, const float *x, size_t n, size_t d, size_t k, uint32_t seed, int threads, struct error *e)
{
	k = k < n ? k : n - 1;
	uint32_t *neighbour = xmalloc((n * k + 1) * sizeof *neighbour), *ends = xmalloc((2 * n * k + 1) * sizeof *ends);
	double *distance = xmalloc((n * k + 1) * sizeof *distance);
	size_t m = 0;
	nearest_neighbours(x, n, d, k, threads, neighbour, distance);
	for (uint32_t i = 0; i < n; i++)
		for (size_t j = 0; j < k; j++) {
			uint32_t other = neighbour[i * k + j];
			if (other < i && is_neighbour(neighbour + other * k, k, i))
				continue; /* the pair is there already */
			ends[2 * m] = i;
			ends[2 * m++ + 1] = other;
		}
	int bad = layout_graph(xy, n, ends, NULL, m, seed, e);
	free(neighbour);
	free(distance);
	free(ends);
	return bad;
}
