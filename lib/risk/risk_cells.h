/*
 * Cells in memory as sparse rows of values, and the covariance of their most expressed genes.
 * counts: log(1 + 10,000 count / n_counts). tokens: 2048 - position, counted from 1 after the special tokens; 0 from there on, and for
 * genes that a cell does not express (as in correlation_columns.h).
 */
#ifndef RISK_CELLS_H
#define RISK_CELLS_H

#include "stream/stream.h"

struct risk_cells {
	uint64_t n;
	uint64_t *end; /* [n] index after the last value of a cell */
	uint32_t *gene;
	float *value;
	size_t cap_end, cap_gene, cap_value;
	double *sum; /* [vocabulary] of a gene's values */
};

/* Read all cells of a counts or tokens stream. -1 with e set. c is zeroed before. */
int risk_cells_read(struct risk_cells *c, struct stream *in, struct error *e);
void risk_cells_release(struct risk_cells *c); /* accepts a zeroed struct */

/*
 * The genes with the largest sums, ties to the lower number; at most `most`, and only genes whose values differ. gene: malloced, *n of
 * them. sigma: malloced [n, n], their covariance (over cells - 1).
 */
void risk_cells_covariance(const struct risk_cells *c, size_t vocab, uint32_t most, uint32_t **gene, uint32_t *n, double **sigma);

#endif
