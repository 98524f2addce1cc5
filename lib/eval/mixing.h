/*
 * How mixed the groups (batches, cell types) are among the nearest neighbours of a cell.
 *
 * LISI [Korsunsky et al. 2019]: the effective number of groups around a cell,
 *     1 / sum_g (sum_{j in g} p_j)^2,    p_j = exp(-beta d_j) / sum exp(-beta d),
 * with beta such that the entropy of p is the logarithm of the perplexity. beta is searched as in scib-metrics.
 *
 * kBET [Buettner et al. 2019]: the share of the cells whose neighbours have the groups as expected, by a chi-squared test at .05: the
 * observed counts are those of the k - 1 neighbours and the cell itself, the expected ones k times the shares of all cells.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct grouping {
	const uint32_t *group; /* [n] < groups */
	size_t groups;
	double *lisi; /* [n] out, from 1 to `groups` */
};

/* LISI by m groupings. neighbour, distance [n, k]: the nearest rows of each row, without itself. */
void mixing_lisi(const struct grouping *by, size_t m, const uint32_t *neighbour, const double *distance, size_t n, size_t k,
	double perplexity, int threads);

/* neighbour [n, width], of which the first k - 1 are used, k > 1; group [n] < groups, each group has a cell, groups > 1 */
double mixing_kbet(const uint32_t *neighbour, size_t n, size_t width, size_t k, const uint32_t *group, size_t groups);
