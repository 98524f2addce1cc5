#include "graph/corpus.h"

#include "base/rng.h"
#include "base/sort.h"

/* Order of the heap: (key, cell). */
static int after(const struct corpus_cell *a, const struct corpus_cell *b)
{
	return a->key != b->key ? a->key > b->key : a->cell > b->cell;
}

static void sift_up(struct corpus *c, uint32_t i)
{
	for (uint32_t p; i && after(&c->cell[i], &c->cell[p = (i - 1) / 2]); i = p) {
		struct corpus_cell t = c->cell[i];
		c->cell[i] = c->cell[p];
		c->cell[p] = t;
	}
}

static void sift_down(struct corpus *c)
{
	for (uint32_t i = 0, k; (k = 2 * i + 1) < c->n; i = k) {
		if (k + 1 < c->n && after(&c->cell[k + 1], &c->cell[k]))
			k++;
		if (!after(&c->cell[k], &c->cell[i]))
			break;
		struct corpus_cell t = c->cell[i];
		c->cell[i] = c->cell[k];
		c->cell[k] = t;
	}
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
		int full = c->size && c->n == c->size;
		if (full && after(&new, &c->cell[0]))
			continue;
		keep_tokens(c, &new, b, token_column, o[row], o[row + 1]);
		if (full) {
			free(c->cell[0].token);
			c->cell[0] = new;
			sift_down(c);
			continue;
		}
		if (c->n == INT32_MAX) {
			free(new.token);
			return error_set(e, "more than %d cells to keep", INT32_MAX);
		}
		grow(c->cell, c->cap, (size_t)c->n + 1);
		c->cell[c->n++] = new;
		sift_up(c, c->n - 1);
	}
	return 0;
}

COMPARE(by_cell, struct corpus_cell, ORDER(a->cell, b->cell) ?: ORDER(a->key, b->key))

void corpus_sort(struct corpus *c)
{
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
