/* A config.json as an object, and its fields. */
#include "train/config_impl.h"

#include "base/json.h"
#include "base/sort.h"

#include <ctype.h>
#include <errno.h>

#define CONFIG_MAX (16u << 20) /* id2label of many classes is the largest part */

/* A key that an object in j has twice, or NULL. */
static const char *repeated_key(const cJSON *j)
{
	size_t n = (size_t)cJSON_GetArraySize(j), i = 0;
	const char **key = xmalloc((n + 1) * sizeof *key), *twice = NULL;
	const cJSON *x;
	cJSON_ArrayForEach(x, j)
	{
		if (!twice && (cJSON_IsObject(x) || cJSON_IsArray(x)))
			twice = repeated_key(x);
		key[i++] = x->string;
	}
	if (cJSON_IsObject(j)) {
		qsort(key, n, sizeof *key, compare_text);
		for (i = 1; i < n && !twice; i++)
			if (strcmp(key[i - 1], key[i]) == 0)
				twice = key[i];
	}
	free(key);
	return twice;
}

cJSON *config_object(const char *json, size_t n, const char *name, struct error *e)
{
	const char *end = json, *twice = NULL;
	cJSON *j = cJSON_ParseWithLengthOpts(json, n, &end, 0);
	while (end < json + n && isspace((unsigned char)*end))
		end++;
	if (!cJSON_IsObject(j))
		error_set(e, "%s: not a JSON object", name);
	else if (end < json + n)
		error_set(e, "%s: something follows the JSON object, at byte %zu", name, (size_t)(end - json));
	else if ((twice = repeated_key(j)))
		error_set(e, "%s: key '%.40s' occurs twice", name, twice);
	else
		return j;
	cJSON_Delete(j);
	return NULL;
}

const cJSON *config_item(const struct config_reader *r, const char *key)
{
	const cJSON *x = json_get(r->j, key);
	return x && !cJSON_IsNull(x) ? x : NULL;
}

double config_real(struct config_reader *r, const char *key, double otherwise)
{
	const cJSON *x = config_item(r, key);
	if (x && !cJSON_IsNumber(x) && !r->bad)
		r->bad = error_set(r->e, "%s: %s: expected a number", r->name, key);
	return x && cJSON_IsNumber(x) ? x->valuedouble : otherwise;
}

uint32_t config_whole(struct config_reader *r, const char *key, uint32_t otherwise)
{
	double x = config_real(r, key, otherwise);
	if (x >= 0 && x <= UINT32_MAX && x == floor(x))
		return (uint32_t)x;
	if (!r->bad)
		r->bad = error_set(r->e, "%s: %s is %g: expected a whole number from 0", r->name, key, x);
	return otherwise;
}

char *config_text(const char *path, size_t *n, struct error *e)
{
	FILE *f = fopen(path, "re");
	if (!f)
		return error_set(e, "%s: %s", path, strerror(errno)), NULL;
	char *text = xmalloc(CONFIG_MAX);
	*n = fread(text, 1, CONFIG_MAX, f);
	int bad = ferror(f)        ? error_set(e, "%s: cannot read: %s", path, strerror(errno))
		: *n == CONFIG_MAX ? error_set(e, "%s: longer than %u bytes: not a config.json", path, CONFIG_MAX)
				   : 0;
	fclose(f);
	if (!bad)
		return text;
	free(text);
	return NULL;
}
