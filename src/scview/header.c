/* scview: the header of a stream, as JSON for people and as rows of key and value for scripts. */
#include "scview.h"

#include "base/json.h"

/* --rate 0.42, where the stream has all digits of the number */
static void shorten_provenance(cJSON *programs)
{
	cJSON *p;
	cJSON_ArrayForEach(p, programs)
	{
		cJSON *given = json_get(p, "options");
		if (!cJSON_IsString(given))
			continue;
		FREED char *shorter = decimal_shorten(given->valuestring);
		cJSON_ReplaceItemInObjectCaseSensitive(p, "options", cJSON_CreateString(shorter));
	}
}

/* The header as JSON. Of the vocabulary it has only the size and digests; --vocab prints it. */
static cJSON *header_json(const struct header *h)
{
	FREED char *compact = header_print(h);
	cJSON *j = cJSON_Parse(compact), *vocab = json_get(j, "vocab");
	if (vocab) {
		cJSON_DeleteItemFromObjectCaseSensitive(vocab, "id");
		cJSON_DeleteItemFromObjectCaseSensitive(vocab, "symbol");
		cJSON_DeleteItemFromObjectCaseSensitive(vocab, "median");
		cJSON_DeleteItemFromObjectCaseSensitive(vocab, "aliases");
		cJSON_AddNumberToObject(vocab, "rows", (double)h->vocab.n);
	}
	shorten_provenance(json_get(j, "provenance"));
	return j;
}

void view_header(struct stream *in)
{
	RELEASED(json_free_at) cJSON *j = header_json(stream_header(in));
	FREED char *pretty = cJSON_Print(j);
	if (!pretty)
		die("%s: the header cannot be printed", stream_name(in));
	text_open();
	text_puts(pretty);
	text_put("\n", 1);
	text_commit();
}

static void header_put_row(const char *key, const char *value)
{
	text_field(key, strlen(key));
	text_put("\t", 1);
	text_field(value, strlen(value));
	text_put("\n", 1);
}

/* One row a value of j, whose key is the way to it: loader.rate, provenance.2.program. */
static void put_values(const cJSON *j, const char *key)
{
	const cJSON *child;
	size_t i = 0;
	char number[DECIMAL];
	if (cJSON_IsString(j))
		header_put_row(key, j->valuestring);
	else if (cJSON_IsNumber(j))
		header_put_row(key, decimal_print(number, j->valuedouble));
	else if (cJSON_IsBool(j))
		header_put_row(key, cJSON_IsTrue(j) ? "true" : "false");
	cJSON_ArrayForEach(child, j)
	{
		FREED char *longer =
			cJSON_IsArray(j) ? xasprintf("%s.%zu", key, ++i) : xasprintf("%s%s%s", key, *key ? "." : "", child->string);
		put_values(child, longer);
	}
}

void view_header_tsv(struct stream *in)
{
	static const char *const part[] = {"type", "shape", "group", NULL};
	cJSON *j = header_json(stream_header(in)), *columns = cJSON_DetachItemFromObjectCaseSensitive(j, "columns"), *column;
	text_open();
	text_puts("key\tvalue\n");
	cJSON_ArrayForEach(column, columns)
	{
		const char *name = json_get(column, "name")->valuestring;
		const cJSON *categories = json_get(column, "categories");
		header_put_row("column", name);
		for (const char *const *p = part; *p; p++) {
			FREED char *key = xasprintf("%s:%s", *p, name);
			put_values(json_get(column, *p), key);
		}
		if (categories) {
			FREED char *key = xasprintf("categories:%s", name), *n = xasprintf("%d", cJSON_GetArraySize(categories));
			header_put_row(key, n);
		}
	}
	put_values(j, "");
	text_commit();
}
