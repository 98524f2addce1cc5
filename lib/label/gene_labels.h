/*
 * Genes with labels, for a model that classifies genes. They are read from a user's table, cut into folds over genes, written as genes.tsv
 * in the model's directory, and read back from there. genes.tsv has one row for each gene of the vocabulary that has a label, in the order
 * of the vocabulary:
 *     gene_id  symbol  label  fold  split
 * fold is 0, 1, ... (NA without folds). split is test for the genes of the fold that is held out, else train.
 */
#pragma once

#include "stream/vocab.h"

struct gene_labels {
	size_t nclass;
	char **name; /* [nclass] */
	size_t *genes; /* [nclass] genes of each class */
	int32_t *label; /* [v->n] class of a row of the vocabulary, -1: none */
	int32_t *fold; /* [v->n] -1: none; not read back from genes.tsv */
	uint8_t *held_out; /* [v->n] 1: the gene is in the fold that is held out */
	size_t found, test; /* rows of the vocabulary with a label; of these, held out */
	size_t listed, absent; /* a user's table: different names in it; of these, not in the vocabulary */
	size_t ambiguous; /* symbols of several genes, which are left out, too */
	char missing[64]; /* the first that is not in the vocabulary */
};
void gene_labels_release(struct gene_labels *g); /* accepts a zeroed struct */

/*
 * Read a user's table: TSV or CSV, gzip accepted, with gene id or symbol, and label. If the first line has a column `label`, it names the
 * columns, and the gene is in the column gene_id, gene or symbol. Else there are two columns, gene and label; or one column for each class,
 * named after it, with genes below, as in Geneformer's dosage_sens_tf_labels.csv. Ids may have an Ensembl version. Symbols are looked up as
 * they are, then in upper case (genes/gene_find.h). The classes are in byte order of their names. v is indexed. -1 with e set: a line too
 * short, a gene with two labels, no gene of the vocabulary.
 */
int gene_labels_load(struct gene_labels *g, const char *path, const struct vocab *v, struct error *e);

/* Cut the genes into nfold stratified folds and hold out fold `test`. A gene's fold depends on seed, labels and gene ids alone. -1 with e
 * set: a class with fewer genes than folds. */
int gene_labels_folds(struct gene_labels *g, const struct vocab *v, size_t nfold, size_t test, uint32_t seed, struct error *e);

/* The text of genes.tsv (malloced). */
char *gene_labels_print(const struct gene_labels *g, const struct vocab *v);

/* Read genes.tsv. The columns gene_id, label and split are used. v is indexed; name [nlabel] are the model's classes. Genes outside the
 * vocabulary are ignored. -1 with e set: a missing column, a gene in two rows, a label that is no class. */
int gene_labels_read(struct gene_labels *g, const char *path, const struct vocab *v, char *const *name, size_t nlabel, struct error *e);
