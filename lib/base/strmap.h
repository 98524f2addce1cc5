/* A hash table from strings to 32-bit numbers (open addressing, XXH3): gene ids to rows, old ids to new ones. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define STRMAP_NONE UINT32_MAX

struct strmap {
	size_t n, cap; /* entries; slots (a power of 2, or 0) */
	uint64_t *slot; /* [cap] key offset + 1 in bytes, 0 empty */
	uint32_t *value; /* [cap] */
	uint32_t *length; /* [cap] of the key */
	char *bytes; /* the keys, each with its NUL */
	size_t used, bytes_cap;
};

void strmap_release(struct strmap *m); /* accepts a zeroed struct */
uint32_t strmap_get(const struct strmap *m, const char *key, size_t n); /* STRMAP_NONE: not there */
/* Give key a value unless it has one; returns the value it has afterwards. */
uint32_t strmap_put(struct strmap *m, const char *key, size_t n, uint32_t value);
