/* Reading a stream in any order: the seek table says where each frame is. */
#include "stream/stream_impl.h"

#include "base/digest.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static int pread_all(const struct stream *s, void *to, size_t n, uint64_t at, struct error *e)
{
	const char *why = file_read_at(s->fd, to, n, at, "");
	if (why && !*why)
		return stream_truncated(s, e);
	return why ? error_set(e, "%s: cannot read: %s", s->name, why) : 0;
}

/* Copy a pipe to an unlinked file and read from that. The header frame was read already and keeps its place. */
static int spool(struct stream *s, struct error *e)
{
	struct outfile f = {.fd = file_spill(e)};
	if (f.fd < 0)
		return -1;
	uint64_t header = s->entry[0].packed;
	int bad = 0;
	if (ftruncate(f.fd, (off_t)header) || lseek(f.fd, 0, SEEK_END) < 0)
		bad = error_set(e, "%s: cannot make a temporary copy: %s", s->name, strerror(errno));
	int64_t have = 1;
	while (!bad && (have = stream_fill(s, READ_STEP, e)) > 0) {
		f.path = (char *)(uintptr_t) "$TMPDIR"; /* named in a message about a full disk */
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
		return size < 17 ? stream_truncated(s, e) : -1;
	uint64_t n = get_le32(foot), table = 8 + 8 * n + 9;
	if (get_le32(foot + 5) != SEEK_FOOTER || foot[4] || n < 2 || n > FRAMES_MAX || table > size)
		return stream_truncated(s, e);
	struct bytes t = {0};
	struct seek_entry header = s->entry[0]; /* as it was read */
	bytes_reserve(&t, table);
	int bad = pread_all(s, t.p, table, size - table, e);
	s->nentry = 0;
	s->start = xmalloc(n * sizeof *s->start);
	uint64_t at = 0;
	for (size_t k = 0; k < n && !bad; k++) {
		stream_add_entry(s, get_le32(t.p + 8 + 8 * k), get_le32(t.p + 12 + 8 * k), 0);
		s->start[k] = at;
		at += s->entry[k].packed;
	}
	if (!bad &&
		(get_le32(t.p) != SEEK_MAGIC || get_le32(t.p + 4) != table - 8 || at != size - table ||
			s->entry[0].packed != header.packed || s->entry[0].content != header.content))
		bad = error_set(e, "%s: the stream is damaged: its seek table does not match it", s->name);
	free(t.p);
	return bad;
}

/* Frame k by its place in the table; packed is scratch. */
static int read_frame_at(const struct stream *s, ZSTD_DCtx *c, size_t k, struct bytes *packed, struct bytes *out, struct error *e)
{
	size_t content = 0, n = s->entry[k].packed;
	if (n > ZSTD_compressBound(BLOCK_MAX) + 1024)
		return error_set(e, "%s: the stream is damaged: its seek table does not match it", s->name);
	bytes_reserve(packed, n);
	if (pread_all(s, packed->p, n, s->start[k], e))
		return -1;
	const char *why = n < 9 ? "no zstd frame where one should start" : stream_frame_size(packed->p, n, &content);
	if (!why && ZSTD_findFrameCompressedSize(packed->p, n) != n)
		why = "it is not one zstd frame";
	if (!why && content != s->entry[k].content)
		why = "its size is not that of the seek table";
	if (!why)
		why = stream_inflate(c, packed->p, n, content, out);
	return why ? error_set(e, "%s: damaged in frame %zu: %s", s->name, k, why) : 0;
}

static int compare_digest(struct stream *s, struct error *e)
{
	XXH128_hash_t h = XXH3_128bits_digest(s->digest);
	return h.low64 != s->want[0] || h.high64 != s->want[1] ? stream_trailer_wrong(s, "content", e) : 0;
}

int stream_index(struct stream *s, struct error *e)
{
	if (s->joined)
		return joined_index(s, e);
	if (lseek(s->fd, 0, SEEK_CUR) < 0 && spool(s, e))
		return -1;
	struct stat st;
	if (fstat(s->fd, &st))
		return error_set(e, "%s: %s", s->name, strerror(errno));
	if (index_from_table(s, (uint64_t)st.st_size, e))
		return -1;
	size_t blocks = s->nentry - 2;
	if (read_frame_at(s, stream_dctx(s), s->nentry - 1, &s->packed, &s->payload, e))
		return -1;
	const struct bytes *t = &s->payload;
	if (!stream_is_trailer(t) || t->n != 36 + 4 * blocks || get_le64(t->p + 12) != blocks)
		return stream_trailer_wrong(s, "blocks", e);
	for (size_t k = 0; k < blocks; k++)
		s->rows += s->entry[k + 1].rows = get_le32(t->p + 36 + 4 * k);
	if (s->rows != get_le64(t->p + 4))
		return stream_trailer_wrong(s, "rows", e);
	s->expected = s->rows;
	s->want[0] = get_le64(t->p + 20);
	s->want[1] = get_le64(t->p + 28);
	s->sum = xcalloc(blocks, sizeof *s->sum);
	s->indexed = 1;
	return blocks ? 0 : compare_digest(s, e);
}

void stream_look_ahead(struct stream *s)
{
	struct error e;
	const struct seek_entry header = s->entry[0];
	(void)stream_index(s, &e);
	free_all(s->start, s->sum);
	s->start = s->sum = NULL;
	s->entry[0] = header;
	s->nentry = 1;
	s->rows = 0;
	s->indexed = 0;
}

size_t stream_blocks(const struct stream *s)
{
	return s->joined ? joined_blocks(s->joined) : s->nentry - 2;
}

uint32_t stream_block_rows(const struct stream *s, size_t k)
{
	size_t part;
	if (s->joined)
		s = joined_block(s->joined, &k, &part);
	return s->entry[k + 1].rows;
}

void stream_digest(const struct stream *s, char hex[33])
{
	digest_hex((XXH128_hash_t){.low64 = s->want[0], .high64 = s->want[1]}, hex);
}

/* ---- the digest ---- */

/* The digest needs the payloads in order. Who reads the stream so, once, has it compared with the last block. */
static int add_in_order(struct stream *s, const struct bytes *payload, struct error *e)
{
	XXH3_128bits_update(s->digest, payload->p, payload->n);
	return ++s->in_order < stream_blocks(s) ? 0 : compare_digest(s, e);
}

/* A block must be the same whenever it is read. */
static int compare_sum(struct stream *s, size_t k, const struct bytes *payload, struct error *e)
{
	uint64_t sum = XXH3_64bits(payload->p, payload->n);
	sum += !sum;
	pthread_mutex_lock(&s->lock);
	uint64_t first = s->sum[k];
	if (!first)
		s->sum[k] = sum;
	pthread_mutex_unlock(&s->lock);
	return first && first != sum ? error_set(e, "%s: block %zu has changed since it was first read", s->name, k) : 0;
}

static int stopped(struct stream *s)
{
	pthread_mutex_lock(&s->lock);
	int stop = s->stop;
	pthread_mutex_unlock(&s->lock);
	return stop;
}

/* Does this reader check part i of the stream? */
static int checks(struct stream *s, size_t i)
{
	const struct stream *p = stream_part(s, i);
	return i % s->shares == s->share && p->in_order < stream_blocks(p);
}

/* The thread of stream_check. */
static void *check_rest(void *arg)
{
	struct stream *s = arg;
	struct bytes packed = {0}, payload = {0};
	struct error e = {{0}};
	ZSTD_DCtx *c = xchecked(ZSTD_createDCtx());
	int bad = 0, stop = 0;
	for (size_t i = 0; i < stream_parts(s) && !bad && !stop; i++) {
		struct stream *p = stream_part(s, i);
		for (size_t k = p->in_order; checks(s, i) && !bad && !stop; k++) {
			bad = read_frame_at(p, c, k + 1, &packed, &payload, &e) || compare_sum(p, k, &payload, &e) ||
				add_in_order(p, &payload, &e);
			stop = stopped(s);
		}
	}
	ZSTD_freeDCtx(c);
	free_all(packed.p, payload.p);
	pthread_mutex_lock(&s->lock);
	s->done = 1;
	s->result = bad ? -1 : 0;
	s->error = e;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

void stream_check_share(struct stream *s, uint64_t r, uint64_t n)
{
	s->share = r;
	s->shares = n;
}

int stream_check(struct stream *s, struct error *e)
{
	if (s->checking)
		return 0;
	for (size_t i = 0; i < stream_parts(s); i++)
		if (checks(s, i))
			s->checking = stream_part(s, i)->checking = 1;
	return s->checking ? stream_thread_start(s, check_rest, e) : 0;
}

/* What the thread has found so far; wait: until its end. */
static int check_result(struct stream *s, int wait, struct error *e)
{
	pthread_mutex_lock(&s->lock);
	while (wait && !s->done)
		pthread_cond_wait(&s->changed, &s->lock);
	int bad = s->done && s->result;
	pthread_mutex_unlock(&s->lock);
	return bad ? error_set(e, "%s", s->error.msg) : 0;
}

int stream_checked(struct stream *s, struct error *e)
{
	if (stream_check(s, e))
		return -1;
	return s->checking ? check_result(s, 1, e) : 0;
}

int stream_read_block(struct stream *s, struct stream *scratch, size_t k, struct block *b, struct error *e)
{
	struct bytes *payload = &scratch->payload;
	if (read_frame_at(s, stream_dctx(scratch), k + 1, &scratch->packed, payload, e) || compare_sum(s, k, payload, e) ||
		(!s->checking && k == s->in_order && add_in_order(s, payload, e)))
		return -1;
	if (block_parse(b, &s->header, payload->p, payload->n, e))
		return error_prefix(e, "%s: block %zu is damaged", s->name, k);
	if (b->rows != s->entry[k + 1].rows)
		return stream_trailer_wrong(s, "rows in a block", e);
	return 0;
}

int stream_read_at(struct stream *s, size_t k, struct block *b, struct error *e)
{
	if (s->checking && check_result(s, 0, e))
		return -1;
	return s->joined ? joined_read_at(s, k, b, e) : stream_read_block(s, s, k, b, e);
}
