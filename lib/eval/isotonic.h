/* The non-decreasing function that is nearest to some points in squares: pooled adjacent violators [Barlow et al. 1972]. */
#pragma once

#include <stddef.h>

/* x [n] ascending, y [n], no NaN; fit [n] out: the function at x[i], the same for equal x. */
void isotonic_fit(double *fit, const double *x, const double *y, size_t n);
