/*
 * Weights of a model in safetensors files, ours or transformers' (one file, or several with an index), and model directories in Hugging
 * Face's layout.
 */
#pragma once

#include "stream/header.h"
#include "nn/model.h"
#include "base/safetensors.h"

struct weights_report {
	size_t fresh; /* head tensors that the file lacks: drawn at random (model_draw) */
	size_t ignored; /* tensors of other heads, position_ids, a tied decoder */
	char first_fresh[TENSOR_NAME]; /* name of one */
	char digest[DIGEST_SIZE]; /* of the file; of several files: of their digests */
};

/*
 * Tensors go by name, with or without the prefix of the architecture ("bert.") in front. Every tensor of embeddings and encoder must be
 * there with its shape (the message has the name and both shapes); a tensor with no place in the network is an error, as is an untied
 * decoder.
 */
int weights_load(struct model *m, const char *path, struct weights_report *r, struct error *e);
/*
 * The same from a model with other heads. from [nhead]: the head of that model whose tensors each head of m takes, under their names there;
 * NULL: none, its own tensors are fresh.
 */
int weights_load_heads(struct model *m, const char *path, const struct head_spec *const *from, struct weights_report *r, struct error *e);
/* The digest of weights_report, which the file of ours says itself; another one is read. */
int weights_digest(const char *path, char hex[DIGEST_SIZE], struct error *e);
/* beside [nbeside]: files of the model's folder, whose digests the file gets. */
int weights_save(struct model *m, const char *path, const struct text_file *beside, size_t nbeside, struct error *e);
/* values [model_size], laid out as model_read_all gives them, in the model's place. */
int weights_save_copy(struct model *m, const real *values, const char *path, struct error *e);

/* For other arrays of the model: narray of them into one file, each tensor's name behind the array's prefix; and one tensor
 * back, whose shape is checked. */
int weights_save_arrays(struct model *m, const char *path, const char *const prefix[], const enum which which[], size_t narray,
	const struct text_file *beside, size_t nbeside, struct error *e);
int weights_load_one(
	struct model *m, enum which w, const struct tensor *t, struct safetensors *s, const struct safetensor *from, struct error *e);

/*
 * The model of a directory, for use: config.json, model.safetensors and vocab.tsv. vocab->n is 0 if there is no
 * vocab.tsv (a model of transformers'). NULL with e set.
 */
struct model *model_dir_load(const char *dir, const struct head_spec *head, size_t nhead, struct ops *o, uint64_t seed, struct vocab *v,
	struct weights_report *r, struct error *e);

/*
 * Is a stream's vocabulary the one of the model? v as from model_dir_load. 0 yes; 1 yes, but the medians differ, or the
 * model has no vocab.tsv and only the size was compared (e says which); -1 no, with e set.
 */
int vocab_same(
	const struct vocab *v, const struct model_config *c, const char *dir, const struct header *h, const char *name, struct error *e);
