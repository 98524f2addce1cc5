#include "feed.h"

#include "rng.h"

#include <stdlib.h>
#include <string.h>

int feed_init(struct feed *f, struct error *e)
{
	if (stream_index(f->in, e))
		return -1;
	f->nblock = stream_blocks(f->in);
	f->rows = stream_rows(f->in);
	uint64_t global = f->batch * f->shards;
	f->per_epoch = f->rows / global + (f->rows % global != 0);
	if (f->per_epoch && f->epochs > UINT32_MAX / f->per_epoch)
		return error_set(e, "%llu epochs of %llu batches are more than %u steps", (unsigned long long)f->epochs,
				 (unsigned long long)f->per_epoch, UINT32_MAX);
	f->steps = f->per_epoch * f->epochs;
	if (f->window > f->nblock)
		f->window = f->nblock ? f->nblock : 1;
	f->map = xcalloc(f->want->ncol, sizeof *f->map);
	header_map(f->want, stream_header(f->in), f->map);
	f->order = xcalloc(f->nblock, sizeof *f->order);
	f->block = xcalloc(f->window, sizeof *f->block);
	if (f->balance) {
		f->same = xcalloc(f->want->ncol, sizeof *f->same);
		header_map(f->want, f->want, f->same);
		f->pile = xcalloc(f->shards, sizeof *f->pile);
	}
	return 0;
}

void feed_release(struct feed *f)
{
	for (uint64_t i = 0; f->block && i < f->window; i++)
		block_release(&f->block[i]);
	free(f->map);
	free(f->order);
	free(f->block);
	free(f->place);
	free(f->row);
	block_release(&f->all);
	free(f->same);
	free(f->cell);
	free(f->pile);
	*f = (struct feed){0};
}

void feed_seek(struct feed *f, uint64_t step)
{
	f->next = step;
}

static void open_window(struct feed *f, uint64_t win, uint64_t first)
{
	f->win = win;
	f->first = first;
	f->nrow = 0;
	f->loaded = 0;
	for (size_t i = win * f->window; i < f->nblock && i < (win + 1) * f->window; i++)
		f->nrow += stream_block_rows(f->in, f->order[i]);
}

static void order_blocks(struct feed *f, uint64_t epoch)
{
	struct rng r = rng_at(f->seed, RNG_SHUFFLE_BLOCKS, epoch, 0);
	for (size_t i = 0; i < f->nblock; i++)
		f->order[i] = (uint32_t)i;
	for (size_t i = f->nblock; i > 1; i--) {
		uint32_t k = rng_below(&r, (uint32_t)i), t = f->order[i - 1];
		f->order[i - 1] = f->order[k];
		f->order[k] = t;
	}
	f->epoch = epoch;
	f->ordered = 1;
	open_window(f, 0, 0);
}

static int load_window(struct feed *f, struct error *e)
{
	struct rng r = rng_at(f->seed, RNG_SHUFFLE_ROWS, f->epoch, (uint32_t)f->win);
	f->nplace = 0;
	grow(f->place, f->place_cap, f->nrow);
	for (size_t i = f->win * f->window, k = 0; i < f->nblock && k < f->window; i++, k++) {
		if (stream_read_at(f->in, f->order[i], &f->block[k], e))
			return -1;
		for (uint32_t row = 0; row < f->block[k].rows; row++)
			f->place[f->nplace++] = (struct place){(uint32_t)k, row};
	}
	for (size_t i = f->nplace; i > 1; i--) {
		uint32_t k = rng_below(&r, (uint32_t)i);
		struct place t = f->place[i - 1];
		f->place[i - 1] = f->place[k];
		f->place[k] = t;
	}
	f->loaded = 1;
	return 0;
}

/* Make the window that holds row `at` of the epoch's order the current one. */
static int to_row(struct feed *f, uint64_t at, struct error *e)
{
	if (at < f->first)
		open_window(f, 0, 0);
	while (at >= f->first + f->nrow)
		open_window(f, f->win + 1, f->first + f->nrow);
	return f->loaded ? 0 : load_window(f, e);
}

/* Rows at, at + stride, ... below end of the epoch's order into b. */
static int gather(struct feed *f, struct block *b, uint64_t at, uint64_t end, uint64_t stride, struct error *e)
{
	block_reset(b, f->want);
	while (at < end) {
		if (to_row(f, at, e))
			return -1;
		/* runs of rows that lie in one block are taken together */
		const struct place *p = &f->place[at - f->first];
		size_t n = 0;
		uint32_t from = p->block;
		for (; at < end && at - f->first < f->nplace && (p = &f->place[at - f->first])->block == from; at += stride) {
			grow(f->row, f->row_cap, n + 1);
			f->row[n++] = p->row;
		}
		block_take(b, f->map, &f->block[from], f->row, n);
	}
	return 0;
}

static int by_more(const void *x, const void *y)
{
	const struct load *a = x, *b = y;
	return a->cost != b->cost ? (a->cost < b->cost) - (a->cost > b->cost) : (a->at > b->at) - (a->at < b->at);
}

static int by_less(const void *x, const void *y)
{
	const struct load *a = x, *b = y;
	return a->cost != b->cost ? (a->cost > b->cost) - (a->cost < b->cost) : (a->at > b->at) - (a->at < b->at);
}

static int by_number(const void *x, const void *y)
{
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
	return (a > b) - (a < b);
}

/* This shard's rows of the global batch f->all, ascending, to f->row; returns how many. */
static size_t deal(struct feed *f)
{
	int column = header_find(f->want, f->balance);
	const uint64_t *offset = f->all.group[f->want->col[column].group].offset;
	size_t rows = f->all.rows, n = f->shards, mine = 0;
	grow(f->cell, f->cell_cap, rows);
	for (size_t i = 0; i < rows; i++) {
		uint64_t L = offset[i + 1] - offset[i];
		f->cell[i] = (struct load){L * (1024 + L), (uint32_t)i};
	}
	for (size_t r = 0; r < n; r++)
		f->pile[r] = (struct load){0, (uint32_t)r};
	qsort(f->cell, rows, sizeof *f->cell, by_more);
	for (size_t i = 0; i < rows; i++) {
		struct load *p = &f->pile[i % n];
		if (i % n == 0)
			qsort(f->pile, n, sizeof *f->pile, by_less);
		p->cost += f->cell[i].cost;
		if (p->at != f->shard)
			continue;
		grow(f->row, f->row_cap, mine + 1);
		f->row[mine++] = f->cell[i].at;
	}
	qsort(f->row, mine, sizeof *f->row, by_number);
	return mine;
}

int feed_next(struct feed *f, struct block *b, uint64_t *epoch, uint64_t *step, struct error *e)
{
	if (f->next >= f->steps)
		return 0;
	*step = f->next++;
	*epoch = *step / f->per_epoch;
	if (!f->ordered || f->epoch != *epoch)
		order_blocks(f, *epoch);
	uint64_t at = *step % f->per_epoch * f->batch * f->shards, end = at + f->batch * f->shards;
	if (end > f->rows)
		end = f->rows;
	if (!f->balance)
		return gather(f, b, at + f->shard, end, f->shards, e) ? -1 : 1;
	if (gather(f, &f->all, at, end, 1, e))
		return -1;
	size_t n = deal(f);
	block_reset(b, f->want);
	block_take(b, f->same, &f->all, f->row, n);
	memcpy(b->col[header_find(f->want, "batch_row")].data, f->row, n * sizeof *f->row);
	return 1;
}
