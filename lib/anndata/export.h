/*
 * A stream as an AnnData file: counts as a CSR matrix X (cells x genes), an embedding or prediction as a dense X.
 * Written as anndata 0.8 and later do [https://anndata.readthedocs.io/en/stable/fileformat-prose.html]: every element has
 * encoding-type and encoding-version. Memory is bounded by one block: datasets are extended block by block.
 *
 *     X       counts: csr_matrix, float32 (scanpy's usual type), or float64 if float32 rounds a count; embedding: x; prediction: logit
 *     obs     index: barcode (else the cell number); the scalar columns in order. str -> string-array, categorical ->
 *             categorical (codes int32, -1 missing), u8 -> boolean; with a companion NAME.missing integers become
 *             nullable-integer, u8 nullable-boolean, and text that is missing is empty
 *     var     counts: index gene id, column symbol; prediction: the labels; embedding: 0, 1, ...
 *     obsm    other fixed columns
 *     uns     corrmask_provenance: the provenance of the header, as JSON text
 */
#pragma once

#include "stream/block.h"

struct h5ad_writer;

/* Create the file `path` (overwritten; messages call it `shown`) for a stream with this header, which must outlive the writer. keep
 * [nkeep]: names of the scalar columns that go to obs; nkeep = 0: all. NULL with e set when the kind has no cells x something matrix, or
 * the file cannot be made. `name` is the stream, for messages. */
struct h5ad_writer *h5ad_writer_new(
	const char *path, const char *shown, const struct header *h, char *const *keep, size_t nkeep, const char *name, struct error *e);

/* Append the first `rows` rows of b, a block of that stream. */
int h5ad_writer_add(struct h5ad_writer *w, const struct block *b, size_t rows, struct error *e);

/* Write what is known only at the end, and close the file. The writer must still be freed. */
int h5ad_writer_finish(struct h5ad_writer *w, struct error *e);
void h5ad_writer_free(struct h5ad_writer *w); /* NULL is fine */
