/*
 * Shared by the files of a stream. Each zstd frame holds one payload (header, block or trailer), with content size and checksum. Every
 * stream has a thread. In a reader the thread decompresses frames to payloads, and stream_read converts payloads to blocks. In a writer
 * stream_write converts blocks to payloads, and the thread compresses these to frames. NBUF payload buffers circulate, so the thread and
 * the caller work at the same time.
 *
 *     stream.c         open and close, the thread
 *     stream_format.c  header, trailer and seek table as bytes
 *     stream_frame.c   bytes, and single frames
 *     stream_read.c    frames in order
 *     stream_index.c   frames in any order
 *     stream_joined.c  several streams as one: it has no file and no frames, but it has the thread that checks digests
 *     stream_write.c   frames out
 */
#pragma once

#include "stream/stream.h"

#include "base/bytes.h"

#include <pthread.h>
#define XXH_INLINE_ALL /* use this build's vector instructions; the library uses SSE2 only */
#include <xxhash.h>
#include <zstd.h>

#define NBUF 3
#define READ_STEP (1u << 20)
#define PEEK 64 /* bytes read ahead beyond a piece of a stored frame */
#define SEEK_MAGIC 0x184D2A5Eu
#define SEEK_FOOTER 0x8F92EAB1u
#define ROWS_MAGIC 0x184D2A5Du
#define ROWS_FRAME 24 /* bytes */
#define FRAMES_MAX (BLOCK_MAX / 4 - 9) /* so that the trailer fits into one frame */

/* Frames of uncompressed blocks, as written by write_stored. */
#define STORED_DESCRIPTOR 0xC4 /* 8-byte content size, checksum; window descriptor follows */
#define STORED_WINDOW (7 << 3) /* 2^(10+7) */
#define STORED_PIECE ((size_t)128 << 10)
#define STORED_HEAD 14 /* bytes before the first block */

struct bytes {
	uint8_t *p;
	size_t n, cap;
};

struct seek_entry { /* one frame in the seek table */
	uint32_t packed, content; /* bytes in the file, bytes of payload */
	uint32_t rows; /* blocks only */
};

struct stream {
	char *name;
	struct header header;
	int writing;
	struct joined *joined; /* several streams as one; else NULL */
	struct seek_entry *entry; /* [nentry] header, blocks, trailer */
	size_t nentry, entry_cap;
	uint64_t rows; /* read or written by the caller */
	uint64_t expected; /* stream_expected, but for several streams as one */
	XXH3_state_t *digest; /* over all payloads before the trailer */

	/* reader */
	int fd, wake; /* wake: an eventfd that ends the thread's waiting for fd; -1: none yet */
	struct bytes in; /* bytes read ahead; in.p[at .. in.n) are not used yet */
	size_t at, step; /* step: bytes per read */
	uint64_t seen; /* rows in the frames read so far, for messages */
	ZSTD_DCtx *dctx;
	uint64_t *start; /* stream_index: [nentry] file offsets */
	size_t turn; /* stream_index: the block of the next stream_read */
	size_t in_order; /* ... blocks that were read in order, and are in the digest */
	uint64_t *sum; /* ... [blocks] XXH3-64 of each block when it was first read; 0: not yet. Under `lock` */
	int checking; /* ... the thread reads the other blocks in order: stream_check */
	uint64_t share, shares; /* ... of these parts: stream_check_share */
	uint64_t want[2]; /* ... digest of the trailer, low and high */
	int indexed, ended;
	struct bytes payload, packed; /* scratch of stream_read_at and of the writer */

	/* writer */
	struct outfile out;
	ZSTD_CCtx *cctx;
	int raw;

	/* the thread, and the state that it shares with the caller under `lock` */
	pthread_t thread;
	int started, stop;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct bytes buf[NBUF];
	size_t head, tail; /* buffers [tail, head) are full; buf[i % NBUF] */
	int altered; /* reader thread: the trailer does not match the blocks */
	int result; /* reader thread: 0 at the end, -1 on error; writer: -1 on error */
	int done; /* the reader thread will add no more buffers */
	struct error error;
};

/* ---- stream.c ---- */

/* The state for decompressing, made when it is first needed. */
static inline ZSTD_DCtx *stream_dctx(struct stream *s)
{
	return s->dctx ? s->dctx : (s->dctx = xchecked(ZSTD_createDCtx()));
}

static inline void bytes_reserve(struct bytes *b, size_t n)
{
	b->p = grow_bytes(b->p, &b->cap, n, 1);
}

struct stream *stream_new(const char *name);
void stream_add_entry(struct stream *s, size_t packed, size_t content, size_t rows);
int stream_thread_start(struct stream *s, void *(*run)(void *), struct error *e);
void stream_thread_stop(struct stream *s);

/* Free the buffers, and the thread, until they are needed again: before the first stream_read or after the last, or after stream_index. */
void stream_rest(struct stream *s);

/* ---- stream_format.c ---- */

int stream_parse_header(struct stream *s, const struct bytes *b, struct error *e);
void stream_pack_header(const struct header *h, struct bytes *b);
/* The frame before the header of a pipe: its number of rows at most. */
void stream_pack_expected(uint64_t rows, uint8_t p[ROWS_FRAME]);
void stream_pack_trailer(struct stream *s, struct bytes *b);
void stream_pack_seek_table(const struct stream *s, struct bytes *b);
int stream_is_trailer(const struct bytes *b);
/* Compare the trailer (the last entry) with the blocks that were read. */
int stream_check_trailer(struct stream *s, const struct bytes *b, struct error *e);
/* "the stream is damaged: its trailer gives a different value for the WHAT" */
int stream_trailer_wrong(const struct stream *s, const char *what, struct error *e);

/* The three bytes before a stored block of n bytes. */
static inline void stored_mark(uint8_t *p, size_t n, int last)
{
	uint32_t mark = (uint32_t)(n << 3) | (uint32_t)last;
	put_le16(p, (uint16_t)mark);
	p[2] = (uint8_t)(mark >> 16);
}

/* Bytes of a stored frame. */
static inline size_t stored_bytes(size_t content)
{
	return STORED_HEAD + 3 * (content ? (content + STORED_PIECE - 1) / STORED_PIECE : 1) + content + 4;
}

/* ---- stream_frame.c ---- */

/* Some bytes into part [n]; their number, 0 at the end, or -1. */
struct iovec;
ssize_t stream_read_some(struct stream *s, const struct iovec *part, int n, struct error *e);
/* Read until n unused bytes are buffered or the input ends; returns how many there are, or -1. */
int64_t stream_fill(struct stream *s, size_t n, struct error *e);
/* "the stream is cut short" */
int stream_truncated(const struct stream *s, struct error *e);
/* NULL and the payload size of the frame at p, or what is wrong with it. Called before memory is allocated for the payload. */
const char *stream_frame_size(const uint8_t *p, size_t n, size_t *content);
/* Decompress the frame of n bytes at p. NULL, or what is wrong with it. */
const char *stream_inflate(ZSTD_DCtx *c, const uint8_t *p, size_t n, size_t content, struct bytes *out);

/* ---- stream_index.c ---- */

/* Set `expected` and `want` of a file that was just opened, if its end is whole. */
void stream_look_ahead(struct stream *s);
/* stream_read_at with the buffers of `scratch`. */
int stream_read_block(struct stream *s, struct stream *scratch, size_t k, struct block *b, struct error *e);

/* ---- stream_joined.c ---- */

/* What stream.h promises, for several streams as one. */
void joined_free(struct joined *j);
const struct header *joined_header(const struct joined *j);
int joined_read(struct stream *s, struct block *b, struct error *e);
int joined_index(struct stream *s, struct error *e);
size_t joined_blocks(const struct joined *j);
/* The part that has block *k, its number in *part, and in *k the number of the block there. */
struct stream *joined_block(const struct joined *j, size_t *k, size_t *part);
int joined_read_at(struct stream *s, size_t k, struct block *b, struct error *e);
