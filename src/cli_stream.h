/* Streams of the tools. */
#pragma once

#include "cli_message.h"

#include "stream/stream.h"

struct cli;

/* All die if they fail. Operand i, standard input when there is none; all operands as one stream (stream_open_all); a new
 * stream to -o, which refuses a terminal, with this number of rows at most, or ROWS_UNKNOWN. */
struct stream *cli_open(const struct cli *c, int i);
struct stream *cli_open_all(const struct cli *c);
struct stream *cli_create(const struct cli *c, const struct header *h, uint64_t expected);
/* stream_open; stream_read (1 a block, 0 the end); the same of cells, of which none is a perturbed copy (copies_refuse); stream_write of a block that
 * may be empty, and is empty then; stream_commit and stream_free; header_kind; header_need. */
struct stream *must_open(const char *path);
int must_read(struct stream *s, struct block *b);
int must_read_cells(struct stream *s, struct block *b);
void must_flush(struct stream *s, struct block *b);
void must_commit(struct stream *s);
void must_kind(const struct stream *s, enum stream_kind kind);
int must_column(const struct stream *s, const char *column, enum column_type type, enum column_shape shape);
