/*
 * Losses of two tables that know no biology, on masked genes: what a network must beat.
 *
 * frequency  a gene's share among the tokens of the training cells: p(g) = (n(g) + 1) / (sum n + genes).
 * medians    the same, given the medians of the nearest visible genes before and after the masked one. Genes of equal count are sorted by
 *            their medians, so these two enclose the median of the masked gene: the rank value encoding tells it without any biology.
 *            With ranks, which genes of equal count share: given the rank, and of the medians of the visible genes of this rank the middle one.
 *
 * Medians are cut into 4, 16 and 64 classes of equally many tokens. A context c is a pair of classes. From coarse to fine,
 *     p_k(g | c) = (n_c(g) + A_k p_{k-1}(g | c')) / (n_c + A_k),   p_0 = p           [back-off, as Jelinek and Mercer 1980 for words]
 * where n_c are tokens of the training cells in context c. A tenth of these cells is kept to choose each A_k, the one of the smallest loss, so a
 * context that tells nothing costs little.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { LOOKUP_LEVELS = 3 };

struct lookup {
	size_t V, special; /* rows of the vocabulary; of these, leading special tokens, which are no genes */
	const double *median; /* [V], borrowed; NaN (not known) counts as 0 */
	int ranked;

	/* training cells, as they were added */
	uint32_t *token;
	uint16_t *rank;
	size_t tokens, token_cap, rank_cap;
	size_t *end; /* [cells] */
	size_t cells, end_cap;

	/* the table */
	double *p; /* [V] frequency */
	uint32_t *class[LOOKUP_LEVELS]; /* [V] of a gene's median: 1 .. ; 0 if no training cell has such a gene */
	uint32_t *total[LOOKUP_LEVELS]; /* [contexts] tokens of a context */
	uint64_t *key; /* [slots] level, context and gene, + 1; 0: empty */
	uint32_t *count; /* [slots] */
	size_t slots, used;
	double weight[LOOKUP_LEVELS]; /* A */
};

/* A cell: its tokens [n], the ranks [n] of their counts (NULL unless the lookup is ranked), and which are masked, [n] or NULL. */
struct lookup_cell {
	const uint32_t *token;
	const uint16_t *rank;
	const uint8_t *masked;
	size_t n;
};

void lookup_init(struct lookup *l, size_t V, size_t special, const double *median, int ranked);

/* Add a training cell, of which nothing is masked. */
void lookup_add(struct lookup *l, const struct lookup_cell *cell);
/* Make the table. Of the training cells, number 9, 19, 29 ... (from 1) are kept to choose A. */
void lookup_fit(struct lookup *l);

/* Add to *frequency and *medians the losses -log p of the genes gene [n], which are no special tokens, at position [n] of a cell. */
void lookup_score(const struct lookup *l, const struct lookup_cell *cell, const uint16_t *position, const uint32_t *gene, size_t n,
	double *frequency, double *medians);
