#include "anndata/genetable.h"

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

int genetable_add(
	struct genetable *t, const struct h5ad *h, const struct idmap *ids, uint32_t *map, struct genetable_stats *stats, struct error *e)
{
	int identity = 1;
	uint8_t *seen = xcalloc(t->genes.n + h->ngene, 1);
	*stats = (struct genetable_stats){0};
	for (size_t i = 0; i < h->ngene; i++) {
		const char *s = h->id.bytes + h->id.offset[i];
		size_t n = h->id.offset[i + 1] - h->id.offset[i], base;
		map[i] = GENE_DROPPED;
		if (!h->drop || !h->drop[i]) {
			if (ensembl_id(s, n, &base))
				n = base;
			const char *mapped = ids ? idmap_find(ids, s, n) : NULL;
			char *id = mapped ? xstrdup(mapped) : xstrndup(s, n);
			size_t len = mapped ? strlen(mapped) : n;
			uint32_t row = strmap_put(&t->row, id, len, (uint32_t)t->genes.n);
			if (row == t->genes.n) {
				char *symbol =
					xstrndup(h->symbol.bytes + h->symbol.offset[i], h->symbol.offset[i + 1] - h->symbol.offset[i]);
				vocab_push(&t->genes, id, symbol, NAN);
				free(symbol);
				grow(t->known, t->known_cap, t->genes.n);
				t->known[row] = mapped != NULL;
			}
			free(id);
			stats->genes++;
			stats->known += mapped != NULL;
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
