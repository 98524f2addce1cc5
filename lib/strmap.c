#include "strmap.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zlib.h>

void strmap_release(struct strmap *m)
{
	free(m->slot);
	free(m->value);
	free(m->length);
	free(m->bytes);
	*m = (struct strmap){0};
}

/* The slot of a key, or the empty one where it would go. */
static size_t find(const struct strmap *m, const char *key, size_t n)
{
	size_t i = XXH3_64bits(key, n) & (m->cap - 1);
	while (m->slot[i] && (m->length[i] != n || memcmp(m->bytes + m->slot[i] - 1, key, n)))
		i = (i + 1) & (m->cap - 1);
	return i;
}

uint32_t strmap_get(const struct strmap *m, const char *key, size_t n)
{
	if (!m->cap)
		return STRMAP_NONE;
	size_t i = find(m, key, n);
	return m->slot[i] ? m->value[i] : STRMAP_NONE;
}

static void enlarge(struct strmap *m)
{
	struct strmap old = *m;
	m->cap = old.cap ? old.cap * 2 : 1024;
	m->slot = xcalloc(m->cap, sizeof *m->slot);
	m->value = xmalloc(m->cap * sizeof *m->value);
	m->length = xmalloc(m->cap * sizeof *m->length);
	for (size_t i = 0; i < old.cap; i++) {
		if (!old.slot[i])
			continue;
		size_t k = find(m, m->bytes + old.slot[i] - 1, old.length[i]);
		m->slot[k] = old.slot[i];
		m->value[k] = old.value[i];
		m->length[k] = old.length[i];
	}
	free(old.slot);
	free(old.value);
	free(old.length);
}

uint32_t strmap_put(struct strmap *m, const char *key, size_t n, uint32_t value)
{
	if (m->n >= m->cap / 2)
		enlarge(m);
	size_t i = find(m, key, n);
	if (m->slot[i])
		return m->value[i];
	grow(m->bytes, m->bytes_cap, m->used + n + 1);
	memcpy(m->bytes + m->used, key, n);
	m->bytes[m->used + n] = 0;
	m->slot[i] = m->used + 1;
	m->length[i] = (uint32_t)n;
	m->value[i] = value;
	m->used += n + 1;
	m->n++;
	return value;
}

int ensembl_id(const char *s, size_t n, size_t *base)
{
	size_t i = 3, digits;
	if (n < 10 || memcmp(s, "ENS", 3))
		return 0;
	while (i < n && isupper((unsigned char)s[i]))
		i++;
	/* a gene: ENSG, ENSMUSG, ..., and the ENSGR of old pseudo-autosomal copies */
	if (s[i - 1] != 'G' && !(s[i - 1] == 'R' && s[i - 2] == 'G'))
		return 0;
	for (digits = i; digits < n && isdigit((unsigned char)s[digits]);)
		digits++;
	if (digits - i < 6)
		return 0;
	*base = digits;
	if (digits == n)
		return 1;
	if (s[digits] != '.' || digits + 1 == n)
		return 0;
	for (i = digits + 1; i < n; i++)
		if (!isdigit((unsigned char)s[i]))
			return 0;
	return 1;
}

static int add_line(struct idmap *m, char *line, size_t lineno, const char *path, struct error *e)
{
	char *tab = strchr(line, '\t');
	if (!tab || strchr(tab + 1, '\t'))
		return error_set(e, "%s: line %zu: expected two columns, key and gene id", path, lineno);
	*tab = 0;
	const char *id = tab + 1;
	if (lineno == 1 && (!strcmp(id, "ensembl_id") || !strcmp(id, "gene_id") || !strcmp(id, "id")))
		return 0;
	if (!*line || !*id)             /* Geneformer's own name table has such lines */
		return 0;
	uint32_t row = strmap_put(&m->id, id, strlen(id), (uint32_t)m->n);
	if (row == m->n) {
		grow(m->ids, m->cap, m->n + 1);
		m->ids[m->n++] = xstrdup(id);
	}
	strmap_put(&m->key, line, (size_t)(tab - line), row);
	return 0;
}

int idmap_load(struct idmap *m, const char *path, struct error *e)
{
	*m = (struct idmap){0};
	char line[4096];
	gzFile f = gzopen(path, "rb");
	if (!f)
		return error_set(e, "%s: %s", path, strerror(errno));
	int r = 0, code;
	for (size_t lineno = 1; r == 0 && gzgets(f, line, sizeof line); lineno++) {
		size_t n = strlen(line);
		if (n == sizeof line - 1 && line[n - 1] != '\n')
			r = error_set(e, "%s: line %zu is longer than %zu bytes", path, lineno, sizeof line - 2);
		while (n && (line[n - 1] == '\n' || line[n - 1] == '\r'))
			line[--n] = 0;
		if (r == 0)
			r = add_line(m, line, lineno, path, e);
	}
	const char *why = gzerror(f, &code);
	if (r == 0 && code != Z_OK && code != Z_STREAM_END)
		r = error_set(e, "%s: %s", path, code == Z_ERRNO ? strerror(errno) : why);
	if (r == 0 && !m->n)
		r = error_set(e, "%s: no lines of key and gene id", path);
	gzclose(f);
	if (r)
		idmap_release(m);
	return r;
}

void idmap_release(struct idmap *m)
{
	for (size_t i = 0; i < m->n; i++)
		free(m->ids[i]);
	free(m->ids);
	strmap_release(&m->key);
	strmap_release(&m->id);
	*m = (struct idmap){0};
}

const char *idmap_find(const struct idmap *m, const char *key, size_t n)
{
	char upper[256];
	uint32_t row = strmap_get(&m->key, key, n);
	if (row == STRMAP_NONE && n < sizeof upper) {
		for (size_t i = 0; i < n; i++)
			upper[i] = (char)toupper((unsigned char)key[i]);
		row = strmap_get(&m->key, upper, n);
	}
	if (row == STRMAP_NONE)
		row = strmap_get(&m->id, key, n);
	return row == STRMAP_NONE ? NULL : m->ids[row];
}
