#include "cells/sample.h"

#include "base/error.h"
#include "base/rng.h"
#include "base/sort.h"

#include <xxhash.h>

static uint64_t random_number(uint32_t seed, uint64_t cell, uint32_t purpose)
{
	struct rng r = rng_at(seed, RNG_SAMPLE, cell, purpose);
	return rng_u64(&r);
}

uint64_t sample_draw_name(uint32_t seed, const char *name, uint32_t purpose)
{
	return random_number(seed, XXH3_64bits(name, strlen(name)), purpose);
}

/* The largest draw of a class that is taken is searched from its highest byte to its lowest. */
struct limit {
	uint64_t draw; /* the bytes that are known; the others are 0 */
	uint64_t left; /* rows to take among those with these bytes */
	size_t place; /* among the classes that have more rows than their quota */
	int known; /* rows are taken up to `draw`, and of those that are equal the first `left` */
};

enum { BYTE_VALUES = 256, AT_ONCE = 1 << 12 }; /* classes whose bytes are counted in one pass */

static uint64_t draw_of(const struct sample_rows *r, size_t i)
{
	return random_number(r->seed, r->cell ? r->cell[i] : r->first + i, r->purpose);
}

/* Count the byte at `shift` of the draws that still have the known bytes of their class's limit. */
static void count_bytes(uint64_t (*count)[BYTE_VALUES], const uint8_t *keep, const struct sample_rows *r, const uint32_t *class,
	const struct limit *limit, size_t first, int shift)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct limit *l = &limit[class ? class[i] : 0];
		if (!keep[i] || l->known || l->place < first || l->place >= first + AT_ONCE)
			continue;
		const uint64_t d = draw_of(r, i);
		if (shift == 56 || d >> (shift + 8) == l->draw >> (shift + 8))
			count[l->place - first][d >> shift & 0xff]++;
	}
}

/* The next byte of a limit. */
static void narrow(struct limit *l, const uint64_t *count, int shift)
{
	uint64_t b = 0;
	for (; count[b] < l->left; b++)
		l->left -= count[b];
	l->draw |= b << shift;
	l->known = shift == 0 || count[b] == l->left;
	if (count[b] == l->left) {
		l->draw |= ((uint64_t)1 << shift) - 1;
		l->left = UINT64_MAX;
	}
}

/* The limits of the classes whose place is first, ... */
static void find_limits(
	struct limit *limit, size_t nclass, size_t first, const uint8_t *keep, const struct sample_rows *rows, const uint32_t *class)
{
	uint64_t(*count)[BYTE_VALUES] = xcalloc(AT_ONCE, sizeof *count);
	int open = 1;
	for (int shift = 56; shift >= 0 && open; shift -= 8) {
		memset(count, 0, AT_ONCE * sizeof *count);
		count_bytes(count, keep, rows, class, limit, first, shift);
		open = 0;
		for (size_t c = 0; c < nclass; c++) {
			struct limit *l = &limit[c];
			if (l->known || l->place < first || l->place >= first + AT_ONCE)
				continue;
			narrow(l, count[l->place - first], shift);
			open |= !l->known;
		}
	}
	free(count);
}

void sample_quota(uint8_t *keep, const struct sample_rows *rows, const uint32_t *class, const uint64_t *quota, size_t nclass)
{
	FREED struct limit *limit = xcalloc(nclass, sizeof *limit);
	size_t open = 0;
	for (size_t i = 0; i < rows->n; i++)
		limit[class ? class[i] : 0].left += keep[i] != 0;
	for (size_t c = 0; c < nclass; c++) {
		if (limit[c].left <= quota[c])
			limit[c] = (struct limit){.draw = UINT64_MAX, .left = UINT64_MAX, .known = 1};
		else if (!quota[c])
			limit[c] = (struct limit){.known = 1};
		else
			limit[c] = (struct limit){.left = quota[c], .place = open++};
	}
	for (size_t first = 0; first < open; first += AT_ONCE)
		find_limits(limit, nclass, first, keep, rows, class);
	for (size_t i = 0; i < rows->n; i++) {
		struct limit *l = &limit[class ? class[i] : 0];
		if (!keep[i] || l->draw == UINT64_MAX)
			continue;
		const uint64_t d = l->draw || l->left ? draw_of(rows, i) : 1;
		keep[i] = d < l->draw || (d == l->draw && l->left && l->left--);
	}
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
	FREED uint64_t *rest = xmalloc(nclass * sizeof *rest);
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

COMPARE(by_draw, struct group_draw, ORDER(a->draw, b->draw) ?: ORDER(a->group, b->group))

void sample_groups(const uint64_t *count, const uint64_t *draw, size_t ngroup, double fraction, uint8_t *test)
{
	FREED struct group_draw *g = xmalloc(ngroup * sizeof *g);
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
}

uint64_t sample_share(double fraction, uint64_t n)
{
	return (uint64_t)floor(fraction * (double)n + 0.5);
}
