/*
 * Is one way better than another? Differences between two samples, as means over seeds, donors or splits, with a 95 % interval and two-sided
 * tests. Missing values are NaN. What the numbers cannot tell is NaN, never 0: one pair has no spread.
 */
#ifndef PAIRED_H
#define PAIRED_H

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
 * Pairs that are not independent: those of one cluster (cell, donor) belong together. cluster [n] < clusters.
 *     se^2 = C / (C - 1) sum_c (sum_{i in c} (d_i - mean))^2 / n^2      over the C clusters that have a pair; df = C - 1
 * With one pair a cluster this is Student's t. rank_p is NaN.
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

/* p [n] is replaced by p corrected for n comparisons; NaN is no comparison. Holm 1979: the chance of any false difference. Benjamini and
 * Hochberg 1995: the share of false ones among the shown. */
void correct_holm(double *p, size_t n);
void correct_bh(double *p, size_t n);

/*
 * One difference over several data sets, whose true differences vary (random effects) [DerSimonian and Laird 1986]:
 *     w_i = 1 / se_i^2,  Q = sum w_i (d_i - d_w)^2,  tau2 = max(0, (Q - (k - 1)) / (sum w_i - sum w_i^2 / sum w_i))
 *     mean = sum d_i / (se_i^2 + tau2) / sum 1 / (se_i^2 + tau2)
 */
struct pooled {
	size_t n; /* data sets */
	size_t dropped; /* sets without a difference or a positive standard error */
	double mean, se;
	double low, high, t, p; /* by the normal distribution, t = mean / se; or see hartung_knapp */
	double df; /* INFINITY, or n - 1 */
	double tau2; /* variance of the true differences over data sets */
	double Q, Q_p, I2; /* is their spread more than chance? I2 = max(0, 1 - (n - 1) / Q): share of the spread that is not chance */
};

/* mean [n], se [n] of each set. hartung_knapp: se^2 = sum w (d_i - mean)^2 / ((n - 1) sum w), w = 1 / (se_i^2 + tau2), and a t test with n - 1
 * degrees of freedom, which is more honest for a few sets [Hartung and Knapp 2001]. One set: tau2, Q and I2 are NaN. */
void pooled_differences(struct pooled *r, const double *mean, const double *se, size_t n, int hartung_knapp);

#endif
