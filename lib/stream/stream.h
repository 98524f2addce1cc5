/*
 * Streams of blocks: standard zstd frames back to back (man scstream.5).
 *     header | block | block | ... | trailer | seek table
 * An unfinished stream has no trailer, and every reader refuses it. So the failure of one program reaches all later programs of a pipe.
 * Compression and decompression run on a thread of their own. Memory is a few blocks.
 *
 *     struct stream *in = stream_open("-", e);
 *     while ((got = stream_read(in, &cells, e)) > 0)
 *             ...
 *     stream_free(in);
 */
#ifndef STREAM_H
#define STREAM_H

#include "base/file.h"
#include "stream/block.h"

#define STREAM_MAJOR 1
#define STREAM_MINOR 0

struct stream;

/* Open a stream and read its header; path "-" is standard input. NULL with e set on failure. */
struct stream *stream_open(const char *path, struct error *e);
const struct header *stream_header(const struct stream *s); /* borrowed, lives as long as s */
const char *stream_name(const struct stream *s); /* for messages */
int stream_altered(const struct stream *s); /* after an error of stream_read: is the trailer there, but not of these blocks? */

/* Read the next block into b. 1: a block, 0: the verified end, -1: error (truncated, damaged, trailing bytes). */
int stream_read(struct stream *s, struct block *b, struct error *e);

/* Prepare random access; call it before any stream_read. Finds all blocks through the seek table. Input that cannot seek is first copied
 * to an unlinked file in $TMPDIR. Then stream_read_at reads any block, in any order, and checks its zstd checksum;
 * if all blocks were read in order, the last call also checks the digest. A block that is read again must be the same. */
int stream_index(struct stream *s, struct error *e);
size_t stream_blocks(const struct stream *s);
uint32_t stream_block_rows(const struct stream *s, size_t k);
uint64_t stream_rows(const struct stream *s); /* after stream_index: all rows; else rows read so far */
int stream_read_at(struct stream *s, size_t k, struct block *b, struct error *e); /* 0, or -1 */

/* For reading in another order: stream_check starts a thread that reads all blocks in order too and compares the digest. It also compares
 * each of them with what stream_read_at returned, or will return. What is wrong is an error of the next stream_read_at, at the latest of
 * stream_checked. That waits for the thread: 0, all blocks are those of the writer, or -1. Both do nothing if the digest was compared
 * before. Memory is one block, and 8 bytes for each block of the stream. */
int stream_check(struct stream *s, struct error *e);
int stream_checked(struct stream *s, struct error *e);

/* Start a stream on path (NULL or "-": standard output). The header is copied and written. raw: no compression. */
struct stream *stream_create(const char *path, const struct header *h, int raw, struct error *e);
/* The same in an open file, which is the stream's from then on, also if this fails. */
struct stream *stream_create_in(struct outfile *f, const char *path, const struct header *h, int raw, struct error *e);

/* Write a block; its layout must be the header's (made by block_reset on stream_header(s)). The block may be reused at once.
 * An error of the writing thread may be returned by a later call. */
int stream_write(struct stream *s, const struct block *b, struct error *e);

/* Write trailer and seek table, and rename the file to its path. The stream is complete only if this succeeds. */
int stream_commit(struct stream *s, struct error *e);

/* Close and free (NULL is fine). A written stream that was not committed gets no trailer, and its file does not appear. */
void stream_free(struct stream *s);

#endif
