/*
 * Sampling of cells. Each cell has a random number for each purpose, Philox(seed, purpose, cell). The cells with the smallest numbers are
 * taken. So a sample depends on the seed and the set of cells, but not on their order, on blocks or on threads.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The purpose of a draw (b of rng_at(seed, RNG_SAMPLE, cell, b)). Different steps must not share draws. For example, after --cap by donor
 * the remaining cells of a large donor all have small draws for that purpose. */
enum sample_purpose { SAMPLE_NUMBER, SAMPLE_SPLIT, SAMPLE_GROUP, SAMPLE_CLASS, SAMPLE_CAP = 16 };

/* The draw of a group or class by its name. */
uint64_t sample_draw_name(uint32_t seed, const char *name, uint32_t purpose);

/* The rows of an input and their draws for one purpose. Draws are computed when they are needed: a hundred million of them take more memory
 * than time. */
struct sample_rows {
	size_t n;
	const uint64_t *cell; /* [n] numbers of the cells; NULL: first, first + 1, ... */
	uint64_t first;
	uint32_t seed, purpose;
};

/* Of the rows with keep[i] != 0, keep in each class c the quota[c] rows with the smallest draws (ties: lower row); clear the others.
 * keep, class [n], class[i] < nclass; class NULL: all rows are of class 0. Memory is 32 bytes a class, and 8 MB. */
void sample_quota(uint8_t *keep, const struct sample_rows *rows, const uint32_t *class, const uint64_t *quota, size_t nclass);

/* Share `total` among classes in proportion to count[c]: floors first, then one more each to the largest remainders
 * (ties: lower class). quota[c] <= count[c], and they add up to min(total, sum of counts). */
void sample_proportional(const uint64_t *count, size_t nclass, uint64_t total, uint64_t *quota);

/* Distribute `total` among the classes one at a time, in turn, skipping classes that are used up: shares as equal as the counts allow. */
void sample_round_robin(const uint64_t *count, size_t nclass, uint64_t total, uint64_t *quota);

/* Choose test groups: visit groups by rising draw, and take a group if then the number of rows taken is nearer to
 * fraction x all rows. At least one group is taken, and at least one is not. ngroup >= 2. test [ngroup] out, 0 or 1. */
void sample_groups(const uint64_t *count, const uint64_t *draw, size_t ngroup, double fraction, uint8_t *test);

/* fraction of n, to the nearest whole number (halves up). */
uint64_t sample_share(double fraction, uint64_t n);
