/*
 * Annotation of cells from a table: a line of column names, then one line a cell, whose first field is the barcode. Fields lie between tabs or
 * commas and can be quoted; gzip is accepted. R's write.table leaves out the name of the first column, which is understood. Empty fields, NA
 * and nan are missing. A column is of integers, of real numbers or of booleans (True and False, TRUE and FALSE) if all its values are; else it
 * is categorical if a value occurs twice, and of strings if none does.
 */
#pragma once

#include "anndata/h5ad.h"
#include "base/strmap.h"

struct obstable_column {
	char *name;
	enum dataframe_kind kind;
	int boolean; /* categorical: False and True */
	struct texts value; /* [rows] as written; missing: empty */
	struct strmap code; /* text -> code, in order of first occurrence */
	size_t ncategory;
	int optional; /* a value is missing */
};

struct obstable {
	char *path;
	size_t rows, ncol;
	struct obstable_column *col; /* [ncol], without the barcode */
	struct strmap row; /* barcode -> row */
	char *typical; /* a barcode, for messages */
};
void obstable_release(struct obstable *t); /* accepts a zeroed struct */

/* -1 with e set: a line of another number of fields, a barcode that occurs twice, no line. */
int obstable_load(struct obstable *t, const char *path, struct error *e);

/* Add the columns to h->obs, joined by the names of the cells; with `sample`, by the name, a hyphen and the sample, or else by the name alone.
 * *found cells are in the table. -1 with e set if none is, or if the file has a column of the same name. t outlives h. */
int obstable_join(const struct obstable *t, struct h5ad *h, const char *sample, uint64_t *found, struct error *e);
