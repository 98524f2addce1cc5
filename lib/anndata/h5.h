/*
 * What every reader of HDF5 files needs: a quiet library, the filters LZF and Zstandard, messages, and a look at the stored chunks.
 */
#pragma once

#include "base/texts.h"

#include <hdf5.h>

#define H5_FILTER_LZF 32000 /* numbers of h5py's filter ... */
#define H5_FILTER_ZSTD 32015 /* ... and of the one that hdf5plugin and R's rhdf5filters write */
#define H5_FILTER_BLOSC 32001 /* read through HDF5's own plugin, where it is installed */
#define ZSTD_RATIO_MAX 40000 /* it shrinks by at most 128 KiB to 4 bytes */
#define H5_CHECKSUM 4 /* bytes of the Fletcher32 checksum behind a chunk */
#define H5_STRING_MAX 65536 /* bytes of a string of fixed length */
#define H5_CHUNK_MAX (1ull << 30) /* bytes of the largest decoded chunk */

/* Call it before anything else: it stops HDF5 from printing and from following links into other files, gives it the filters LZF and
 * Zstandard, and forgets earlier failures. */
void h5_setup(void);

/*
 * 0 if no call of HDF5 has failed since h5_setup, else -1 with e set to "WHERE: ...". HDF5 answers a question such as "is there an
 * attribute of this name?" with a failure when it cannot read the file. Code that takes any failure for "no" must end with this check, or a
 * column that could not be read would be left out silently. It also says if a link led into another file.
 */
int h5_check(const char *where, struct error *e);
int h5_refused_link(void); /* has such a link been met since h5_setup? */
const char *h5_dangling_link(void); /* the first link met since then that leads nowhere, which counts as absent; "": none */

/* What HDF5 says of the innermost call that failed, on one line; of a failing system call only the system's own message. */
enum { H5_WHY = 200 };
void h5_why(char why[H5_WHY]);

/* For RELEASED: close what was opened, of any kind but a file; an identifier below 0 is none. */
void h5_close(hid_t *id);

/* The type of the object at this path (H5O_TYPE_GROUP, H5O_TYPE_DATASET), or -1: there is none. All but the last name of the path exist. */
int h5_object_type(hid_t loc, const char *path);

/* "WHERE: DOING failed", whether that is damage or a newer HDF5, and HDF5's own reason. Always returns -1. */
int h5_error(struct error *e, const char *where, const char *doing);

/* *size is the number of stored bytes of the chunk at these coordinates, 0 if it was never written. */
int h5_stored_size(hid_t dataset, const hsize_t at[], hsize_t *size, const char *where, struct error *e);

/* Open the dataset at `path`. -1 with e set; also if its values are in other files (external storage, virtual datasets). To ask such a
 * dataset for its shape would open these. */
hid_t h5_dataset(hid_t loc, const char *path, const char *where, struct error *e);

/*
 * Call it before H5Dread. HDF5 1.10 does not check that a chunk with a checksum is long enough for one, and reads outside its memory in
 * a damaged file. This looks at all chunks of a dataset of one or two dimensions that has checksums.
 */
int h5_check_chunks(hid_t dataset, const char *where, struct error *e);

/* Push n strings that HDF5 has read as `type` (of fixed or variable length). They start `step` bytes apart at p. */
void texts_push_hdf5(struct texts *t, hid_t type, const char *p, size_t n, size_t step);
