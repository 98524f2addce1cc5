/* Shared by the tools that read embeddings of cells or of genes, or cells, into memory. The functions die on errors. */
#pragma once

#include "cli_stream.h"
#include "cells/embeddings.h"
#include "label/label.h"
#include "stream/embedding.h"

/* The wanted columns, each may be NULL, and the tables for their names, shared by all streams. Cells without a label, target or group, such as a
 * donor, are left out. A part, such as a fold, may be MISSING_CODE. */
struct wanted {
	const char *label, *target, *group;
	struct classes *classes, *groups;
	const char *part;
	struct classes *parts;
	/* The stream has counts. The features are the genes of `genes` (NULL: of the stream) that `with` has too; see cells/expressed.h */
	const struct vocab *genes, *with;
	const char *with_name; /* the stream of `with`, for messages */
	int logits; /* a stream of predictions has its logits as features; -inf, a class without training cells, becomes 0 */
};

/* The warning that so many cells without an embedding were left out, if any. */
void embedding_warn(const char *name, size_t empty);
/* Dies if a value of x [d] is not finite. */
void embedding_check(const float *x, size_t d, uint64_t cell, const char *name);
/* What made the embeddings of a stream, by its header: the digest of the model, or of the genes and components, and the layer. If two
 * texts are equal, the same numbers mean the same. Malloced; NULL: it does not say. */
char *embedding_source(const struct header *h);
/* Has s the wanted columns of labels? For a stream that is read after another one: dies before the work. */
void embeddings_check(const struct stream *s, const struct wanted *w);
/* Read all of s, which is d's afterwards, or die. again: index s, since it is read again later. */
void embeddings_read(struct embeddings *d, struct stream *s, const struct wanted *w, int again);
/* The vectors of genes of one stream (scembed --of genes, static), one a gene. */
struct gene_vectors {
	size_t n, d;
	float *x; /* [n, d] */
	uint32_t *token; /* [n] rows of the stream's vocabulary */
	uint64_t *cells; /* [n] cells that have the gene; 0: not known */
	size_t x_cap, token_cap, cells_cap;
};
/* Read all of in, or die: a stream of other embeddings, two vectors of a gene, a value that is not finite. */
void gene_vectors_read(struct gene_vectors *g, struct stream *in);
