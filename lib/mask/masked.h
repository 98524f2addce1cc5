/*
 * The key "loader" of a masked stream's header, as maskgen writes it, and a digest that identifies the stream.
 */
#pragma once

#include "stream/stream.h"

struct masked_info {
	uint64_t rows, epochs, batch; /* 0: the header does not say */
	uint64_t shards, shard; /* default 1 and 0 */
	uint64_t steps; /* global batches of all epochs, >= first_step */
	uint64_t first_step; /* step of the first block; > 0 after a resume */
};

/* -1 with e set if the header has no such key or its values are impossible. */
int masked_info_parse(struct masked_info *m, const struct header *h, const char *name, struct error *e);

/* The value of one of its keys; NULL: there is none. */
const cJSON *masked_value(const struct header *h, const char *key);

/*
 * Add the key "classes": for each of the n columns of `in` that hold labels, how often each value occurs. So sctrain knows all labels and
 * covariates before the first batch. Columns with more than 4096 values are left out. If there are columns of numbers, add the key "numbers":
 * for each {"n": how many cells have one, "mean", "sd"}, sd being the standard deviation of these n. -1 with e set when `in` cannot be read,
 * or has an infinite number.
 */
int masked_count_classes(struct header *h, struct stream *in, char *const *column, size_t n, struct error *e);

struct masked_numbers {
	double count, mean, sd;
};
/* What the key "numbers" says of a column. -1 with e set if it says nothing, or what cannot be. */
int masked_numbers(struct masked_numbers *n, const struct header *h, const char *column, const char *name, struct error *e);

/*
 * The digest is the same for all shards of a masked stream and for any first step: XXH3-128, in hex, of the compact JSON
 *     {"loader":{all keys in their order, but first_step, shard, and files if it is one},"vocab":DIGEST,"provenance":[...]}
 * with DIGEST from vocab_digest. So provenance must not contain the shard or the first step.
 */
void masked_digest(const struct header *h, char hex[33]);

/*
 * What the digest is of, and the file, to be kept with a model and compared by masked_differences:
 * {"loader":{...},"vocabulary":DIGEST,"provenance":[...]}, with a digest in the place of what is long. The caller deletes it.
 */
cJSON *masked_description(const struct header *h);
/* How the stream differs from the one that was described (NULL: by an earlier version, which kept the digest alone); malloced, NULL: not at all. */
char *masked_differences(const cJSON *stream, const char *digest, const struct header *h);
