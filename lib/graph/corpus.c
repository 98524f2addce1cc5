#include "graph/corpus.h"

#include "base/rng.h"
#include "base/sort.h"

enum { FURTHER = 64 }; /* cells, and an eighth of the size: so many are kept before the largest keys are dropped */

COMPARE(by_key, struct corpus_cell, ORDER(a->key, b->key) ?: ORDER(a->cell, b->cell))

/* In order of their keys, and no more than `size`. */
static void drop_largest(struct corpus *c)
{
	qsort(c->cell, c->n, sizeof *c->cell, by_key);
	while (c->n > c->size)
		free(c->cell[--c->n].token);
}

static void keep_tokens(const struct corpus *c, struct corpus_cell *cell, const struct block *b, int column, uint64_t at, uint64_t end)
{
	uint32_t n = 0, room = end - at < c->max_len ? (uint32_t)(end - at) : c->max_len;
	cell->token = xmalloc((size_t)room * (c->wide ? 4 : 2));
	for (; at < end && n < room; at++) {
		uint32_t t = block_id(b, column, at);
		if (t < c->nspecial)
			continue;
		if (c->wide)
			((uint32_t *)cell->token)[n++] = t;
		else
			((uint16_t *)cell->token)[n++] = (uint16_t)t;
	}
	cell->n = n;
}

int corpus_add(struct corpus *c, const struct block *b, int cell_column, int token_column, struct error *e)
{
	const uint64_t *o = b->group[b->header->col[token_column].group].offset;
	c->wide = b->header->col[token_column].type == U32;
	for (size_t row = 0; row < b->rows; row++) {
		struct corpus_cell new = {.cell = ((const uint64_t *)b->col[cell_column].data)[row]};
		struct rng r = rng_at(c->seed, RNG_SAMPLE, new.cell, 0);
		new.key = rng_u64(&r);
		c->seen++;
		if (c->size && c->n >= c->size && by_key(&new, &c->cell[c->size - 1]) > 0)
			continue;
		if (c->n == INT32_MAX)
			return error_set(e, "more than %d cells to keep", INT32_MAX);
		keep_tokens(c, &new, b, token_column, o[row], o[row + 1]);
		grow(c->cell, c->cap, (size_t)c->n + 1);
		c->cell[c->n++] = new;
		if (c->size && (c->n == c->size || c->n == c->size + c->size / 8 + FURTHER))
			drop_largest(c);
	}
	return 0;
}

COMPARE(by_cell, struct corpus_cell, ORDER(a->cell, b->cell) ?: ORDER(a->key, b->key))

void corpus_sort(struct corpus *c)
{
	if (c->size && c->n > c->size)
		drop_largest(c);
	if (c->n)
		qsort(c->cell, c->n, sizeof *c->cell, by_cell);
	c->tokens = 0;
	for (uint32_t i = 0; i < c->n; i++)
		c->tokens += c->cell[i].n;
}

void corpus_release(struct corpus *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		free(c->cell[i].token);
	free(c->cell);
	*c = (struct corpus){0};
}
