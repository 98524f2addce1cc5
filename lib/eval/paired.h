/*
 * Is one way better than another? Differences between two samples, as means over seeds, donors or splits, with a 95 % interval and two-sided
 * tests. Missing values are NaN. What the numbers cannot tell is NaN, never 0: one pair has no spread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct difference {
	size_t n, m; /* values of x, of y; of pairs both are their number */
	size_t dropped; /* pairs or values that were left out, as a value is NaN */
	double x, y; /* the means of these values */
	double mean; /* x - y */
	double sd; /* of the differences (n - 1); unpaired: of both, sqrt((sd_x^2 + sd_y^2) / 2) */
	double se; /* standard error of the mean difference, by the spread, or by what the function says */
	double df; /* degrees of freedom of t */
	double low, high; /* 95 % interval of the mean difference; NaN if there is no spread, but for draws */
	double t, p; /* of mean / se; NaN if there is no spread */
	double rank_p; /* of Wilcoxon's test */
	int rank_exact; /* rank_p is of the exact distribution, not of its normal approximation */
	double detectable; /* the true difference that a test at .05 of as many values with this spread finds in 80 % of cases */
};

/*
 * Pairs x [n], y [n]: Student's t, df = n - 1, and Wilcoxon's signed ranks, as scipy.stats.wilcoxon does it since 1.15: zeros are left out; exact
 * up to 13 pairs, and up to 50 without zeros and ties; otherwise normal with the variance for ties, no continuity correction. y may be NULL: 0.
 * share: splits of the same cells overlap, so their differences are not independent; with the size of a test part over that of a training
 * part, se^2 = sd^2 (1 / n + share) [Nadeau and Bengio 2003, section 3]. 0: independent pairs.
 */
void difference_paired(struct difference *d, const double *x, const double *y, size_t n, double share);

/* The same of x [n] alone, but for Wilcoxon's test, which takes long: rank_p is NaN. */
void difference_mean(struct difference *d, const double *x, size_t n);

/*
 * Pairs that are not independent: those of one cluster (cell, donor) belong together. cluster [n] < clusters. With p_c, the share of the
 * pairs that cluster c has, and q_c = p_c^2 / (1 - p_c)
 *     se^2 = sum_c (sum_{i in c} (d_i - mean))^2 / (1 - p_c) / n^2,   df = 1 / (sum_c p_c^2 + sum_{c != k} q_c q_k)
 * These are CR2 and Satterthwaite's degrees of freedom of a mean [Bell and McCaffrey 2002; Pustejovsky and Tipton 2018]. C clusters of one
 * size have df = C - 1; with one pair a cluster this is Student's t. One cluster has no se, and below CLUSTERS_DF_MIN there is no test and
 * no interval: they would not hold. rank_p is NaN.
 */
void difference_clusters(struct difference *d, const double *x, const double *y, size_t n, const uint32_t *cluster, size_t clusters);

/*
 * x [n] and y [m] without pairs: Welch's t, and Wilcoxon's rank sum, as scipy.stats.mannwhitneyu does it: exact if a sample has at most
 * 8 values and no two of all values are equal, otherwise normal with the variance for ties and a continuity correction.
 */
void difference_unpaired(struct difference *d, const double *x, size_t n, const double *y, size_t m);

/* The mean difference over draws of the tested cells (bootstrap): se is the sd of the draws, low and high are their quantiles; no test. d [n] is
 * sorted here. */
void difference_draws(struct difference *r, double *d, size_t n);

/* n numbers p, each `step` bytes behind the last, are replaced by p corrected for n comparisons; NaN is no comparison. Holm 1979: the chance of any
 * false difference. Benjamini and Hochberg 1995: the share of false ones among the shown. */
void correct_holm(double *p, size_t n, size_t step);
void correct_bh(double *p, size_t n, size_t step);
