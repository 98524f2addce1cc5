/*
 * Principal component regression [Buettner et al. 2019]: the share of the variance of the first components that a grouping of the rows
 * explains,
 *     sum_c V_c R2_c / sum_c V_c,
 * V_c the variance of component c, R2_c the share of it that lies between the means of the groups.
 */
#pragma once

#include "base/error.h"

/*
 * x [n, d]      rows, finite; n >= 2
 * group [n] < groups, each group has a row
 * components    that are used, of min(n, d) at most
 * share         out: 0 to 1; NaN if all rows are equal
 * Memory is 8 d^2 bytes. BLAS must be set to one thread; the result does not depend on the number of threads. -1 with e set if LAPACK
 * fails.
 */
int pcr_share(const float *x, size_t n, size_t d, const uint32_t *group, size_t groups, size_t components, int threads, double *share,
	struct error *e);
