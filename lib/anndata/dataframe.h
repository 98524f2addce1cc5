/*
 * AnnData's data frames (obs, var), in every way in which anndata has stored them. A frame is read one column at a time, some rows at a
 * time.
 *     0.7 and later   a group of datasets. A categorical is a group, or codes with an attribute that refers to the categories. Integers,
 *                     booleans and strings can be nullable.
 *     before 0.7      one compound dataset, with the categories in uns
 * Booleans are read as a categorical with the categories False and True, whose dtype says what they were. So are categories that are booleans.
 */
#pragma once

#include "anndata/h5array.h"

struct dataframe_values;

enum dataframe_kind { DATAFRAME_STR, DATAFRAME_CATEGORICAL, DATAFRAME_I64, DATAFRAME_U64, DATAFRAME_F64, DATAFRAME_OTHER };

struct dataframe_column {
	char *name;
	enum dataframe_kind kind;
	char *why; /* DATAFRAME_OTHER: why it cannot be read */
	char *note; /* what is odd about it, or NULL */
	int nullable; /* values may be missing: see dataframe_values.missing (not for categoricals, doubles) */
	size_t ncategory;
	char **category; /* [ncategory], owned */
	int ordered; /* the categories have an order */
	const char *dtype; /* the type in the file, where the kind is wider, as in man scstream.5; NULL: the kind says it */
	struct h5array values, mask; /* numbers and codes; mask != 0: missing */
	int has_mask;
	int not_utf8; /* a text that was read */
	hid_t dataset; /* strings, or the compound dataset; -1 when values or zarr is used */
	struct zarr_array *zarr; /* strings of a zarr store, else NULL */
	hid_t field; /* compound dataset: memory type that holds this field alone; else -1 */
	char *where; /* "FILE: /obs/donor" */
	/* Values that are not in the file: called by dataframe_read, which prepares v, for rows [row, row + n). Else NULL. */
	void (*read)(const struct dataframe_column *c, uint64_t row, size_t n, struct dataframe_values *v);
	struct texts held; /* values that are all in memory (dataframe_held) */
	const struct obstable_column *table; /* what it reads from (obstable.h) ... */
	uint32_t *row; /* ... and which row of it; UINT32_MAX: missing. Owned */
};

struct dataframe {
	char *where; /* "FILE: /obs" */
	uint64_t nrow;
	size_t ncol;
	struct dataframe_column *col; /* [ncol], without the index */
	struct dataframe_column index; /* its name is the name of the stored column, such as "_index" */
};

/* Values of some rows. Only the array of the column's kind is filled. */
struct dataframe_values {
	size_t n;
	struct texts str;
	uint32_t *code; /* UINT32_MAX: missing */
	int64_t *i64; /* DATAFRAME_U64: to be read as uint64_t */
	double *f64; /* NaN: missing */
	uint8_t *missing; /* DATAFRAME_STR, DATAFRAME_I64, DATAFRAME_U64 */
	size_t code_cap, i64_cap, f64_cap, missing_cap;
};
void dataframe_values_release(struct dataframe_values *v);

/* Open the frame at `path`. A column of an unknown kind, or one that is missing or lacks a part, becomes DATAFRAME_OTHER.
 * One that cannot be read is an error: -1 with e set. */
int dataframe_open(struct dataframe *f, struct store *s, const char *path, struct error *e);

/* Open the arrays of the group at `path`, of nrow rows, as a frame. Its index is the first of the names `index`, ended by NULL, that is there, or
 * else the first array of texts that are all different; without one the rows are numbered. */
int dataframe_open_arrays(struct dataframe *f, struct store *s, const char *path, const char *const *index, uint64_t nrow, struct error *e);
void dataframe_release(struct dataframe *f); /* accepts a zeroed struct */
struct dataframe_column *dataframe_find(struct dataframe *f, const char *name); /* NULL: none; finds the index by its name too */

/* A lone string dataset as a column (10x: barcodes, features). */
int dataframe_strings(struct dataframe_column *c, struct store *s, const char *path, uint64_t *nrow, struct error *e);

/* A column of strings, none so far: push them to c->held. */
void dataframe_held(struct dataframe_column *c, const char *name, const char *where);
void dataframe_column_release(struct dataframe_column *c);

/* Rows [row, row + n). */
int dataframe_read(struct dataframe_column *c, uint64_t row, size_t n, struct dataframe_values *v, int threads, struct error *e);

/* Value i of v, which was read from c, as text. Numbers are printed into buf, doubles by texts_double. Returns the length. A missing value
 * has 0 bytes and sets *missing. */
size_t dataframe_text(
	const struct dataframe_column *c, const struct dataframe_values *v, size_t i, char buf[32], const char **text, int *missing);

/* Value i of a column of numbers; NAN: it is missing. */
double dataframe_number(const struct dataframe_column *c, const struct dataframe_values *v, size_t i);

/* Rows [row, row + n) as texts. */
int dataframe_texts(struct dataframe_column *c, uint64_t row, uint64_t n, struct texts *t, struct error *e);
