/*
 * The classes of genes that a model of genes was trained on, and which it was not shown: genes.tsv in its directory, as
 * sctrain genes writes it. A table with a line of column names; gene_id, label and split are read, split "test" is held out.
 */
#ifndef GENELABELS_H
#define GENELABELS_H

#include "error.h"
#include "vocab.h"

#include <stdint.h>

struct genelabels {
	size_t genes, test;     /* genes of the vocabulary in the table; of these, held out */
	int32_t *label;         /* [v->n] class, -1: not in the table */
	uint8_t *held_out;      /* [v->n] 1: split is test */
};

/* v is indexed; name [nlabel] are the classes. Genes outside the vocabulary are passed over. -1 with e set: a column is
 * missing, a gene stands twice, a label is not among the names. */
int genelabels_load(struct genelabels *g, const char *path, const struct vocab *v, char *const *name, size_t nlabel,
		    struct error *e);
void genelabels_release(struct genelabels *g);  /* accepts a zeroed struct */

#endif
