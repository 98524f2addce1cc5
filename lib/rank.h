/*
 * Rank value encoding [Theodoris et al. 2023, Methods]: a cell as its genes, ordered by how far each stands above its usual
 * level, and the medians that say what is usual.
 *     s_g = (x_g / n) * 1e4 / m_g       x_g count, n all counts of the cell, m_g non-zero median of the corpus
 * The factor 1e4 / n is common to a cell and cannot change the order, so the key is x_g / m_g, in double precision. Ties go
 * to the lower vocabulary index, so the order is unique.
 */
#ifndef RANK_H
#define RANK_H

#include "error.h"

#include <stdint.h>

#define RANK_UNKNOWN UINT32_MAX

/* How the genes of an input become tokens. */
struct rank_table {
	size_t n;               /* genes of the input's table */
	uint32_t *token;        /* [n] vocabulary index, RANK_UNKNOWN where there is none */
	double *median;         /* [n] of that token, > 0; infinite where there is none, so that the key is 0 */
	int shared;             /* some genes have the same token: their counts are added */
	double least, most;     /* median; most = 0: no gene has a token */
};

/* token [n] as above, median [V] of the vocabulary. */
void rank_table_init(struct rank_table *t, const uint32_t *token, size_t n, const double *median);
void rank_table_release(struct rank_table *t);  /* accepts a zeroed struct */

struct rank_cell {              /* scratch of one thread, and the result of rank_encode */
	size_t n;
	uint32_t *token;        /* [n] largest key first */
	uint32_t *count;        /* [n]; only when asked for */
	uint32_t *gene, *x;     /* [cap] genes and counts, where some were added */
	uint32_t *item, *other; /* [cap] sort items */
	uint64_t *pair;         /* [cap] */
	size_t cap;
};
void rank_cell_release(struct rank_cell *c);    /* accepts a zeroed struct */

/*
 * Order one cell.
 * gene, count [n]      counts of genes < t->n; zeros are left out
 * repeats              a gene may stand more than once
 * counts               fill c->count too
 * The result is in c->token and c->count, c->n of them. Returns the sum of the counts of genes without a token.
 */
uint64_t rank_encode(struct rank_cell *c, const struct rank_table *t, const uint32_t *gene, const uint32_t *count, size_t n,
		     int repeats, int counts);

/*
 * Non-zero medians of x_g / n * 1e4 over all cells that express g: bounded memory, several passes over the same data.
 *
 * Pass 1 counts each gene's values in logarithmic bins, 32 an octave. Every later pass looks only at the bin the median
 * is in: where few values are left they are kept, and the median is exact; else the bin is divided 256 times finer. A
 * gene is done when it is exact or its bin holds at most 0.1 % of its values. Counting, not sampling: the result depends
 * on nothing but the values.
 */
#define RANK_BINS 640           /* pass 1: 20 octaves, 2^-6 to 2^14; a value is at most 1e4 */
#define RANK_FINE 256           /* later: bins, or values kept, of one gene */

enum rank_mode { RANK_DONE, RANK_COARSE, RANK_DIVIDE, RANK_KEEP, RANK_EDGE };

struct rank_median {            /* what is known about one gene's median */
	uint64_t n, below;      /* values; those below lo, counted in this pass */
	double lo, hi;          /* the median lies in [lo, hi] */
	double min, max;        /* values met in [lo, hi]; RANK_EDGE: next above and below lo */
	double median;          /* once done; NaN: no values */
	uint32_t kept, slot;    /* RANK_KEEP: values kept; row of bins in this pass */
	enum rank_mode mode;
};

struct rank_fit {
	size_t ngene, left;     /* genes; those not done */
	struct rank_median *gene;       /* [ngene] */
	uint32_t *coarse;       /* [ngene x RANK_BINS] in pass 1 */
	double *fine;           /* [left x RANK_FINE] later: bin counts or values */
};

void rank_fit_init(struct rank_fit *f, size_t ngene);
void rank_fit_release(struct rank_fit *f);      /* accepts a zeroed struct */

/* Some cells: row i has genes gene[start[i]..start[i + 1]) with counts, and total[i] >= each of them. to [table] gives the
 * gene's number here. */
void rank_fit_add(struct rank_fit *f, size_t rows, const uint64_t *start, const uint32_t *gene, const uint32_t *count,
		  const uint64_t *total, const uint32_t *to, int threads);

/* End of a pass over all the data: 1 when another pass is needed, 0 when every gene is done. */
int rank_fit_next(struct rank_fit *f);

#endif
