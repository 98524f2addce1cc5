/*
 * Add an embedding or predictions to an AnnData file that has its cells. The cells are matched by name: the stream's barcode is the name in
 * obs. Nothing that is in the file is read or changed, except obs's list of columns.
 *
 *     embedding     x          -> obsm/X_KEY
 *     prediction    logit, probabilities and other fixed columns    -> obsm/KEY_logit, ...
 *                   predicted, probability, fold, expected          -> obs/KEY_predicted, ...
 *
 * A cell of the file that the stream lacks has missing values: NaN, code -1, an empty text, a masked integer. The attribute
 * corrmask_provenance of each array in obsm holds the provenance of the stream.
 *
 * Memory: the names of the file's cells, and the columns of obs that are added.
 */
#ifndef INTO_H
#define INTO_H

#include "stream/block.h"

struct h5ad_into;

/* Open the file `path`, a copy that is lost on failure; `shown` is its name in messages. keep [nkeep]: the scalar columns that go to obs, with
 * nkeep = 0 those above. `name` is the stream. NULL with e set: another kind of stream, a file that is not AnnData of 0.7 or later, two cells
 * of one name, a name that is taken in obs or obsm. */
struct h5ad_into *h5ad_into_new(const char *path, const char *shown, const char *key, const struct header *h, char *const *keep,
	size_t nkeep, const char *name, struct error *e);

/* Add the first `rows` rows of b. -1 with e set: a cell that the file does not have, or one that was added before. */
int h5ad_into_add(struct h5ad_into *w, const struct block *b, size_t rows, struct error *e);

/* Write the rest and close the file. *absent is the number of its cells that the stream does not have. The writer must still be freed. */
int h5ad_into_finish(struct h5ad_into *w, uint64_t *absent, struct error *e);
void h5ad_into_free(struct h5ad_into *w); /* NULL is fine */

#endif
