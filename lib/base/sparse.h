/* Rows of few values. */
#ifndef SPARSE_H
#define SPARSE_H

#include <stddef.h>
#include <stdint.h>

struct sparse { /* rows [n] of d features; row i has the values offset[i] to offset[i + 1] - 1 */
	size_t n, d;
	uint64_t *offset; /* [n + 1], NULL before the first row */
	uint32_t *column; /* [offset[n]] < d */
	float *value; /* [offset[n]] */
	size_t offset_cap, column_cap, value_cap;
};

/* Add a row of m values, which the caller fills: returns where they begin. */
uint64_t sparse_add(struct sparse *s, size_t m);
/* Row `from` becomes row to <= from. The rows that stay are moved in turn; then the caller sets n. */
void sparse_move(struct sparse *s, size_t to, size_t from);
void sparse_clear(struct sparse *s); /* no rows; the memory stays */
void sparse_release(struct sparse *s); /* accepts a zeroed struct */

#endif
