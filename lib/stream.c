/*
 * One frame is one message: payload -> zstd frame with content size and checksum. The reader thread turns frames into
 * payloads, stream_read turns payloads into blocks; the writer does the same backwards. Three payload buffers
 * circulate, so one is being filled while another is worked on.
 */
#include "stream.h"

#include "bytes.h"
#include "file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#define XXH_INLINE_ALL          /* the wide vectors this build is for; the library is built for SSE2 */
#include <xxhash.h>
#include <zstd.h>
#include <zstd_errors.h>

#define NBUF 3
#define READ_STEP (1u << 20)
#define PEEK 64                         /* bytes read beyond a piece of a stored frame: what stands before the next one */
#define LEVEL 1                         /* zstd level: pipes and scratch files want speed */
#define SEEK_MAGIC 0x184D2A5Eu
#define SEEK_FOOTER 0x8F92EAB1u
#define FRAMES_MAX (BLOCK_MAX / 4 - 9)  /* so that the trailer fits a frame too */

/* Frames of stored blocks as write_stored makes them. */
#define STORED_DESCRIPTOR 0xC4          /* 8-byte content size, checksum; window descriptor follows */
#define STORED_WINDOW (7 << 3)          /* 2^(10+7) */
#define STORED_PIECE ((size_t)128 << 10)
#define STORED_HEAD 14                  /* bytes before the first block */

struct bytes {
	uint8_t *p;
	size_t n, cap;
};

struct frame {                          /* one entry of the seek table */
	uint32_t packed, content;       /* bytes in the file, bytes of payload */
	uint32_t rows;                  /* blocks only */
};

struct stream {
	char *name;
	struct header header;
	int writing;
	struct frame *frame;            /* [nframe] header, blocks, trailer */
	size_t nframe, frame_cap;
	uint64_t rows;                  /* handed to, or taken from, the caller */
	XXH3_state_t *digest;           /* over all payloads before the trailer */

	/* reader */
	int fd, wake;                   /* wake: an eventfd that stops the thread's waiting for fd; -1: none yet */
	struct bytes in;                /* bytes read ahead; in.p[at .. in.n) are not used yet */
	size_t at, step;                /* step: bytes to ask for at a time */
	uint64_t seen;                  /* rows in the frames read so far, for messages */
	ZSTD_DCtx *dctx;
	uint64_t *start;                /* stream_index: [nframe] file offsets */
	int indexed, ended;
	struct bytes payload, packed;   /* scratch of stream_read_at and of the writer */

	/* writer */
	struct outfile out;
	ZSTD_CCtx *cctx;
	int raw;

	/* the thread and what passes between it and the caller */
	pthread_t thread;
	int started, stop;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct bytes buf[NBUF];
	size_t head, tail;              /* buffers [tail, head) are full; buf[i % NBUF] */
	int result;                     /* reader thread: 0 at the end, -1 on error; writer: -1 on error */
	int done;                       /* the reader thread will add no more buffers */
	struct error error;
};

static void reserve(struct bytes *b, size_t n)
{
	b->p = grow_bytes(b->p, &b->cap, n, 1);
}

static struct frame *frame_push(struct stream *s, size_t packed, size_t content, size_t rows)
{
	grow(s->frame, s->frame_cap, s->nframe + 1);
	s->frame[s->nframe] = (struct frame){(uint32_t)packed, (uint32_t)content, (uint32_t)rows};
	return &s->frame[s->nframe++];
}

static struct stream *stream_new(const char *name)
{
	struct stream *s = xcalloc(1, sizeof *s);
	s->name = xstrdup(name);
	s->fd = -1;
	s->wake = -1;
	s->step = READ_STEP;
	s->out.fd = -1;
	s->digest = XXH3_createState();
	XXH3_128bits_reset(s->digest);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	return s;
}

const struct header *stream_header(const struct stream *s)
{
	return &s->header;
}

const char *stream_name(const struct stream *s)
{
	return s->name;
}

uint64_t stream_rows(const struct stream *s)
{
	return s->rows;
}

/* ---- bytes in ---- */

/* Some bytes into part [n]; their number, 0 at the end, or -1. */
static ssize_t read_some(struct stream *s, const struct iovec *part, int n, struct error *e)
{
	for (;;) {
		/* thread_stop wakes the reading thread here: a silent pipe must not hold us */
		struct pollfd ready[2] = {{.fd = s->fd, .events = POLLIN}, {.fd = s->wake, .events = POLLIN}};
		ssize_t k = poll(ready, 2, -1);
		if (k > 0 && ready[1].revents)
			return error_set(e, "%s: stopped", s->name);
		if (k > 0)
			k = readv(s->fd, part, n);
		if (k < 0 && errno == EINTR)
			continue;
		return k < 0 ? error_set(e, "%s: cannot read: %s", s->name, strerror(errno)) : k;
	}
}

/* Read until n unused bytes are buffered or the input ends; returns how many there are, or -1. */
static int64_t fill(struct stream *s, size_t n, struct error *e)
{
	if (s->at && s->in.n - s->at < n) {
		memmove(s->in.p, s->in.p + s->at, s->in.n - s->at);
		s->in.n -= s->at;
		s->at = 0;
	}
	while (s->in.n - s->at < n) {
		size_t missing = n - (s->in.n - s->at), more = missing > s->step ? missing : s->step;
		reserve(&s->in, s->in.n + more);
		ssize_t k = read_some(s, &(struct iovec){s->in.p + s->in.n, more}, 1, e);
		if (k < 0)
			return -1;
		if (k == 0)
			break;
		s->in.n += (size_t)k;
	}
	return (int64_t)(s->in.n - s->at);
}

static int truncated(const struct stream *s, struct error *e)
{
	if (!s->seen)
		return error_set(e, "%s: the stream is cut short (the program that wrote it did not finish)", s->name);
	return error_set(e, "%s: the stream is cut short after %llu rows (the program that wrote it did not finish)",
			 s->name, (unsigned long long)s->seen);
}

/* What is wrong with the frame at p, or NULL and its payload size. Nothing was allocated for it yet. */
static const char *frame_content(const uint8_t *p, size_t n, size_t *content)
{
	unsigned long long size = ZSTD_getFrameContentSize(p, n);
	if (size == ZSTD_CONTENTSIZE_ERROR || get_le32(p) != ZSTD_MAGICNUMBER)  /* skippable and legacy frames too */
		return "no zstd frame where one should start";
	if (!(p[4] & 4))
		return "a zstd frame without a checksum";
	if (size == ZSTD_CONTENTSIZE_UNKNOWN)
		return "a zstd frame that does not say its size";
	if (size > BLOCK_MAX)
		return "a frame above the limit of 256 MiB";
	*content = (size_t)size;
	return NULL;
}

/* Decompress the frame of n bytes at p; NULL, or what is wrong with it. */
static const char *inflate(struct stream *s, const uint8_t *p, size_t n, size_t content, struct bytes *out)
{
	reserve(out, content);
	size_t got = ZSTD_decompressDCtx(s->dctx, out->p, content, p, n);
	if (ZSTD_isError(got))
		return ZSTD_getErrorName(got);
	out->n = content;
	return got == content ? NULL : "wrong size";
}

static int damaged(const struct stream *s, const char *why, struct error *e)
{
	if (!s->nframe)
		return error_set(e, "%s: this is not an scstream: %s", s->name, why);
	return error_set(e, "%s: damaged after %llu rows: %s", s->name, (unsigned long long)s->seen, why);
}

/* The next n bytes of the input to `to`, and up to PEEK more to the buffer: 1, 0 when it ends before, -1. */
static int take(struct stream *s, uint8_t *to, size_t n, struct error *e)
{
	size_t have = s->in.n - s->at < n ? s->in.n - s->at : n;
	memcpy(to, s->in.p + s->at, have);
	s->at += have;
	while (have < n) {
		struct iovec part[2] = {{to + have, n - have}, {s->in.p, PEEK}};
		ssize_t k = read_some(s, part, 2, e);
		if (k <= 0)
			return (int)k;
		have += (size_t)k;
		s->at = 0;
		s->in.n = have > n ? have - n : 0;
	}
	return 1;
}

/* The three bytes before a stored block of n bytes. */
static void stored_mark(uint8_t *p, size_t n, int last)
{
	uint32_t mark = (uint32_t)(n << 3) | (uint32_t)last;
	put_le16(p, (uint16_t)mark);
	p[2] = (uint8_t)(mark >> 16);
}

/* Bytes of a stored frame. */
static size_t stored_bytes(size_t content)
{
	return STORED_HEAD + 3 * (content ? (content + STORED_PIECE - 1) / STORED_PIECE : 1) + content + 4;
}

/* A frame began as write_stored makes them, with n bytes in whole pieces at `data`, and goes on otherwise with `mark`: back into s->in. */
static void put_back(struct stream *s, const uint8_t *head, const uint8_t *data, size_t n, const uint8_t *mark)
{
	size_t rest = s->in.n - s->at, back = STORED_HEAD + n / STORED_PIECE * (3 + STORED_PIECE) + 3;
	reserve(&s->in, back + rest);
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
 * The frame that starts in s->in, when it is as write_stored makes them: its pieces go straight to `out`. 1, 0 the input ends
 * before it does, -1 error, 2 it is another kind of frame, and still in s->in.
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
	reserve(&s->in, PEEK);
	out->n = content;
	s->at += STORED_HEAD;
	XXH64_state_t hash;
	XXH64_reset(&hash, 0);
	int got;
	do {
		n = content - at < STORED_PIECE ? content - at : STORED_PIECE;
		stored_mark(want, n, at + n == content);
		got = take(s, mark, 3, e);
		if (got == 1 && memcmp(mark, want, 3)) {
			put_back(s, head, out->p, at, mark);
			return 2;
		}
		reserve(out, at + n);           /* not more than the input has shown to hold */
		if (got == 1)
			got = take(s, out->p + at, n, e);
		if (got < 1)
			return got;
		XXH64_update(&hash, out->p + at, n);
		at += n;
	} while (at < content);
	got = take(s, sum, 4, e);
	if (got == 1 && get_le32(sum) != (uint32_t)XXH64_digest(&hash))
		return damaged(s, "a frame's checksum does not fit", e);
	return got;
}

static int cut_short(const struct stream *s, struct error *e)
{
	return s->nframe ? truncated(s, e) : error_set(e, "%s: the header is cut short", s->name);
}

/* Next frame's payload into out and into the frame list: 1, 0 when the input ends before it, -1. */
static int read_frame(struct stream *s, struct bytes *out, struct error *e)
{
	size_t want = 18, content;      /* a frame header takes at most 18 bytes */
	int64_t have = fill(s, want, e);
	if (have <= 0)
		return (int)have;
	if (have < 9)
		return s->nframe ? truncated(s, e) : error_set(e, "%s: this is not a stream (%d bytes)", s->name, (int)have);
	const char *why = frame_content(s->in.p + s->at, (size_t)have, &content);
	if (why)
		return damaged(s, why, e);
	int stored = read_stored(s, content, out, e);
	s->step = stored == 1 ? PEEK : READ_STEP;
	if (stored == 1)
		frame_push(s, stored_bytes(content), content, 0);
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
		int64_t more = fill(s, (size_t)have + 1, e);
		if (more < 0)
			return -1;
		if (more == have)
			return cut_short(s, e);
		have = more;
	}
	why = inflate(s, s->in.p + s->at, size, content, out);
	if (why)
		return damaged(s, why, e);
	s->at += size;
	frame_push(s, size, content, 0);
	return 1;
}

/* ---- header, trailer, seek table ---- */

static int parse_header(struct stream *s, const struct bytes *b, struct error *e)
{
	if (b->n < 16 || memcmp(b->p, "scstream", 8))
		return error_set(e, "%s: zstd data, but not an scstream", s->name);
	unsigned major = get_le16(b->p + 8);
	if (major != STREAM_MAJOR)
		return error_set(e, "%s: stream version %u, this program reads version %u; use the newer tools", s->name, major, STREAM_MAJOR);
	if (get_le32(b->p + 12) != b->n - 16)
		return error_set(e, "%s: header of %zu bytes says it has %u", s->name, b->n - 16, get_le32(b->p + 12));
	return header_parse(&s->header, (const char *)b->p + 16, b->n - 16, s->name, e);
}

static void pack_header(const struct header *h, struct bytes *b)
{
	char *json = header_print(h);
	size_t n = strlen(json);
	reserve(b, n + 16);
	memcpy(b->p, "scstream", 8);
	put_le16(b->p + 8, STREAM_MAJOR);
	put_le16(b->p + 10, STREAM_MINOR);
	put_le32(b->p + 12, (uint32_t)n);
	memcpy(b->p + 16, json, n);
	b->n = n + 16;
	free(json);
}

/* "END1", rows u64, blocks u64, digest low u64, high u64, rows of every block u32 */
static void pack_trailer(struct stream *s, struct bytes *b)
{
	size_t blocks = s->nframe - 1;
	b->n = 36 + 4 * blocks;
	reserve(b, b->n);
	memcpy(b->p, "END1", 4);
	put_le64(b->p + 4, s->rows);
	put_le64(b->p + 12, blocks);
	XXH128_hash_t h = XXH3_128bits_digest(s->digest);
	put_le64(b->p + 20, h.low64);
	put_le64(b->p + 28, h.high64);
	for (size_t k = 0; k < blocks; k++)
		put_le32(b->p + 36 + 4 * k, s->frame[k + 1].rows);
}

static void pack_seek_table(const struct stream *s, struct bytes *b)
{
	size_t n = s->nframe;
	b->n = 8 + 8 * n + 9;
	reserve(b, b->n);
	put_le32(b->p, SEEK_MAGIC);
	put_le32(b->p + 4, (uint32_t)(b->n - 8));
	for (size_t k = 0; k < n; k++) {
		put_le32(b->p + 8 + 8 * k, s->frame[k].packed);
		put_le32(b->p + 12 + 8 * k, s->frame[k].content);
	}
	uint8_t *f = b->p + 8 + 8 * n;
	put_le32(f, (uint32_t)n);
	f[4] = 0;                       /* no checksums in the table: every frame has its own */
	put_le32(f + 5, SEEK_FOOTER);
}

static int is_trailer(const struct bytes *b)
{
	return b->n >= 36 && memcmp(b->p, "END1", 4) == 0;
}

static int trailer_wrong(const struct stream *s, const char *what, struct error *e)
{
	return error_set(e, "%s: the stream ends, but its trailer names other %s: it is damaged", s->name, what);
}

/* The trailer just read (it is the last of s->frame) against what came before. */
static int check_trailer(struct stream *s, const struct bytes *b, struct error *e)
{
	size_t blocks = s->nframe - 2;
	XXH128_hash_t h = XXH3_128bits_digest(s->digest);
	if (get_le64(b->p + 12) != blocks || b->n != 36 + 4 * blocks)
		return trailer_wrong(s, "blocks", e);
	uint64_t rows = 0;
	for (size_t k = 0; k < blocks; k++) {
		if (get_le32(b->p + 36 + 4 * k) != s->frame[k + 1].rows)
			return trailer_wrong(s, "rows in a block", e);
		rows += s->frame[k + 1].rows;
	}
	if (get_le64(b->p + 4) != rows)
		return trailer_wrong(s, "rows", e);
	if (get_le64(b->p + 20) != h.low64 || get_le64(b->p + 28) != h.high64)
		return trailer_wrong(s, "content", e);
	return 0;
}

/* After the trailer: the seek table, as we would write it, and nothing more. */
static int check_end(struct stream *s, struct error *e)
{
	pack_seek_table(s, &s->packed);
	int64_t have = fill(s, s->packed.n + 1, e);
	if (have < 0)
		return -1;
	if ((size_t)have < s->packed.n)
		return truncated(s, e);
	if (memcmp(s->in.p + s->at, s->packed.p, s->packed.n))
		return error_set(e, "%s: the seek table does not fit the stream: it is damaged", s->name);
	if ((size_t)have > s->packed.n)
		return error_set(e, "%s: bytes after the end of the stream (streams cannot be concatenated with cat; use scsample)", s->name);
	return 0;
}

/* ---- reading ---- */

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
			got = truncated(s, &e);
		if (got == 1 && is_trailer(b)) {
			got = check_trailer(s, b, &e) || check_end(s, &e) ? -1 : 0;
		} else if (got == 1) {
			if (s->nframe > FRAMES_MAX)
				got = error_set(&e, "%s: more than %u blocks", s->name, FRAMES_MAX);
			XXH3_128bits_update(s->digest, b->p, b->n);
			s->seen += s->frame[s->nframe - 1].rows = b->n >= 8 ? get_le32(b->p + 4) : 0;
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

static int thread_start(struct stream *s, void *(*run)(void *), struct error *e)
{
	if (!s->writing && (s->wake = eventfd(0, EFD_CLOEXEC)) < 0)
		return error_set(e, "%s: eventfd: %s", s->name, strerror(errno));
	int code = pthread_create(&s->thread, NULL, run, s);
	if (code)
		return error_set(e, "%s: cannot start a thread: %s", s->name, strerror(code));
	s->started = 1;
	return 0;
}

static void thread_stop(struct stream *s)
{
	if (!s->started)
		return;
	pthread_mutex_lock(&s->lock);
	s->stop = 1;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
	if (!s->writing)
		eventfd_write(s->wake, 1);
	pthread_join(s->thread, NULL);
	s->started = 0;
}

struct stream *stream_open(const char *path, struct error *e)
{
	int std = strcmp(path, "-") == 0;
	struct stream *s = stream_new(std ? "standard input" : path);
	s->fd = std ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	if (s->fd < 0 || fstat(s->fd, &st)) {
		error_set(e, "%s: %s", s->name, strerror(errno));
		goto fail;
	}
	if (S_ISDIR(st.st_mode)) {
		error_set(e, "%s: this is a folder, expected a stream", s->name);
		goto fail;
	}
	if (S_ISFIFO(st.st_mode))
		(void)fcntl(s->fd, F_SETPIPE_SZ, 1 << 20);      /* fewer switches between the programs of a pipe */
	s->dctx = ZSTD_createDCtx();
	int got = read_frame(s, &s->payload, e);
	if (got == 0)
		error_set(e, "%s: empty, expected a stream", s->name);
	if (got < 1 || parse_header(s, &s->payload, e))
		goto fail;
	XXH3_128bits_update(s->digest, s->payload.p, s->payload.n);
	return s;
fail:
	stream_free(s);
	return NULL;
}

int stream_read(struct stream *s, struct block *b, struct error *e)
{
	assert(!s->writing && !s->indexed);
	if (s->ended)
		return 0;
	if (!s->started && thread_start(s, read_ahead, e))
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

/* ---- random access ---- */

static int pread_all(const struct stream *s, void *to, size_t n, uint64_t at, struct error *e)
{
	for (char *p = to; n;) {
		ssize_t k = pread(s->fd, p, n, (off_t)at);
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return error_set(e, "%s: cannot read: %s", s->name, strerror(errno));
		if (k == 0)
			return truncated(s, e);
		p += k;
		at += (uint64_t)k;
		n -= (size_t)k;
	}
	return 0;
}

/* Copy a pipe to an unlinked file and go on from there; the header frame was read already and is kept in place. */
static int spool(struct stream *s, struct error *e)
{
	struct outfile f = {.fd = file_spill(e)};
	if (f.fd < 0)
		return -1;
	uint64_t header = s->frame[0].packed;
	int bad = 0;
	if (ftruncate(f.fd, (off_t)header) || lseek(f.fd, 0, SEEK_END) < 0)
		bad = error_set(e, "%s: cannot make a temporary copy: %s", s->name, strerror(errno));
	int64_t have = 1;
	while (!bad && (have = fill(s, READ_STEP, e)) > 0) {
		f.path = (char *)(uintptr_t)"$TMPDIR";          /* named in a message about a full disk */
		bad = outfile_write(&f, s->in.p + s->at, s->in.n - s->at, e);
		s->at = s->in.n;
	}
	if (bad || have < 0) {
		close(f.fd);
		return -1;
	}
	close(s->fd);
	s->fd = f.fd;
	return 0;
}

static int index_from_table(struct stream *s, uint64_t size, struct error *e)
{
	uint8_t foot[9];
	if (size < 17 || pread_all(s, foot, 9, size - 9, e))
		return size < 17 ? truncated(s, e) : -1;
	uint64_t n = get_le32(foot), table = 8 + 8 * n + 9;
	if (get_le32(foot + 5) != SEEK_FOOTER || foot[4] || n < 2 || n > FRAMES_MAX || table > size)
		return truncated(s, e);
	struct bytes t = {0};
	struct frame header = s->frame[0];      /* as it was read */
	reserve(&t, table);
	int bad = pread_all(s, t.p, table, size - table, e);
	s->nframe = 0;
	s->start = xmalloc(n * sizeof *s->start);
	uint64_t at = 0;
	for (size_t k = 0; k < n && !bad; k++) {
		frame_push(s, get_le32(t.p + 8 + 8 * k), get_le32(t.p + 12 + 8 * k), 0);
		s->start[k] = at;
		at += s->frame[k].packed;
	}
	if (!bad && (get_le32(t.p) != SEEK_MAGIC || get_le32(t.p + 4) != table - 8 || at != size - table ||
		     s->frame[0].packed != header.packed || s->frame[0].content != header.content))
		bad = error_set(e, "%s: the seek table does not fit the stream: it is damaged", s->name);
	free(t.p);
	return bad;
}

/* Frame k by its place in the table. */
static int read_frame_at(struct stream *s, size_t k, struct bytes *out, struct error *e)
{
	size_t content = 0, n = s->frame[k].packed;
	if (n > ZSTD_compressBound(BLOCK_MAX) + 1024)
		return error_set(e, "%s: the seek table does not fit the stream: it is damaged", s->name);
	reserve(&s->packed, n);
	if (pread_all(s, s->packed.p, n, s->start[k], e))
		return -1;
	const char *why = n < 9 ? "no zstd frame where one should start" : frame_content(s->packed.p, n, &content);
	if (!why && ZSTD_findFrameCompressedSize(s->packed.p, n) != n)
		why = "it is not one zstd frame";
	if (!why && content != s->frame[k].content)
		why = "its size is not that of the seek table";
	if (!why)
		why = inflate(s, s->packed.p, n, content, out);
	return why ? error_set(e, "%s: damaged in frame %zu: %s", s->name, k, why) : 0;
}

int stream_index(struct stream *s, struct error *e)
{
	if (lseek(s->fd, 0, SEEK_CUR) < 0 && spool(s, e))
		return -1;
	struct stat st;
	if (fstat(s->fd, &st))
		return error_set(e, "%s: %s", s->name, strerror(errno));
	if (index_from_table(s, (uint64_t)st.st_size, e))
		return -1;
	size_t blocks = s->nframe - 2;
	if (read_frame_at(s, s->nframe - 1, &s->payload, e))
		return -1;
	const struct bytes *t = &s->payload;
	if (!is_trailer(t) || t->n != 36 + 4 * blocks || get_le64(t->p + 12) != blocks)
		return trailer_wrong(s, "blocks", e);
	for (size_t k = 0; k < blocks; k++)
		s->rows += s->frame[k + 1].rows = get_le32(t->p + 36 + 4 * k);
	if (s->rows != get_le64(t->p + 4))
		return trailer_wrong(s, "rows", e);
	s->indexed = 1;
	return 0;
}

size_t stream_blocks(const struct stream *s)
{
	return s->nframe - 2;
}

uint32_t stream_block_rows(const struct stream *s, size_t k)
{
	return s->frame[k + 1].rows;
}

int stream_read_at(struct stream *s, size_t k, struct block *b, struct error *e)
{
	if (read_frame_at(s, k + 1, &s->payload, e))
		return -1;
	if (block_parse(b, &s->header, s->payload.p, s->payload.n, e))
		return error_prefix(e, "%s: block %zu is damaged", s->name, k);
	if (b->rows != s->frame[k + 1].rows)
		return trailer_wrong(s, "rows in a block", e);
	return 0;
}

/* ---- writing ---- */

/*
 * A zstd frame of stored blocks (RFC 8878): what a pipe wants. Window 128 KiB, content size in 8 bytes, checksum. The payload
 * goes out as it lies, with the few bytes between put around each piece.
 */
static int write_stored(struct stream *s, const struct bytes *b, struct error *e)
{
	uint8_t head[STORED_HEAD + 3], sum[4];
	XXH64_state_t hash;
	XXH64_reset(&hash, 0);
	put_le32(head, ZSTD_MAGICNUMBER);
	head[4] = STORED_DESCRIPTOR;
	head[5] = STORED_WINDOW;
	put_le64(head + 6, b->n);
	size_t at = 0;
	do {
		size_t n = b->n - at < STORED_PIECE ? b->n - at : STORED_PIECE, skip = at ? STORED_HEAD : 0;
		int last = at + n == b->n;
		stored_mark(head + STORED_HEAD, n, last);
		XXH64_update(&hash, b->p + at, n);
		put_le32(sum, (uint32_t)XXH64_digest(&hash));
		struct iovec part[3] = {{head + skip, sizeof head - skip}, {b->p + at, n}, {sum, last ? sizeof sum : 0}};
		if (outfile_writev(&s->out, part, 3, e))
			return -1;
		at += n;
	} while (at < b->n);
	return 0;
}

static int write_frame(struct stream *s, const struct bytes *b, size_t rows, struct error *e)
{
	if (s->nframe == FRAMES_MAX)
		return error_set(e, "%s: more than %u blocks", s->name, FRAMES_MAX);
	size_t packed;
	if (s->raw) {
		packed = stored_bytes(b->n);
		if (write_stored(s, b, e))
			return -1;
	} else {
		reserve(&s->packed, ZSTD_compressBound(b->n));
		packed = ZSTD_compress2(s->cctx, s->packed.p, s->packed.cap, b->p, b->n);
		if (ZSTD_isError(packed))
			return error_set(e, "%s: zstd: %s", s->name, ZSTD_getErrorName(packed));
		if (outfile_write(&s->out, s->packed.p, packed, e))
			return -1;
	}
	frame_push(s, packed, b->n, rows);
	return 0;
}

static void *write_behind(void *arg)
{
	struct stream *s = arg;
	struct error e = {{0}};
	int bad = 0;
	for (;;) {
		pthread_mutex_lock(&s->lock);
		while (s->head == s->tail && !s->stop)
			pthread_cond_wait(&s->changed, &s->lock);
		int have = s->head != s->tail;
		pthread_mutex_unlock(&s->lock);
		if (!have)
			return NULL;
		const struct bytes *b = &s->buf[s->tail % NBUF];
		if (!bad) {
			XXH3_128bits_update(s->digest, b->p, b->n);
			bad = write_frame(s, b, get_le32(b->p + 4), &e);
		}
		pthread_mutex_lock(&s->lock);
		s->tail++;
		if (bad && !s->result) {
			s->result = -1;
			s->error = e;
		}
		pthread_cond_signal(&s->changed);
		pthread_mutex_unlock(&s->lock);
	}
}

struct stream *stream_create(const char *path, const struct header *h, int raw, struct error *e)
{
	struct stream *s = stream_new(path && strcmp(path, "-") ? path : "standard output");
	s->writing = 1;
	s->raw = raw;
	header_copy(&s->header, h);
	pack_header(h, &s->payload);
	if (s->payload.n > HEADER_MAX) {
		error_set(e, "%s: a header of %zu bytes, the limit is %u", s->name, s->payload.n, HEADER_MAX);
		goto fail;
	}
	if (outfile_open(&s->out, path, 0, e))
		goto fail;
	struct stat st;
	if (s->out.direct && fstat(s->out.fd, &st) == 0 && S_ISFIFO(st.st_mode))
		(void)fcntl(s->out.fd, F_SETPIPE_SZ, 1 << 20);
	s->cctx = ZSTD_createCCtx();
	ZSTD_CCtx_setParameter(s->cctx, ZSTD_c_compressionLevel, LEVEL);
	ZSTD_CCtx_setParameter(s->cctx, ZSTD_c_checksumFlag, 1);
	if (write_frame(s, &s->payload, 0, e))
		goto fail;
	XXH3_128bits_update(s->digest, s->payload.p, s->payload.n);
	return s;
fail:
	stream_free(s);
	return NULL;
}

int stream_write(struct stream *s, const struct block *b, struct error *e)
{
	assert(b->header->ncol == s->header.ncol && b->header->ngroup == s->header.ngroup);
	size_t n = block_bytes(b);
	if (n > BLOCK_MAX)
		return error_set(e, "%s: a block of %zu bytes after %llu rows, the limit is %u", s->name, n,
				 (unsigned long long)s->rows, BLOCK_MAX);
	if (!s->started && thread_start(s, write_behind, e))
		return -1;
	pthread_mutex_lock(&s->lock);
	while (s->head - s->tail == NBUF - 1 && !s->result)
		pthread_cond_wait(&s->changed, &s->lock);
	int bad = s->result;
	pthread_mutex_unlock(&s->lock);
	if (bad)
		return error_set(e, "%s", s->error.msg);
	struct bytes *p = &s->buf[s->head % NBUF];
	reserve(p, n);
	p->n = n;
	block_pack(b, p->p);
	s->rows += b->rows;
	pthread_mutex_lock(&s->lock);
	s->head++;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
	return 0;
}

int stream_commit(struct stream *s, struct error *e)
{
	thread_stop(s);
	if (s->result)
		return error_set(e, "%s", s->error.msg);
	pack_trailer(s, &s->payload);
	if (write_frame(s, &s->payload, 0, e))
		return -1;
	pack_seek_table(s, &s->packed);
	if (outfile_write(&s->out, s->packed.p, s->packed.n, e))
		return -1;
	return outfile_commit(&s->out, e);
}

void stream_free(struct stream *s)
{
	if (!s)
		return;
	thread_stop(s);
	outfile_abort(&s->out);
	if (s->fd >= 0)
		close(s->fd);
	if (s->wake >= 0)
		close(s->wake);
	for (int i = 0; i < NBUF; i++)
		free(s->buf[i].p);
	free(s->in.p);
	free(s->payload.p);
	free(s->packed.p);
	free(s->frame);
	free(s->start);
	free(s->name);
	header_release(&s->header);
	ZSTD_freeDCtx(s->dctx);
	ZSTD_freeCCtx(s->cctx);
	XXH3_freeState(s->digest);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->changed);
	free(s);
}
