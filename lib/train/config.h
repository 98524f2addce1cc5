/*
 * config.json of a Hugging Face model <-> struct model_config and its heads. The architecture, by "model_type", says which fields it
 * has (arch.h); missing ones take transformers' defaults, so a missing hidden_act is gelu. What the model here cannot do (another
 * model_type, relative positions, a decoder, an untied output layer) is refused by name. Fields without a meaning here are ignored, but refused where
 * no other program writes the file (arch.h, own_config).
 */
#pragma once

#include "nn/model.h"

/* A preset (see model_preset), a config.json, or a folder that has one. In a preset vocab_size is 0, for the caller to fill. */
int config_get(struct model_config *c, const char *what, struct error *e);
int config_load(struct model_config *c, const char *path, struct error *e);
/* dir is the folder of a model: 0. -1 with e set: it is none, one whose training is not finished, with its newest checkpoint, or a
 * file of it is a pipe. */
int config_folder(const char *dir, struct error *e);
int config_parse(struct model_config *c, const char *json, size_t n, const char *name, struct error *e);

/*
 * The heads a config.json describes. One head is what "architectures" says, such as BertForMaskedLM. Several, and one that needs more than its
 * class says, are listed in "corrmask_heads" (transformers ignores it), each an object:
 *     kind, weight                          always
 *     name, prefix, column, position, from  as in struct head_spec; missing: NULL or 0
 *     pooler                                false: head_spec.direct; missing: 0
 *     reverse                               as in struct head_spec; missing: 0
 *     mean, scale                           of a head that predicts a number
 *     losses                                of a head with several losses: the weights of its kind by name, which are not read
 *     id2label                              of a head with a name that predicts classes
 * The classes of one head, and of heads without a name, as older versions wrote them, stand beside the list. Classes are named in order by
 * "id2label"; without it there are "num_labels" classes, or two, named LABEL_0, LABEL_1 ..., as transformers takes it. A class without a
 * name, a name that occurs twice or has a tab or line break is an error.
 */
struct config_heads {
	size_t n; /* 0: hidden states only */
	struct head_spec head[HEADS_MAX];
	struct { /* what the heads point to */
		char *name, *prefix, *column, **label;
	} own[HEADS_MAX];
};
int config_heads_load(struct config_heads *h, const char *path, struct error *e);
int config_heads_parse(struct config_heads *h, const char *json, size_t n, const char *name, struct error *e);
void config_heads_release(struct config_heads *h); /* accepts a zeroed struct */

/* Can a head have this name? 1 to HEAD_NAME bytes, without control characters, quotes and backslashes. */
int config_head_name(const char *name);
/* Do two heads predict the same? Kind and classes are equal, and the names where both have one. */
int head_same(const struct head_spec *a, const struct head_spec *b);

/* The text transformers would write for this model (malloced): keys sorted, a line break at the end. */
char *config_print(const struct model_config *c, const struct head_spec *head, size_t nhead);
