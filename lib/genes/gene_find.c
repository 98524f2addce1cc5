#include "genes/gene_find.h"

#include "genes/gene_name.h"

#include <ctype.h>

void gene_find_init(struct gene_find *f, const struct vocab *v)
{
	*f = (struct gene_find){.v = v, .next = xmalloc((v->n + 1) * sizeof *f->next)};
	for (size_t i = v->nspecial; i < v->n; i++) {
		struct gene_key k;
		gene_key(&k, v->id[i], strlen(v->id[i]));
		strmap_put(&f->key, k.s, k.n, (uint32_t)i);
	}
	FREED uint32_t *last = xmalloc((v->n + 1) * sizeof *last);
	for (size_t i = v->nspecial; i < v->n; i++) {
		uint32_t row = (uint32_t)i, first = v->symbol[i][0] ? strmap_put(&f->symbol, v->symbol[i], strlen(v->symbol[i]), row) : row;
		f->next[i] = UINT32_MAX;
		if (first != row)
			f->next[last[first]] = row;
		last[first] = row;
	}
}

void gene_find_release(struct gene_find *f)
{
	strmap_release(&f->key);
	strmap_release(&f->symbol);
	free(f->next);
	*f = (struct gene_find){0};
}

/* The first row that has this symbol, as it is or in upper case; STRMAP_NONE: none. */
static uint32_t find_symbol(const struct gene_find *f, const char *s, size_t n)
{
	char upper[256];
	uint32_t row = strmap_get(&f->symbol, s, n);
	if (row != STRMAP_NONE || n >= sizeof upper)
		return row;
	for (size_t i = 0; i < n; i++)
		upper[i] = (char)toupper((unsigned char)s[i]);
	return strmap_get(&f->symbol, upper, n);
}

int64_t gene_find(const struct gene_find *f, const char *s, size_t n)
{
	struct gene_key k;
	FREED char *id = xstrndup(s, n);
	int64_t row = vocab_find(f->v, id);
	if (row >= (int64_t)f->v->nspecial)
		return row;
	gene_key(&k, s, n);
	uint32_t found = strmap_get(&f->key, k.s, k.n);
	if (found != STRMAP_NONE)
		return found;
	found = find_symbol(f, s, n);
	return found == STRMAP_NONE ? GENE_UNKNOWN : f->next[found] != UINT32_MAX ? GENE_AMBIGUOUS : (int64_t)found;
}

char *gene_find_ids(const struct gene_find *f, const char *s, size_t n)
{
	char *ids = xstrdup("");
	int most = 5;
	for (uint32_t row = find_symbol(f, s, n); row != UINT32_MAX && most >= 0; row = f->next[row], most--)
		xappend(&ids, "%s%s", *ids ? ", " : "", most ? f->v->id[row] : "...");
	return ids;
}
