/*
 * config.json of a Hugging Face BERT model <-> struct model_config. Missing fields take transformers' defaults
 * (configuration_bert.py), so a missing hidden_act is gelu. What the model here cannot do (another model_type, relative
 * positions, a decoder, an untied output layer) is refused by name; fields without a meaning here are ignored.
 */
#ifndef CONFIG_H
#define CONFIG_H

#include "error.h"
#include "model.h"

#include <stddef.h>

/* A preset (see model_preset), a config.json, or a folder that has one. In a preset vocab_size is 0, for the caller to fill. */
int config_get(struct model_config *c, const char *what, struct error *e);
int config_load(struct model_config *c, const char *path, struct error *e);
int config_parse(struct model_config *c, const char *json, size_t n, const char *name, struct error *e);

/*
 * The head a config.json describes: its task, by "architectures", and the names of its classes in order ("id2label";
 * LABEL_0 and LABEL_1 where a classifier's file has none, as transformers takes it). A class without a name, a name that
 * stands twice or has a tab or line break is an error.
 */
struct config_head {
	enum task task;
	size_t nlabel;          /* 0 but for classifiers */
	char **label;           /* [nlabel], owned */
};
int config_head_load(struct config_head *h, const char *path, struct error *e);
int config_head_parse(struct config_head *h, const char *json, size_t n, const char *name, struct error *e);
void config_head_release(struct config_head *h);        /* accepts a zeroed struct */

/* The text transformers would write for this model (malloced): keys sorted, a line break at the end. */
char *config_print(const struct model_config *c, enum task task);
int config_save(const struct model_config *c, enum task task, const char *path, struct error *e);

#endif
