/*
 * A table of the user that maps old ids and symbols to current ids.
 *
 * The table is a TSV of two columns, key (old id, symbol, alias) and gene id; gzip is accepted. The first line is column names if its
 * second field is "ensembl_id", "gene_id" or "id". If a key is repeated, its first line is used. Lines with an empty field are ignored.
 */
#pragma once

#include "base/error.h"
#include "base/strmap.h"

struct idmap {
	struct strmap key; /* key -> row of ids */
	struct strmap id; /* id -> row of ids */
	char **ids; /* [n], owned */
	size_t n, cap;
};
int idmap_load(struct idmap *m, const char *path, struct error *e);
void idmap_release(struct idmap *m);
/* The id for a key. Tries the key as it is, then in upper case, then whether the key itself is one of the ids. NULL: unknown. */
const char *idmap_find(const struct idmap *m, const char *key, size_t n);
