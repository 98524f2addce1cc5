#include "stream/masked.h"

#include "base/digest.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

int masked_info_parse(struct masked_info *m, const struct header *h, const char *name, struct error *e)
{
	const cJSON *o = cJSON_GetObjectItemCaseSensitive(h->extra, "loader");
	if (!cJSON_IsObject(o) || !cJSON_GetObjectItemCaseSensitive(o, "steps"))
		return error_set(
			e, "%s: the header does not say how many steps there are (no loader.steps): expected a stream of maskgen", name);
	if (json_whole(o, "rows", 0, &m->rows) || json_whole(o, "epochs", 0, &m->epochs) || json_whole(o, "batch", 0, &m->batch) ||
		json_whole(o, "shards", 1, &m->shards) || json_whole(o, "shard", 0, &m->shard) || json_whole(o, "steps", 0, &m->steps) ||
		json_whole(o, "first_step", 0, &m->first_step))
		return error_set(e, "%s: header: loader: expected whole numbers", name);
	if (m->first_step > m->steps || m->shard >= m->shards)
		return error_set(e, "%s: header: loader: step %llu of %llu, shard %llu of %llu", name, (unsigned long long)m->first_step,
			(unsigned long long)m->steps, (unsigned long long)m->shard, (unsigned long long)m->shards);
	return 0;
}

void masked_digest(const struct header *h, char hex[33])
{
	cJSON *j = cJSON_CreateObject(), *loader = cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(h->extra, "loader"), 1);
	cJSON_DeleteItemFromObjectCaseSensitive(loader, "first_step");
	cJSON_DeleteItemFromObjectCaseSensitive(loader, "shard");
	vocab_digest(&h->vocab, hex);
	cJSON_AddItemToObject(j, "loader", loader ? loader : cJSON_CreateNull());
	cJSON_AddStringToObject(j, "vocab", hex);
	cJSON_AddItemReferenceToObject(j, "provenance", h->provenance);
	char *text = cJSON_PrintUnformatted(j);
	digest_bytes(text, strlen(text), hex);
	free(text);
	cJSON_Delete(j);
}
