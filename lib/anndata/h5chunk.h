/*
 * Decoding one stored chunk of an HDF5 dataset, without HDF5, so that many chunks can be decoded at once: deflate by libdeflate, LZF by
 * liblzf, Zstandard by libzstd, byte shuffle and Fletcher32 here.
 */
#pragma once

#include "anndata/zarr_codec.h"

/* How the chunks of a dataset are stored. */
struct h5chunk_filters {
	int n, id[4]; /* filters in the order in which they were applied on writing */
	size_t element; /* bytes of one element, for shuffle */
};

/* Of one thread. */
struct h5chunk_scratch {
	struct libdeflate_decompressor *inflate;
	unsigned char *step; /* a chunk between two filters */
	unsigned char *whole; /* a chunk of which only a part is wanted: for the caller */
	struct zarr_scratch zarr; /* if the chunk is zarr's: for the caller */
};
void h5chunk_scratch_release(struct h5chunk_scratch *s); /* accepts a zeroed struct */

/* Decode the n stored bytes at `in` to out [bytes]. skip: bit i is set if filter i was not applied to this chunk. Returns 0, or 1 if the
 * bytes are damaged. */
int h5chunk_decode(const struct h5chunk_filters *f, uint32_t skip, const unsigned char *in, size_t n, struct h5chunk_scratch *own,
	unsigned char *out, size_t bytes);
