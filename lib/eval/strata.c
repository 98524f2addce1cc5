#include "eval/strata.h"

#include "base/error.h"
#include "base/rng.h"

/* The largest number of rows a group such that together they are at most m, or 1. */
static size_t share(const size_t *size, size_t groups, size_t n, size_t m)
{
	size_t low = 1, high = n + 1;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2, sum = 0;
		for (size_t g = 0; g < groups; g++)
			sum += size[g] < middle ? size[g] : middle;
		if (sum <= m)
			low = middle;
		else
			high = middle;
	}
	return low;
}

size_t strata_sample(uint32_t *row, double *weight, const uint32_t *group, size_t n, size_t groups, size_t m, uint32_t seed)
{
	struct rng r = rng_at(seed, RNG_STRATA, 0, 0);
	size_t *left = xcalloc(groups, sizeof *left), *wanted = xcalloc(groups, sizeof *wanted), drawn = 0;
	double *stands = xcalloc(groups, sizeof *stands);
	for (size_t i = 0; i < n; i++)
		left[group[i]]++;
	size_t most = share(left, groups, n, m);
	for (size_t g = 0; g < groups; g++) {
		wanted[g] = left[g] < most ? left[g] : most;
		stands[g] = (double)left[g] / (double)wanted[g];
	}
	for (uint32_t i = 0; i < n; i++) { /* selection sampling [Knuth, volume 2, algorithm S] */
		uint32_t g = group[i];
		if (rng_below(&r, (uint32_t)left[g]--) >= wanted[g])
			continue;
		wanted[g]--;
		row[drawn] = i;
		weight[drawn++] = stands[g];
	}
	free_all(left, wanted, stands);
	return drawn;
}
