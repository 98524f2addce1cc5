/*
 * The nearest neighbours of each of many rows, of which some are missed, in less than quadratic time: an inverted file [Sivic and Zisserman 2003;
 * IVFFlat of Faiss]. The rows are divided into about 2 sqrt(n) lists around centres, which k-means finds. For the rows of a list, the lists whose
 * centres are nearest to one of them are searched, exactly (neighbours.h). How many lists are searched is measured: for rows drawn at random the
 * true neighbours are searched among all rows, and the number grows until `recall` of these are found.
 *
 * Time grows with n^1.5 d for the lists, and with the number of lists that are searched.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * x [n, d]          rows, finite
 * recall            share of the neighbours to be found, at most 1
 * neighbour [n, k]  out: the nearest found rows of each row without itself, the nearest first
 * distance [n, k]   out: their distances
 * 0 < k < n. Returns the measured recall. BLAS must be set to one thread. The result depends on the seed, not on the number of threads.
 */
double inverted_neighbours(
	const float *x, size_t n, size_t d, size_t k, double recall, uint32_t seed, int threads, uint32_t *neighbour, double *distance);

/* The search is exact up to `exact` rows; above, the inverted file finds the fraction `recall` of the neighbours. */
struct search_settings {
	size_t exact;
	double recall;
	uint32_t seed;
	int threads;
};

/* The same by nearest_neighbours or inverted_neighbours. Returns the measured recall, 1 if exact. */
double some_neighbours(
	const float *x, size_t n, size_t d, size_t k, const struct search_settings *s, uint32_t *neighbour, double *distance);
