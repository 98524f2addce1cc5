/*
 * What a file says of its cells twice should agree. HDF5 files have no checksums by default, so some damage shows in no other way.
 *     sums      a column of obs such as total_counts, beside the sum of the cell's counts
 *     names     two cells of the same name; or the cells of another file
 * Such columns may have been made from other genes than those in the file. So a column counts only if it is right for nine cells of ten.
 */
#pragma once

#include "anndata/h5ad.h"

enum { CROSSCHECK_SUMS = 4, CROSSCHECK_CELLS = 5 }; /* columns; fewer cells say nothing */

/* Digests of the cells of a file in any order: of their names, and of names and sums of counts. */
struct crosscheck_cells {
	uint64_t n, names, counts, numbers; /* numbers: names that are whole numbers */
};

struct crosscheck {
	struct h5ad *h;
	struct {
		struct dataframe_column *from; /* NULL: the file has no such column */
		uint64_t wrong, first; /* cells; the first of them */
		uint64_t total; /* of the first: the sum of its counts ... */
		double says; /* ... and what the column says */
	} sum[CROSSCHECK_SUMS];
	struct dataframe_values values;
	uint64_t rows;
	uint64_t *name; /* [rows] XXH3-64 of the cells' names; crosscheck_finding sorts them */
	size_t name_cap;
	struct crosscheck_cells cells;
};

void crosscheck_init(struct crosscheck *k, struct h5ad *h); /* h must stay open */
void crosscheck_release(struct crosscheck *k); /* accepts a zeroed struct */

/* Do the sums of the first n cells agree with one of these columns in nine of ten? 1: yes, with *column; 0: no; -1: there is no such column, or there
 * are too few cells; -2 with e set: the file cannot be read. */
int crosscheck_sums(struct h5ad *h, const double *sum, size_t n, const char **column, struct error *e);

/* The next n cells in the order of the file: their names are texts [first, first + n), their counts sum to total [n]. -1 with e set when the
 * file cannot be read. */
int crosscheck_rows(
	struct crosscheck *k, const struct texts *names, size_t first, const uint64_t *total, size_t n, int threads, struct error *e);

/* Are the cells of one file those of another: do they have their names, which are no row numbers, or names and sums of counts? */
enum crosscheck_alike { ALIKE_NOT, ALIKE_NAMES, ALIKE_CELLS };
enum crosscheck_alike crosscheck_alike(const struct crosscheck_cells *a, const struct crosscheck_cells *b);

/* After the last cell: the next finding as a text (malloced), NULL when there is none or no other. */
char *crosscheck_finding(struct crosscheck *k);
