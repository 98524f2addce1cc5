/*
 * What the readers of AnnData see of a file: groups, arrays and attributes, named by paths such as "obs/donor". They lie in an HDF5 file or in
 * a zarr store (zarr.h), or in a part of one, such as a modality of MuData. Only this module, h5array and dataframe know which.
 *
 * A question such as "is there a group of this name?" has no room for an error. What could not be read is noted, and counts as absent; so
 * whoever asked ends with store_check.
 */
#ifndef STORE_H
#define STORE_H

#include "anndata/texts.h"
#include "base/beneath.h"

#include <hdf5.h>

struct store {
	const char *name; /* for messages; borrowed */
	hid_t h5; /* an HDF5 file or group; borrowed */
	const char *zarr; /* NULL, or the place in a zarr store: "", or a modality; then h5 is not used. Borrowed */
	struct beneath *folder; /* zarr: the store's; borrowed */
	char *failure; /* what could not be read first; owned */
};
void store_release(struct store *s); /* accepts a zeroed struct */

/* 0, or -1 with e set to what could not be read since the store was opened (of HDF5: since h5_setup). */
int store_check(const struct store *s, struct error *e);

enum store_type { STORE_NONE, STORE_GROUP, STORE_ARRAY };
enum store_type store_type(struct store *s, const char *path);

/* Is there a group, or an array that has a shape? anndata writes a missing X as an array without elements, or not at all. */
int store_has_matrix(struct store *s, const char *path);

/* The names in a group, in the order of their bytes; none if it is no group. Of the whole store if path is empty. */
void store_names(struct store *s, const char *path, struct texts *t);

/* Attribute `name` of the object at `path`, as texts or as n whole numbers (a boolean is 0 or 1). -1: it is absent, or something else. */
int store_attribute_texts(struct store *s, const char *path, const char *name, struct texts *t);
int store_attribute_numbers(struct store *s, const char *path, const char *name, int64_t *v, size_t n);

/* The single text at `path`, malloced; NULL: there is none. */
char *store_text(struct store *s, const char *path);

#endif
