/*
 * Correlation of genes within strata of cells, such as the cell types of each donor.
 *     x = log(1 + 10^4 count / total), the means of the strata taken out;  r = sum x y / sqrt(sum x^2 sum y^2) over all cells
 * Pairs are ordered by their score, r o / (o + 10), with o cells that have both genes: a correlation that rests on few cells counts less.
 * Strata lie within donors, and donors are the replicates: the standard error of r is that of a jackknife which leaves out one donor at a time
 * [Efron and Tibshirani 1993, chapter 11].
 *
 * All pairs are screened with x in steps of 2^-11, whose sums of products are whole numbers: a cell adds its product and the overlap to one
 * 64-bit number. With bounds of the rounding the screen keeps every pair that can be an edge, and these are computed from x itself. The cost is
 * the number of pairs of genes in a cell, summed over cells. No matrix of genes is made.
 */
#pragma once

#include "base/error.h"
#include "base/sparse.h"
#include "graph/candidates.h"

struct within_cells {
	struct sparse counts; /* packed; all genes of the stream; the total of a cell is of all its molecules */
	uint32_t *stratum; /* [counts.n] < strata */
	uint32_t *donor; /* [strata] < donors, rising */
	uint32_t strata, donors;
};

/* Row i of c as x, until the next call with r. */
void within_row(const struct within_cells *c, size_t i, struct sparse_row *r);

/* Those of the cells whose donor is on one side, gene by gene, and cell by cell. The genes are in falling order of cells. */
struct within {
	uint32_t n, genes, strata, donors;
	uint32_t *token; /* [genes] */
	uint32_t *donor; /* [strata], borrowed */
	uint32_t *end; /* [donors] cells of the donors up to this one; cells are in order of strata */
	uint64_t *offset; /* [genes + 1] */
	uint32_t *cell; /* [offset[genes]] rising within a gene */
	float *x; /* [offset[genes]] */
	uint64_t *row; /* [n + 1] */
	uint32_t *entry; /* [row[n]] genes of a cell, falling, and from bit 16 on their x in steps */
	double step;
	double *sum; /* [genes, strata] sum of x / sqrt(cells) */
	double *rounded; /* [strata, genes] the same of x in steps */
	double *square; /* [genes, donors] sums of squares within strata; 0 if they are nothing but rounding, or depth */
	double *all; /* [genes] over all donors */
	double *lost; /* [genes] length of what the steps round away / sqrt(all) */
};

/* The genes in at least min_cells cells of each side, as many cells first: of token [*n], malloced. side [donors] is 0 or 1; NULL: all are on
 * one side. -1 with e set: more than 65,535 genes. */
uint32_t *within_genes(const struct within_cells *c, const uint8_t *side, uint32_t min_cells, uint32_t vocab, uint32_t *n);
/* The cells of side `which` with these genes; x owns token then. -1 with e set: more than 65,535 genes. */
int within_init(
	struct within *x, const struct within_cells *c, const uint8_t *side, int which, uint32_t *token, uint32_t genes, struct error *e);
void within_release(struct within *x); /* accepts a zeroed struct */

/* The pairs that may be among the `most` of highest score, above 0, of one of their genes, in order of (u, v), malloced: *n of them. */
struct gene_pair *within_screen(const struct within *x, uint32_t most, size_t *n);

struct within_score {
	double r, score; /* 0 if a gene does not vary */
	uint32_t overlap; /* cells with both genes */
	uint32_t donors, agree; /* within whose strata both genes vary; in which their covariance has the sign of r */
	double se; /* of r; NAN with one donor */
};

/* score [n] of pairs in order of u; xy [n, donors]: the sums of the products of their deviations, or NULL */
void within_score(const struct within *x, const struct gene_pair *pair, size_t n, struct within_score *score, double *xy);
/* r, donors, agree and se of a pair from the donors with side [donors] == which alone (NULL: from all); xy [donors] from within_score */
void within_donors(
	const struct within *x, const struct gene_pair *p, const double *xy, const uint8_t *side, int which, struct within_score *to);
