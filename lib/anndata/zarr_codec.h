/*
 * The codecs of zarr that turn bytes into bytes: Blosc, Zstandard, gzip, zlib, LZ4 (as numcodecs stores it) and the checksum CRC-32C.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum zarr_codec { ZARR_BLOSC, ZARR_ZSTD, ZARR_GZIP, ZARR_ZLIB, ZARR_LZ4, ZARR_CRC32C, ZARR_CODECS };
enum { ZARR_DEPTH = 4 };

struct zarr_codecs {
	int n;
	enum zarr_codec id[ZARR_DEPTH]; /* in the order in which they were applied on writing; at most one compresses */
};

/* Add the codec of this name. NULL, or why it cannot be read. */
const char *zarr_codec_add(struct zarr_codecs *c, const char *name);

/* Of one thread. */
struct zarr_scratch {
	struct libdeflate_decompressor *inflate;
	unsigned char *bytes;
	size_t cap;
};
void zarr_scratch_release(struct zarr_scratch *s); /* accepts a zeroed struct */

/*
 * Undo all codecs for the n bytes at `in`. The result lies in `in` or in own->bytes: *out [*size]. want: bytes of the result,
 * or 0 if they are not known (then at most `most`). NULL, or what is wrong.
 */
const char *zarr_undo(const struct zarr_codecs *c, const unsigned char *in, size_t n, struct zarr_scratch *own, size_t want, size_t most,
	const unsigned char **out, size_t *size);

uint32_t zarr_crc32c(const unsigned char *p, size_t n);
