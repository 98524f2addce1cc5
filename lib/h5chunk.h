/*
 * Numeric HDF5 datasets of one or two dimensions, read in stretches of rows and in bounded memory.
 *
 * HDF5 decodes one chunk at a time on one thread. Here the stored bytes of many chunks are fetched first
 * (H5Dread_chunk, by the chunk's coordinates) and then inflated in parallel, straight to their place where the chunk
 * lies whole in the stretch: deflate by libdeflate, LZF by liblzf, byte shuffle and Fletcher32 here. Contiguous data and
 * anything else HDF5 itself can decode goes through H5Dread; a filter nobody has is refused by its name.
 *
 * Files are not trusted: sizes are held against the bytes that are really stored before memory is taken.
 */
#ifndef H5CHUNK_H
#define H5CHUNK_H

#include "error.h"

#include <hdf5.h>
#include <stdint.h>

enum num_type { NUM_I8, NUM_U8, NUM_I16, NUM_U16, NUM_I32, NUM_U32, NUM_I64, NUM_U64, NUM_F32, NUM_F64 };

struct h5array {
	hid_t id, mem;          /* dataset, and the type its elements have in memory */
	char *where;            /* "FILE: /X/data", for messages; owned */
	int ndim;               /* 1 or 2 */
	uint64_t dim[2];        /* rows, columns; columns is 1 for one dimension */
	uint64_t chunk[2];      /* chunk shape; 0 for contiguous data */
	int direct;             /* chunks are decoded here; else by HDF5 */
	enum num_type type;
	size_t size;            /* bytes of one element in memory */
	int nfilter, filter[4]; /* in the order they were applied on writing */
	unsigned char fill[8];  /* value of chunks that were never written */
	unsigned char *tail;    /* last chunk that was only partly asked for, decoded: [chunk[0] * chunk[1]] elements */
	uint64_t tail_chunk;    /* its number; UINT64_MAX: none */
	unsigned char *raw;     /* stored bytes of the chunks being decoded */
	size_t raw_cap;
	struct h5chunk_job *job;
	size_t job_cap;
	struct h5chunk_scratch *scratch;        /* [nscratch] of each thread */
	int nscratch;
};

/* Open dataset `path` under `loc`. `file` is the name for messages. -1 with e set when it is missing, not numeric, of
 * another rank, or stored with a filter that cannot be undone. On failure `a` is released. */
int h5array_open(struct h5array *a, hid_t loc, const char *path, const char *file, struct error *e);
void h5array_release(struct h5array *a);        /* accepts a zeroed struct */

/* Rows [row, row + n) into out [n x dim[1]], elements of a->type. Reading forward decodes each chunk once.
 * -1 with e set when the rows do not exist or their bytes are damaged. */
int h5array_read(struct h5array *a, uint64_t row, size_t n, void *out, int threads, struct error *e);

/* One chunk, as [chunk[0] x chunk[1]] elements, for arrays whose chunks are too tall to read by rows. Chunks are numbered
 * row by row over the grid; h5array_chunks counts them. box: first row and column, rows and columns inside the array. */
uint64_t h5array_chunks(const struct h5array *a);
int h5array_chunk(struct h5array *a, uint64_t number, uint64_t box[4], void *out, struct error *e);

/* Rows as 64-bit integers or doubles. One-dimensional use for indptr, codes and columns; scratch is taken inside.
 * h5array_i64 refuses floating point. */
int h5array_i64(struct h5array *a, uint64_t row, size_t n, int64_t *out, int threads, struct error *e);
int h5array_f64(struct h5array *a, uint64_t row, size_t n, double *out, int threads, struct error *e);

/* Once before anything else: stop HDF5 from printing, and give it h5py's LZF filter. */
void h5_setup(void);

/* "WHERE: DOING failed", with what HDF5 would have said put in short. Always returns -1. */
int h5_error(struct error *e, const char *where, const char *doing);

/* Before H5Dread: HDF5 1.10 takes for granted that a chunk with a checksum is long enough for one, and follows a damaged file out of its
 * memory. Looks at all chunks of a dataset of one or two dimensions that has checksums. */
int h5_check_chunks(hid_t dataset, const char *where, struct error *e);

#endif
