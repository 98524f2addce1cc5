/*
 * A block: some rows of a stream as columns in memory, laid out as a header says. Filters read one block, edit the
 * columns they know and pass the rest on. Buffers only grow and are reused from block to block.
 */
#ifndef BLOCK_H
#define BLOCK_H

#include "header.h"

#define BLOCK_ROWS 4096                 /* a writer closes a block at this many rows ... */
#define BLOCK_BYTES (1u << 20)          /* ... or at this many bytes */
#define BLOCK_MAX (256u << 20)          /* a reader refuses larger ones */

struct column {
	void *data;             /* values: [rows], [rows * n], or [items of the group]; STR: the bytes, end to end */
	size_t cap;             /* bytes allocated at data */
	uint64_t *offset;       /* STR: [rows + 1] where each value starts in data */
	size_t offset_cap;
	size_t pushed;          /* STR: values pushed so far */
};

struct group {
	uint64_t *offset;       /* [rows + 1] where each row's items start; offset[0] = 0 */
	size_t cap;
};

struct block {
	const struct header *header;    /* borrowed; must outlive the block's use */
	size_t rows;
	struct column *col;             /* [header->ncol] */
	struct group *group;            /* [header->ngroup] */
	size_t ncol, ngroup;            /* allocated */
};

/* Make b an empty block of this layout, keeping its buffers. b is zeroed, or was reset before. */
void block_reset(struct block *b, const struct header *h);
void block_release(struct block *b);                            /* accepts a zeroed struct */

/* Set the number of rows (more than before keeps old rows): scalar and fixed columns get room, new offsets of
 * groups repeat the last one, new values are undefined. STR columns are filled by block_push_str. */
void block_set_rows(struct block *b, size_t rows);

/* Room for n items in every column of ragged group g. The caller writes items and offset[1..rows]. */
void block_set_items(struct block *b, int g, size_t n);

/* Give the next row of STR column c its value (rows in order, one push a row). */
void block_push_str(struct block *b, int c, const char *s, size_t n);
const char *block_str(const struct block *b, int c, size_t row, size_t *n);     /* not NUL-terminated */

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

/* Whether the values of a column are rows of the vocabulary: an id column (gene, token, input, target, neighbour). */
int block_is_id(const struct column_spec *c);

/* Which column of `from` fills each column of `to`: map[to->ncol] gets its index, or -1 where there is none of the same
 * name, type, shape (and n, and for ragged ones the whole group). */
void header_map(const struct header *to, const struct header *from, int *map);

/* Append rows row[0..n) of `from` (row NULL: all of them) to b, column by column through map. Columns with -1 are left to
 * the caller: scalar and fixed values of the new rows are undefined, ragged groups empty, STR rows must be pushed. */
void block_take(struct block *b, const int *map, const struct block *from, const uint32_t *row, size_t n);

/* Bytes of the block in the stream, before compression; and whether a writer should close it. */
size_t block_bytes(const struct block *b);
int block_full(const struct block *b);

/* Serialise into out (at least block_bytes(b) bytes), and parse `n` bytes that follow h's layout. Parsing checks all
 * lengths, category codes, and that ids (columns gene, token, input, target, neighbour) lie inside the vocabulary; errors
 * name column and row. The layout is in scstream(5). */
void block_pack(const struct block *b, uint8_t *out);
int block_parse(struct block *b, const struct header *h, const uint8_t *data, size_t n, struct error *e);

#endif
