/*
 * The order of the entries of one cell by key = count / median, largest first; equal keys go by the lower token. The order is exact.
 *
 * Positive doubles have the same order as their bits. The keys of a cell lie between 1 / (largest median) and (largest count) / (least median), so a
 * few bits after those that all keys share distinguish most keys. An item of 32 bits holds these leading bits of a key, reversed so
 * that large keys come first, above the number of its entry:
 *
 *      31                                                         0
 *     +--------+------------------+------------------+-------------+
 *     | unused |   upper digit    |   lower digit    |   number    |
 *     +--------+------------------+------------------+-------------+
 *                8 or 9 bits        8 or 9 bits        12 to 16 bits
 *
 *     upper and lower digit = largest - (leading bits of the key)      largest: all bits are set, which means key 0
 *
 * Two radix passes, one a digit, sort the items. Entries with the same leading bits are then put in order by their exact keys.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct ranksort_entries {
	const uint32_t *gene, *count; /* [n] of the entries */
	const uint32_t *token; /* [genes] */
	const double *median; /* [genes] > 0; infinite: the key is 0 */
	double least, most; /* finite bounds of the medians that are finite, most > 0 */
};

/* item [n] out: the entries' numbers in order; token [n] out: their tokens; other [n]: scratch. Returns how many have a key above 0. They come
 * first; the order of the others is undefined, and they have no token. */
size_t ranksort(const struct ranksort_entries *in, size_t n, uint32_t *item, uint32_t *token, uint32_t *other);
