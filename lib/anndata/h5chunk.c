#include "anndata/h5chunk.h"

#include "anndata/h5.h"

#include <libdeflate.h>
#include <liblzf/lzf.h>
#include <zstd.h>

void h5chunk_scratch_release(struct h5chunk_scratch *s)
{
	if (s->inflate)
		libdeflate_free_decompressor(s->inflate);
	free_all(s->step, s->whole);
	zarr_scratch_release(&s->zarr);
	*s = (struct h5chunk_scratch){0};
}

static void unshuffle(unsigned char *restrict out, const unsigned char *restrict in, size_t n, size_t size)
{
	if (size == 4) {
		for (size_t i = 0; i < n; i++) {
			uint32_t v = in[i] | (uint32_t)in[n + i] << 8 | (uint32_t)in[2 * n + i] << 16 | (uint32_t)in[3 * n + i] << 24;
			memcpy(out + 4 * i, &v, 4);
		}
		return;
	}
	for (size_t b = 0; b < size; b++)
		for (size_t i = 0; i < n; i++)
			out[i * size + b] = in[b * n + i];
}

/* Does the checksum behind the n bytes fit them? It is Fletcher's, of big-endian 16-bit words modulo 65,535, stored little-endian. */
static int checksum_right(const unsigned char *p, size_t n)
{
	uint64_t a = 0, b = 0;
	for (size_t from = 0; from < n; from += 1 << 16) {
		for (size_t i = from; i < n && i < from + (1 << 16); i += 2) {
			a += (uint64_t)p[i] << 8 | (i + 1 < n ? p[i + 1] : 0);
			b += a;
		}
		a %= 65535;
		b %= 65535;
	}
	p += n;
	return (p[0] | p[1] << 8) % 65535 == (int)a && (p[2] | p[3] << 8) % 65535 == (int)b;
}

int h5chunk_decode(const struct h5chunk_filters *f, uint32_t skip, const unsigned char *in, size_t n, struct h5chunk_scratch *own,
	unsigned char *out, size_t bytes)
{
	int left = 0, last = f->n - 1;
	if (last >= 0 && f->id[last] == H5Z_FILTER_FLETCHER32) {
		if (!(skip >> last & 1)) {
			if (n < H5_CHECKSUM || !checksum_right(in, n - H5_CHECKSUM))
				return 1;
			n -= H5_CHECKSUM;
		}
		last--;
	}
	for (int i = 0; i <= last; i++)
		left += !(skip >> i & 1);
	if (!left) {
		if (n != bytes)
			return 1;
		memcpy(out, in, n);
	}
	if (left > 1 && !own->step)
		own->step = xmalloc(bytes);
	/* the buffers alternate so that the last step writes to out */
	for (int i = last; i >= 0; i--) {
		if (skip >> i & 1)
			continue;
		unsigned char *to = --left % 2 ? own->step : out;
		if (f->id[i] == H5Z_FILTER_DEFLATE) {
			if (!own->inflate)
				own->inflate = libdeflate_alloc_decompressor();
			if (!own->inflate || libdeflate_zlib_decompress(own->inflate, in, n, to, bytes, NULL) != LIBDEFLATE_SUCCESS)
				return 1;
		} else if (f->id[i] == H5_FILTER_LZF) {
			if (n > UINT32_MAX || lzf_decompress(in, (unsigned)n, to, (unsigned)bytes) != bytes)
				return 1;
		} else if (f->id[i] == H5_FILTER_ZSTD) {
			if (ZSTD_decompress(to, bytes, in, n) != bytes)
				return 1;
		} else {
			if (n != bytes)
				return 1;
			unshuffle(to, in, bytes / f->element, f->element);
		}
		in = to;
		n = bytes;
	}
	return 0;
}
