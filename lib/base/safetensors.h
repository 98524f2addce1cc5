/*
 * safetensors: the file format of Hugging Face weights [safetensors README, src/tensor.rs].
 *     u64 N | N bytes of JSON, padded with spaces | data
 *     JSON: {"__metadata__":{"format":"pt"},"name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},...}
 * Offsets count from the start of the data; tensors lie there one after another without holes, little-endian, row-major.
 * The reader checks all of that before anything is read; tensors are then read one at a time. The writer makes the bytes
 * the reference library makes for float32 tensors (sorted by name) with this metadata.
 *
 * Digests. Files that we write have more in __metadata__, which other programs ignore, and leave away when they write the file anew:
 *     "corrmask_digest":"xxh3:HEX"     of the file (base/digest.h)
 *     "NAME":"xxh3:HEX"                of a file next to it, such as vocab.tsv
 */
#pragma once

#include "base/digest.h"
#include "base/error.h"

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
	uint64_t data, size; /* where the data starts in the file, and its bytes */
	size_t n;
	struct safetensor *tensor; /* [n], sorted by name */
	XXH3_state_t *hash; /* of the header and the first `hashed` bytes of the data */
	uint64_t hashed;
	char digest[DIGEST_SIZE]; /* in its metadata; empty: none */
	size_t nbeside;
	struct safetensors_beside *beside; /* [nbeside] */
	struct cJSON *metadata; /* or NULL */
};

/* A file next to it, and its digest. */
struct safetensors_beside {
	char *name;
	char digest[DIGEST_SIZE];
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
/* As safetensors_digest; of several files, which are never ours, the digest of their digests. */
int safetensors_set_digest(struct safetensors_set *s, char hex[DIGEST_SIZE], struct error *e);

const struct safetensor *safetensors_find(const struct safetensors *s, const char *name); /* NULL: none */

/* The t->n values as float32; F32, F16 and BF16 only. A value that is not finite is an error that names it. */
int safetensors_read(struct safetensors *s, const struct safetensor *t, float *out, struct error *e);
/*
 * The digest of the file. -1 if it is not the one in its metadata. What was read in the order of the data is not read again, so this costs
 * little after all tensors.
 */
int safetensors_digest(struct safetensors *s, char hex[DIGEST_SIZE], struct error *e);
/* Do the files next to it, those that are there, have the digests in its metadata? */
int safetensors_check_beside(const struct safetensors *s, struct error *e);

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

/* A text file of a folder. */
struct text_file {
	const char *name;
	char *text;
	int inside; /* of safetensors_write: no file, the text itself goes into the metadata */
};

/*
 * Write tensors to `path` (whole and fsynced, or not at all). They are sorted by name in place; get() fills the values of
 * one, called in file order; names must differ. beside [nbeside]: files next to it, whose digests go into the metadata. -1 with e set.
 */
int safetensors_write(const char *path, struct safetensor_out *t, size_t n,
	void (*get)(const struct safetensor_out *t, float *values, void *arg), void *arg, const struct text_file *beside, size_t nbeside,
	struct error *e);
