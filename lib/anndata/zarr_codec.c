#include "anndata/zarr_codec.h"

#include "anndata/h5.h"

#include "base/bytes.h"

#include <libdeflate.h>
#include <zstd.h>
#include <zstd_errors.h>
#ifdef WITH_BLOSC
#include <blosc.h>
#endif
#ifdef WITH_LZ4
#include <lz4.h>
#endif

#define CRC_BYTES 4

const char *zarr_codec_add(struct zarr_codecs *c, const char *name)
{
	static const char *const names[] = {"blosc", "zstd", "gzip", "zlib", "lz4", "crc32c"};
	EVERY_ROW(names, ZARR_CODECS);
	size_t id = 0;
	if (!strncmp(name, "numcodecs.", 10)) /* so zarr 3 calls those that the specification does not have */
		name += 10;
	while (id < ZARR_CODECS && strcmp(name, names[id]))
		id++;
	if (id == ZARR_CODECS)
		return "which is not supported; write the store with zstd or blosc compression";
#ifndef WITH_BLOSC
	if (id == ZARR_BLOSC)
		return "and this program was built without libblosc";
#endif
#ifndef WITH_LZ4
	if (id == ZARR_LZ4)
		return "and this program was built without liblz4";
#endif
	for (int i = 0; i < c->n && id != ZARR_CRC32C; i++)
		if (c->id[i] != ZARR_CRC32C)
			return "after another compression: expected one";
	if (c->n == ZARR_DEPTH)
		return "after too many others";
	c->id[c->n++] = (enum zarr_codec)id;
	return NULL;
}

void zarr_scratch_release(struct zarr_scratch *s)
{
	if (s->inflate)
		libdeflate_free_decompressor(s->inflate);
	free(s->bytes);
	*s = (struct zarr_scratch){0};
}

/* Castagnoli's polynomial, bits reversed. Only indexes of shards and, rarely, chunks have this checksum. */
uint32_t zarr_crc32c(const unsigned char *p, size_t n)
{
	uint32_t table[256], crc = UINT32_MAX;
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t r = i;
		for (int k = 0; k < 8; k++)
			r = r >> 1 ^ (r & 1 ? 0x82f63b78 : 0);
		table[i] = r;
	}
	for (size_t i = 0; i < n; i++)
		crc = crc >> 8 ^ table[(crc ^ p[i]) & 255];
	return ~crc;
}

/* How long the decoded bytes are, as the stored ones say; 0: they do not. */
static size_t length_in(enum zarr_codec id, const unsigned char *in, size_t n)
{
	size_t size = 0;
	unsigned long long frame;
	switch (id) {
	case ZARR_BLOSC:
#ifdef WITH_BLOSC
		return blosc_cbuffer_validate(in, n, &size) < 0 ? 0 : size;
#else
		break;
#endif
	case ZARR_ZSTD:
		frame = ZSTD_getFrameContentSize(in, n);
		return frame == ZSTD_CONTENTSIZE_UNKNOWN || frame == ZSTD_CONTENTSIZE_ERROR ? 0 : frame;
	case ZARR_LZ4:
		return n < 4 ? 0 : get_le32(in);
	case ZARR_GZIP:
	case ZARR_ZLIB:
	case ZARR_CRC32C:
	case ZARR_CODECS:
		break;
	}
	return size;
}

/* Decode to out [cap]; the number of bytes, or -1: damaged, or -2: more than cap (not of every codec). */
static int64_t decompress(enum zarr_codec id, const unsigned char *in, size_t n, struct zarr_scratch *own, unsigned char *out, size_t cap)
{
	size_t got = 0;
	if (id == ZARR_ZSTD) {
		got = ZSTD_decompress(out, cap, in, n);
		return !ZSTD_isError(got) ? (int64_t)got : ZSTD_getErrorCode(got) == ZSTD_error_dstSize_tooSmall ? -2 : -1;
	}
	if (id == ZARR_GZIP || id == ZARR_ZLIB) {
		if (!own->inflate)
			own->inflate = libdeflate_alloc_decompressor();
		enum libdeflate_result r = !own->inflate ? LIBDEFLATE_BAD_DATA
			: id == ZARR_GZIP                ? libdeflate_gzip_decompress(own->inflate, in, n, out, cap, &got)
							 : libdeflate_zlib_decompress(own->inflate, in, n, out, cap, &got);
		return r == LIBDEFLATE_SUCCESS ? (int64_t)got : r == LIBDEFLATE_INSUFFICIENT_SPACE ? -2 : -1;
	}
#ifdef WITH_BLOSC
	if (id == ZARR_BLOSC)
		return length_in(id, in, n) > cap ? -1 : blosc_decompress_ctx(in, out, cap, 1);
#endif
#ifdef WITH_LZ4
	if (id == ZARR_LZ4)
		return n < 4 || n > INT32_MAX || cap > INT32_MAX
			? -1
			: LZ4_decompress_safe((const char *)in + 4, (char *)out, (int)n - 4, (int)cap);
#endif
	return -1;
}

/* Decompress `in` to own->bytes. want: as of zarr_undo. The number of bytes, or -1. */
static int64_t expand(enum zarr_codec id, const unsigned char *in, size_t n, struct zarr_scratch *own, size_t want, size_t most)
{
	size_t says = length_in(id, in, n);
	most = most / ZSTD_RATIO_MAX < n ? most : n * ZSTD_RATIO_MAX;
	if (says > most || (says && want && says != want))
		return -1;
	for (size_t cap = want ? want : says ? says : 4 * n + 64;; cap *= 2) {
		cap = cap < most ? cap : most;
		grow(own->bytes, own->cap, cap + 1);
		int64_t got = decompress(id, in, n, own, own->bytes, cap);
		if (got != -2 || want || says || cap == most)
			return got;
	}
}

const char *zarr_undo(const struct zarr_codecs *c, const unsigned char *in, size_t n, struct zarr_scratch *own, size_t want, size_t most,
	const unsigned char **out, size_t *size)
{
	size_t checksums = 0;
	for (int i = 0; i < c->n; i++)
		checksums += c->id[i] == ZARR_CRC32C;
	for (int i = c->n - 1; i >= 0; i--) {
		if (c->id[i] == ZARR_CRC32C) {
			if (n < CRC_BYTES || get_le32(in + n - CRC_BYTES) != zarr_crc32c(in, n - CRC_BYTES))
				return "has a wrong checksum (crc32c)";
			n -= CRC_BYTES;
			checksums--;
			continue;
		}
		int64_t got = expand(c->id[i], in, n, own, want ? want + CRC_BYTES * checksums : 0, most + CRC_BYTES * checksums);
		if (got < 0)
			return "does not decompress";
		in = own->bytes;
		n = (size_t)got;
	}
	*out = in;
	*size = n;
	return want && n != want ? "does not have the length of its shape" : NULL;
}
