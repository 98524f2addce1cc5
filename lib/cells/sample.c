#include "cells/sample.h"

#include "base/error.h"
#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

uint64_t sample_draw(uint32_t seed, uint64_t cell, uint32_t purpose)
{
	struct rng r = rng_at(seed, RNG_SAMPLE, cell, purpose);
	return rng_u64(&r);
}

uint64_t sample_draw_name(uint32_t seed, const char *name, uint32_t purpose)
{
	return sample_draw(seed, XXH3_64bits(name, strlen(name)), purpose);
}

struct pick {
	uint64_t draw;
	size_t row;
	uint32_t class;
};

static int by_class_and_draw(const void *a, const void *b)
{
	const struct pick *x = a, *y = b;
	if (x->class != y->class)
		return x->class < y->class ? -1 : 1;
	if (x->draw != y->draw)
		return x->draw < y->draw ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

void sample_quota(uint8_t *keep, const uint64_t *draw, const uint32_t *class, size_t n, const uint64_t *quota, size_t nclass)
{
	size_t m = 0;
	for (size_t i = 0; i < n; i++)
		m += keep[i] != 0;
	struct pick *p = xmalloc(m * sizeof *p);
	m = 0;
	for (size_t i = 0; i < n; i++)
		if (keep[i])
			p[m++] = (struct pick){draw[i], i, class ? class[i] : 0};
	qsort(p, m, sizeof *p, by_class_and_draw);
	uint64_t taken = 0;
	for (size_t i = 0; i < m; i++) {
		if (i && p[i].class != p[i - 1].class)
			taken = 0;
		if (taken++ >= quota[p[i].class])
			keep[p[i].row] = 0;
	}
	free(p);
}

static uint64_t sum(const uint64_t *count, size_t n)
{
	uint64_t s = 0;
	for (size_t i = 0; i < n; i++)
		s += count[i];
	return s;
}

void sample_proportional(const uint64_t *count, size_t nclass, uint64_t total, uint64_t *quota)
{
	uint64_t all = sum(count, nclass), given = 0;
	if (total > all)
		total = all;
	uint64_t *rest = xmalloc(nclass * sizeof *rest);
	for (size_t c = 0; c < nclass; c++) {
		unsigned __int128 x = (unsigned __int128)count[c] * total;
		quota[c] = all ? (uint64_t)(x / all) : 0;
		rest[c] = all ? (uint64_t)(x % all) : 0;
		given += quota[c];
	}
	for (; given < total; given++) { /* fewer than nclass turns */
		size_t best = 0;
		for (size_t c = 1; c < nclass; c++)
			if (rest[c] > rest[best])
				best = c;
		quota[best]++;
		rest[best] = 0;
	}
	free(rest);
}

void sample_round_robin(const uint64_t *count, size_t nclass, uint64_t total, uint64_t *quota)
{
	uint64_t all = sum(count, nclass);
	uint64_t left = total < all ? total : all;
	memset(quota, 0, nclass * sizeof *quota);
	while (left) {
		size_t open = 0;
		uint64_t least = UINT64_MAX; /* smallest number of remaining cells of a class */
		for (size_t c = 0; c < nclass; c++)
			if (quota[c] < count[c]) {
				open++;
				least = count[c] - quota[c] < least ? count[c] - quota[c] : least;
			}
		uint64_t rounds = left / open < least ? left / open : least;
		for (size_t c = 0; c < nclass && left; c++)
			if (quota[c] < count[c]) {
				uint64_t k = rounds ? rounds : 1;
				quota[c] += k;
				left -= k;
			}
	}
}

struct group_draw {
	uint64_t draw;
	size_t group;
};

static int by_draw(const void *a, const void *b)
{
	const struct group_draw *x = a, *y = b;
	if (x->draw != y->draw)
		return x->draw < y->draw ? -1 : 1;
	return (x->group > y->group) - (x->group < y->group);
}

void sample_groups(const uint64_t *count, const uint64_t *draw, size_t ngroup, double fraction, uint8_t *test)
{
	struct group_draw *g = xmalloc(ngroup * sizeof *g);
	for (size_t i = 0; i < ngroup; i++)
		g[i] = (struct group_draw){draw[i], i};
	qsort(g, ngroup, sizeof *g, by_draw);
	double target = fraction * (double)sum(count, ngroup), taken = 0;
	size_t groups = 0;
	memset(test, 0, ngroup);
	for (size_t i = 0; i < ngroup; i++) {
		double with = taken + (double)count[g[i].group];
		if (groups + 1 < ngroup && fabs(with - target) < fabs(taken - target)) {
			test[g[i].group] = 1;
			taken = with;
			groups++;
		}
	}
	if (!groups) { /* every group has more than twice the share: the smallest is nearest */
		size_t best = g[0].group;
		for (size_t i = 1; i < ngroup; i++)
			if (count[g[i].group] < count[best])
				best = g[i].group;
		test[best] = 1;
	}
	free(g);
}

uint64_t sample_share(double fraction, uint64_t n)
{
	return (uint64_t)floor(fraction * (double)n + 0.5);
}

uint64_t sample_again(uint32_t *times, const uint8_t *keep, const uint64_t *cell, const uint32_t *class, size_t n, size_t nclass,
	uint64_t total, uint32_t seed)
{
	struct pick *p = xmalloc((n + 1) * sizeof *p);
	size_t m = 0, classes = 0, *first = xmalloc((nclass + 2) * sizeof *first);
	memset(times, 0, n * sizeof *times);
	for (size_t i = 0; i < n; i++)
		if (keep[i])
			p[m++] = (struct pick){sample_draw(seed, cell[i], SAMPLE_ORDER), i, class ? class[i] : 0};
	qsort(p, m, sizeof *p, by_class_and_draw);
	for (size_t i = 0; i < m; i++)
		if (!i || p[i].class != p[i - 1].class)
			first[classes++] = i;
	first[classes] = m;
	for (uint64_t t = 0; m && t < total; t++) {
		struct rng r = rng_at(seed, RNG_SAMPLE, t, SAMPLE_AGAIN);
		uint32_t k = rng_below(&r, (uint32_t)classes);
		times[p[first[k] + rng_below(&r, (uint32_t)(first[k + 1] - first[k]))].row]++;
	}
	free(p);
	free(first);
	return m ? total : 0;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

void sample_known(const uint32_t *group, const uint32_t *class, const uint8_t *keep, size_t n, size_t ngroup, size_t nclass, uint32_t none,
	uint8_t *test)
{
	uint64_t *pair = xmalloc((n + 1) * sizeof *pair);
	uint8_t *seen = xcalloc(2 * nclass + 1, 1); /* by training groups, by test groups */
	size_t m = 0;
	for (size_t i = 0; i < n; i++)
		if (keep[i] && class[i] != none)
			pair[m++] = (uint64_t)group[i] << 32 | class[i];
	qsort(pair, m, sizeof *pair, by_number);
	memset(test, 0, ngroup);
	for (size_t from = 0, to; from < m; from = to) {
		size_t g = pair[from] >> 32, known = 1, fresh = 0;
		for (to = from; to < m && pair[to] >> 32 == g; to++) {
			known = known && seen[(uint32_t)pair[to]];
			fresh = fresh || !seen[nclass + (uint32_t)pair[to]];
		}
		test[g] = known && fresh;
		for (size_t i = from; i < to; i++)
			seen[(test[g] ? nclass : 0) + (uint32_t)pair[i]] = 1;
	}
	free(pair);
	free(seen);
}
