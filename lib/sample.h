/*
 * Choosing cells. Every choice takes the smallest of per-cell draws, which are Philox(seed, purpose, cell): a sample
 * depends on the cells offered and the seed, not on their order, on blocks or on threads.
 */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <stddef.h>
#include <stdint.h>

/* What the draw of a cell is for (b of rng_at(seed, RNG_SAMPLE, cell, b)). Different steps must not share draws: after a
 * cap by donor, say, the cells left of a large donor have small draws for that purpose. */
enum sample_purpose { SAMPLE_NUMBER, SAMPLE_SPLIT, SAMPLE_GROUP, SAMPLE_CLASS, SAMPLE_CAP = 16 };

uint64_t sample_draw(uint32_t seed, uint64_t cell, uint32_t purpose);

/* The draw of a group or class by its name. */
uint64_t sample_draw_name(uint32_t seed, const char *name, uint32_t purpose);

/* Of the rows with keep[i] != 0, keep the quota[c] of smallest draw in each class c (ties: lower row); clear the others.
 * draw, keep, class [n], class[i] < nclass; class NULL: all rows are of class 0. */
void sample_quota(uint8_t *keep, const uint64_t *draw, const uint32_t *class, size_t n, const uint64_t *quota, size_t nclass);

/* Share `total` among classes in proportion to count[c]: floors first, the rest one each to the largest remainders
 * (ties: lower class). quota[c] <= count[c], and they add up to min(total, sum of counts). */
void quota_proportional(const uint64_t *count, size_t nclass, uint64_t total, uint64_t *quota);

/* Deal `total` one at a time to the classes in turn, passing over exhausted ones: shares as equal as the counts allow. */
void quota_round_robin(const uint64_t *count, size_t nclass, uint64_t total, uint64_t *quota);

/* Choose test groups: visit groups by rising draw, and take one when that brings the number of rows taken nearer to
 * fraction x all rows. At least one group is taken and one left. ngroup >= 2. test [ngroup] out, 0 or 1. */
void split_groups(const uint64_t *count, const uint64_t *draw, size_t ngroup, double fraction, uint8_t *test);

/* fraction of n, to the nearest whole number (halves up). */
uint64_t share_of(double fraction, uint64_t n);

#endif
