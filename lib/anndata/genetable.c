#include "anndata/genetable.h"

#include "stream/gene_match.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void genetable_release(struct genetable *t)
{
	strmap_release(&t->row);
	vocab_release(&t->genes);
	free(t->known);
	*t = (struct genetable){0};
}

static char *symbol_of(const struct h5ad *h, size_t i)
{
	return xstrndup(h->symbol.bytes + h->symbol.offset[i], h->symbol.offset[i + 1] - h->symbol.offset[i]);
}

/* The id of gene i in the table, malloced; mapped: it is that of the mapping */
static char *id_of(const struct h5ad *h, size_t i, const struct idmap *ids, int *mapped)
{
	const char *s = h->id.bytes + h->id.offset[i];
	size_t n = h->id.offset[i + 1] - h->id.offset[i], base;
	if (ensembl_id(s, n, &base))
		n = base;
	const char *to = ids ? idmap_find(ids, s, n) : NULL;
	*mapped = to != NULL;
	return to ? xstrdup(to) : xstrndup(s, n);
}

static void rename_gene(struct vocab *v, size_t row, const char *id)
{
	char *old = v->id[row];
	v->id[row] = xstrdup(id);
	if (v->symbol[row][0]) {
		free(old);
		return;
	}
	free(v->symbol[row]);
	v->symbol[row] = old;
}

/* Make the ids of genes that the table has by symbol names of its rows too; an Ensembl id is then the id. Returns their number. */
static size_t add_by_symbol(struct genetable *t, const struct h5ad *h, const struct idmap *ids, struct error *e)
{
	struct strmap seen = {0};
	struct vocab file = {0};
	int mapped;
	for (size_t i = 0; i < h->ngene; i++) {
		char *id = h->drop && h->drop[i] ? NULL : id_of(h, i, ids, &mapped), *symbol = symbol_of(h, i);
		if (id && strmap_put(&seen, id, strlen(id), (uint32_t)file.n) == file.n)
			vocab_push(&file, id, symbol, NAN);
		free(id);
		free(symbol);
	}
	uint32_t *row = xmalloc((file.n + 1) * sizeof *row);
	size_t n = vocab_index(&t->genes, h->path, e) ? 0 : gene_pairs(row, &file, &t->genes).by_symbol, base;
	for (size_t i = 0; n && i < file.n; i++) {
		if (row[i] == GENE_NONE)
			continue;
		const char *id = file.id[i], *there = t->genes.id[row[i]];
		strmap_put(&t->row, id, strlen(id), row[i]);
		if (ensembl_id(id, strlen(id), &base) && !ensembl_id(there, strlen(there), &base))
			rename_gene(&t->genes, row[i], id);
	}
	free(row);
	vocab_release(&file);
	strmap_release(&seen);
	return n;
}

int genetable_add(
	struct genetable *t, const struct h5ad *h, const struct idmap *ids, uint32_t *map, struct genetable_stats *stats, struct error *e)
{
	int identity = 1;
	uint8_t *seen = xcalloc(t->genes.n + h->ngene, 1);
	*stats = (struct genetable_stats){0};
	if (t->genes.n)
		stats->by_symbol = add_by_symbol(t, h, ids, e);
	for (size_t i = 0; i < h->ngene; i++) {
		map[i] = GENE_DROPPED;
		if (!h->drop || !h->drop[i]) {
			int mapped;
			char *id = id_of(h, i, ids, &mapped), *symbol = symbol_of(h, i);
			uint32_t row = strmap_put(&t->row, id, strlen(id), (uint32_t)t->genes.n);
			if (row == t->genes.n) {
				vocab_push(&t->genes, id, symbol, NAN);
				grow(t->known, t->known_cap, t->genes.n);
				t->known[row] = (uint8_t)mapped;
			} else if (!t->genes.symbol[row][0]) {
				free(t->genes.symbol[row]);
				t->genes.symbol[row] = xstrdup(symbol);
			}
			free(id);
			free(symbol);
			stats->genes++;
			stats->known += (size_t)mapped;
			stats->shared += seen[row];
			seen[row] = 1;
			map[i] = row;
		}
		identity &= map[i] == i;
	}
	free(seen);
	for (size_t i = 0; i < h->ngene; i++) {
		unsigned char c = map[i] == GENE_DROPPED ? 0 : vocab_control(t->genes.id[map[i]]);
		if (!c && map[i] != GENE_DROPPED)
			c = vocab_control(t->genes.symbol[map[i]]);
		if (c)
			return error_set(e,
				"%s: the name of gene %zu has the control character 0x%02x (a tab or line break cuts a table of genes)",
				h->path, i, c);
	}
	if (t->genes.n > VOCAB_MAX)
		return error_set(e, "%s: more than %u genes in all files together", h->path, VOCAB_MAX);
	return identity;
}
