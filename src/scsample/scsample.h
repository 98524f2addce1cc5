/*
 * The parts of scsample: scsample.c (options, inputs, output), filter.c (filters on one row), choose.c (choices over
 * the whole input), genes.c (choice of genes).
 */
#pragma once

#include "cli_stream.h"
#include "base/option.h"
#include "cells/hvg.h"
#include "label/label.h"
#include "cells/where.h"

enum part { PART_NONE = -1, PART_TRAIN, PART_TEST };

/* The options. */
struct scsample_options {
	long long number, min_genes, hvg; /* -1: not given; hvg: 0 */
	double fraction, test_fraction, max_mito, thin; /* -1: not given; thin: 0 */
	const char *group, *stratify, *balance, *batch_key; /* columns; balance may be several, crossed: A,B */
	const char *min_class; /* COL:N */
	const char *keep_genes; /* a vocabulary, or a list */
	struct opt_values where, cap; /* COL=VALUE ..., COL:N */
	int complement, part, flavor;
};
extern struct scsample_options sample_set;
extern struct cli scsample_cli;

/* Why a cell was dropped. KEPT: it was not. */
enum reason { KEPT, BY_WHERE, BY_GENES, BY_MITO, BY_NO_LABEL, BY_NO_GROUP, BY_RARE, BY_PART, BY_CAP, BY_SAMPLE, REASONS };

/* ---- filters on one row ---- */

struct filter {
	struct where where;
	int genes, counts, count; /* ragged group of genes, columns n_counts and count; -1 */
	int gene; /* the id column */
	size_t special; /* ids below this are special tokens */
	uint8_t *mito; /* [vocab.n] */
	size_t cap;

	uint8_t *keep; /* out: [rows] whether the row passes */
};

/* For rows with header h. Dies if a column is missing. */
void filter_init(struct filter *f, const struct header *h, const char *file);
/* Fill f->keep. The first filter that a row fails is counted in dropped. */
void filter_rows(struct filter *f, const struct block *b, uint64_t dropped[REASONS]);

/* ---- choices over the whole input ---- */

struct choice {
	const char *file;
	size_t n, cells_cap, keep_cap; /* cells of the input */
	uint64_t *cell; /* [n] their numbers; NULL: first, first + 1, ... */
	uint64_t first;
	struct partition *partition;
	size_t npartition, balanced;
	char **balance_column; /* [balanced] */

	uint8_t *keep; /* [n] whether a cell passed the filters, after choice_make whether it is chosen */
};

/* For streams with header h. Dies if a column is missing. */
void choice_init(struct choice *c, const struct header *h, const char *file);
void choice_release(struct choice *c);
/* Add the rows of a block, those with keep[i] != 0 to choose from; `cell` is the column of their numbers. */
void choice_add(struct choice *c, const struct block *b, const uint8_t *keep, int cell);
/* Choose among these. Cells that are not chosen are counted in dropped. */
void choice_make(struct choice *c, uint64_t dropped[REASONS]);

/* ---- choice of genes, and of molecules ---- */

struct genes {
	const char *file;
	uint32_t thinned; /* thin_before of the input */
	int told; /* of cells without a batch */
	struct hvg hvg;
	struct labels labels;
	struct classes classes;
	int cell, gene, count, total, group; /* columns of the input, and their ragged group */
	uint32_t *id; /* scratch: the genes of a cell */
	size_t cap;
	uint32_t *number; /* [vocab.n of the input] row of a gene in the output, GENE_DROPPED if it is not chosen; NULL: all genes stay */

	struct header header; /* out: of the output, with the chosen genes only */
	int *map; /* out: from the input's columns, -1 for those that genes_fill fills */
};

#define GENE_DROPPED UINT32_MAX

/* For counts streams with header h. Dies if a column is missing. */
void genes_init(struct genes *g, const struct header *h, const char *file);
/* Choose the genes of the list: header and map are set. Dies if none of them is there. */
void genes_listed(struct genes *g);
/* Without a list: add the rows of a block with keep[i] != 0. */
void genes_add(struct genes *g, const struct block *b, const uint8_t *keep);
/* After all rows: 1 if they must be added again. 0: the genes are chosen, and header and map are set. */
int genes_again(struct genes *g);
/* Fill gene, count and n_counts of the last n rows of out, which were taken from rows row[0..n) of b. */
void genes_fill(const struct genes *g, struct block *out, const struct block *b, const uint32_t *row, size_t n);
