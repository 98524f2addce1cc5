/*
 * Sets of genes, such as pathways, of a .gmt file, plain or gzip: a line a set, with its name, a description, and the genes, between tabs. Genes are
 * ids or symbols (gene_find.h).
 */
#pragma once

#include "stream/vocab.h"

struct gene_sets {
	size_t n;
	char **name; /* [n], all different */
	uint64_t *start; /* [n + 1] */
	uint32_t *gene; /* [start[n]] rows of the vocabulary, ascending within a set, each once */
	size_t listed, absent; /* names of genes in the file, over all its lines; of these, not in the vocabulary */
	size_t ambiguous; /* of these, symbols of several genes, which are left out, too */
	size_t no_description; /* sets with a gene where the description belongs */
	size_t cap, start_cap, gene_cap;
};

/* Read the sets of a file. Genes that v, which is indexed, lacks are left out, so a set may be empty. -1 with e set: a line without genes, two
 * sets of one name, no gene of the vocabulary in any set. */
int gene_sets_load(struct gene_sets *s, const char *path, const struct vocab *v, struct error *e);
void gene_sets_release(struct gene_sets *s); /* accepts a zeroed struct */

/* Drop the sets that have fewer than `least` or more than `most` genes of the vocabulary for which keep [v->n] is not 0, and the other genes
 * of the rest. keep NULL: all. */
void gene_sets_filter(struct gene_sets *s, const uint8_t *keep, size_t least, size_t most);
