/*
 * Streams of blocks: standard zstd frames back to back (man scstream.5).
 *     header | block | block | ... | trailer | seek table
 * Before the header, a pipe may have the number of rows that will come.
 * An unfinished stream has no trailer, and every reader refuses it. So the failure of one program reaches all later programs of a pipe.
 * Compression and decompression run on a thread of their own. Memory is a few blocks.
 *
 *     struct stream *in = stream_open("-", e);
 *     while ((got = stream_read(in, &cells, e)) > 0)
 *             ...
 *     stream_free(in);
 */
#pragma once

#include "base/file.h"
#include "stream/block.h"

#define STREAM_MAJOR 1
#define STREAM_MINOR 0

struct stream;

/* Open a stream and read its header; path "-" is standard input. NULL with e set on failure. */
struct stream *stream_open(const char *path, struct error *e);
const struct header *stream_header(const struct stream *s); /* borrowed, lives as long as s */
const char *stream_name(const struct stream *s); /* for messages */
/* Rows that will come at most: of a file all, as its end says, of a pipe those that its writer has announced. */
#define ROWS_UNKNOWN UINT64_MAX
uint64_t stream_expected(const struct stream *s);
static inline uint64_t rows_add(uint64_t a, uint64_t b)
{
	return a == ROWS_UNKNOWN || b == ROWS_UNKNOWN ? ROWS_UNKNOWN : a + b;
}
int stream_altered(const struct stream *s); /* after an error of stream_read: is the trailer there, but not of these blocks? */

/*
 * Several streams of one kind as one: their blocks in this order. Columns and categories are joined, and the cells numbered anew, as by
 * concat.h. A file that is named twice, and a copy of another one, are errors. *warning (malloced or NULL): a difference between the
 * headers that is not an error. The rest of this header takes the result as it takes a stream. Memory is 28 bytes a block, and one
 * vocabulary.
 */
struct stream *stream_open_all(const char *const *path, size_t n, char **warning, struct error *e);
size_t stream_parts(const struct stream *s); /* streams that were opened as this one; 1 for stream_open */
struct stream *stream_part(struct stream *s, size_t i); /* one of them, for its name and digest; borrowed */

/* Read the next block into b. 1: a block, 0: the verified end, -1: error (truncated, damaged, trailing bytes). After stream_index, the call after
 * the end begins again. */
int stream_read(struct stream *s, struct block *b, struct error *e);

/* Prepare random access; call it before any stream_read. Finds all blocks through the seek table. Input that cannot seek is first copied
 * to an unlinked file in $TMPDIR. Then stream_read_at reads any block, in any order, and checks its zstd checksum;
 * if all blocks were read in order, the last call also checks the digest. A block that is read again must be the same. */
int stream_index(struct stream *s, struct error *e);
size_t stream_blocks(const struct stream *s);
uint32_t stream_block_rows(const struct stream *s, size_t k);
uint64_t stream_rows(const struct stream *s); /* after stream_index: all rows; else rows read so far */
int stream_read_at(struct stream *s, size_t k, struct block *b, struct error *e); /* 0, or -1 */

/* After stream_index: the digest of the content (XXH3-128), as 32 hex digits. Not for several streams as one. */
void stream_digest(const struct stream *s, char hex[33]);

/* For reading in another order: stream_check starts a thread that reads all blocks in order too and compares the digest. It also compares
 * each of them with what stream_read_at returned, or will return. What is wrong is an error of the next stream_read_at, at the latest of
 * stream_checked. That waits for the thread: 0, all blocks are those of the writer, or -1. Both do nothing if the digest was compared
 * before. Memory is one block, and 8 bytes for each block of the stream. */
int stream_check(struct stream *s, struct error *e);
int stream_checked(struct stream *s, struct error *e);
/* This is reader r of n that read the same streams: of several streams as one it checks number r, r + n, ...; a single one is checked by
 * reader 0. Each block that is read has a checksum of its own all the same. Before stream_check; else reader 0 of 1. */
void stream_check_share(struct stream *s, uint64_t r, uint64_t n);

/* Start a stream on path (NULL or "-": standard output). The header is copied and written. raw: no compression. */
struct stream *stream_create(const char *path, const struct header *h, int raw, struct error *e);
/* The same in an open file, which is the stream's from then on, also if this fails. expected: rows at most, which a pipe is told, or ROWS_UNKNOWN. */
struct stream *stream_create_in(struct outfile *f, const char *path, const struct header *h, int raw, uint64_t expected, struct error *e);

/* Write a block; its layout must be the header's (made by block_reset on stream_header(s)). The block may be reused at once.
 * An error of the writing thread may be returned by a later call. */
int stream_write(struct stream *s, const struct block *b, struct error *e);

/* Write trailer and seek table, and rename the file to its path. The stream is complete only if this succeeds. */
int stream_commit(struct stream *s, struct error *e);

/* Close and free (NULL is fine). A written stream that was not committed gets no trailer, and its file does not appear. */
void stream_free(struct stream *s);
static inline void stream_free_at(struct stream **s) /* for RELEASED */
{
	stream_free(*s);
}
