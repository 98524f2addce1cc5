/* Cells in memory, by their embeddings or by the counts of their genes, with a label, a target and a group for each. */
#pragma once

#include "base/sparse.h"
#include "stream/stream.h"

/* The cells of one stream of embeddings, or of counts, that have a label and a target. */
struct embeddings {
	struct stream *s;
	size_t rows, n, d, unlabelled; /* rows of the stream; unlabelled: those left out */
	size_t empty, groupless; /* and those whose embedding, or whose group, is missing */
	size_t shared; /* of counts: genes that are features */
	float *x; /* [n, d] */
	struct sparse sparse; /* instead of x, of counts: log-normalised expression, packed */
	uint32_t *y; /* [n] classes; 0 if no label is wanted */
	double *target; /* [n], NULL if none is wanted */
	uint32_t *group, *part; /* [n], NULL if none is wanted */
	uint64_t *cell; /* [n] */
	uint64_t *depth; /* [n] of counts: molecules of the features */
	size_t *row; /* [n] number of the row in the stream */
	size_t x_cap, y_cap, target_cap, group_cap, part_cap, cell_cap, depth_cap, row_cap;
};

/* Cell `from` becomes cell to <= from. The cells that stay are moved in turn; then the number of them is set. */
void embeddings_move(struct embeddings *d, size_t to, size_t from);
void embeddings_resize(struct embeddings *d, size_t n);
void embeddings_release(struct embeddings *d); /* accepts a zeroed struct */

/* The same cells, whose counts are packed, without targets and parts. The stream is borrowed: set to->s to NULL before `to` is released. */
void embeddings_copy(struct embeddings *to, const struct embeddings *from);
/* Rows row[0..n) of d, malloced. */
float *embeddings_rows(const struct embeddings *d, const uint32_t *row, size_t n);
/* Thin the counts of d to a share of their molecules (expressed_thin), and leave out cells that have none then. */
void embeddings_thin(struct embeddings *d, double share, uint32_t seed);
/* Leave out the counts of genes of which keep [d->d] is 0, and cells that have none then. */
void embeddings_keep(struct embeddings *d, const uint8_t *keep);
/* The share of all molecules of d that are of each gene, [d->d]; malloced. */
float *embeddings_shares(const struct embeddings *d);
/* The digests of the values of the cells, or of their counts of the genes of which keep [d->d] is 1 (NULL: all), sorted; malloced. Is cell i of d
 * among them? Cells of few counts are not told apart, and are not. */
uint64_t *embeddings_digests(const struct embeddings *d, const uint8_t *keep);
int embeddings_among(const uint64_t *sorted, size_t n, const struct embeddings *d, size_t i);
