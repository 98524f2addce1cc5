/* Writing a stream: blocks to payloads, payloads to frames on a thread; then the trailer and the seek table. */
#include "stream/stream_impl.h"

#include <assert.h>
#include <fcntl.h>
#include <sys/stat.h>

#define LEVEL 1 /* zstd level: speed matters more than size */

/*
 * Write a zstd frame of uncompressed ("raw") blocks (RFC 8878), which is fastest in a pipe. Window 128 KiB, content size in 8 bytes,
 * checksum. The payload is not copied: a few bytes are written before each piece of it.
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
	if (s->nentry == FRAMES_MAX)
		return error_set(e, "%s: more than %u blocks", s->name, FRAMES_MAX);
	size_t packed;
	if (s->raw) {
		packed = stored_bytes(b->n);
		if (write_stored(s, b, e))
			return -1;
	} else {
		bytes_reserve(&s->packed, ZSTD_compressBound(b->n));
		packed = ZSTD_compress2(s->cctx, s->packed.p, s->packed.cap, b->p, b->n);
		if (ZSTD_isError(packed))
			return error_set(e, "%s: zstd: %s", s->name, ZSTD_getErrorName(packed));
		if (outfile_write(&s->out, s->packed.p, packed, e))
			return -1;
	}
	stream_add_entry(s, packed, b->n, rows);
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
	struct outfile f;
	return outfile_open(&f, path, 0, e) ? NULL : stream_create_in(&f, path, h, raw, ROWS_UNKNOWN, e);
}

struct stream *stream_create_in(struct outfile *f, const char *path, const struct header *h, int raw, uint64_t expected, struct error *e)
{
	struct stream *s = stream_new(path && strcmp(path, "-") ? path : "standard output");
	s->out = *f;
	*f = (struct outfile){.fd = -1};
	s->writing = 1;
	s->raw = raw;
	header_copy(&s->header, h);
	if (h->ncol > COLUMNS_MAX) {
		error_set(e, "%s: %zu columns, a stream has at most %d (h5tok --obs chooses those of AnnData)", s->name, h->ncol,
			COLUMNS_MAX);
		goto fail;
	}
	stream_pack_header(h, &s->payload);
	if (s->payload.n > HEADER_MAX) {
		error_set(e, "%s: a header of %zu bytes, the limit is %u", s->name, s->payload.n, HEADER_MAX);
		goto fail;
	}
	struct stat st;
	const int fifo = s->out.direct && fstat(s->out.fd, &st) == 0 && S_ISFIFO(st.st_mode), announces = fifo && expected != ROWS_UNKNOWN;
	if (fifo)
		(void)fcntl(s->out.fd, F_SETPIPE_SZ, 1 << 20);
	uint8_t rows[ROWS_FRAME];
	stream_pack_expected(expected, rows);
	if (announces && outfile_write(&s->out, rows, sizeof rows, e))
		goto fail;
	s->cctx = xchecked(ZSTD_createCCtx());
	ZSTD_CCtx_setParameter(s->cctx, ZSTD_c_compressionLevel, LEVEL);
	ZSTD_CCtx_setParameter(s->cctx, ZSTD_c_checksumFlag, 1);
	if (write_frame(s, &s->payload, 0, e))
		goto fail;
	s->entry[0].packed += announces ? ROWS_FRAME : 0;
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
		return error_set(
			e, "%s: a block of %zu bytes after %llu rows, the limit is %u", s->name, n, (unsigned long long)s->rows, BLOCK_MAX);
	if (!s->started && stream_thread_start(s, write_behind, e))
		return -1;
	pthread_mutex_lock(&s->lock);
	while (s->head - s->tail == NBUF - 1 && !s->result)
		pthread_cond_wait(&s->changed, &s->lock);
	int bad = s->result;
	pthread_mutex_unlock(&s->lock);
	if (bad)
		return error_set(e, "%s", s->error.msg);
	struct bytes *p = &s->buf[s->head % NBUF];
	bytes_reserve(p, n);
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
	stream_thread_stop(s);
	if (s->result)
		return error_set(e, "%s", s->error.msg);
	stream_pack_trailer(s, &s->payload);
	if (write_frame(s, &s->payload, 0, e))
		return -1;
	stream_pack_seek_table(s, &s->packed);
	if (outfile_write(&s->out, s->packed.p, s->packed.n, e))
		return -1;
	return outfile_commit(&s->out, e);
}
