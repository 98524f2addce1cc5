/* Reading a stream in order: bytes to frames, frames to payloads on a thread, payloads to blocks. */
#include "stream/stream_impl.h"

#include "base/magic.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd_errors.h>

/* ---- bytes and frames ---- */

static int damaged(const struct stream *s, const char *why, struct error *e)
{
	const struct magic *is = s->nentry ? NULL : magic_find(s->in.p + s->at, s->in.n - s->at);
	if (is)
		return error_set(e, "%s: this is %s, expected a stream", s->name, is->name);
	if (!s->nentry)
		return error_set(e, "%s: this is not a stream: %s", s->name, why);
	return error_set(e, "%s: damaged after %llu rows: %s", s->name, (unsigned long long)s->seen, why);
}

/* Read n bytes to `to`, and up to PEEK more into the buffer. 1, 0 if the input ends before, -1 with e set. */
static int stream_take(struct stream *s, uint8_t *to, size_t n, struct error *e)
{
	size_t have = s->in.n - s->at < n ? s->in.n - s->at : n;
	memcpy(to, s->in.p + s->at, have);
	s->at += have;
	while (have < n) {
		struct iovec part[2] = {{to + have, n - have}, {s->in.p, PEEK}};
		ssize_t k = stream_read_some(s, part, 2, e);
		if (k <= 0)
			return (int)k;
		have += (size_t)k;
		s->at = 0;
		s->in.n = have > n ? have - n : 0;
	}
	return 1;
}

/* A frame began like one of write_stored, but the bytes `mark` show that it is another one. Put the bytes that were read back into s->in:
 * the head, n bytes in whole pieces at `data`, and `mark`. */
static void put_back(struct stream *s, const uint8_t *head, const uint8_t *data, size_t n, const uint8_t *mark)
{
	size_t rest = s->in.n - s->at, back = STORED_HEAD + n / STORED_PIECE * (3 + STORED_PIECE) + 3;
	bytes_reserve(&s->in, back + rest);
	memmove(s->in.p + back, s->in.p + s->at, rest);
	s->at = 0;
	s->in.n = back + rest;
	uint8_t *to = s->in.p;
	memcpy(to, head, STORED_HEAD);
	to += STORED_HEAD;
	for (size_t at = 0; at < n; at += STORED_PIECE, to += STORED_PIECE) {
		stored_mark(to, STORED_PIECE, 0);
		memcpy(to += 3, data + at, STORED_PIECE);
	}
	memcpy(to, mark, 3);
}

/*
 * Read the frame that starts in s->in directly into `out`, if write_stored made it. 1: it was read; 0: the input ends inside it; -1 with e
 * set; 2: it is another kind of frame, and is still in s->in.
 */
static int read_stored(struct stream *s, size_t content, struct bytes *out, struct error *e)
{
	uint8_t head[STORED_HEAD], mark[3], want[3], sum[4];
	const uint8_t *p = s->in.p + s->at;
	size_t at = 0, n = content < STORED_PIECE ? content : STORED_PIECE;
	stored_mark(want, n, n == content);
	if (s->in.n - s->at < STORED_HEAD + 3 || p[4] != STORED_DESCRIPTOR || p[5] != STORED_WINDOW || memcmp(p + STORED_HEAD, want, 3))
		return 2;
	memcpy(head, p, STORED_HEAD);
	bytes_reserve(&s->in, PEEK);
	out->n = content;
	s->at += STORED_HEAD;
	XXH64_state_t hash;
	XXH64_reset(&hash, 0);
	int got;
	do {
		n = content - at < STORED_PIECE ? content - at : STORED_PIECE;
		stored_mark(want, n, at + n == content);
		got = stream_take(s, mark, 3, e);
		if (got == 1 && memcmp(mark, want, 3)) {
			put_back(s, head, out->p, at, mark);
			return 2;
		}
		bytes_reserve(out, at + n); /* no more than the input really has: the size in the header may be wrong */
		if (got == 1)
			got = stream_take(s, out->p + at, n, e);
		if (got < 1)
			return got;
		XXH64_update(&hash, out->p + at, n);
		at += n;
	} while (at < content);
	got = stream_take(s, sum, 4, e);
	if (got == 1 && get_le32(sum) != (uint32_t)XXH64_digest(&hash))
		return damaged(s, "the checksum of a frame does not match", e);
	return got;
}

static int cut_short(const struct stream *s, struct error *e)
{
	return s->nentry ? stream_truncated(s, e) : error_set(e, "%s: the header is cut short", s->name);
}

/* Read the next frame's payload into `out` and add the frame to s->entry. 1, 0 if the input ends before it, -1 with e set. */
static int read_frame(struct stream *s, struct bytes *out, struct error *e)
{
	size_t want = 18, content; /* a frame header takes at most 18 bytes */
	int64_t have = stream_fill(s, want, e);
	if (have <= 0)
		return (int)have;
	if (have < 9)
		return s->nentry ? stream_truncated(s, e) : error_set(e, "%s: this is not a stream (%d bytes)", s->name, (int)have);
	const char *why = stream_frame_size(s->in.p + s->at, (size_t)have, &content);
	if (why)
		return damaged(s, why, e);
	int stored = read_stored(s, content, out, e);
	s->step = stored == 1 ? PEEK : READ_STEP;
	if (stored == 1)
		stream_add_entry(s, stored_bytes(content), content, 0);
	if (stored < 2)
		return stored ? stored : cut_short(s, e);
	have = (int64_t)(s->in.n - s->at);
	size_t limit = ZSTD_compressBound(content) + 1024, size;
	for (;;) {
		size = ZSTD_findFrameCompressedSize(s->in.p + s->at, (size_t)have);
		if (!ZSTD_isError(size))
			break;
		if (ZSTD_getErrorCode(size) != ZSTD_error_srcSize_wrong || (size_t)have > limit)
			return damaged(s, ZSTD_getErrorName(size), e);
		int64_t more = stream_fill(s, (size_t)have + 1, e);
		if (more < 0)
			return -1;
		if (more == have)
			return cut_short(s, e);
		have = more;
	}
	why = stream_inflate(stream_dctx(s), s->in.p + s->at, size, content, out);
	if (why)
		return damaged(s, why, e);
	s->at += size;
	stream_add_entry(s, size, content, 0);
	return 1;
}

/* ---- payloads and blocks ---- */

/* After the trailer there must be the seek table, exactly as stream_write.c writes it, and nothing more. */
static int check_end(struct stream *s, struct error *e)
{
	stream_pack_seek_table(s, &s->packed);
	int64_t have = stream_fill(s, s->packed.n + 1, e);
	if (have < 0)
		return -1;
	if ((size_t)have < s->packed.n)
		return stream_truncated(s, e);
	if (memcmp(s->in.p + s->at, s->packed.p, s->packed.n))
		return error_set(e, "%s: the stream is damaged: its seek table does not match it", s->name);
	if ((size_t)have > s->packed.n)
		return error_set(
			e, "%s: bytes after the end of the stream (streams cannot be concatenated with cat; use scsample)", s->name);
	return 0;
}

static void *read_ahead(void *arg)
{
	struct stream *s = arg;
	struct error e = {{0}};
	int got = 1;
	for (;;) {
		pthread_mutex_lock(&s->lock);
		while (s->head - s->tail == NBUF - 1 && !s->stop)
			pthread_cond_wait(&s->changed, &s->lock);
		struct bytes *b = &s->buf[s->head % NBUF];
		int stop = s->stop;
		pthread_mutex_unlock(&s->lock);
		if (stop)
			break;
		got = read_frame(s, b, &e);
		if (got == 0)
			got = stream_truncated(s, &e);
		if (got == 1 && stream_is_trailer(b)) {
			s->altered = stream_check_trailer(s, b, &e) != 0;
			got = s->altered || check_end(s, &e) ? -1 : 0;
		} else if (got == 1) {
			if (s->nentry > FRAMES_MAX)
				got = error_set(&e, "%s: more than %u blocks", s->name, FRAMES_MAX);
			XXH3_128bits_update(s->digest, b->p, b->n);
			s->seen += s->entry[s->nentry - 1].rows = b->n >= 8 ? get_le32(b->p + 4) : 0;
		}
		pthread_mutex_lock(&s->lock);
		if (got == 1)
			s->head++;
		pthread_cond_signal(&s->changed);
		pthread_mutex_unlock(&s->lock);
		if (got < 1)
			break;
	}
	pthread_mutex_lock(&s->lock);
	s->done = 1;
	s->result = got < 0 ? -1 : 0;
	s->error = e;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* Take the frame that a pipe may have before its header; its bytes, 0 if there is none, or -1. */
static int take_expected(struct stream *s, struct error *e)
{
	uint8_t want[ROWS_FRAME];
	if (stream_fill(s, ROWS_FRAME, e) < 0)
		return -1;
	if (s->in.n < 4 || get_le32(s->in.p) != ROWS_MAGIC)
		return 0;
	stream_pack_expected(s->in.n < ROWS_FRAME ? 0 : get_le64(s->in.p + 12), want);
	if (s->in.n < ROWS_FRAME || memcmp(s->in.p, want, ROWS_FRAME))
		return error_set(e, "%s: the stream is damaged: its first frame does not say its number of rows", s->name);
	s->expected = get_le64(want + 12);
	s->at = ROWS_FRAME;
	return ROWS_FRAME;
}

struct stream *stream_open(const char *path, struct error *e)
{
	int std = strcmp(path, "-") == 0;
	struct stream *s = stream_new(std ? "standard input" : path);
	s->fd = std ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	if (s->fd < 0 || fstat(s->fd, &st)) {
		error_set(e, "%s: %s: expected a stream", s->name, strerror(errno));
		goto fail;
	}
	if (S_ISDIR(st.st_mode)) {
		error_set(e, "%s: this is %s, expected a stream", s->name,
			faccessat(s->fd, "config.json", F_OK, 0) ? "a folder" : "the folder of a model (its option takes one)");
		goto fail;
	}
	if (S_ISFIFO(st.st_mode))
		(void)fcntl(s->fd, F_SETPIPE_SZ, 1 << 20); /* fewer context switches between the programs of a pipe */
	int before = take_expected(s, e), got = before < 0 ? -1 : read_frame(s, &s->payload, e);
	if (got == 0)
		error_set(e, "%s: empty, expected a stream", s->name);
	if (got < 1 || stream_parse_header(s, &s->payload, e))
		goto fail;
	XXH3_128bits_update(s->digest, s->payload.p, s->payload.n);
	s->entry[0].packed += (uint32_t)before;
	if (S_ISREG(st.st_mode))
		stream_look_ahead(s);
	return s;
fail:
	stream_free(s);
	return NULL;
}

int stream_read(struct stream *s, struct block *b, struct error *e)
{
	assert(!s->writing);
	if (s->indexed && s->turn == stream_blocks(s)) {
		s->turn = 0;
		return 0;
	}
	if (s->indexed)
		return stream_read_at(s, s->turn++, b, e) ? -1 : 1;
	if (s->joined)
		return joined_read(s, b, e);
	if (s->ended)
		return 0;
	if (!s->started && stream_thread_start(s, read_ahead, e))
		return -1;
	pthread_mutex_lock(&s->lock);
	while (s->head == s->tail && !s->done)
		pthread_cond_wait(&s->changed, &s->lock);
	int have = s->head != s->tail;
	pthread_mutex_unlock(&s->lock);
	if (!have) {
		if (s->result)
			return error_set(e, "%s", s->error.msg);
		s->ended = 1;
		return 0;
	}
	const struct bytes *p = &s->buf[s->tail % NBUF];
	if (block_parse(b, &s->header, p->p, p->n, e))
		return error_prefix(e, "%s: damaged after %llu rows", s->name, (unsigned long long)s->rows);
	pthread_mutex_lock(&s->lock);
	s->rows += b->rows;
	s->tail++;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
	return 1;
}
