/* Which gene of one table each gene of another is: by its id, or by its symbol, where one table has Ensembl ids and the other symbols. */
#ifndef GENE_MATCH_H
#define GENE_MATCH_H

#include "base/idmap.h"
#include "stream/vocab.h"

#define GENE_NONE UINT32_MAX
#define GENES_FEW 20 /* two species share fewer than one in so many genes by name: C3, F2 */

struct gene_matched {
	size_t n; /* genes of `from` that are genes of `to` */
	size_t by_symbol; /* of those: by the symbol */
	size_t by_alias; /* of those: by an alias of the vocabulary */
	size_t ambiguous; /* genes left out, as several genes of `to` have their symbol */
};

/* row [from->n] out: the gene of `to`, which is indexed, or GENE_NONE: by its id, also without the version of an Ensembl id; with `ids`
 * (or NULL), first by the id that this table gives it. If most ids of `from` are no Ensembl ids, those that `to` lacks are looked up among
 * its symbols. */
struct gene_matched gene_match(uint32_t *row, const struct vocab *from, const struct vocab *to, const struct idmap *ids);

/* The same for two tables of which either may have the symbols, and may lack them: a gene without a symbol has its id for one. No two genes
 * are one gene of `to`; symbols that a table has several times are left out. Symbols are used only if they match more genes than ids do,
 * and more than 1 / GENES_FEW of those of the smaller table, and not if most ids of both are Ensembl ids. */
struct gene_matched gene_pairs(uint32_t *row, const struct vocab *from, const struct vocab *to);

#endif
