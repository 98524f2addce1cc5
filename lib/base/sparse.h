/* Rows of few values, such as cells. Plain rows have 8 bytes a value. Packed ones are counts, with about 2 bytes each. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sparse { /* rows [n] of d features; row i has the values offset[i] to offset[i + 1] - 1 */
	size_t n, d;
	uint64_t *offset; /* [n + 1], NULL before the first row */
	uint32_t *column; /* [offset[n]] < d */
	float *value; /* [offset[n]] */
	uint8_t *packed; /* instead of both: [offset[n]] bytes. NULL: plain rows */
	size_t values; /* of all packed rows that were added */
	double scale; /* of their values; 0: 10^4 */
	size_t offset_cap, column_cap, value_cap, packed_cap;
};

/* One row. Of a packed one the value is log(1 + scale count / total). */
struct sparse_row {
	size_t n;
	const uint32_t *column; /* [n] */
	const float *value; /* [n] */
	uint32_t *own_column; /* of packed rows */
	float *own_value;
	uint64_t *count; /* [n], of sparse_counts */
	size_t column_cap, value_cap, count_cap;
};

/* Add a row of m values, which the caller fills: returns where they begin. */
uint64_t sparse_add(struct sparse *s, size_t m);
/* Add a packed row with these m counts, none of them 0; the fewest bytes if the columns rise. total: 0: their sum. */
void sparse_pack(struct sparse *s, const uint32_t *column, const uint64_t *count, size_t m, uint64_t total);
/* Packed rows become plain: more memory, less time. */
void sparse_unpack(struct sparse *s);
/* Row i of x, until the next call with r, which begins zeroed and is released after the last. */
void sparse_row(const struct sparse *x, size_t i, struct sparse_row *r);
/* The same of a packed row, with counts instead of values. */
void sparse_counts(const struct sparse *x, size_t i, struct sparse_row *r);
void sparse_row_release(struct sparse_row *r);
/* Packed rows without the columns of which keep [d] is 0; total [n] out: the sums of their counts. */
void sparse_keep(struct sparse *s, const uint8_t *keep, uint64_t *total);
/* Row `from` becomes row to <= from. The rows that stay are moved in turn; then the caller sets n. */
void sparse_move(struct sparse *s, size_t to, size_t from);
void sparse_clear(struct sparse *s); /* no rows; the memory stays */
void sparse_release(struct sparse *s); /* accepts a zeroed struct */
