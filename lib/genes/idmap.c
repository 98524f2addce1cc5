#include "genes/idmap.h"

#include "base/tsv.h"

#include <ctype.h>

/* Add one line. The first one can be column names. */
static int add_line(struct idmap *m, const struct tsv *t, struct error *e)
{
	if (t->n != 2)
		return tsv_error(t, e, "expected two columns, key and gene id");
	const char *key = t->field[0], *id = t->field[1];
	if (t->line == 1 && (!strcmp(id, "ensembl_id") || !strcmp(id, "gene_id") || !strcmp(id, "id")))
		return 0;
	if (!*key || !*id) /* Geneformer's name table has such lines */
		return 0;
	uint32_t row = strmap_put(&m->id, id, strlen(id), (uint32_t)m->n);
	if (row == m->n) {
		grow(m->ids, m->cap, m->n + 1);
		m->ids[m->n++] = xstrdup(id);
	}
	strmap_put(&m->key, key, strlen(key), row);
	return 0;
}

int idmap_load(struct idmap *m, const char *path, struct error *e)
{
	RELEASED(tsv_close) struct tsv t;
	int got;
	*m = (struct idmap){0};
	if (tsv_open(&t, path, e))
		return -1;
	while ((got = tsv_next(&t, e)) > 0 && (got = add_line(m, &t, e)) == 0)
		;
	if (got == 0 && !m->n)
		got = error_set(e, "%s: no lines with a key and a gene id", path);
	if (got)
		idmap_release(m);
	return got;
}

void idmap_release(struct idmap *m)
{
	free_list(m->ids, m->n);
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
