/* Values of JSON objects, checked. */
#ifndef JSON_H
#define JSON_H

#include <cjson/cJSON.h>
#include <math.h>
#include <stdint.h>

/* A whole number from 0 to 2^53. -1: it is something else. */
static inline int json_to_whole(const cJSON *j, uint64_t *x)
{
	if (!cJSON_IsNumber(j) || !(j->valuedouble >= 0 && j->valuedouble <= 0x1p53) || j->valuedouble != floor(j->valuedouble))
		return -1;
	*x = (uint64_t)j->valuedouble;
	return 0;
}

/* The whole number at this key; `otherwise` if there is no such key. */
static inline int json_whole(const cJSON *object, const char *key, uint64_t otherwise, uint64_t *x)
{
	const cJSON *j = cJSON_GetObjectItemCaseSensitive(object, key);
	*x = otherwise;
	return j ? json_to_whole(j, x) : 0;
}

#endif
