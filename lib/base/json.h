/* Values of JSON objects, checked. */
#pragma once

#include "base/decimal.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* For RELEASED. */
static inline void json_free_at(cJSON **j)
{
	cJSON_Delete(*j);
}

/* The value at this key; NULL: there is none. The same of a text; NULL: it is none. */
static inline cJSON *json_get(const cJSON *object, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(object, key);
}

static inline const char *json_text(const cJSON *object, const char *key)
{
	return cJSON_GetStringValue(json_get(object, key));
}

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

/* Add a real number that reads back the same, as Python prints it; null if it is not finite. (cJSON's own numbers can be off by the last
 * bit.) */
static inline void json_add_real(cJSON *object, const char *key, double x)
{
	char text[DECIMAL + 2];
	if (!isfinite(x)) {
		cJSON_AddNullToObject(object, key);
		return;
	}
	decimal_print(text, x);
	if (!strpbrk(text, ".e"))
		strcat(text, ".0");
	cJSON_AddRawToObject(object, key, text);
}

/*
 * Where two values differ, for messages (malloced; NULL: nowhere): "loader epochs: 2 in A, 4 in B; ...", at most `most` places, "none" for what is
 * not there. Each may be NULL. Numbers and texts that json_add_real wrote are no numbers before they are printed and parsed.
 */
char *json_differences(const cJSON *a, const cJSON *b, const char *in_a, const char *in_b, int most);
