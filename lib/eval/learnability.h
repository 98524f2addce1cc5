/*
 * Which genes does a model predict better, or worse, than other genes with as many zeros [BMFM-RNA, section on gene learnability]? With r the
 * rescaled error of a gene and f the isotonic regression of log r on the zero fraction,
 *     e = log r - f,   z = e / s,   s the standard deviation (n - 1) of e over the genes of the nearest ranks by zero fraction.
 * A winner has z < -tau and r < (1 - margin) exp(f), a loser z > tau and r > (1 + margin) exp(f). The paper gives a margin of .1; window and
 * tau are not known, so their defaults are ours.
 */
#ifndef LEARNABILITY_H
#define LEARNABILITY_H

#include <stddef.h>

enum learned { LEARNED_AS_EXPECTED, LEARNED_WINNER, LEARNED_LOSER };

struct learned_gene {
	double zero_fraction, r; /* given; r > 0 */
	double expected, z; /* exp(f) */
	enum learned kind;
};

struct learning_rules {
	size_t window; /* genes of a window at least */
	double window_share; /* and at least this share of the genes; at most all of them */
	double tau, margin;
};

#define LEARNING_SPREAD 1e-6 /* s at least, where all genes of a window are alike */

/*
 * gene [n]. Genes of equal zero fraction keep their order, and a window at either end holds as many genes as the others. *explained: the share of
 * the variance of log r that f explains; NaN if all r are equal.
 */
void learnability(struct learned_gene *gene, size_t n, const struct learning_rules *rules, double *explained);

#endif
