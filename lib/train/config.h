/*
 * config.json of a Hugging Face model <-> struct model_config and its heads. The architecture, by "model_type", says which fields it
 * has (arch.h); missing ones take transformers' defaults, so a missing hidden_act is gelu. What the model here cannot do (another
 * model_type, relative positions, a decoder, an untied output layer) is refused by name; fields without a meaning here are ignored.
 */
#ifndef CONFIG_H
#define CONFIG_H

#include "base/error.h"
#include "nn/model.h"

#include <stddef.h>

/* A preset (see model_preset), a config.json, or a folder that has one. In a preset vocab_size is 0, for the caller to fill. */
int config_get(struct model_config *c, const char *what, struct error *e);
int config_load(struct model_config *c, const char *path, struct error *e);
/* dir is the folder of a model: 0. -1 with e set: it is none, or one whose training is not finished, with its newest checkpoint. */
int config_folder(const char *dir, struct error *e);
int config_parse(struct model_config *c, const char *json, size_t n, const char *name, struct error *e);

/*
 * The heads a config.json describes. One head is what "architectures" says, such as BertForMaskedLM; several are listed in
 * "corrmask_heads", as {"kind": NAME, "weight": W} (transformers ignores it). The classes are named in order by "id2label"; a file
 * without it has "num_labels" classes, or two, named LABEL_0, LABEL_1 ..., as transformers takes it. A class without a name, a name
 * that occurs twice or has a tab or line break is an error.
 */
struct config_heads {
	size_t n; /* 0: hidden states only */
	struct head_spec head[HEADS_MAX];
	size_t nlabel;
	char **label; /* [nlabel], owned; head[i].label is this where the kind has classes */
};
int config_heads_load(struct config_heads *h, const char *path, struct error *e);
int config_heads_parse(struct config_heads *h, const char *json, size_t n, const char *name, struct error *e);
void config_heads_release(struct config_heads *h); /* accepts a zeroed struct */

/* The text transformers would write for this model (malloced): keys sorted, a line break at the end. */
char *config_print(const struct model_config *c, const struct head_spec *head, size_t nhead);
int config_save(const struct model_config *c, const struct head_spec *head, size_t nhead, const char *path, struct error *e);

#endif
