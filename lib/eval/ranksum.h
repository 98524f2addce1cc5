/*
 * Many small samples against one large one: Wilcoxon's rank sum and its effect size. The large sample is sorted once.
 */
#pragma once

#include <stddef.h>

struct ranksum {
	double z, p; /* normal approximation without corrections for ties and continuity, as scipy.stats.ranksums; two-sided */
	double auc; /* P(x > y) + P(x = y) / 2, the effect size */
	double low,
		high; /* its 95 % interval [DeLong et al. 1988], cut to 0 .. 1; NaN if a sample has one value, or neither has a spread */
};

/*
 * x [n] against y [m], which is sorted (ranksum_sort). x is sorted here. No NaN. All is NaN if a sample is empty.
 *     U = sum_i #{y < x_i} + #{y = x_i} / 2,  auc = U / (n m),  z = (U - n m / 2) / sqrt(n m (n + m + 1) / 12)
 *     se^2 = var_i(P(y < x_i) + P(y = x_i) / 2) / n + var_k(P(x < y_k) + P(x = y_k) / 2) / m,   variances with n - 1 and m - 1
 */
void ranksum_against(struct ranksum *r, double *x, size_t n, const double *y, size_t m);
void ranksum_sort(double *y, size_t m);

/*
 * P of the mean of d [n], whose signs are independent under the null hypothesis: the share of the 2^n choices of signs whose |mean| is at
 * least that of d. All choices up to n = 16, else 65,536 of them, drawn, and d itself. NaN if n is 0.
 */
double sign_flips(const double *d, size_t n);

/* The smallest P that it can give, n > 0. */
double sign_flips_least(size_t n);
