/*
 * Fields of a file, each of them named once, by one call that writes it to the file or reads it from there: numbers and texts in a JSON object, float32
 * matrices as tensors. The first fault that is read is kept; after it the calls do nothing but leave what they were to fill zeroed.
 */
#pragma once

#include "base/safetensors.h"

/* Values of a tensor: those of row j and column c at [j * per_row + c * per_column]. share: the rows of which it is 0 are left out. */
struct matrix {
	float *x;
	double *y; /* if not x */
	size_t rows, columns, per_row, per_column;
	const float *share; /* [rows], NULL: all are there */
};

struct archive {
	const char *path;
	struct cJSON *at; /* the object of these fields */
	struct safetensors *from; /* where it is read */
	const char *prefix; /* of tensors */
	struct matrix *matrix; /* to write */
	struct safetensor_out *out;
	size_t n, cap, matrix_cap;
	int reading, bad;
	struct error *e;
};

void archive_refuse(struct archive *a, const char *name, const char *expected);
size_t archive_length(const struct archive *a, const char *name); /* of a list that is read */
/* An object of this name within a->at, which it becomes until the caller puts back what this returns. */
struct cJSON *archive_enter(struct archive *a, const char *name);

/* x: n numbers, each `step` bytes behind the last, in place. */
void archive_reals(struct archive *a, const char *name, double *x, size_t n, size_t step);
void archive_real(struct archive *a, const char *name, double *x);
/* n whole numbers up to `most`, in place, of `size` 4 or 8 bytes. */
void archive_wholes(struct archive *a, const char *name, void *x, size_t size, size_t n, double most);
void archive_whole(struct archive *a, const char *name, size_t *x, size_t most);
void archive_flag(struct archive *a, const char *name, int *x);
/* n flags, of which the places of the ones are written. Malloced where they are read. */
void archive_flags(struct archive *a, const char *name, uint8_t **x, size_t n);
/* Texts, malloced where they are read; archive_text: NULL is kept. */
void archive_text(struct archive *a, const char *name, char **x);
void archive_texts(struct archive *a, const char *name, char ***x, size_t n);
void archive_tensor(struct archive *a, const char *name, struct matrix m);
/* For safetensors_write of a->out [a->n] with arg a->matrix. */
void archive_copy(const struct safetensor_out *t, float *values, void *arg);

/* n items, zeroed, where they are read. */
#define ROOM(a, p, n) \
	do { \
		if ((a)->reading) \
			(p) = xcalloc((size_t)(n) + 1, sizeof *(p)); \
	} while (0)
