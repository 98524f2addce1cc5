/*
 * A cells x genes matrix of counts, read by cells in bounded memory, whatever its layout on disk: compressed sparse
 * rows or columns, dense by cells or by genes, or loose entries. Rows come out canonical: genes ascending, no repeats, no zeros.
 *
 * Sparse columns, dense data in tall chunks and loose entries go through the spill (spill.h), which turns them into rows. Sparse rows and
 * other dense data are read as they are needed. Values are whole numbers from 0 to 2^31 - 1, but for noise (number.h). Any other value is an
 * error, and the message names it. With `round` set, fractions are rounded to the nearest whole number, halves to the even one. With `unlog` set,
 * they are normalised values, from which the counts of each cell are taken back (unlog.h).
 */
#pragma once

#include "anndata/h5array.h"
#include "anndata/spill.h"
#include "anndata/unlog.h"

#define GENES_MAX (1u << 24)
#define GENE_DROPPED UINT32_MAX
#define NEED_ROUND "counts with fractions, such as those of SoupX, need --round"
#define LEAVE_OUT "leave out such cells and genes, or keep raw counts in .raw or in layers['counts']"

enum countmat_layout { LAYOUT_ROWS, LAYOUT_COLUMNS, LAYOUT_DENSE, LAYOUT_ENTRIES };

struct countmat {
	char *where; /* "FILE: /raw/X", owned */
	enum countmat_layout layout;
	uint64_t nrow, ncol; /* cells, genes */
	uint64_t nnz; /* stored entries; nrow * ncol for dense */
	struct h5array data, indices, indptr; /* dense: data alone */
	int across; /* dense, stored as genes x cells */
	int tall; /* dense in chunks too tall to read by cells */
	int round; /* set after opening: values may be fractions, and are rounded */
	enum unlog unlog; /* the same: how counts come back */
	double off; /* so far: the largest distance from a whole number of what became one */
	struct spill spill;
	int spilled;
	uint64_t row, entry; /* next row to hand out, and its first entry */
	void *values; /* rows as they are stored: indices, then at byte `half` data; from the spill u32 both */
	size_t half, values_cap;
	void *by_gene; /* cells of genes x cells, before they are turned */
	size_t by_gene_cap;
	uint64_t *start;
	size_t start_cap;
	int64_t *ptr; /* indptr of rows ptr_row to ptr_end, read ahead */
	uint64_t ptr_row, ptr_end;
	size_t ptr_cap;
};

/* Some cells. */
struct countrows {
	size_t n;
	uint64_t *start; /* [n + 1] */
	int narrow; /* set before reading: all gene numbers are below 2^16, and gene is u16 */
	void *gene; /* [start[n]] u16 or u32 */
	uint32_t *count; /* [start[n]] */
	uint64_t *total; /* [n] sum of the row's counts, dropped genes not included */
	uint64_t repeats; /* entries that were added to another of the same gene */
	size_t start_cap, total_cap, gene_cap, count_cap; /* of the last two in bytes */
};
void countrows_release(struct countrows *r);

/* Open the group or array at `path` as anndata writes it; across: an array of genes x cells (loom). -1 with e set. */
int countmat_open(struct countmat *m, struct store *s, const char *path, int across, struct error *e);

/* Open the arrays data, indices, indptr of group `path` as sparse rows of this shape (10x: genes x cells by columns). */
int countmat_open_rows(struct countmat *m, struct store *s, const char *path, uint64_t nrow, uint64_t ncol, struct error *e);

/* An empty matrix to be filled by up to nnz calls of spill_add(&m->spill, cell, gene, countmat_spill_values) and then read. */
void countmat_entries(struct countmat *m, const char *where, uint64_t nrow, uint64_t ncol, uint64_t nnz);

/* Values to what goes through the spill: counts or, with `unlog` set, the bits of floats. Returns the number of the first value that is refused, or
 * n. */
size_t countmat_spill_values(struct countmat *m, enum number_type type, const void *in, size_t n, uint32_t *out);

/* The most entries of a cell: more than its genes only where some are duplicates, which are added up, and then few enough for memory. */
static inline uint64_t countmat_row_max(const struct countmat *m)
{
	return m->ncol > 1u << 20 ? m->ncol : 1u << 20;
}
void countmat_release(struct countmat *m); /* accepts a zeroed struct */

/* Cells [row, row + n) of dense data, by cells: out [n x ncol], elements of m->data.type. */
int countmat_dense(struct countmat *m, uint64_t row, size_t n, void *out, int threads, struct error *e);

/* Of which cell and gene is entry `entry` of the data? */
int countmat_place(struct countmat *m, uint64_t entry, uint64_t *cell, uint64_t *gene, struct error *e);

/* Bytes of temporary disk space that countmat_next will take at most, 0 for none. */
uint64_t countmat_spill_bytes(const struct countmat *m);

/*
 * The next cells, about `entries` entries of them and about max_rows, into r. map [ncol] gives the gene number for each
 * column, or GENE_DROPPED; several columns may share a gene and are summed. identity: map[i] == i, so it is not consulted.
 * Returns the number of cells, 0 at the end, -1 error.
 */
int countmat_next(struct countmat *m, const uint32_t *map, int identity, size_t max_rows, size_t entries, struct countrows *r, int threads,
	struct error *e);
