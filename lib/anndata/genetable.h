/*
 * One table of genes for several files: the union of their gene ids, in order of first appearance. Ensembl version
 * suffixes are dropped. If there is a mapping, ids are looked up in it. Columns with the same id share a row. Where one file
 * has Ensembl ids and another symbols, genes are also found by symbol (stream/gene_match.h), and have the Ensembl id.
 */
#ifndef GENETABLE_H
#define GENETABLE_H

#include "anndata/h5ad.h"
#include "base/idmap.h"
#include "base/strmap.h"
#include "stream/vocab.h"

struct genetable {
	struct strmap row; /* id -> row of genes */
	struct vocab genes; /* id and symbol; medians unknown */
	uint8_t *known; /* [genes.n] the id came from, or is in, the mapping */
	size_t known_cap;
};
void genetable_release(struct genetable *t); /* accepts a zeroed struct */

struct genetable_stats {
	size_t genes, known, shared, by_symbol; /* columns that are genes; in the mapping; that share a row with another; found by symbol */
};

/* Add a file's genes; map [h->ngene] is filled with their rows, GENE_DROPPED for what is no gene. ids may be NULL.
 * Returns 1 when the map is 0, 1, 2, ..., else 0; -1 with e set when there are too many genes, or a name has a control character. */
int genetable_add(
	struct genetable *t, const struct h5ad *h, const struct idmap *ids, uint32_t *map, struct genetable_stats *stats, struct error *e);

#endif
