/*
 * What a text says about a gene: nothing, a row number, an Ensembl id, or another name.
 *
 * An Ensembl id is ENS, letters and G, and six or more digits; what follows says which copy of the gene it is, or which version:
 *     ENSG00000223972.5, ENSG00000223972.5_2          versions, which are dropped
 *     ENSG00000124333.15_PAR_Y, ENSG00000124333_PAR_Y the copy on Y of a pseudo-autosomal gene, another gene than ENSG00000124333
 * A whole number is a position in a table, and no name.
 */
#pragma once

#include <stddef.h>

enum gene_kind {
	GENE_NOTHING, /* "", nan, NA, <NA>, None, null */
	GENE_NUMBER, /* 7, -1, 12.0 */
	GENE_ENSEMBL,
	GENE_NAME
};

#define GENE_KEY_MAX 64 /* bytes of an Ensembl id with _PAR_Y */

/* Two texts name the same gene if their keys are equal. */
struct gene_key {
	enum gene_kind kind;
	const char *s; /* the text, an Ensembl id without its version; it points into the text, or to own */
	size_t n;
	int version; /* one was dropped */
	char own[GENE_KEY_MAX];
};
void gene_key(struct gene_key *k, const char *s, size_t n);
enum gene_kind gene_kind(const char *s, size_t n);

/*
 * Cell Ranger writes the genome before the names of genes: GRCh38_ENSG00000223972, mm10___Xkr4. Returns the length of such a prefix with
 * its underscores, 0: there is none. *genome gets its length without them. A prefix is followed by an Ensembl id (there | and : are such
 * signs too), or is called as assemblies are.
 */
size_t gene_prefix(const char *s, size_t n, size_t *genome);

/* An Ensembl id with a symbol behind it: ENSG00000000003_TSPAN6, ENSG00000000003.15|TSPAN6. Returns the length of the id, 0: it is no such
 * text; *symbol: where the symbol begins, n: it names none. */
size_t gene_id_first(const char *s, size_t n, size_t *symbol);
int gene_assembly(const char *s, size_t n); /* is it called as assemblies are: GRCh38, hg19, mm10, GRCz11? */

/* Are a and b Ensembl ids of two species, such as ENSG... and ENSMUSG...? */
int gene_other_species(const char *a, const char *b);
