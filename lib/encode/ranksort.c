#include "encode/ranksort.h"

#include <stdlib.h>
#include <string.h>

enum {
	ITEM_BITS = 32,
	NUMBER_BITS_LEAST = 12,
	NUMBER_BITS_MOST = 16, /* cells with more entries are sorted by qsort */
	DIGIT_BITS = 9,
	SHORT_DIGIT_BITS = 8,
	SHORT_CELL = 512, /* for cells with fewer entries, clearing 2 x 2^9 bins costs more than a few more ties */
	RUN_SHORT = 24 /* insertion sort for up to so many entries with the same leading bits */
};

static double key(const struct ranksort_entries *in, uint32_t i)
{
	return (double)in->count[i] / in->median[in->gene[i]];
}

/* Does entry i come after entry j? */
static int after(const struct ranksort_entries *in, uint32_t i, uint32_t j)
{
	double a = key(in, i), b = key(in, j);
	return a != b ? a < b : in->token[in->gene[i]] > in->token[in->gene[j]];
}

static int by_rank_key(const void *a, const void *b, void *in)
{
	return after(in, *(const uint32_t *)a, *(const uint32_t *)b) ? 1 : -1;
}

/* A cell with more entries than an item can number. */
static size_t sort_long(const struct ranksort_entries *in, size_t n, uint32_t *item, uint32_t *token)
{
	struct ranksort_entries entries = *in;
	size_t known = n;
	for (size_t i = 0; i < n; i++)
		item[i] = (uint32_t)i;
	qsort_r(item, n, sizeof *item, by_rank_key, &entries);
	while (known && key(in, item[known - 1]) == 0)
		known--;
	for (size_t i = 0; i < known; i++)
		token[i] = in->token[in->gene[item[i]]];
	return known;
}

/* Pack the items: leading bits of the keys above `low` bits of number. `digit`: bits of a digit. */
static void pack(const struct ranksort_entries *in, size_t n, int low, int digit, uint32_t *restrict item)
{
	const uint32_t *x = in->count, *gene = in->gene;
	const double *restrict median = in->median;
	uint32_t most = 1, largest = (1u << 2 * digit) - 1;
	for (size_t i = 0; i < n; i++)
		most = x[i] > most ? x[i] : most;
	double least_key = 1 / in->most, most_key = most / in->least;
	int64_t base, top;
	memcpy(&base, &least_key, 8);
	memcpy(&top, &most_key, 8);
	int shift = 0;
	while ((top - base) >> shift >= largest)
		shift++;
	base -= (int64_t)1 << shift; /* leading bits 0 are reserved for key 0 */
	for (size_t i = 0; i < n; i++) {
		double k = x[i] / median[gene[i]];
		int64_t b;
		memcpy(&b, &k, 8);
		b -= base;
		b = b < 0 ? 0 : b >> shift;
		item[i] = (largest - (uint32_t)b) << low | (uint32_t)i;
	}
}

/* Sort item [n] by the two digits above its `low` bits of number: two radix passes. */
static void sort_items(uint32_t *restrict item, uint32_t *restrict other, size_t n, int low, int digit)
{
	/* 16 bits: a third faster. A bin of 2^16 items overflows to 0, but then the other bins are empty */
	uint16_t at[2][1 << DIGIT_BITS];
	uint32_t mask = (1u << digit) - 1;
	memset(at[0], 0, sizeof at[0][0] << digit);
	memset(at[1], 0, sizeof at[1][0] << digit);
	for (size_t i = 0; i < n; i++) {
		uint32_t d = item[i] >> low;
		at[0][d & mask]++;
		at[1][d >> digit]++;
	}
	for (uint32_t b = 0, sum0 = 0, sum1 = 0; b <= mask; b++) {
		uint32_t n0 = at[0][b], n1 = at[1][b];
		at[0][b] = (uint16_t)sum0;
		at[1][b] = (uint16_t)sum1;
		sum0 += n0;
		sum1 += n1;
	}
	for (size_t i = 0; i < n; i++)
		other[at[0][item[i] >> low & mask]++] = item[i];
	for (size_t i = 0; i < n; i++)
		item[at[1][other[i] >> low >> digit]++] = other[i];
}

/* Put a run of entries with the same leading bits in exact order. */
static void sort_run(const struct ranksort_entries *in, uint32_t *item, size_t n)
{
	if (n > RUN_SHORT) {
		struct ranksort_entries entries = *in;
		qsort_r(item, n, sizeof *item, by_rank_key, &entries);
		return;
	}
	for (size_t i = 1; i < n; i++) {
		uint32_t x = item[i];
		size_t j = i;
		for (; j && after(in, item[j - 1], x); j--)
			item[j] = item[j - 1];
		item[j] = x;
	}
}

/* Convert items to numbers and tokens, and put runs with the same leading bits in exact order. tie [n]: scratch. */
static void ranksort_settle(
	const struct ranksort_entries *in, uint32_t *restrict item, uint32_t *restrict tie, uint32_t *restrict token, size_t n, int low)
{
	const uint32_t *restrict gene = in->gene, *restrict token_of = in->token;
	uint32_t number = (1u << low) - 1, last = n ? ~item[0] : 0;
	size_t ties = 0;
	for (size_t i = 0; i < n; i++) {
		uint32_t x = item[i];
		tie[ties] = (uint32_t)i;
		ties += (x ^ last) <= number;
		last = x;
		item[i] = x & number;
		token[i] = token_of[gene[x & number]];
	}
	for (size_t k = 0; k < ties;) {
		size_t from = tie[k] - 1, end = from + 1;
		for (; k < ties && tie[k] == end; k++)
			end++;
		sort_run(in, item + from, end - from);
		for (size_t i = from; i < end; i++)
			token[i] = token_of[gene[item[i]]];
	}
}

size_t ranksort(const struct ranksort_entries *in, size_t n, uint32_t *item, uint32_t *token, uint32_t *other)
{
	int low = NUMBER_BITS_LEAST;
	while ((size_t)1 << low < n)
		low++;
	if (low > NUMBER_BITS_MOST)
		return sort_long(in, n, item, token);
	int digit = n < SHORT_CELL || low > ITEM_BITS - 2 * DIGIT_BITS ? SHORT_DIGIT_BITS : DIGIT_BITS;
	uint32_t largest = (1u << 2 * digit) - 1;
	size_t known = n;
	pack(in, n, low, digit, item);
	sort_items(item, other, n, low, digit);
	while (known && item[known - 1] >> low == largest)
		known--;
	for (size_t i = known; i < n; i++)
		item[i] &= (1u << low) - 1;
	ranksort_settle(in, item, other, token, known, low);
	return known;
}
