/*
 * Arrays of numbers of one or two dimensions, in HDF5 or in a zarr store, read some rows at a time in bounded memory.
 *
 * HDF5 decodes one chunk at a time on one thread. Here the stored bytes of many chunks are read first (H5Dread_chunk) and then decoded in
 * parallel (h5chunk.h). The chunks of zarr take the same way (zarr.h). A chunk that lies wholly in the wanted rows is decoded to its place.
 * Contiguous data, and everything else that HDF5 itself has to decode, goes through H5Dread. A filter that this program does not have is
 * refused by its name.
 *
 * Files are not trusted. A size in a file is compared with the bytes that are stored before memory is allocated.
 */
#pragma once

#include "anndata/h5chunk.h"
#include "anndata/number.h"
#include "anndata/store.h"

struct h5array {
	hid_t id, mem; /* dataset, and the type its elements have in memory; -1 for zarr */
	struct zarr_array *zarr; /* NULL: HDF5 */
	char *where; /* "FILE: /X/data", for messages; owned */
	int ndim; /* 1 or 2 */
	uint64_t dim[2]; /* rows, columns; columns is 1 for one dimension */
	uint64_t chunk[2]; /* chunk shape; 0 for contiguous data */
	int direct; /* chunks are decoded here; else by HDF5 */
	enum number_type type;
	int boolean; /* the numbers stand for False and True */
	size_t size; /* bytes of one element in memory */
	struct h5chunk_filters filters;
	unsigned char fill[8]; /* value of chunks that were never written */
	int absent; /* zarr: such a chunk was read */
	unsigned char *tail; /* the last chunk, decoded, if only some of its rows were wanted: [chunk[0] * chunk[1]] elements */
	uint64_t tail_chunk; /* its number; UINT64_MAX: none */
	unsigned char *raw; /* stored bytes of the chunks being decoded */
	size_t raw_cap;
	struct h5array_job *job;
	size_t job_cap;
	struct h5chunk_scratch *scratch; /* [nscratch] of each thread */
	int nscratch;
};

/* Open the array at `path`. -1 with e set when it is missing, not numeric, of another rank, or stored with a filter that cannot be undone.
 * On failure `a` is released. */
int h5array_open(struct h5array *a, struct store *s, const char *path, struct error *e);
void h5array_release(struct h5array *a); /* accepts a zeroed struct */

/* Rows [row, row + n) into out [n x dim[1]], elements of a->type. Reading forward decodes each chunk once.
 * -1 with e set when the rows do not exist or their bytes are damaged. */
int h5array_read(struct h5array *a, uint64_t row, size_t n, void *out, int threads, struct error *e);

/* The same of columns [col, col + ncol) alone, which exist, into out [n x ncol]. */
int h5array_box(struct h5array *a, uint64_t row, size_t n, uint64_t col, size_t ncol, void *out, int threads, struct error *e);

/* One chunk, as [chunk[0] x chunk[1]] elements, for arrays whose chunks are too tall to read by rows. Chunks are numbered
 * row by row over the grid; h5array_chunks counts them. box: first row and column, rows and columns inside the array. */
uint64_t h5array_chunks(const struct h5array *a);
int h5array_chunk(struct h5array *a, uint64_t number, uint64_t box[4], void *out, struct error *e);

/* Rows as 64-bit integers or doubles, for arrays of one dimension. h5array_i64 refuses floating point. */
int h5array_i64(struct h5array *a, uint64_t row, size_t n, int64_t *out, int threads, struct error *e);
int h5array_f64(struct h5array *a, uint64_t row, size_t n, double *out, int threads, struct error *e);
