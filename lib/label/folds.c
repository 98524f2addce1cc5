#include "label/folds.h"

#include "base/error.h"
#include "base/rng.h"
#include "base/sort.h"

struct item {
	double spread; /* groups: larger first */
	uint64_t draw;
	size_t index;
	uint32_t class;
};

COMPARE(by_class_and_draw, struct item, ORDER(a->class, b->class) ?: ORDER(b->spread, a->spread) ?: ORDER(a->draw, b->draw) ?: ORDER(a->index, b->index))

void folds_stratified(uint32_t *fold, const uint32_t *y, const uint64_t *cell, size_t n, size_t k, size_t nfold, uint64_t seed)
{
	FREED struct item *it = xmalloc(n * sizeof *it);
	for (size_t i = 0; i < n; i++) {
		struct rng r = rng_at((uint32_t)seed, RNG_FOLD, cell[i], 2 * (uint32_t)(seed >> 32));
		it[i] = (struct item){.draw = rng_u64(&r), .index = i, .class = y[i]};
	}
	qsort(it, n, sizeof *it, by_class_and_draw);
	for (size_t i = 0; i < n; i++)
		fold[it[i].index] = (uint32_t)(i % nfold);
}

static double deviation(const double *v, size_t n, size_t stride)
{
	double mean = 0, square = 0;
	for (size_t i = 0; i < n; i++)
		mean += v[i * stride];
	mean /= (double)n;
	for (size_t i = 0; i < n; i++)
		square += (v[i * stride] - mean) * (v[i * stride] - mean);
	return sqrt(square / (double)n);
}

/* How uneven the folds are if group counts g [k] join fold f: mean over classes of the standard deviation of the share. */
static double unevenness(double *share, const double *g, const double *total, size_t k, size_t nfold, size_t f)
{
	double sum = 0;
	for (size_t c = 0; c < k; c++) {
		if (!(total[c] > 0))
			continue;
		share[f * k + c] += g[c] / total[c];
		sum += deviation(share + c, nfold, k);
		share[f * k + c] -= g[c] / total[c];
	}
	return sum;
}

void folds_grouped(uint32_t *fold, const uint32_t *y, const uint32_t *group, size_t n, size_t k, size_t ngroup, size_t nfold, uint64_t seed)
{
	double *count = xcalloc(ngroup * k, sizeof *count), *total = xcalloc(k, sizeof *total);
	double *share = xcalloc(nfold * k, sizeof *share), *cells = xcalloc(nfold, sizeof *cells);
	struct item *it = xmalloc(ngroup * sizeof *it);
	uint32_t *place = xmalloc(ngroup * sizeof *place);
	size_t *groups = xcalloc(nfold, sizeof *groups), empty = nfold;
	for (size_t i = 0; i < n; i++) {
		count[group[i] * k + y[i]]++;
		total[y[i]]++;
	}
	for (size_t g = 0; g < ngroup; g++) {
		struct rng r = rng_at((uint32_t)seed, RNG_FOLD, g, 2 * (uint32_t)(seed >> 32) + 1);
		it[g] = (struct item){.spread = k > 1 ? deviation(count + g * k, k, 1) : count[g], .draw = rng_u64(&r), .index = g};
	}
	qsort(it, ngroup, sizeof *it, by_class_and_draw);
	for (size_t i = 0; i < ngroup; i++) {
		const double *g = count + it[i].index * k;
		size_t best = nfold;
		double least = 0;
		for (size_t f = 0; f < nfold; f++) {
			if (groups[f] && ngroup - i <= empty)
				continue; /* the remaining groups are needed for the empty folds */
			double u = unevenness(share, g, total, k, nfold, f);
			if (best == nfold || u < least - 1e-12 || (u < least + 1e-12 && cells[f] < cells[best])) {
				best = f;
				least = u;
			}
		}
		place[it[i].index] = (uint32_t)best;
		empty -= !groups[best]++;
		for (size_t c = 0; c < k; c++) {
			cells[best] += g[c];
			share[best * k + c] += total[c] > 0 ? g[c] / total[c] : 0;
		}
	}
	for (size_t i = 0; i < n; i++)
		fold[i] = place[group[i]];
	free_all(count, total, share, cells, it, place, groups);
}

size_t close_gaps(uint32_t *v, size_t n)
{
	size_t most = 0, count = 0;
	for (size_t i = 0; i < n; i++)
		most = v[i] > most ? v[i] : most;
	FREED uint32_t *number = xcalloc(most + 1, sizeof *number);
	for (size_t i = 0; i < n; i++)
		number[v[i]] = 1;
	for (size_t i = 0; i <= most; i++)
		if (number[i])
			number[i] = (uint32_t)count++;
	for (size_t i = 0; i < n; i++)
		v[i] = number[v[i]];
	return count;
}
