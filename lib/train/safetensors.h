/*
 * safetensors: the file format of Hugging Face weights [safetensors README, src/tensor.rs].
 *     u64 N | N bytes of JSON, padded with spaces | data
 *     JSON: {"__metadata__":{"format":"pt"},"name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},...}
 * Offsets count from the start of the data; tensors lie there one after another without holes, little-endian, row-major.
 * The reader checks all of that before anything is read; tensors are then read one at a time. The writer makes the bytes
 * the reference library makes for float32 tensors (sorted by name), so sizes and digests can be compared.
 */
#ifndef SAFETENSORS_H
#define SAFETENSORS_H

#include "base/error.h"

#include <stdint.h>

#define SAFETENSORS_HEADER_MAX 100000000u /* as the reference */
#define SAFETENSORS_NDIM 8

struct safetensor {
	char *name;
	char dtype[8]; /* "F32", "F16", "BF16", "I64" ... */
	int ndim;
	uint64_t shape[SAFETENSORS_NDIM];
	uint64_t n; /* elements */
	uint64_t begin, end; /* bytes, from the start of the data */
};

struct safetensors {
	char *path; /* for messages */
	int fd;
	uint64_t data; /* where the data starts in the file */
	size_t n;
	struct safetensor *tensor; /* [n], sorted by name */
};

/* Open a file and check its header against its size. -1 with e set; s then holds nothing. */
int safetensors_open(struct safetensors *s, const char *path, struct error *e);
void safetensors_close(struct safetensors *s); /* accepts a zeroed struct */

/*
 * The files of a model's weights at `path`: the file itself, or those that path.index.json names [Hugging Face's sharded checkpoints]:
 *     {"weight_map":{"bert.embeddings.word_embeddings.weight":"model-00001-of-00002.safetensors",...}}
 * in the order of their names. Each tensor must be in the file that the index names, and in no other.
 */
struct safetensors_set {
	size_t n;
	struct safetensors *file; /* [n] */
};
int safetensors_set_open(struct safetensors_set *s, const char *path, struct error *e);
void safetensors_set_close(struct safetensors_set *s); /* accepts a zeroed struct */

const struct safetensor *safetensors_find(const struct safetensors *s, const char *name); /* NULL: none */

/* The t->n values as float32; F32, F16 and BF16 only. A value that is not finite is an error that names it. */
int safetensors_read(const struct safetensors *s, const struct safetensor *t, float *out, struct error *e);

/* "[2, 3]" into buf, for messages. Returns buf. */
char *safetensors_shape(char *buf, size_t size, const uint64_t *shape, int ndim);

/* A float32 tensor to write. */
struct safetensor_out {
	const char *name;
	int ndim;
	uint64_t shape[SAFETENSORS_NDIM];
	int which; /* the caller's: which tensor this is */
	const void *from;
};

/*
 * Write tensors to `path` (whole and fsynced, or not at all). They are sorted by name in place; get() fills the values of
 * one, called in file order; names must differ. -1 with e set.
 */
int safetensors_write(const char *path, struct safetensor_out *t, size_t n,
	void (*get)(const struct safetensor_out *t, float *values, void *arg), void *arg, struct error *e);

#endif
