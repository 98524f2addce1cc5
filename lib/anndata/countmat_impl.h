/* What the parts of countmat share: countmat.c opens and reads, countmat_spill.c turns columns into rows, countmat_rows.c puts rows in
 * order. */
#pragma once

#include "anndata/countmat.h"

/* A message about a value that is no count. Always returns -1. */
int countmat_bad_value(const struct countmat *m, uint64_t cell, uint64_t gene, double v, struct error *e);

/* Start an empty spill for the matrix. */
void countmat_spill_init(struct countmat *m);

/* All entries of a matrix of sparse columns, or of dense data in tall chunks, into the spill. -1 with e set. */
int countmat_spill_fill(struct countmat *m, int threads, struct error *e);

/* Put the rows that were read into m->values in canonical form, in r. The arguments are those of countmat_next. -1 with e set if a value
 * is no count, or an index is no gene. */
int countmat_finish_rows(struct countmat *m, const uint32_t *map, int identity, struct countrows *r, int threads, struct error *e);

/* Of a zarr store: does a chunk of indices that is not there give a line (a cell, or a gene) the entries k and k + 1 both? Then e is set, and
 * -1 returned. */
int countmat_absent_twice(const struct countmat *m, const void *indices, size_t k, uint64_t line, struct error *e);
