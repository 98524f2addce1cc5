/*
 * What the readers of files with cells see: groups, arrays and attributes, named by paths such as "obs/donor". They lie in an HDF5 file or in a
 * zarr store, or in a part of one, such as a modality of MuData. A kind of store is a table of functions: store_hdf5 (store_hdf5.c), store_zarr
 * (store_zarr.c). Only h5array and dataframe, which read arrays, look at which it is.
 *
 * A question such as "is there a group of this name?" has no room for an error. What could not be read is noted, and counts as absent; so
 * whoever asked ends with store_check.
 */
#pragma once

#include "base/texts.h"
#include "base/beneath.h"

#include <hdf5.h>

struct store {
	const struct store_kind *kind;
	const char *name; /* for messages; borrowed */
	hid_t h5; /* HDF5: a file; borrowed ... */
	int entered; /* ... or a group, owned */
	const char *part; /* zarr: the place in the store, "" or a modality; borrowed */
	struct beneath *folder; /* zarr: the store's; borrowed */
	char *failure; /* zarr: what could not be read first; owned */
};
void store_release(struct store *s); /* accepts a zeroed struct */

enum store_type { STORE_NONE, STORE_GROUP, STORE_ARRAY };

struct store_kind {
	const char *name; /* "HDF5", "zarr" */
	enum store_type (*type)(struct store *s, const char *path);
	int (*has_shape)(struct store *s, const char *path); /* of an array */
	void (*names)(struct store *s, const char *path, struct texts *t);
	int (*attribute_texts)(struct store *s, const char *path, const char *name, struct texts *t);
	int (*attribute_numbers)(struct store *s, const char *path, const char *name, int64_t *v, size_t n);
	char *(*text)(struct store *s, const char *path);
	int (*enter)(struct store *s, const char *path, struct error *e);
	int (*check)(const struct store *s, int r, struct error *e);
};
extern const struct store_kind store_hdf5, store_zarr;

/* r: what reading the store gave, 0 or -1. Returns r, or -1 with e set to what could not be read since the store was opened (of HDF5: since
 * h5_setup), where that says more. */
static inline int store_check(const struct store *s, int r, struct error *e)
{
	return s->kind->check(s, r, e);
}

/* From now on paths begin in this group, and messages with `name`; both are borrowed. */
static inline int store_enter(struct store *s, const char *path, const char *name, struct error *e)
{
	s->name = name;
	return s->kind->enter(s, path, e);
}

static inline enum store_type store_type(struct store *s, const char *path)
{
	return s->kind->type(s, path);
}

static inline int store_has(struct store *s, const char *path)
{
	return store_type(s, path) != STORE_NONE;
}

/* Is there a group, or an array that has a shape? anndata writes a missing X as an array without elements, or not at all. */
static inline int store_has_matrix(struct store *s, const char *path)
{
	enum store_type type = store_type(s, path);
	return type == STORE_ARRAY ? s->kind->has_shape(s, path) : type == STORE_GROUP;
}

/* The names in a group, in the order of their bytes; none if it is no group. Of the whole store if path is empty. */
static inline void store_names(struct store *s, const char *path, struct texts *t)
{
	texts_clear(t);
	s->kind->names(s, path, t);
}

/* Attribute `name` of the object at `path`, as texts or as n whole numbers (a boolean is 0 or 1). -1: it is absent, or something else. */
static inline int store_attribute_texts(struct store *s, const char *path, const char *name, struct texts *t)
{
	return s->kind->attribute_texts(s, path, name, t);
}

static inline int store_attribute_numbers(struct store *s, const char *path, const char *name, int64_t *v, size_t n)
{
	return s->kind->attribute_numbers(s, path, name, v, n);
}

/* The single text at `path`, malloced; NULL: there is none. */
static inline char *store_text(struct store *s, const char *path)
{
	return s->kind->text(s, path);
}
