/* A model's folder in Hugging Face's layout, or a checkpoint: what can be read of it without a device. */
#pragma once

#include "nn/model.h"
#include "stream/vocab.h"

/* config.json and vocab.tsv. v->n is 0 if there is no vocab.tsv (a model of transformers'). -1 with e set; v then holds nothing. */
int model_dir_tables(struct model_config *c, struct vocab *v, const char *dir, struct error *e);

/*
 * Read all of it: is it as it was written? *tensors: those of model.safetensors; *digest: it has one. Otherwise the form of the files is checked,
 * and that all values are finite.
 */
int model_dir_check(const char *dir, size_t *tensors, int *digest, struct error *e);
