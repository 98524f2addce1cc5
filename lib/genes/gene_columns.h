/*
 * Which column of a file's table of genes has their ids, and which their symbols.
 *     ids        the index if at least half of its names are Ensembl ids, else the first other column of which this holds; else the index. An index of whole
 *                numbers numbers the rows, and says nothing: then the first column of symbols, or of other ids
 *     symbols    the first column that is called so; else the index, if the ids are in a column
 * A gene without an id has its symbol for one, or its name in the index. If one genome is before the names, as in GRCh38_ENSG00000223972,
 * it is left out. Names of several genomes stay as they are, so that their genes stay apart.
 */
#pragma once

#include "base/texts.h"

struct gene_columns {
	size_t n, ncol; /* genes; columns; column 0 is the index */
	const char *(*name)(const void *of, size_t column);
	/* The texts of a column: 1; 0: it does not hold texts (any: numbers are taken too); -1 with e set */
	int (*load)(void *of, size_t column, int any, struct texts *t, struct error *e);
	void *of;
	const char *where; /* the table, for messages: "FILE: /var" */
	const char *table, *index; /* what the source says: TABLE/COLUMN, or INDEX for column 0 */
	const char *option; /* with which the user can name the column of ids; NULL: none */
	const char *wanted; /* the column of ids that the user names, "index" is column 0; NULL: find it */
	const uint8_t *drop; /* [n] rows that are no genes, whatever they are called; NULL: none */
	const char *genome; /* of a file with several: the only one to be read; NULL: all */
};

#define GENE_GENOMES 4 /* more are no genomes */

struct gene_names {
	struct texts id, symbol; /* [n]; ids are never empty, may repeat, and have their versions */
	char *source; /* where the ids come from: "var/gene_ids", "var index" ... */
	char *instead; /* ... and those of by_symbol; NULL: there are none */
	size_t ensembl, versions, by_symbol; /* Ensembl ids; those with a version; genes without an id that have their symbol for one */
	struct {
		char *name;
		size_t genes;
	} genome[GENE_GENOMES];
	size_t ngenome; /* genomes that stand before names; 1: it is left out */
	uint8_t *other; /* [n] genes of other genomes than the wanted one; NULL: none is wanted */
};
void gene_names_release(struct gene_names *g); /* accepts a zeroed struct */

/* Are most of these texts different Ensembl ids, or barcodes of cells? */
int gene_ids(const struct texts *t);
int gene_barcodes(const struct texts *t);

/* g is zeroed. -1 with e set: no such column or genome, a gene without a name, only row numbers. */
int gene_columns_read(struct gene_names *g, const struct gene_columns *c, struct error *e);

/* The same for ids and symbols [n] that are in memory. c has where, table, index, drop and genome. */
int gene_texts_read(
	struct gene_names *g, const struct gene_columns *c, const struct texts *id, const struct texts *symbol, struct error *e);
