/* A random sample of rows in which small groups are whole: stratified sampling with equal numbers, so that each group has its own mean. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Draw about m rows without replacement: of each group all, or as many as of every other group that is not whole, at least one.
 * group [n] < groups
 * row [n]     out: the drawn rows, rising
 * weight [n]  out: rows of the group for which each stands
 * Returns how many are drawn: at most the larger of m and the number of groups.
 */
size_t strata_sample(uint32_t *row, double *weight, const uint32_t *group, size_t n, size_t groups, size_t m, uint32_t seed);
