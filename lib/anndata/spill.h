/*
 * Matrix entries (row, column, value) that arrive in any order, handed back by rows, in bounded memory.
 *
 * Entries collect in one buffer. A full buffer is sorted by row (stably) and written as one run to an unlinked file in $TMPDIR. At the
 * end the runs are read side by side, some rows at a time. If all entries fit in the buffer, nothing is written to the disk. Within a
 * row, entries keep the order in which they arrived.
 */
#pragma once

#include "base/error.h"

#define SPILL_ENTRIES ((size_t)6 << 20) /* entries of the buffer, 72 MiB; half of it while sorting */

struct spill_entry {
	uint32_t row, col, value;
};

struct spill_run {
	uint64_t next, end; /* file positions in entries */
	struct spill_entry *buf;
	size_t at, n; /* buf[at, n) is still to be read */
};

struct spill {
	uint32_t nrow;
	uint32_t *row_n; /* [nrow] entries of each row */
	struct spill_entry *entry, *sorted;
	size_t n, max; /* entries in the buffer, and when it is full */
	uint64_t written; /* entries in the file */
	int fd;
	struct spill_run *run;
	size_t nrun, run_cap, ahead; /* ahead: entries read at once from each run */
	int reading;
	uint32_t at_row; /* next row to hand out */
};

/* max: entries held in memory, 0 for SPILL_ENTRIES (small values are for tests). */
void spill_init(struct spill *s, uint32_t nrow, size_t max);
void spill_release(struct spill *s); /* accepts a zeroed struct */

/* Add one entry; row < nrow. -1 with e set when the disk is full. */
int spill_add(struct spill *s, uint32_t row, uint32_t col, uint32_t value, struct error *e);

/* Call it after the last spill_add and before the first spill_read. */
int spill_finish(struct spill *s, struct error *e);

/*
 * The next rows. spill_plan returns how many come next, at most max_rows and with at most max_entries entries (but always one row, if
 * one is left), and sets *entries. spill_read reads that many rows into start [rows + 1] (start[0] = 0), col [entries] and value
 * [entries]. It returns -1 with e set on a read error.
 */
size_t spill_plan(const struct spill *s, size_t max_rows, size_t max_entries, size_t *entries);
int spill_read(struct spill *s, size_t rows, uint64_t *start, uint32_t *col, uint32_t *value, struct error *e);
