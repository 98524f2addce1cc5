/* What config.c and config_heads.c share: fields of a JSON object (config_json.c). */
#pragma once

#include "train/config.h"

#include <cjson/cJSON.h>

struct config_reader {
	const cJSON *j;
	const char *name;
	struct error *e;
	int bad; /* a field was wrong: e is set */
};

/* The object that the whole text is. NULL with e set: it is no object, something follows it, or a key is there twice, of which programs take
 * different ones. */
cJSON *config_object(const char *json, size_t n, const char *name, struct error *e);

/* NULL: not there, or null. */
const cJSON *config_item(const struct config_reader *r, const char *key);
double config_real(struct config_reader *r, const char *key, double otherwise);
uint32_t config_whole(struct config_reader *r, const char *key, uint32_t otherwise);

/* The file's text (malloced), or NULL with e set. */
char *config_text(const char *path, size_t *n, struct error *e);

/* Add what describes the heads. */
void config_add_heads(cJSON *j, const struct arch *arch, const struct head_spec *head, size_t nhead);
