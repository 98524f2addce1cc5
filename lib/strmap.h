/* A hash table from strings to 32-bit numbers (open addressing, XXH3): gene ids to rows, old ids to new ones. */
#ifndef STRMAP_H
#define STRMAP_H

#include "error.h"

#include <stdint.h>

#define STRMAP_NONE UINT32_MAX

struct strmap {
	size_t n, cap;          /* entries; slots (a power of 2, or 0) */
	uint64_t *slot;         /* [cap] key offset + 1 in bytes, 0 empty */
	uint32_t *value;        /* [cap] */
	uint32_t *length;       /* [cap] of the key */
	char *bytes;            /* the keys, each with its NUL */
	size_t used, bytes_cap;
};

void strmap_release(struct strmap *m);                                          /* accepts a zeroed struct */
uint32_t strmap_get(const struct strmap *m, const char *key, size_t n);         /* STRMAP_NONE: not there */
/* Give key a value unless it has one; returns the value it has afterwards. */
uint32_t strmap_put(struct strmap *m, const char *key, size_t n, uint32_t value);

/*
 * Gene id mapping: a TSV of two columns, key (old id, symbol, alias) and gene id, gzip accepted; a first line whose second
 * column is "ensembl_id", "gene_id" or "id" is the column names. The first line of a repeated key counts; lines
 * with an empty column do not.
 */
struct idmap {
	struct strmap key;      /* key -> row of ids */
	struct strmap id;       /* id -> row of ids */
	char **ids;             /* [n], owned */
	size_t n, cap;
};
int idmap_load(struct idmap *m, const char *path, struct error *e);
void idmap_release(struct idmap *m);
/* The id for a key: the key as it is, else in upper case, else the key itself when it is one of the ids. NULL: unknown. */
const char *idmap_find(const struct idmap *m, const char *key, size_t n);

/* Does this look like an Ensembl gene id (ENSG00000141510, ENSMUSG..., with or without .version)? *base gets its length
 * without the version. */
int ensembl_id(const char *s, size_t n, size_t *base);

#endif
