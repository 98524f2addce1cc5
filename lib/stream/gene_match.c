#include "stream/gene_match.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* By an alias, as Geneformer does, else by the id. *by_alias counts the first. */
static int64_t find_by_name(const struct vocab *v, const char *name, size_t n, size_t *by_alias)
{
	char *text = xstrndup(name, n);
	for (size_t i = 0; v->alias && i < n; i++)
		text[i] = (char)toupper((unsigned char)text[i]);
	int64_t t = vocab_find_alias(v, text, n);
	*by_alias += t >= 0;
	memcpy(text, name, n);
	if (t < 0)
		t = vocab_find(v, text);
	free(text);
	return t;
}

static int64_t find_by_id(const struct vocab *v, const char *id, const struct idmap *ids, size_t *by_alias)
{
	const char *mapped = ids ? idmap_find(ids, id, strlen(id)) : NULL;
	size_t base;
	int64_t t = mapped ? find_by_name(v, mapped, strlen(mapped), by_alias) : -1;
	if (t < 0)
		t = find_by_name(v, id, strlen(id), by_alias);
	if (t < 0 && ensembl_id(id, strlen(id), &base))
		t = find_by_name(v, id, base, by_alias);
	return t;
}

static struct gene_matched match_ids(uint32_t *row, const struct vocab *from, const struct vocab *to, const struct idmap *ids)
{
	struct gene_matched m = {0};
	for (size_t i = 0; i < from->n; i++) {
		int64_t t = find_by_id(to, from->id[i], ids, &m.by_alias);
		row[i] = t < (int64_t)to->nspecial ? GENE_NONE : (uint32_t)t;
		m.n += row[i] != GENE_NONE;
	}
	return m;
}

/* Look the genes [n] that have no row yet up among the symbols [first, end) of the other table. Ambiguous: several have the name. */
static void match_symbols(uint32_t *row, char *const *name, size_t n, char *const *symbol, size_t first, size_t end, struct gene_matched *m)
{
	struct strmap symbols = {0};
	uint8_t *several = xcalloc(end + 1, 1);
	for (size_t t = first; t < end; t++) {
		size_t length = strlen(symbol[t]);
		uint32_t one = length ? strmap_put(&symbols, symbol[t], length, (uint32_t)t) : (uint32_t)t;
		several[one] |= one != t;
	}
	for (size_t i = 0; i < n; i++) {
		uint32_t t = row[i] == GENE_NONE ? strmap_get(&symbols, name[i], strlen(name[i])) : STRMAP_NONE;
		if (t == STRMAP_NONE)
			continue;
		m->ambiguous += several[t];
		m->by_symbol += !several[t];
		row[i] = several[t] ? GENE_NONE : t;
	}
	strmap_release(&symbols);
	free(several);
}

static int mostly_ensembl(const struct vocab *v)
{
	size_t n = 0, base;
	for (size_t i = 0; i < v->n; i++)
		n += (size_t)ensembl_id(v->id[i], strlen(v->id[i]), &base);
	return 2 * n >= v->n;
}

struct gene_matched gene_match(uint32_t *row, const struct vocab *from, const struct vocab *to, const struct idmap *ids)
{
	struct gene_matched m = match_ids(row, from, to, ids);
	if (!mostly_ensembl(from))
		match_symbols(row, from->id, from->n, to->symbol, to->nspecial, to->n, &m);
	m.n += m.by_symbol;
	return m;
}

/* The symbol of each gene, or its id. Malloced; the names are those of v. */
static char **names_of(const struct vocab *v)
{
	char **name = xmalloc((v->n + 1) * sizeof *name);
	for (size_t i = 0; i < v->n; i++)
		name[i] = v->symbol[i][0] ? v->symbol[i] : v->id[i];
	return name;
}

struct gene_matched gene_pairs(uint32_t *row, const struct vocab *from, const struct vocab *to)
{
	struct gene_matched m = {0}, by_name = {0};
	size_t a = from->n - from->nspecial, b = to->n - to->nspecial, few = a < b ? a : b;
	uint32_t *there = xmalloc((from->n + 1) * sizeof *there), *back = xmalloc((to->n + 1) * sizeof *back);
	match_ids(row, from, to, NULL);
	memset(back, 0xff, to->n * sizeof *back);
	for (size_t i = 0; i < from->n; i++) {
		if (row[i] != GENE_NONE && back[row[i]] != GENE_NONE) /* two versions of one id */
			row[i] = GENE_NONE;
		if (row[i] != GENE_NONE)
			back[row[i]] = (uint32_t)i;
		m.n += row[i] != GENE_NONE;
	}
	memcpy(there, row, from->n * sizeof *there);
	if (2 * m.n < few && !(mostly_ensembl(from) && mostly_ensembl(to))) {
		char **one = names_of(from), **other = names_of(to);
		match_symbols(there, one, from->n, other, to->nspecial, to->n, &by_name);
		match_symbols(back, other, to->n, one, from->nspecial, from->n, &by_name);
		free(one);
		free(other);
	}
	for (size_t i = 0; i < from->n; i++) {
		if (there[i] != GENE_NONE && back[there[i]] != i)
			there[i] = GENE_NONE;
		m.by_symbol += row[i] != there[i];
	}
	if (m.by_symbol <= m.n || GENES_FEW * m.by_symbol <= few)
		m.by_symbol = 0;
	if (m.by_symbol)
		memcpy(row, there, from->n * sizeof *row);
	m.n += m.by_symbol;
	free(there);
	free(back);
	return m;
}
