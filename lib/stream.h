/*
 * Streams of blocks: standard zstd frames back to back (man scstream.5).
 *     header | block | block | ... | trailer | seek table
 * A stream that was not finished has no trailer, and every reader refuses it: that is how failure crosses a pipe.
 * (De)compression runs on a thread beside the caller; memory is bounded by a few blocks.
 *
 *     struct stream *in = stream_open("-", e);
 *     while ((got = stream_read(in, &cells, e)) > 0)
 *             ...
 *     stream_free(in);
 */
#ifndef STREAM_H
#define STREAM_H

#include "block.h"

#define STREAM_MAJOR 1
#define STREAM_MINOR 0

struct stream;

/* Open a stream for reading; path "-" is standard input. Reads the header. NULL with e set when that fails. */
struct stream *stream_open(const char *path, struct error *e);
const struct header *stream_header(const struct stream *s);     /* borrowed, lives as long as s */
const char *stream_name(const struct stream *s);                /* for messages */

/* Next block into b (laid out as the header). 1 a block, 0 the verified end, -1 error (truncated, damaged, trailing bytes). */
int stream_read(struct stream *s, struct block *b, struct error *e);

/* Random access, before any stream_read: find all blocks through the seek table. Input that cannot seek is first
 * copied to an unlinked file in $TMPDIR. Afterwards stream_read_at may be called for any block, in any order;
 * frames are checked by their zstd checksums. */
int stream_index(struct stream *s, struct error *e);
size_t stream_blocks(const struct stream *s);
uint32_t stream_block_rows(const struct stream *s, size_t k);
uint64_t stream_rows(const struct stream *s);           /* after stream_index: all rows; else rows read so far */
int stream_read_at(struct stream *s, size_t k, struct block *b, struct error *e);      /* 0, or -1 */

/* Start a stream on path (NULL or "-": standard output). The header is copied and written. raw: no compression. */
struct stream *stream_create(const char *path, const struct header *h, int raw, struct error *e);

/* Hand a block over; its layout must be the header's (as made by block_reset on stream_header(s)). The block may be reused at once.
 * An error of the writing thread may surface in a later call. */
int stream_write(struct stream *s, const struct block *b, struct error *e);

/* Write trailer and seek table, and put the file in place. Success alone makes a whole stream. */
int stream_commit(struct stream *s, struct error *e);

/* Close and free (NULL is fine). A stream being written that was not committed is left without a trailer,
 * and a file not put in place. */
void stream_free(struct stream *s);

#endif
