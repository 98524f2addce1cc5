/*
 * Non-zero medians of the normalised counts of genes: of x_g / n * 1e4 over all cells that express g. x_g is the count, n the sum of all
 * counts of the cell. The memory is bounded, and the same data is read several times.
 *
 * Pass 1 counts each gene's values in logarithmic bins, 32 an octave. Every later pass looks only at the bin that holds the median. If few
 * values are left they are kept, and the median is exact. Else the bin is divided into 256. A gene is done when its median is exact, or
 * when its bin holds at most 0.1 % of its values. Values are counted, not sampled, so the result depends on nothing but the values.
 */
#pragma once

#include "base/error.h"

#define MEDIANS_BINS 640 /* in pass 1: 20 octaves, 2^-6 to 2^14; a value is at most 1e4 */
#define MEDIANS_FINE 256 /* later: bins, or values kept, of one gene */

enum medians_mode {
	MEDIANS_DONE,
	MEDIANS_COARSE, /* pass 1 */
	MEDIANS_DIVIDE, /* values of [lo, hi] are counted in bins */
	MEDIANS_KEEP, /* values of [lo, hi] are kept */
	MEDIANS_EDGE, /* lo lies between the two middle values, which are searched */
	MEDIANS_MODES
};

/* What is known about the median of one gene. */
struct medians_gene {
	uint64_t n, below; /* values; those below lo, counted in this pass */
	double lo, hi; /* the median lies in [lo, hi] */
	double min, max; /* of the values in [lo, hi]; MEDIANS_EDGE: the nearest above and below lo */
	double median; /* once done; NaN if there are no values */
	uint32_t kept, slot; /* MEDIANS_KEEP: values kept; row of `fine` in this pass */
	enum medians_mode mode;
};

struct medians {
	size_t ngene, left; /* genes; those that are not done */
	struct medians_gene *gene; /* [ngene] */
	uint32_t *coarse; /* [ngene x MEDIANS_BINS] in pass 1 */
	double *fine; /* [left x MEDIANS_FINE] later: counts of the bins, or values */
};

void medians_init(struct medians *m, size_t ngene);
void medians_release(struct medians *m); /* accepts a zeroed struct */

/* Add some cells: row i has genes gene[start[i]..start[i + 1]) with counts, and total[i] >= each of them. to [genes of the input] gives the
 * gene's number here. */
void medians_add(struct medians *m, size_t rows, const uint64_t *start, const uint32_t *gene, const uint32_t *count, const uint64_t *total,
	const uint32_t *to, int threads);

/* End a pass over all the data. Returns 1 if another pass is needed, 0 if every gene is done. */
int medians_next(struct medians *m);
