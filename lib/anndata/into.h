/*
 * Add an embedding or predictions to an AnnData file that has its cells. The cells are matched by name: the stream's barcode is the name in
 * obs. Where names repeat, they are matched by number (column cell), and must have the same name. Nothing that is in the file is changed,
 * except obs's list of columns, and what is replaced.
 *
 *     embedding     x          -> obsm/X_KEY
 *                   X_umap     -> obsm/X_umap, with a key that was given obsm/X_umap_KEY (another map alike)
 *     prediction    logit, probabilities and other fixed columns    -> obsm/KEY_logit, ..., tables whose columns have the names of the classes
 *                   predicted, predicted_name, probability, fold, expected,
 *                   assigned, label_set, likeness                    -> obs/KEY_predicted, ...
 *
 *                   what the header says of the predictions       -> uns/corrmask/KEY
 *
 * A cell of the file that the stream lacks has missing values: NaN, code -1, an empty text, a masked integer. The attribute
 * corrmask_provenance of each array in obsm holds the provenance of the stream. An array of the name that has the same values for the cells
 * of the stream is left as it is.
 *
 * Memory: the names of the file's cells, and the columns of obs that are added.
 */
#pragma once

#include "stream/block.h"

struct h5ad_into;

struct into_options {
	const char *key; /* NULL: corrmask */
	char *const *keep; /* [nkeep] the scalar columns that go to obs, with nkeep = 0 those above */
	size_t nkeep;
	int replace; /* overwrite arrays of obsm and columns of obs that have these names */
};

/* Open the file `path`, a copy that is lost on failure; `shown` is its name in messages, `name` the name of the stream. The options and the header
 * must outlive the writer. NULL with e set: another kind of stream, a file that is not AnnData of 0.7 or later, a name
 * that is taken in obs or obsm, a key that gives x the name of a map. */
struct h5ad_into *h5ad_into_new(
	const char *path, const char *shown, const struct into_options *o, const struct header *h, const char *name, struct error *e);

/* Add the first `rows` rows of b. -1 with e set: a cell that the file does not have, one that was added before, or
 * an array that is there already and has other values. */
int h5ad_into_add(struct h5ad_into *w, const struct block *b, size_t rows, struct error *e);

/* Write the rest and close the file. *absent is the number of its cells that the stream does not have. The writer must still be freed. */
int h5ad_into_finish(struct h5ad_into *w, uint64_t *absent, struct error *e);
void h5ad_into_free(struct h5ad_into *w); /* NULL is fine */

/* What is written, for a message: "obsm X_corrmask, X_umap (replaced); obs corrmask_predicted", or "" if all of it was there already. The
 * caller frees it. */
char *h5ad_into_written(const struct h5ad_into *w);
