/*
 * Streams as inputs of a fuzzer. The zstd frames and their checksums are in its way, so inputs come in two forms, told apart by the first
 * byte:
 *     'F'  the file itself
 *     'P'  payloads, each after its length (u32): the frames, trailer and seek table are made here
 */
#pragma once

#include "base/bytes.h"
#include "stream/stream.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

struct buffer {
	uint8_t *p;
	size_t n, cap;
};

static void append(struct buffer *b, const void *p, size_t n)
{
	b->p = grow_bytes(b->p, &b->cap, b->n + n, 1);
	if (n)
		memcpy(b->p + b->n, p, n);
	b->n += n;
}

/* A frame with this payload, and its entry in the seek table. */
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

/* The file of an input, in memory: its path. */
static const char *put_input(const uint8_t *data, size_t size)
{
	static int file = -1;
	static char path[64];
	struct buffer wrapped = {0};
	const uint8_t *p = data + 1;
	size_t n = size - 1;
	if (data[0] == 'P') {
		wrap(p, n, &wrapped);
		p = wrapped.p;
		n = wrapped.n;
	}
	if (file < 0) {
		file = memfd_create("fuzz", 0);
		snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	}
	assert(ftruncate(file, 0) == 0 && pwrite(file, p, n, 0) == (ssize_t)n);
	free(wrapped.p);
	return path;
}
