/*
 * The parts of scsample: scsample.c (options, inputs, output), scsample_filter.c (filters on one row), scsample_choose.c (choices over
 * the whole input).
 */
#ifndef SCSAMPLE_H
#define SCSAMPLE_H

#include "cli.h"
#include "stream/label.h"
#include "stream/where.h"

/* Why a cell was dropped. KEPT: it was not. */
enum reason { KEPT, BY_WHERE, BY_GENES, BY_COUNTS, BY_MITO, BY_RARE, BY_PART, BY_CAP, BY_SAMPLE, REASONS };

/* ---- filters on one row ---- */

struct filter {
	/* set by the caller */
	const struct opt_values *where_text;
	long long min_genes, min_counts; /* -1: no limit */
	double max_mito;                 /* share; -1: no limit */

	/* private */
	struct where where;
	int genes, counts, count; /* ragged group of genes, columns n_counts and count; -1 */
	int gene;                 /* the id column */
	size_t special;           /* ids below this are special tokens */
	uint8_t *mito;            /* [vocab.n] */
	size_t cap;

	uint8_t *keep; /* out: [rows] whether the row passes */
};

/* For rows with header h. Dies if a column is missing. */
void filter_init(struct filter *f, const struct header *h, const char *file);
void filter_release(struct filter *f);
/* Fill f->keep. The first filter that a row fails is counted in dropped. */
void filter_rows(struct filter *f, const struct block *b, uint64_t dropped[REASONS]);

/* ---- choices over the whole input ---- */

enum part { PART_NONE = -1, PART_TRAIN, PART_TEST };

struct choice {
	/* set by the caller */
	uint32_t seed;
	long long number;               /* cells to keep; -1: not given */
	double fraction, test_fraction; /* -1: not given */
	enum part part;
	const char *by, *stratify, *balance; /* columns; NULL: not given */
	const struct opt_values *cap;        /* COL:N, any number of them */
	const char *min_class;               /* COL:N; NULL: not given */

	/* private */
	size_t n, cells_cap; /* cells that passed the filters */
	uint64_t *cell;      /* [n] */
	uint64_t *draw;      /* [n] scratch */
	struct partition *partition;
	size_t npartition;

	uint8_t *keep; /* out: [n] */
};

/* For streams with header h. Dies if a column is missing. */
void choice_init(struct choice *c, const struct header *h, const char *file);
void choice_release(struct choice *c);
/* Add the rows of a block with keep[i] != 0; `cell` is the column of their numbers. */
void choice_add(struct choice *c, const struct block *b, const uint8_t *keep, int cell);
/* Choose among all cells that were added: fills c->keep. Cells that are not chosen are counted in dropped. */
void choice_make(struct choice *c, uint64_t dropped[REASONS]);

#endif
