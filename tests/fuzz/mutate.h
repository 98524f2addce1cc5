/*
 * What the mutators of structured inputs share: random numbers, and changes of one value of a JSON text, which stays valid JSON.
 * A mutator changes an input as libFuzzer's own would, but mends what depends on the change (lengths, checksums, offsets). So most
 * inputs pass the outer checks and reach what lies behind them. Some inputs are not mended, for the checks themselves.
 * FUZZ_PLAIN=1 in the environment leaves all to libFuzzer: to compare the coverage.
 */
#pragma once

#include "base/error.h"

#include <cjson/cJSON.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);
/* Of the engine; a program without one (replay.c) does not call it. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max) __attribute__((weak));

static uint64_t mutate_state = 1;

static inline uint32_t draw(void) /* splitmix64 */
{
	uint64_t x = mutate_state += 0x9E3779B97F4A7C15u;
	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
	x = (x ^ x >> 27) * 0x94D049BB133111EBu;
	return (uint32_t)(x >> 32);
}

static inline uint32_t draw_below(size_t n)
{
	return n ? (uint32_t)(draw() % n) : 0;
}

static inline int one_in(unsigned n)
{
	return draw_below(n) == 0;
}

/* Start a mutation. 1: libFuzzer shall do it alone. */
static inline int mutate_plain(unsigned seed)
{
	static int plain = -1;
	mutate_state = seed;
	if (plain < 0)
		plain = getenv("FUZZ_PLAIN") != NULL;
	return plain || one_in(16);
}

/* ---- JSON ---- */

struct json_place {
	cJSON *parent, *item;
};

static size_t json_places(cJSON *at, struct json_place *to, size_t n, size_t max)
{
	for (cJSON *x = at->child; x && n < max; x = x->next) {
		to[n++] = (struct json_place){at, x};
		n = json_places(x, to, n, max);
	}
	return n;
}

static char *mutated_text(const char *text)
{
	size_t n = strlen(text), max = n + 16;
	char *s = xcalloc(max + 1, 1);
	memcpy(s, text, n);
	n = LLVMFuzzerMutate((uint8_t *)s, n, max);
	for (size_t i = 0; i < n; i++)
		if (!s[i])
			s[i] = '0';
	s[n] = 0;
	return s;
}

static double odd_number(double x)
{
	static const double odd[] = {0, 1, -1, 2, 0.5, 255, 256, 65535, 65536, 0x1p24, 2147483647, 2147483648, 4294967295, 4294967296,
		0x1p53, 0x1p53 + 2, 0x1p63, 0x1p64, 1e300, -0.0};
	switch (draw_below(4)) {
	case 0:
		return x + 1;
	case 1:
		return x - 1;
	case 2:
		return draw_below(16);
	default:
		return odd[draw_below(sizeof odd / sizeof *odd)];
	}
}

static cJSON *other_value(const cJSON *item)
{
	switch (cJSON_IsNumber(item) ? draw_below(8) : cJSON_IsString(item) ? 5 + draw_below(5) : draw_below(10)) {
	default:
		return cJSON_CreateNumber(odd_number(cJSON_IsNumber(item) ? item->valuedouble : 0));
	case 5:
		return cJSON_CreateNull();
	case 6:
		return cJSON_CreateArray();
	case 7:
		return cJSON_CreateString("a");
	case 8:
	case 9: {
		char *s = mutated_text(cJSON_IsString(item) ? item->valuestring : "x");
		cJSON *j = cJSON_CreateString(s);
		free(s);
		return j;
	}
	}
}

static void put_copy(cJSON *parent, const char *key, const cJSON *item)
{
	if (cJSON_IsArray(parent))
		cJSON_AddItemToArray(parent, cJSON_Duplicate(item, 1));
	else if (cJSON_IsObject(parent))
		cJSON_AddItemToObject(parent, key ? key : "key", cJSON_Duplicate(item, 1));
}

/* Change one place of the tree. */
static void mutate_json(cJSON *root)
{
	enum { MAX = 2048 };
	static struct json_place p[MAX];
	size_t n = json_places(root, p, 0, MAX);
	if (!n)
		return;
	struct json_place a = p[draw_below(n)], b = p[draw_below(n)];
	char *key = a.item->string ? xstrdup(a.item->string) : NULL;
	switch (draw_below(8)) {
	default:
		cJSON_ReplaceItemViaPointer(a.parent, a.item, other_value(a.item));
		break;
	case 4: /* the value of another place, with the key of this one */
		cJSON_ReplaceItemViaPointer(a.parent, a.item, cJSON_Duplicate(b.item, 1));
		break;
	case 5:
		put_copy(b.parent, one_in(2) ? key : b.item->string, a.item);
		key = (free(key), NULL);
		break;
	case 6:
		cJSON_Delete(cJSON_DetachItemViaPointer(a.parent, a.item));
		key = (free(key), NULL);
		break;
	case 7: /* the value under another key */
		if (cJSON_IsObject(a.parent)) {
			char *other = mutated_text(key ? key : "");
			cJSON *item = cJSON_DetachItemViaPointer(a.parent, a.item);
			cJSON_AddItemToObject(a.parent, other, item);
			free(other);
		}
		key = (free(key), NULL);
	}
	/* cJSON_ReplaceItemViaPointer forgets the key */
	for (cJSON *x = key ? a.parent->child : NULL; x; x = x->next)
		if (!x->string)
			x->string = xstrdup(key);
	free(key);
}

/* Change a JSON text in place: its new length, or 0 if it is no JSON, or does not fit into max. */
static inline size_t mutate_json_text(uint8_t *data, size_t size, size_t max)
{
	cJSON *j = cJSON_ParseWithLength((char *)data, size);
	if (!j)
		return 0;
	for (unsigned n = 1 + draw_below(3); n; n--)
		mutate_json(j);
	char *text = cJSON_PrintUnformatted(j);
	size_t n = strlen(text);
	if (n <= max)
		memcpy(data, text, n);
	free(text);
	cJSON_Delete(j);
	return n <= max ? n : 0;
}
