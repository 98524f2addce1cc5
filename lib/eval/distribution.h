/*
 * Tails of the distributions of test statistics. Each sum has only positive terms, so small probabilities keep their digits: against 50-digit
 * arithmetic (mpmath), errors are below 1e-12 relative down to 1e-300.
 */
#pragma once

#include <stddef.h>

#define NORMAL_975 1.959963984540054 /* P(|Z| > NORMAL_975) = .05 */

/* P(|Z| > |z|) of a standard normal Z, and P(|T| > |t|) of Student's T with v > 0 degrees of freedom. NaN for NaN. */
double normal_two_sided(double z);
double student_two_sided(double t, double v);

/* The t >= 0 with P(|T| > t) = p, 0 < p < 1. NaN unless v > 0. */
double student_quantile(double p, double v);

/* P(X > x) of chi squared with v >= 1 degrees of freedom, a whole number; x >= 0. */
double chi_squared_tail(double x, size_t v);

/*
 * The noncentrality delta at which the two-sided t test of level p has this power: the true difference, in standard errors, that it finds so
 * often. With t = student_quantile(p, v) and a noncentral T', the power is P(|T'| > t). T'^2 is a noncentral F, so with x = v / (v + t^2)
 *     power = sum_j e^-L L^j / j!  I_x(v / 2, 1 / 2 + j),  L = delta^2 / 2       [Johnson, Kotz and Balakrishnan 1995, 30.2]
 * NaN unless v > 0.
 */
double student_noncentrality(double power, double p, double v);

/* The degrees of freedom of a mean over clusters (paired.h), below which there is no test. size [clusters]: of n in all, n > 0; clusters of size 0
 * do not count. NaN if one cluster has all. */
#define CLUSTERS_DF_MIN 1.2
double clusters_df(const size_t *size, size_t clusters, size_t n);
