#include "stream/loader.h"

#include "base/rng.h"

#include <stdlib.h>
#include <string.h>

int loader_init(struct loader *l, struct error *e)
{
	if (stream_index(l->in, e))
		return -1;
	l->nblock = stream_blocks(l->in);
	l->rows = stream_rows(l->in);
	uint64_t global = l->batch * l->shards;
	l->per_epoch = l->rows / global + (l->rows % global != 0);
	if (l->per_epoch && l->epochs > UINT32_MAX / l->per_epoch)
		return error_set(e, "%llu epochs of %llu batches are more than %u steps", (unsigned long long)l->epochs,
			(unsigned long long)l->per_epoch, UINT32_MAX);
	l->steps = l->per_epoch * l->epochs;
	if (l->window > l->nblock)
		l->window = l->nblock ? l->nblock : 1;
	l->map = xcalloc(l->want->ncol, sizeof *l->map);
	header_map(l->want, stream_header(l->in), l->map);
	l->order = xcalloc(l->nblock, sizeof *l->order);
	l->block = xcalloc(l->window, sizeof *l->block);
	if (l->balance) {
		l->same = xcalloc(l->want->ncol, sizeof *l->same);
		header_map(l->want, l->want, l->same);
		l->shard_load = xcalloc(l->shards, sizeof *l->shard_load);
	}
	return 0;
}

void loader_release(struct loader *l)
{
	for (uint64_t i = 0; l->block && i < l->window; i++)
		block_release(&l->block[i]);
	free(l->map);
	free(l->order);
	free(l->block);
	free(l->place);
	free(l->row);
	block_release(&l->all);
	free(l->same);
	free(l->cell);
	free(l->shard_load);
	*l = (struct loader){0};
}

void loader_seek(struct loader *l, uint64_t step)
{
	l->next = step;
}

static void open_window(struct loader *l, uint64_t win, uint64_t first)
{
	l->win = win;
	l->first = first;
	l->nrow = 0;
	l->loaded = 0;
	for (size_t i = win * l->window; i < l->nblock && i < (win + 1) * l->window; i++)
		l->nrow += stream_block_rows(l->in, l->order[i]);
}

static void order_blocks(struct loader *l, uint64_t epoch)
{
	struct rng r = rng_at(l->seed, RNG_SHUFFLE_BLOCKS, epoch, 0);
	for (size_t i = 0; i < l->nblock; i++)
		l->order[i] = (uint32_t)i;
	for (size_t i = l->nblock; i > 1; i--) {
		uint32_t k = rng_below(&r, (uint32_t)i), t = l->order[i - 1];
		l->order[i - 1] = l->order[k];
		l->order[k] = t;
	}
	l->epoch = epoch;
	l->ordered = 1;
	open_window(l, 0, 0);
}

static int load_window(struct loader *l, struct error *e)
{
	struct rng r = rng_at(l->seed, RNG_SHUFFLE_ROWS, l->epoch, (uint32_t)l->win);
	if (stream_check(l->in, e))
		return -1;
	l->nplace = 0;
	grow(l->place, l->place_cap, l->nrow);
	for (size_t i = l->win * l->window, k = 0; i < l->nblock && k < l->window; i++, k++) {
		if (stream_read_at(l->in, l->order[i], &l->block[k], e))
			return -1;
		for (uint32_t row = 0; row < l->block[k].rows; row++)
			l->place[l->nplace++] = (struct place){(uint32_t)k, row};
	}
	for (size_t i = l->nplace; i > 1; i--) {
		uint32_t k = rng_below(&r, (uint32_t)i);
		struct place t = l->place[i - 1];
		l->place[i - 1] = l->place[k];
		l->place[k] = t;
	}
	l->loaded = 1;
	return 0;
}

/* Load the window that has row `at` of the epoch's order. */
static int to_row(struct loader *l, uint64_t at, struct error *e)
{
	if (at < l->first)
		open_window(l, 0, 0);
	while (at >= l->first + l->nrow)
		open_window(l, l->win + 1, l->first + l->nrow);
	return l->loaded ? 0 : load_window(l, e);
}

/* Copy rows at, at + stride, ... below end of the epoch's order into b. */
static int gather(struct loader *l, struct block *b, uint64_t at, uint64_t end, uint64_t stride, struct error *e)
{
	block_reset(b, l->want);
	while (at < end) {
		if (to_row(l, at, e))
			return -1;
		/* consecutive rows of one block are copied with one call */
		const struct place *p = &l->place[at - l->first];
		size_t n = 0;
		uint32_t from = p->block;
		for (; at < end && at - l->first < l->nplace && (p = &l->place[at - l->first])->block == from; at += stride) {
			grow(l->row, l->row_cap, n + 1);
			l->row[n++] = p->row;
		}
		block_take(b, l->map, &l->block[from], l->row, n);
	}
	return 0;
}

static int by_cost_down(const void *x, const void *y)
{
	const struct loader_cost *a = x, *b = y;
	return a->cost != b->cost ? (a->cost < b->cost) - (a->cost > b->cost) : (a->at > b->at) - (a->at < b->at);
}

static int by_cost(const void *x, const void *y)
{
	const struct loader_cost *a = x, *b = y;
	return a->cost != b->cost ? (a->cost > b->cost) - (a->cost < b->cost) : (a->at > b->at) - (a->at < b->at);
}

static int by_number(const void *x, const void *y)
{
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
	return (a > b) - (a < b);
}

/* Balance the global batch l->all (loader.h). This shard's rows, ascending, go to l->row; returns how many. */
static size_t deal(struct loader *l)
{
	int column = header_find(l->want, l->balance);
	const uint64_t *offset = l->all.group[l->want->col[column].group].offset;
	size_t rows = l->all.rows, n = l->shards, mine = 0;
	grow(l->cell, l->cell_cap, rows);
	for (size_t i = 0; i < rows; i++) {
		uint64_t n_tokens = offset[i + 1] - offset[i];
		l->cell[i] = (struct loader_cost){n_tokens * (1024 + n_tokens), (uint32_t)i};
	}
	for (size_t r = 0; r < n; r++)
		l->shard_load[r] = (struct loader_cost){0, (uint32_t)r};
	qsort(l->cell, rows, sizeof *l->cell, by_cost_down);
	for (size_t i = 0; i < rows; i++) {
		struct loader_cost *p = &l->shard_load[i % n];
		if (i % n == 0)
			qsort(l->shard_load, n, sizeof *l->shard_load, by_cost);
		p->cost += l->cell[i].cost;
		if (p->at != l->shard)
			continue;
		grow(l->row, l->row_cap, mine + 1);
		l->row[mine++] = l->cell[i].at;
	}
	qsort(l->row, mine, sizeof *l->row, by_number);
	return mine;
}

int loader_next(struct loader *l, struct block *b, uint64_t *epoch, uint64_t *step, struct error *e)
{
	if (l->next >= l->steps)
		return stream_checked(l->in, e);
	*step = l->next++;
	*epoch = *step / l->per_epoch;
	if (!l->ordered || l->epoch != *epoch)
		order_blocks(l, *epoch);
	uint64_t at = *step % l->per_epoch * l->batch * l->shards, end = at + l->batch * l->shards;
	if (end > l->rows)
		end = l->rows;
	if (!l->balance)
		return gather(l, b, at + l->shard, end, l->shards, e) ? -1 : 1;
	if (gather(l, &l->all, at, end, 1, e))
		return -1;
	size_t n = deal(l);
	block_reset(b, l->want);
	block_take(b, l->same, &l->all, l->row, n);
	memcpy(b->col[header_find(l->want, "batch_row")].data, l->row, n * sizeof *l->row);
	return 1;
}
