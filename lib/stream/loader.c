#include "stream/loader.h"

#include "base/rng.h"
#include "base/sort.h"

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
	if (!l->lanes)
		l->lanes = 1;
	l->span = l->window / l->lanes;
	if (l->span > l->nblock)
		l->span = l->nblock;
	l->span += !l->span;
	l->lane = xcalloc(l->lanes, sizeof *l->lane);
	stream_check_share(l->in, l->shard, l->shards);
	l->map = xcalloc(l->want->ncol, sizeof *l->map);
	header_map(l->want, stream_header(l->in), l->map);
	l->order = xcalloc(l->nblock, sizeof *l->order);
	if (l->balance) {
		l->same = xcalloc(l->want->ncol, sizeof *l->same);
		header_map(l->want, l->want, l->same);
		l->shard_load = xcalloc(l->shards, sizeof *l->shard_load);
	}
	return 0;
}

void loader_release(struct loader *l)
{
	for (uint64_t i = 0; l->lane && i < l->lanes; i++) {
		for (uint64_t k = 0; l->lane[i].block && k < l->span; k++)
			block_release(&l->lane[i].block[k]);
		free_all(l->lane[i].block, l->lane[i].place);
	}
	free_all(l->lane, l->map, l->order, l->row);
	block_release(&l->all);
	free_all(l->same, l->cell, l->shard_load);
	*l = (struct loader){0};
}

void loader_seek(struct loader *l, uint64_t step)
{
	l->next = step;
}

/* Window `win` of a lane begins with its row `first`. */
static void open_window(struct loader *l, struct loader_lane *n, uint64_t win, uint64_t first)
{
	n->win = win;
	n->first = first;
	n->nrow = 0;
	n->loaded = 0;
	for (size_t i = n->from + win * l->span, k = 0; i < l->nblock && k < l->span && n->nrow < n->rows - first; i++, k++)
		n->nrow += stream_block_rows(l->in, l->order[i]) - (i == n->from ? n->skip : 0);
	if (n->nrow > n->rows - first)
		n->nrow = n->rows - first;
}

/* Cut the rows of the epoch, in the order of its blocks, into lanes. */
static void cut_lanes(struct loader *l)
{
	uint64_t start = 0, before = 0; /* of the lane; rows of the blocks before i */
	for (uint64_t j = 0, i = 0; j < l->lanes; start += l->lane[j++].rows) {
		struct loader_lane *n = &l->lane[j];
		for (; j && i < l->nblock && before + stream_block_rows(l->in, l->order[i]) <= start; i++)
			before += stream_block_rows(l->in, l->order[i]);
		n->rows = l->rows / l->lanes + (j < l->rows % l->lanes);
		n->from = i;
		n->skip = start - before;
		open_window(l, n, 0, 0);
	}
}

static void order_blocks(struct loader *l, uint64_t epoch)
{
	struct rng r = rng_at(l->seed, RNG_SHUFFLE_BLOCKS, epoch, 0);
	for (size_t i = 0; i < l->nblock; i++)
		l->order[i] = (uint32_t)i;
	SHUFFLE(&r, l->order, l->nblock);
	l->epoch = epoch;
	l->ordered = 1;
	cut_lanes(l);
}

static int load_window(struct loader *l, struct loader_lane *n, struct error *e)
{
	struct rng r = rng_at(l->seed, RNG_SHUFFLE_ROWS, l->epoch | (uint64_t)(n - l->lane) << 32, (uint32_t)n->win);
	if (stream_check(l->in, e))
		return -1;
	if (!n->block)
		n->block = xcalloc(l->span, sizeof *n->block);
	n->nplace = 0;
	grow(n->place, n->place_cap, n->nrow);
	for (size_t i = n->from + n->win * l->span, k = 0; k < l->span && n->nplace < n->nrow; i++, k++) {
		if (stream_read_at(l->in, l->order[i], &n->block[k], e))
			return -1;
		l->decoded++;
		for (uint64_t row = i == n->from ? n->skip : 0; row < n->block[k].rows && n->nplace < n->nrow; row++)
			n->place[n->nplace++] = (struct loader_place){(uint32_t)k, (uint32_t)row};
	}
	SHUFFLE(&r, n->place, n->nplace);
	n->loaded = 1;
	return 0;
}

/* Load the window that has row `at` of the lane. */
static int to_row(struct loader *l, struct loader_lane *n, uint64_t at, struct error *e)
{
	if (at < n->first)
		open_window(l, n, 0, 0);
	while (at >= n->first + n->nrow)
		open_window(l, n, n->win + 1, n->first + n->nrow);
	return n->loaded ? 0 : load_window(l, n, e);
}

/* Copy rows at, at + stride, ... below end of the epoch's order into b. */
static int loader_gather(struct loader *l, struct block *b, uint64_t at, uint64_t end, uint64_t stride, struct error *e)
{
	block_reset(b, l->want);
	while (at < end) {
		struct loader_lane *lane = &l->lane[at % l->lanes];
		if (to_row(l, lane, at / l->lanes, e))
			return -1;
		/* consecutive rows of one block are copied with one call */
		size_t i = at / l->lanes - lane->first, n = 0;
		uint32_t from = lane->place[i].block;
		do {
			grow(l->row, l->row_cap, n + 1);
			l->row[n++] = lane->place[i].row;
			at += stride;
			i += stride / l->lanes;
		} while (stride % l->lanes == 0 && at < end && i < lane->nplace && lane->place[i].block == from);
		block_take(b, l->map, &lane->block[from], l->row, n);
	}
	return 0;
}

COMPARE(by_cost_down, struct loader_cost, ORDER(b->cost, a->cost) ?: ORDER(a->at, b->at))

COMPARE(by_cost, struct loader_cost, ORDER(a->cost, b->cost) ?: ORDER(a->at, b->at))

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
	qsort(l->row, mine, sizeof *l->row, compare_u32);
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
		return loader_gather(l, b, at + l->shard, end, l->shards, e) ? -1 : 1;
	if (loader_gather(l, &l->all, at, end, 1, e))
		return -1;
	size_t n = deal(l);
	block_reset(b, l->want);
	block_take(b, l->same, &l->all, l->row, n);
	memcpy(b->col[header_find(l->want, "batch_row")].data, l->row, n * sizeof *l->row);
	return 1;
}
