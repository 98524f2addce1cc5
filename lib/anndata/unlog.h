/*
 * Counts from normalised values. A pipeline multiplies the counts of a cell by one number, such as 10,000 / their sum, and often stores the
 * logarithm. If float32 holds the result, the counts are still there:
 *
 *     y = exp(v) - 1, or another base, or v itself       y = count x unit of the cell
 *
 * The unit of a cell is the largest number of which all its y are multiples within rounding. Each value leaves an interval to the unit; the
 * unit must lie in all of them, and at that precision each y must be one multiple of it alone. So counts are exact, or the cell is refused; but
 * counts with a common factor come back divided by it.
 *
 * Rounding: v, 1 + y and y were rounded to float32, perhaps by a library that errs by more than half a unit in the last place. So the relative
 * error of y is at most UNLOG_ERROR * ((log(1 + y) + 1) (1 + y) / y + 1). Measured (man h5tok.1): two thirds of it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define UNLOG_ERROR (3 * 0x1p-24)

enum unlog { UNLOG_NOT, UNLOG_SAME, UNLOG_EXP, UNLOG_EXP2, UNLOG_EXP10, UNLOGS };

extern const char *const unlog_formula[]; /* "exp(value) - 1"; "" for UNLOG_NOT and UNLOG_SAME */

double unlog_value(enum unlog by, double v); /* y */

struct unlogged {
	double unit, spread; /* what is left of its interval, by the unit */
	double off; /* largest distance of y / unit from a whole number */
	double chance; /* that other numbers than counts would come back, by the values that differ */
};

/* Counts of a cell's values v [n], which become y; error [n] is scratch. Zeros stay. Returns 0, or -1: the values are no multiples of one
 * number, or at their precision more than one count is possible. */
int unlog_cell(enum unlog by, double *v, double *error, size_t n, uint32_t *count, struct unlogged *u);
