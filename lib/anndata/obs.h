/*
 * The annotation of cells from several files in one stream: the union of their obs columns. A column that is categorical in all files
 * stays categorical, with the union of the categories. Integers and doubles together become doubles. Other mixtures become strings, and so
 * do categoricals with more than 65,536 categories. scstream(5) says how missing values are stored, and what is noted of narrower types.
 */
#pragma once

#include "stream/block.h"
#include "anndata/h5ad.h"

struct obs_column {
	char *source, *name; /* in the files; in the stream ("obs_" before names the stream uses itself) */
	enum dataframe_kind kind;
	int ordered; /* in all files, with the same categories */
	const char *dtype; /* of dataframe_column, if it is the same in all files */
	int optional; /* strings and integers: has the companion NAME.missing */
	size_t files; /* files that have it */
	struct strmap code; /* category -> code */
	char **category;
	size_t ncategory, category_cap;
	int col, missing; /* columns of the header; missing is -1 where there is none */
	struct dataframe_column *from; /* in the current file; NULL: not there */
	uint32_t *recode; /* [from->ncategory] */
	struct dataframe_values values; /* rows read */
};

struct obs {
	size_t ncol, cap, nfile;
	struct obs_column *col;
	char *index; /* name of the index of obs, if it is the same in all files; else NULL */
	char *names; /* of all columns of the first file, for messages */
	char *elsewhere; /* where a wanted column is that a file has not in obs; NULL: nowhere */
	char *skipped; /* columns that were left out, and why; NULL: none */
};

void obs_release(struct obs *o); /* accepts a zeroed struct */

/* Note the columns of a file: all that can be read (all != 0), or those in want[0..nwant). */
int obs_add(struct obs *o, struct h5ad *h, int all, char *const *want, size_t nwant, struct error *e);

/* The name that a column of a stream had in AnnData: "obs_cell" was "cell". Points into `name`. */
const char *obs_source_name(const char *name);

/* After the last file: add the columns, and the name of the index, to the header. -1 when a wanted column is in no file. */
int obs_header(struct obs *o, struct header *h, char *const *want, size_t nwant, struct error *e);

/* Make h the current file. It stays open while its rows are read. */
void obs_file(struct obs *o, struct h5ad *h);

/* Read rows [row, row + n) of the current file ... */
int obs_read(struct obs *o, uint64_t row, size_t n, int threads, struct error *e);
/* ... and put rows [at, at + n) of those read into rows 0..n of b. */
void obs_fill(struct obs *o, size_t at, size_t n, struct block *b);
