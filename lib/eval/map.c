#include "eval/map.h"

#include "base/error.h"
#include "base/rng.h"
#include "eval/neighbours.h"
#include "eval/umap.h"

/* Make the columns of v [d, 2] unit vectors at a right angle; 0 if there is none. */
static void orthonormalise(double *v, size_t d)
{
	for (int q = 0; q < 2; q++) {
		double along = 0, square = 0;
		for (size_t j = 0; q && j < d; j++)
			along += v[2 * j] * v[2 * j + 1];
		for (size_t j = 0; j < d; j++) {
			v[2 * j + (size_t)q] -= q ? along * v[2 * j] : 0;
			square += v[2 * j + (size_t)q] * v[2 * j + (size_t)q];
		}
		for (size_t j = 0; j < d; j++)
			v[2 * j + (size_t)q] /= square > 0 ? sqrt(square) : 1;
	}
}

/* at [n, 2] = (x - x[0] - mean) v, and if next [d, 2] is not NULL, next = (x - x[0] - mean)' at */
static void project(double *at, double *next, const double *v, const float *x, const double *mean, size_t n, size_t d)
{
	for (size_t i = 0; i < n; i++) {
		double p[2] = {0, 0};
		for (size_t j = 0; j < d; j++)
			for (int q = 0; q < 2; q++)
				p[q] += ((double)x[i * d + j] - (double)x[j] - mean[j]) * v[2 * j + (size_t)q];
		for (size_t j = 0; next && j < d; j++)
			for (int q = 0; q < 2; q++)
				next[2 * j + (size_t)q] += ((double)x[i * d + j] - (double)x[j] - mean[j]) * p[q];
		for (int q = 0; q < 2; q++)
			at[2 * i + (size_t)q] = p[q];
	}
}

/*
 * Where UMAP begins: the two directions of largest variance, about the first two principal components, by subspace iteration. (Embeddings may
 * be expression of all genes, whose covariance has no room in memory.) The largest value is 10. Rows that are all equal are at 0.
 */
static void map_start(float *xy, const float *x, size_t n, size_t d, uint32_t seed)
{
	enum { STEPS = 12 };
	double *mean = xcalloc(d, sizeof *mean), *v = xmalloc(2 * d * sizeof *v), *next = xmalloc(2 * d * sizeof *next);
	double *at = xmalloc(2 * n * sizeof *at), most = 0; /* float32 has no room for the sums */
	struct rng r = rng_at(seed, RNG_MAP, UINT64_MAX, 0);
	/* of differences from the first row, so that a constant column is 0: the rounding error of a mean could be larger than the other columns */
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < d; j++)
			mean[j] += ((double)x[i * d + j] - (double)x[j]) / (double)n;
	for (size_t j = 0; j < 2 * d; j++)
		v[j] = rng_normal(&r);
	for (int step = 0; step < STEPS; step++) {
		orthonormalise(v, d);
		memset(next, 0, 2 * d * sizeof *next);
		project(at, next, v, x, mean, n, d);
		memcpy(v, next, 2 * d * sizeof *v);
	}
	orthonormalise(v, d);
	project(at, NULL, v, x, mean, n, d);
	for (size_t i = 0; i < 2 * n; i++)
		most = fmax(most, fabs(at[i]));
	for (size_t i = 0; i < 2 * n; i++)
		xy[i] = most > 0 ? (float)(at[i] / most * 10) : 0;
	free_all(at, mean, v, next);
}

void map_rows(float *xy, const float *x, size_t n, size_t d, size_t k, uint32_t seed, int threads)
{
	k = k < n ? k : n - 1;
	FREED uint32_t *neighbour = xmalloc((n * k + 1) * sizeof *neighbour);
	FREED double *distance = xmalloc((n * k + 1) * sizeof *distance);
	nearest_neighbours(x, n, d, k, threads, neighbour, distance);
	map_start(xy, x, n, d, seed);
	umap_rows(xy, neighbour, distance, n, k, seed);
}
