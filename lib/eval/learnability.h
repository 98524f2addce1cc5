/*
 * Which genes does a model predict better, or worse, than other genes with as many zeros [BMFM-RNA, section on gene learnability]? With r the
 * rescaled error of a gene and f the isotonic regression of log r on the zero fraction,
 *     e = log r - f,   z = e / s,   s the standard deviation (n - 1) of e over the genes of the nearest ranks by zero fraction.
 * s is of 201 genes at least, and of a twentieth of the genes at least, but at most of all of them.
 * A winner has z < -2 and r < .9 exp(f), a loser z > 2 and r > 1.1 exp(f). The paper gives the tenth; the window is ours.
 */
#pragma once

#include <stddef.h>

enum learned { LEARNED_AS_EXPECTED, LEARNED_WINNER, LEARNED_LOSER };

struct learned_gene {
	double zero_fraction, r; /* given; r > 0 */
	double expected, z; /* exp(f) */
	enum learned kind;
};

#define LEARNING_WINDOW 201
#define LEARNING_SPREAD 1e-6 /* s at least, where all genes of a window are alike */

/*
 * gene [n]. Genes of equal zero fraction keep their order, and a window at either end holds as many genes as the others. *explained: the share of
 * the variance of log r that f explains; NaN if all r are equal.
 */
void learnability(struct learned_gene *gene, size_t n, double *explained);
