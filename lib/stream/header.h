/*
 * The header of a stream: kind of the records, columns, vocabulary and provenance. In the stream it is JSON (man scstream.5). Keys that
 * this version does not know are kept in `extra` and written again.
 */
#pragma once

#include "stream/vocab.h"

#include <cjson/cJSON.h>

enum stream_kind {
	STREAM_COUNTS,
	STREAM_TOKENS,
	STREAM_MASKED,
	STREAM_MASKED_COUNTS,
	STREAM_GRAPH,
	STREAM_EMBEDDING,
	STREAM_PREDICTION,
	STREAM_MEDIANS,
	STREAM_KINDS
};
enum column_type { U8, U16, U32, U64, I8, I16, I32, I64, F32, F64, STR, CATEGORICAL, COLUMN_TYPES };
enum column_shape { SCALAR, RAGGED, FIXED };

/* What the values of a type are. */
enum column_values { VALUES_UNSIGNED, VALUES_SIGNED, VALUES_FLOAT, VALUES_DOUBLE, VALUES_CODE, VALUES_TEXT };

/* All that is known of a column type. */
struct column_kind {
	const char *name; /* in the header of a stream */
	size_t size; /* bytes a value; STR: of a character */
	enum column_values values;
	const char *npy; /* what numpy calls it; NULL: it makes no array. A missing code, 0xFFFFFFFF, is -1 there */
	const void *missing; /* [size] what stands where there is no value; whole numbers have 0, and a companion that says so */
};

#define MISSING_CODE 0xFFFFFFFFu /* a categorical value that is missing */
#define MISSING_SUFFIX ".missing"
#define HEADER_MAX (256u << 20)
#define COLUMNS_MAX 4096
#define FIXED_MAX (1u << 20) /* values a row of a fixed column */

struct column_spec {
	char *name;
	enum column_type type;
	enum column_shape shape;
	uint32_t n; /* values a row; FIXED only, else 1 */
	int group; /* RAGGED: index into header.group; else -1 */
	size_t ncategory;
	char **category; /* [ncategory], CATEGORICAL only */
	int ordered; /* the categories have an order */
	char *dtype; /* what AnnData calls the type, where this one is wider or other (man scstream.5); NULL: not said */
};

#define HEADER_INDEX "obs_index" /* key of `extra`: the name that the index of AnnData's obs had */
#define HEADER_TRAIN_N "train_n" /* key of `extra` beside "labels": the number of training cells of each class */
#define HEADER_SAID "said" /* key of `extra` of predictions: an object of what is said of them, such as the method and the promises */
#define HEADER_TARGET "target" /* key of `extra` of predicted numbers: the column that they are learned from; missing: not known */
#define HEADER_CLS "cls" /* key of `extra`: number of tokens for the whole cell at the start of each; missing: one at most */

struct header {
	enum stream_kind kind;
	size_t ncol, ngroup;
	struct column_spec *col; /* [ncol] */
	char **group; /* [ngroup] names of the ragged groups, in order of first use */
	struct vocab vocab; /* n = 0: none */
	cJSON *provenance; /* array of {program, version, options} */
	cJSON *extra; /* object: every other key */
};

void header_init(struct header *h, enum stream_kind kind);
void header_copy(struct header *to, const struct header *from); /* `to` zeroed or released before */
/* The same cells in a stream of another kind: what `from` has but for its ragged columns. */
void header_derive(struct header *to, enum stream_kind kind, const struct header *from);
void header_release(struct header *h); /* accepts a zeroed struct */

/* Columns. A name is unique, not empty and has no tab or line break. Each add returns the index of the new column. */
int header_add(struct header *h, const char *name, enum column_type type);
int header_add_ragged(struct header *h, const char *name, enum column_type type, const char *group);
int header_add_fixed(struct header *h, const char *name, enum column_type type, uint32_t n);
int header_add_categorical(struct header *h, const char *name, char *const *category, size_t ncategory);
/* A column like `spec` (a scalar or fixed one of another header), copied with its categories. */
int header_add_like(struct header *h, const struct column_spec *spec);
void header_drop(struct header *h, const char *name); /* does nothing if there is no such column */
int header_find(const struct header *h, const char *name); /* index, or -1 */
int header_list(const struct header *h, const char *name); /* index of the list (ragged column), or -1: a column of obs may have its name */

/* Whether columns of some stream have this name (man scstream.5), so that a column of obs of this name is obs_NAME in streams. */
int header_reserved(const char *name);

/* Whether the values of a column are rows of the vocabulary: an id column (gene, token, input, target, neighbour, masked). */
int header_is_id(const struct column_spec *c);

/* Index of a required column with this type and shape. COLUMN_TYPES: any type; U32: in lists of ids U16 too, see block_id.
 * -1 with e set: "FILE: no column NAME (has: ...)", or a message that the type or shape is different. */
int header_need(
	const struct header *h, const char *name, enum column_type type, enum column_shape shape, const char *file, struct error *e);

/* The list NAME of this type in the group of the ragged column c; -1: there is none; -2 with e set: it has another type. */
int header_beside(const struct header *h, const char *name, enum column_type type, int c, const char *file, struct error *e);

/* The companion of the scalar column NAME is NAME.missing: a scalar u8 that is 1 where a row has no value. Its index, or -1. */
int header_missing(const struct header *h, const char *name);
int header_missing_of(const struct header *h, int c); /* the same of column c; -1 for lists and vectors */
/* Length of NAME when this name is NAME.missing, else 0. */
size_t header_companion(const char *name);

/* map [to->ncol] out: the column of `from` with the same name, type, shape and n, or -1. A ragged column needs its whole group to be the
 * same. */
void header_map(const struct header *to, const struct header *from, int *map);

/* Check the kind; -1 with e set ("FILE: this is a counts stream, expected tokens: run rankenc first"). */
int header_kind(const struct header *h, enum stream_kind kind, const char *file, struct error *e);

/* Token and gene ids are u16 in a column while the vocabulary has fewer than 65,536 rows, else u32. */
enum column_type id_type(size_t vocab_size);

/* The options of the last run of this program in the provenance, of scembed with the digest of the model. "": there is none. */
const char *header_made_by(const struct header *h, const char *program);
/* Add one provenance entry. `options`: the options that change the output, "--rate 0.15 --seed 1". */
void header_provenance(struct header *h, const char *program, const char *options);

/* JSON text of the header (malloced, compact, NUL-terminated), and back; `name` is the file for messages. The
 * parser checks everything it reads, digests included. */
char *header_print(const struct header *h);
int header_parse(struct header *h, const char *json, size_t n, const char *name, struct error *e);

const char *kind_name(enum stream_kind k); /* in the header of a stream */
const char *kind_matrix(enum stream_kind k); /* the column that is its matrix in AnnData and npy; NULL: none */
int kind_sampled(enum stream_kind k); /* whether some of the rows are a stream of the kind, too */

const struct column_kind *type_kind(enum column_type t);
size_t type_size(enum column_type t);
const char *type_name(enum column_type t);
int type_is_whole(enum column_type t);
int type_is_real(enum column_type t);
int type_is_number(enum column_type t); /* whole, or real */
void type_fill_missing(enum column_type t, void *values, size_t n); /* n values: there is none */
