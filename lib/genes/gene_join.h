/*
 * Which gene is it? The genes of several tables (files, streams, a vocabulary) as one table. All tables are added before anything is
 * decided, so their order does not matter.
 *
 *     same key (gene_name.h)           the same gene, in one table (counts are added) or in several
 *     two Ensembl ids                  two genes, whatever their symbols; two other ids that have symbols, too, if no Ensembl id has these
 *     a gene without an Ensembl id     the gene of another table that has its name for a symbol, or its symbol for a name, if no other gene has; a table with
 *                                      two genes of this name, or two Ensembl ids with this symbol, make the name ambiguous, and the gene stays apart
 *
 * Names are compared through chains (a name of a gene that has another name of a third), and what a chain joins is one gene only if it has
 * at most one Ensembl id and no table has two of its genes. Everything is a hash table; the time is linear in the rows of all tables.
 */
#pragma once

#include "base/texts.h"
#include "genes/idmap.h"
#include "stream/vocab.h"

#define GENE_NONE UINT32_MAX

/* One table. After gene_join_finish the numbers are those of genes; a gene that the table has twice counts once. */
struct gene_table {
	char *name; /* the file, for messages */
	size_t n; /* rows */
	uint32_t *row; /* [n] gene of the row, GENE_NONE: it is none */
	uint8_t *moved; /* [n] the mapping, or an alias, gave it another id */
	int identity; /* row i is gene i */
	size_t rows, genes; /* rows that are genes; different genes */
	size_t ensembl, mapped, by_alias; /* rows with an Ensembl id; with an id that the mapping gave or has; that an alias gave */
	size_t repeated; /* rows that are the gene of an earlier row of this table */
	size_t by_symbol; /* genes that are another table's by a symbol */
	size_t ambiguous; /* genes that no other table has, as several genes have their name there, or here */
	size_t shared; /* genes that another table has, too */
	size_t renamed; /* ids that have other symbols in other tables, if nine of ten have */
};

struct gene_join {
	const struct idmap *ids; /* keys are first looked up here; NULL: none. Borrowed */
	const struct vocab
		*to; /* of the first table: its aliases give ids too, and ids gives only those that it has; NULL: no such table. Borrowed */
	size_t ntable;
	struct gene_table *table;
	/* after gene_join_finish */
	struct vocab genes; /* in order of their first row; not indexed; no medians */
	uint8_t *known; /* [genes.n] its id is one of the mapping */

	/* before */
	size_t table_cap, nnode, nname, npair;
	struct strmap of_key, of_name, of_pair; /* key -> node; name -> word; word and node -> pair, of words with several */
	struct gene_node *node;
	struct gene_word *word;
	struct gene_pair *pair;
	size_t node_cap, word_cap, pair_cap;
};
void gene_join_release(struct gene_join *j); /* accepts a zeroed struct */

/* Begin a table of n rows, then add each in turn: an id and a symbol, which may be "". id NULL: the row is no gene. -1 with e set: a
 * control character. */
void gene_join_table(struct gene_join *j, const char *name, size_t n);
int gene_join_row(struct gene_join *j, const char *id, size_t n, const char *symbol, size_t m, struct error *e);
/* The same for whole tables. drop [id->n] (NULL: none): rows that are no genes. Special tokens of a vocabulary are no genes. */
int gene_join_texts(
	struct gene_join *j, const char *name, const struct texts *id, const struct texts *symbol, const uint8_t *drop, struct error *e);
int gene_join_vocab(struct gene_join *j, const char *name, const struct vocab *v, struct error *e);

/*
 * Decide. -1 with e set: more than VOCAB_MAX genes; or two tables give one id to different genes, as tables with row numbers for ids do:
 * one in 20 ids has the symbol of another id, or nine of ten have other symbols (with `to` that is only counted). In files of two releases
 * of an annotation up to 1.1 % have the symbol of another id, and 44 % have other symbols.
 */
int gene_join_finish(struct gene_join *j, struct error *e);

/* After it: the next key, from *at on, that is not the id of its gene, and the gene; NULL: there are no more. *at is 0 before. */
const char *gene_join_alias(const struct gene_join *j, size_t *at, uint32_t *gene);
