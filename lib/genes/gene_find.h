/*
 * Genes of a vocabulary by what people call them: the id, with or without the version of an Ensembl id; or else a symbol, as it is or in
 * upper case. An id names one gene, even if others have it for a symbol; a symbol can name several genes.
 */
#pragma once

#include "stream/vocab.h"

struct gene_find {
	const struct vocab *v; /* borrowed; indexed */
	struct strmap key, symbol; /* -> the first row that has it */
	uint32_t *next; /* [v->n] the next row of the same symbol, or UINT32_MAX */
};

void gene_find_init(struct gene_find *f, const struct vocab *v);
void gene_find_release(struct gene_find *f); /* accepts a zeroed struct */

enum { GENE_UNKNOWN = -1, GENE_AMBIGUOUS = -2 };
/* Row of a gene of the vocabulary, or one of these. s has n bytes. Special tokens are no genes. */
int64_t gene_find(const struct gene_find *f, const char *s, size_t n);

/* The ids of the genes that have this symbol, with commas between, malloced; at most five. */
char *gene_find_ids(const struct gene_find *f, const char *s, size_t n);
