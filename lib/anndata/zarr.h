/*
 * Zarr stores on disk, of versions 2 and 3, as far as anndata writes them: arrays of numbers in one or two dimensions, of texts in one.
 * https://zarr-specs.readthedocs.io
 *
 *     version 2   FOLDER/.zgroup or .zarray, .zattrs     chunks FOLDER/0.0
 *     version 3   FOLDER/zarr.json                       chunks FOLDER/c/0/0, or many of them in one file, a shard, with an index
 *
 * A chunk that is not there stands for the array's fill value. Chunks at the end of an array are stored whole.
 *
 * Stores are not trusted. A name never leads out of its folder, nor does a symbolic link (base/beneath.h). Sizes are checked before memory
 * is allocated.
 */
#pragma once

#include "anndata/number.h"
#include "anndata/store.h"
#include "anndata/zarr_codec.h"

#include <cjson/cJSON.h>

#define ZARR_CHUNK_MAX ((uint64_t)1 << 30) /* bytes of the largest decoded chunk */

/* Does this folder hold a zarr store? */
int zarr_is_store(const char *folder);

/* ---- metadata; store_zarr.c is a struct store_kind ---- */

/* The metadata of a group or an array. */
struct zarr_node {
	char *folder; /* in the store */
	int version; /* 2 or 3 */
	cJSON *meta; /* of an array, or of anything in version 3 */
};
enum store_type zarr_node_read(struct zarr_node *node, struct store *s, const char *path);
void zarr_node_release(struct zarr_node *node); /* accepts a zeroed struct */
cJSON *zarr_attributes(struct store *s, const char *path); /* to be freed by cJSON_Delete; NULL: none */
void zarr_note(struct store *s, const char *path, const char *why); /* what could not be read: store_check */

/* ---- arrays ---- */

enum zarr_kind { ZARR_NUMBERS, ZARR_BOOLEANS, ZARR_TEXTS, ZARR_OTHER };

struct zarr_array {
	char *where; /* "STORE: X/data", for messages; owned */
	struct beneath *store; /* borrowed */
	char *folder; /* in it; owned */
	enum zarr_kind kind;
	enum number_type type;
	size_t size; /* bytes of a number */
	int half; /* stored as float16, in 2 bytes */
	int swap; /* its bytes are stored in the other order */
	int columns; /* chunks of two dimensions are stored by columns */
	int ndim; /* 0, 1 or 2 */
	uint64_t dim[2], chunk[2]; /* missing dimensions are 1 */
	uint64_t shard[2]; /* shape of a file of chunks, a multiple of chunk; 0: a file holds one chunk */
	int index_first, index_checked; /* the index of a shard is at its start; it has a checksum */
	unsigned char fill[8]; /* a number ... */
	char *fill_text; /* ... or a text; owned */
	char separator; /* in names of chunks */
	int prefix; /* names of chunks start with c */
	uint64_t fill_rows; /* rows that may still come from chunks that are not there; UINT64_MAX, if the caller sets nothing: any */
	struct zarr_codecs codecs;
	struct zarr_scratch scratch;
	int shard_file; /* the open shard, or -1 ... */
	uint64_t shard_number; /* ... its number ... */
	uint64_t shard_bytes; /* ... size ... */
	unsigned char *index; /* ... and index */
	unsigned char *raw; /* texts: the stored bytes of a chunk ... */
	size_t raw_cap;
	uint64_t text_chunk; /* ... its number, UINT64_MAX: none ... */
	struct texts text; /* ... and its texts */
};

/* Open the array at path. -1 with e set, and a released. An array of a type that cannot be read becomes ZARR_OTHER. */
int zarr_array_open(struct zarr_array *a, struct store *s, const char *path, struct error *e);
void zarr_array_release(struct zarr_array *a); /* accepts a zeroed struct */

/* Append the stored bytes of the chunk that starts at element `at` to *raw, which holds `used` bytes. *size 0: the chunk is not there. */
int zarr_fetch(struct zarr_array *a, const uint64_t at[2], unsigned char **raw, size_t *cap, size_t used, size_t *size, struct error *e);

/* The n stored bytes of a chunk of numbers to out [chunk[0] x chunk[1]]. NULL, or what is wrong with the chunk. */
const char *zarr_decode(const struct zarr_array *a, const unsigned char *in, size_t n, struct zarr_scratch *own, unsigned char *out);

/* Push texts [row, row + n). */
int zarr_read_texts(struct zarr_array *a, uint64_t row, size_t n, struct texts *t, struct error *e);
