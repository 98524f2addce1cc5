/*
 * Writing HDF5 as anndata does. The first call that fails sets o->failed and the message; the calls after it change nothing that matters,
 * so a writer checks o->failed at its end.
 */
#pragma once

#include "anndata/h5.h"

struct h5out {
	hid_t file; /* -1: none */
	hid_t boolean, text; /* types: numpy's bool as h5py stores it, texts of any length */
	char *path; /* for messages */
	int failed;
	struct error error;
};

struct h5out_array { /* a dataset that grows along its first dimension */
	hid_t set, type; /* type: of the memory, a constant of HDF5 or one of h5out */
	hsize_t rows, n; /* n: second dimension, 0 if there is none */
};

/* Create the file. o->failed says whether it could. */
void h5out_open(struct h5out *o, const char *path, const char *shown);
/* Open the file `path` to add to it. `shown` is its name in messages. */
void h5out_modify(struct h5out *o, const char *path, const char *shown);
/* Close the file, which may fail like the others. Release accepts a zeroed struct and closes what is open. */
void h5out_close_file(struct h5out *o);
void h5out_release(struct h5out *o);

/* Check a returned identifier, or a status. */
hid_t h5out_id(struct h5out *o, hid_t h);
void h5out_ok(struct h5out *o, herr_t r);

/* n: number of values, 0 for a scalar. */
void h5out_attribute(struct h5out *o, hid_t on, const char *name, hid_t type, hsize_t n, const void *value);
void h5out_text_attribute(struct h5out *o, hid_t on, const char *name, const char *value);
/* A list of texts; it may be empty. */
void h5out_text_list(struct h5out *o, hid_t on, const char *name, char *const *text, size_t n);
void h5out_encoding(struct h5out *o, hid_t on, const char *type, const char *version);
/* The properties of a dataset to create, which the caller closes: it does not say when it was made, so the same cells are the same bytes. */
hid_t h5out_properties(struct h5out *o);
/* A group with its encoding; the caller closes it. */
hid_t h5out_group(struct h5out *o, hid_t in, const char *path, const char *type, const char *version);

/* Make a dataset of no rows at loc/name, stored as type `stored` and appended to from memory of type `type`. It is compressed unless it is
 * text, whose bytes lie elsewhere in the file. encoded: its encoding-type, or NULL. */
void h5out_array(
	struct h5out *o, struct h5out_array *a, hid_t loc, const char *name, hid_t stored, hid_t type, size_t n, const char *encoded);
void h5out_append(struct h5out *o, struct h5out_array *a, const void *data, size_t rows);
/* Write data to the box of this start and size, each of `rank` numbers, of an open dataset. */
void h5out_rows(struct h5out *o, hid_t set, hid_t type, const hsize_t start[], const hsize_t count[], int rank, const void *data);
void h5out_close(struct h5out *o, struct h5out_array *a); /* accepts a zeroed struct */
/* A whole dataset of texts; one text as a scalar. */
void h5out_texts(struct h5out *o, hid_t loc, const char *name, char *const *s, size_t n);
void h5out_string(struct h5out *o, hid_t loc, const char *name, const char *s);
void h5out_number(struct h5out *o, hid_t loc, const char *name, double v);
