/*
 * AnnData's data frames (obs, var) in every way anndata has stored them, one column at a time and in stretches of rows:
 * groups of datasets (0.7 and later: categoricals as groups, or as codes with an attribute that points to the
 * categories; nullable integers, booleans and strings) and one compound dataset (before 0.7, categories in uns).
 * Booleans are read as a categorical False, True.
 */
#ifndef FRAME_H
#define FRAME_H

#include "h5chunk.h"

enum frame_kind { FRAME_STR, FRAME_CATEGORICAL, FRAME_I64, FRAME_F64, FRAME_OTHER };

/* Texts end to end: text i is bytes[offset[i], offset[i + 1]), not NUL-terminated. */
struct texts {
	size_t n;
	char *bytes;
	uint64_t *offset;               /* [n + 1] */
	size_t bytes_cap, offset_cap;
};
void texts_release(struct texts *t);
void texts_clear(struct texts *t);                              /* n = 0, buffers stay */
void texts_push(struct texts *t, const char *s, size_t n);

struct frame_column {
	char *name;
	enum frame_kind kind;
	char *why;                      /* FRAME_OTHER: why it cannot be read */
	int nullable;                   /* values may be missing: see frame_values.missing (not for categoricals, doubles) */
	size_t ncategory;
	char **category;                /* [ncategory], owned */
	struct h5array values, mask;    /* numbers and codes; mask != 0: missing */
	int has_mask;
	hid_t dataset;                  /* strings, or the compound dataset; -1 when values is used */
	hid_t field;                    /* compound dataset: memory type that holds this field alone; else -1 */
	char *where;                    /* "FILE: /obs/donor" */
};

struct frame {
	char *where;                    /* "FILE: /obs" */
	uint64_t nrow;
	size_t ncol;
	struct frame_column *col;       /* [ncol], without the index */
	struct frame_column index;      /* its name is that of the stored column, e.g. "_index" */
};

/* Values of some rows; the array that belongs to the column's kind is filled. */
struct frame_values {
	size_t n;
	struct texts str;
	uint32_t *code;                 /* UINT32_MAX: missing */
	int64_t *i64;
	double *f64;                    /* NaN: missing */
	uint8_t *missing;               /* FRAME_STR, FRAME_I64 */
	size_t code_cap, i64_cap, f64_cap, missing_cap;
};
void frame_values_release(struct frame_values *v);

/* Open the frame at `path`. A column of an unknown kind is listed as FRAME_OTHER; a damaged one is an error. */
int frame_open(struct frame *f, hid_t file, const char *path, const char *filename, struct error *e);
void frame_release(struct frame *f);                            /* accepts a zeroed struct */
struct frame_column *frame_find(struct frame *f, const char *name);     /* NULL: none; finds the index by its name too */

/* A lone string dataset as a column (10x: barcodes, features). */
int frame_strings(struct frame_column *c, hid_t file, const char *path, const char *filename, uint64_t *nrow, struct error *e);
void frame_column_release(struct frame_column *c);

/* Rows [row, row + n). */
int frame_read(struct frame_column *c, uint64_t row, size_t n, struct frame_values *v, int threads, struct error *e);

/* Value i of v, which was read from c, as text; buf is used for numbers. Returns its length; missing gives 0 bytes and
 * sets *missing. Doubles come out in the fewest digits that read back the same. */
size_t frame_text(const struct frame_column *c, const struct frame_values *v, size_t i, char buf[32], const char **text, int *missing);

/* The whole column as texts. */
int frame_texts(struct frame_column *c, uint64_t nrow, struct texts *t, struct error *e);

size_t text_double(double x, char buf[32]);

#endif
