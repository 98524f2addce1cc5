#include "encode/rank.h"

#include "base/sort.h"

#include "encode/ranksort.h"

void rank_table_init(struct rank_table *t, const uint32_t *token, size_t n, const double *median)
{
	uint32_t most = 0;
	*t = (struct rank_table){.n = n, .least = INFINITY};
	t->token = xmalloc(n * sizeof *t->token);
	t->median = xmalloc(n * sizeof *t->median);
	for (size_t i = 0; i < n; i++)
		most = token[i] != RANK_UNKNOWN && token[i] > most ? token[i] : most;
	FREED unsigned char *used = xcalloc((size_t)most + 1, 1);
	for (size_t i = 0; i < n; i++) {
		t->token[i] = token[i];
		t->median[i] = INFINITY;
		if (token[i] == RANK_UNKNOWN)
			continue;
		t->median[i] = median ? median[token[i]] : 1;
		t->most = fmax(t->most, t->median[i]);
		t->least = fmin(t->least, t->median[i]);
		t->shared |= used[token[i]];
		used[token[i]] = 1;
	}
}

void rank_table_release(struct rank_table *t)
{
	free_all(t->token, t->median);
	*t = (struct rank_table){0};
}

void rank_cell_release(struct rank_cell *c)
{
	free_all(c->token, c->count, c->gene, c->x, c->item, c->other, c->pair);
	*c = (struct rank_cell){0};
}

static void make_room(struct rank_cell *c, size_t n)
{
	if (n <= c->cap)
		return;
	rank_cell_release(c);
	c->cap = n * 2;
	c->token = xmalloc(c->cap * sizeof *c->token);
	c->count = xmalloc(c->cap * sizeof *c->count);
	c->gene = xmalloc(c->cap * sizeof *c->gene);
	c->x = xmalloc(c->cap * sizeof *c->x);
	c->item = xmalloc(c->cap * sizeof *c->item);
	c->other = xmalloc(c->cap * sizeof *c->other);
	c->pair = xmalloc(c->cap * sizeof *c->pair);
}

/* For cells in which several entries have the same token. Writes entries to c->gene and c->x. The counts of one token are added and get one
 * of its genes. Entries without a token are copied. Returns the number of entries. */
static size_t add_shared(struct rank_cell *c, const struct rank_table *t, const uint32_t *gene, const uint32_t *count, size_t n)
{
	size_t k = 0;
	for (size_t i = 0; i < n; i++)
		c->pair[i] = (uint64_t)t->token[gene[i]] << 32 | (uint32_t)i;
	qsort(c->pair, n, sizeof *c->pair, compare_u64);
	for (size_t i = 0; i < n; i++) {
		uint32_t at = (uint32_t)c->pair[i], x = count[at];
		if (i && c->pair[i - 1] >> 32 == c->pair[i] >> 32 && c->pair[i] >> 32 != RANK_UNKNOWN) {
			/* counts are below 2^31, so only a stream made by hand exceeds 2^32 */
			c->x[k - 1] = x > UINT32_MAX - c->x[k - 1] ? UINT32_MAX : c->x[k - 1] + x;
			continue;
		}
		c->gene[k] = gene[at];
		c->x[k++] = x;
	}
	return k;
}

uint64_t rank_encode(
	struct rank_cell *c, const struct rank_table *t, const uint32_t *gene, const uint32_t *count, size_t n, int repeats, int counts)
{
	uint64_t unknown = 0;
	make_room(c, n);
	c->n = 0;
	if (repeats || t->shared) {
		n = add_shared(c, t, gene, count, n);
		gene = c->gene;
		count = c->x;
	}
	struct ranksort_entries in = {
		.gene = gene, .count = count, .token = t->token, .median = t->median, .least = t->least, .most = t->most};
	if (n && t->most > 0)
		c->n = ranksort(&in, n, c->item, c->token, c->other);
	for (size_t i = c->n; i < n; i++)
		unknown += count[t->most > 0 ? c->item[i] : i];
	for (size_t i = 0; i < c->n && counts; i++)
		c->count[i] = count[c->item[i]];
	return unknown;
}
