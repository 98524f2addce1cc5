/*
 * A block: some rows of a stream as columns in memory, with the layout of a header. Filters read a block, edit the columns that they
 * know and copy the others. Buffers only grow and are reused for the next block.
 */
#pragma once

#include "stream/header.h"

#define BLOCK_ROWS 4096 /* a writer closes a block at this many rows ... */
#define BLOCK_BYTES (1u << 20) /* ... or at this many bytes */
#define BLOCK_MAX (256u << 20) /* a reader refuses larger ones */

struct column {
	void *data; /* values: [rows], [rows * n], or [items of the group]; STR: the bytes of all values */
	size_t cap; /* bytes allocated at data */
	uint64_t *offset; /* STR: [rows + 1] where each value starts in data */
	size_t offset_cap;
	size_t pushed; /* STR: values pushed so far */
};

struct group {
	uint64_t *offset; /* [rows + 1] where each row's items start; offset[0] = 0 */
	size_t cap;
};

struct block {
	const struct header *header; /* borrowed; must outlive the block's use */
	size_t rows;
	struct column *col; /* [header->ncol] */
	struct group *group; /* [header->ngroup] */
	size_t ncol, ngroup; /* allocated */
};

/* Make b an empty block of this layout, keeping its buffers. b is zeroed, or was reset before. */
void block_reset(struct block *b, const struct header *h);
void block_release(struct block *b); /* accepts a zeroed struct */

/* Set the number of rows. Old rows are kept. Scalar and fixed columns get room for new values, which are undefined; the lists of new rows
 * are empty. STR columns are filled by block_push_str. */
void block_set_rows(struct block *b, size_t rows);

/* Room for n items in every column of ragged group g. The caller writes items and offset[1..rows]. */
void block_set_items(struct block *b, int g, size_t n);

/* Set the value of the next row of STR column c: one call for each row, in order. */
void block_push_str(struct block *b, int c, const char *s, size_t n);
const char *block_str(const struct block *b, int c, size_t row, size_t *n); /* not NUL-terminated */

static inline size_t block_items(const struct block *b, int g)
{
	return b->group[g].offset[b->rows];
}

/* Value i of an id column, u16 or u32 (id_type). */
static inline uint32_t block_id(const struct block *b, int c, size_t i)
{
	return b->header->col[c].type == U16 ? ((const uint16_t *)b->col[c].data)[i] : ((const uint32_t *)b->col[c].data)[i];
}

static inline void block_set_id(struct block *b, int c, size_t i, uint32_t id)
{
	if (b->header->col[c].type == U16)
		((uint16_t *)b->col[c].data)[i] = (uint16_t)id;
	else
		((uint32_t *)b->col[c].data)[i] = id;
}

/* Value i of a column of whole numbers or codes. Cast it to int64_t if the type is signed. */
uint64_t block_whole(const struct block *b, int c, size_t i);

/* Value i of a column of numbers as a double (whole numbers above 2^53 lose digits). */
double block_number(const struct block *b, int c, size_t i);

/* Append rows row[0..n) of `from` (row NULL: all of them) to b. Column k of b comes from column map[k]. With map[k] = -1 the caller fills
 * it: scalar and fixed values of the new rows are undefined, ragged groups are empty, STR rows must be pushed. */
void block_take(struct block *b, const int *map, const struct block *from, const uint32_t *row, size_t n);

/* Bytes of the block in the stream, before compression; and whether a writer should close it. */
size_t block_bytes(const struct block *b);
int block_full(const struct block *b);

/* Serialise into out (at least block_bytes(b) bytes), and parse `n` bytes that follow h's layout. Parsing checks all
 * lengths, category codes, and that ids (columns gene, token, input, target, neighbour, masked) lie inside the vocabulary; errors
 * name column and row. The layout is in scstream(5). */
void block_pack(const struct block *b, uint8_t *out);
int block_parse(struct block *b, const struct header *h, const uint8_t *data, size_t n, struct error *e);
