/*
 * Genes with labels, for a model that classifies genes: read from a user's table, cut into folds over genes, and written as
 * the genes.tsv of the model's directory (genelabels.h reads it back):
 *     gene_id  symbol  label  fold  split         one row a gene of the vocabulary that has a label, in its order
 * fold is 0, 1, ... (NA without folds); split is test for the genes of the fold held out, else train.
 */
#ifndef GENESPLIT_H
#define GENESPLIT_H

#include "error.h"
#include "vocab.h"

#include <stdint.h>

struct genesplit {
	size_t nclass;
	char **name;            /* [nclass] in byte order */
	size_t *genes;          /* [nclass] genes of each class */
	int32_t *label;         /* [v->n] class of a row of the vocabulary, -1: none */
	int32_t *fold;          /* [v->n] -1: none */
	size_t found;           /* rows of the vocabulary with a label */
	size_t listed, absent;  /* different names in the table; of these, not in the vocabulary */
	char missing[64];       /* the first of those */
};

/*
 * A TSV, gzip accepted: gene id or symbol, and label. A first line that has a column `label` names the columns, the gene is then
 * under gene_id, gene or symbol; else there are two columns. Ids may have an Ensembl version; symbols are looked up as they
 * are, then in upper case. v is indexed. -1 with e set: a line too short, a gene with two labels, no gene of the vocabulary.
 */
int genesplit_load(struct genesplit *g, const char *path, const struct vocab *v, struct error *e);

/* Stratified folds: a gene's fold depends on seed, labels and gene ids alone. -1 with e set: a class with fewer genes than folds. */
int genesplit_folds(struct genesplit *g, const struct vocab *v, size_t nfold, uint32_t seed, struct error *e);

/* The text of genes.tsv (malloced); test: the fold held out, or -1. */
char *genesplit_print(const struct genesplit *g, const struct vocab *v, int32_t test);

void genesplit_release(struct genesplit *g);            /* accepts a zeroed struct */

#endif
