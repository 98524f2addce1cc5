/* Genes of a vocabulary by what people call them: ids, with or without an Ensembl version, and symbols. */
#ifndef GENE_FIND_H
#define GENE_FIND_H

#include "base/strmap.h"
#include "stream/vocab.h"

struct gene_find {
	const struct vocab *v; /* borrowed; indexed */
	struct strmap symbol; /* symbol -> row of the vocabulary, the first that has it */
};

void gene_find_init(struct gene_find *f, const struct vocab *v);
void gene_find_release(struct gene_find *f); /* accepts a zeroed struct */

/* Row of a gene of the vocabulary, or -1. s has n bytes: an id, or else a symbol, as it is or in upper case. Special tokens are no genes. */
int64_t gene_find(const struct gene_find *f, const char *s, size_t n);

#endif
