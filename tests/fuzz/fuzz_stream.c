/*
 * Any bytes as a stream: reading in order and by the index must not crash, must not take memory beyond the input's payloads,
 * and must agree. What is accepted is written again and must come back the same.
 *
 * The zstd frames and their checksums are in the way of a fuzzer, so inputs come in two forms, told apart by the first byte:
 *     'F'  the file itself
 *     'P'  payloads, each after its length (u32): the frames, trailer and seek table are made here
 */
#include "base/bytes.h"
#include "stream/stream.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int file = -1;
static char path[64];

struct buffer {
	uint8_t *p;
	size_t n, cap;
};

static void append(struct buffer *b, const void *p, size_t n)
{
	b->p = grow_bytes(b->p, &b->cap, b->n + n, 1);
	memcpy(b->p + b->n, p, n);
	b->n += n;
}

static void append_frame(struct buffer *to, struct buffer *table, const uint8_t *p, size_t n)
{
	static ZSTD_CCtx *c;
	if (!c)
		c = ZSTD_createCCtx();
	ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
	ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel, -5);
	size_t room = ZSTD_compressBound(n);
	to->p = grow_bytes(to->p, &to->cap, to->n + room, 1);
	size_t k = ZSTD_compress2(c, to->p + to->n, room, p, n);
	assert(!ZSTD_isError(k));
	to->n += k;
	uint8_t entry[8];
	put_le32(entry, (uint32_t)k);
	put_le32(entry + 4, (uint32_t)n);
	append(table, entry, 8);
}

/* Frames around payloads; a trailer that fits them. */
static void wrap(const uint8_t *data, size_t size, struct buffer *out)
{
	struct buffer table = {0}, trailer = {0};
	uint8_t head[36] = "END1", word[9];
	uint64_t rows = 0, blocks = 0;
	XXH3_state_t *digest = XXH3_createState();
	XXH3_128bits_reset(digest);
	append(&trailer, head, 36);
	append(&table, head, 8);
	for (int first = 1; size >= 4; first = 0) {
		size_t n = get_le32(data);
		data += 4;
		size -= 4;
		n = n < size ? n : size;
		append_frame(out, &table, data, n);
		XXH3_128bits_update(digest, data, n);
		if (!first) {
			put_le32(word, n >= 8 ? get_le32(data + 4) : 0);
			rows += get_le32(word);
			blocks++;
			append(&trailer, word, 4);
		}
		data += n;
		size -= n;
	}
	XXH128_hash_t h = XXH3_128bits_digest(digest);
	put_le64(trailer.p + 4, rows);
	put_le64(trailer.p + 12, blocks);
	put_le64(trailer.p + 20, h.low64);
	put_le64(trailer.p + 28, h.high64);
	append_frame(out, &table, trailer.p, trailer.n);
	put_le32(word, (uint32_t)(blocks + 2));
	word[4] = 0;
	put_le32(word + 5, 0x8F92EAB1u);
	append(&table, word, 9);
	put_le32(table.p, 0x184D2A5Eu);
	put_le32(table.p + 4, (uint32_t)table.n - 8);
	append(out, table.p, table.n);
	XXH3_freeState(digest);
	free(table.p);
	free(trailer.p);
}

static void content(struct buffer *to, const struct block *b)
{
	size_t n = block_bytes(b);
	to->p = grow_bytes(to->p, &to->cap, to->n + n, 1);
	block_pack(b, to->p + to->n);
	to->n += n;
}

/* The whole stream into `to`: 1 accepted, 0 refused, with a message. */
static int in_order(struct buffer *to)
{
	struct error e = {""};
	struct block b = {0};
	int got = -1;
	struct stream *s = stream_open(path, &e);
	to->n = 0;
	while (s && (got = stream_read(s, &b, &e)) > 0)
		content(to, &b);
	assert(got == 0 || e.msg[0]);
	block_release(&b);
	stream_free(s);
	return got == 0;
}

static int by_index(struct buffer *to)
{
	struct error e = {""};
	struct block b = {0};
	struct stream *s = stream_open(path, &e);
	int bad = !s || stream_index(s, &e);
	to->n = 0;
	uint64_t rows = 0;
	for (size_t k = 0; !bad && k < stream_blocks(s); k++) {
		bad = stream_read_at(s, k, &b, &e);
		if (!bad)
			content(to, &b);
		rows += b.rows;
	}
	assert(bad ? e.msg[0] != 0 : rows == stream_rows(s));
	block_release(&b);
	stream_free(s);
	return !bad;
}

static void put_file(const uint8_t *p, size_t n)
{
	if (file < 0) {
		file = memfd_create("fuzz", 0);
		snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	}
	assert(ftruncate(file, 0) == 0 && pwrite(file, p, n, 0) == (ssize_t)n);
}

/* Read, write to a second file (standard output, which libFuzzer does not use), read that. */
static void again(const struct buffer *want)
{
	static int ready;
	static const char copy[] = "/proc/self/fd/1";
	struct error e = {""};
	struct block b = {0};
	if (!ready)
		ready = dup2(memfd_create("copy", 0), STDOUT_FILENO) == STDOUT_FILENO;
	assert(ready && ftruncate(STDOUT_FILENO, 0) == 0 && lseek(STDOUT_FILENO, 0, SEEK_SET) == 0);
	struct stream *s = stream_open(path, &e), *t = stream_create("-", stream_header(s), want->n % 2, &e);
	struct buffer got = {0};
	assert(t);
	while (stream_read(s, &b, &e) > 0)
		assert(stream_write(t, &b, &e) == 0);
	assert(stream_commit(t, &e) == 0);
	stream_free(t);
	t = stream_open(copy, &e);
	assert(t);
	char *x = header_print(stream_header(s)), *y = header_print(stream_header(t));
	assert(strcmp(x, y) == 0);
	free(x);
	free(y);
	while (stream_read(t, &b, &e) > 0)
		content(&got, &b);
	assert(got.n == want->n && (!got.n || memcmp(got.p, want->p, got.n) == 0));
	stream_free(s);
	stream_free(t);
	block_release(&b);
	free(got.p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buffer a = {0}, b = {0}, wrapped = {0};
	if (!size)
		return 0;
	if (data[0] == 'P') {
		wrap(data + 1, size - 1, &wrapped);
		put_file(wrapped.p, wrapped.n);
	} else {
		put_file(data + 1, size - 1);
	}
	int one = in_order(&a), two = by_index(&b);
	/* the index does not see the digest of the whole, so it may accept what reading in order refuses; never the reverse */
	assert(!one || (two && a.n == b.n && (!a.n || memcmp(a.p, b.p, a.n) == 0)));
	assert(one || !two || data[0] == 'F');
	if (one)
		again(&a);
	free(a.p);
	free(b.p);
	free(wrapped.p);
	return 0;
}
