/*
 * A batch on its way to the device: check it, allocate memory, put its arrays together on the host and send them in one copy.
 *
 * Padding. A backend that records and replays its work (ops.replay) wants few different sizes, so a batch is padded to multiples of
 * ops.round_tokens and round_rows: tokens by cells of <pad>, which no other cell sees and which have no target, hence no gradient;
 * listed rows by ROW_NONE, which read and give zeros.
 */

#include "base/sort.h"

#include "nn/model_impl.h"
#include "nn/value.h"

/* ---- checking ---- */

size_t goal_rows(const struct head *h, const struct batch *b)
{
	switch (h->kind->rows) {
	case ROWS_LISTED:
		return b->goal[h->index].n;
	case ROWS_CELL:
		return b->ncell;
	case ROWS_TOKEN:
		break;
	}
	return b->ncell ? b->offset[b->ncell] : 0;
}

static int check_goal(const struct model *m, const struct head *h, const struct batch *b, int labels, struct error *e)
{
	const struct goal *g = &b->goal[h->index];
	size_t T = b->ncell ? b->offset[b->ncell] : 0, rows = goal_rows(h, b);
	const uint32_t *row = h->kind->rows == ROWS_LISTED ? g->row : NULL;
	for (size_t i = 0; row && i < rows; i++)
		if (row[i] >= T || (i && row[i] <= row[i - 1]))
			return error_set(e, "batch: masked position %u is out of order or not below %zu", row[i], T);
	if (!labels)
		return 0;
	if (h->spec.curriculum.ratios && g->ratio >= h->spec.curriculum.ratios)
		return error_set(e, "batch: masking ratio %u, the model has %u", g->ratio, h->spec.curriculum.ratios);
	return target_kind[h->kind->target].check(m, h, b, rows, e);
}

int batch_check(const struct model *m, const struct batch *b, unsigned heads, int labels, struct error *e)
{
	uint32_t V = m->c.vocab_size, P = m->arch->positions ? m->c.max_position_embeddings : UINT32_MAX;
	if (b->ncell && b->offset[0])
		return error_set(e, "batch: the first offset is %u, expected 0", b->offset[0]);
	for (size_t i = 0; i < b->ncell; i++) {
		if (b->offset[i + 1] < b->offset[i])
			return error_set(e, "batch: the offsets of cell %zu go backwards", i);
		uint32_t len = b->offset[i + 1] - b->offset[i];
		if (len > P)
			return error_set(e, "cell %zu of the batch has %u tokens: the model has %u positions", i, len, P);
		for (uint32_t t = b->offset[i]; t < b->offset[i + 1]; t++) {
			if (b->id[t] >= V)
				return error_set(e, "cell %zu of the batch, position %u: token %u, the vocabulary has %u", i,
					t - b->offset[i], b->id[t], V);
			if (b->rank && b->rank[t] >= P)
				return error_set(e, "cell %zu of the batch, position %u: rank %u, the model has %u positions", i,
					t - b->offset[i], b->rank[t], P);
		}
	}
	for (size_t i = 0; b->group && i < b->ncell; i++)
		if (b->group[i] >= m->c.num_groups && b->group[i] != ROW_NONE)
			return error_set(e, "cell %zu of the batch: category %u, the model has %u", i, b->group[i], m->c.num_groups);
	for (size_t i = 0; i < m->nhead; i++)
		if (heads >> i & 1 && check_goal(m, m->head[i], b, labels, e))
			return -1;
	return 0;
}

/* ---- sizes and places ---- */

enum {
	PAD_CELL = 64, /* tokens of a cell of padding; B counts as many as may be needed, so that it does not change */
};

static size_t pad_cell(const struct model *m)
{
	uint32_t most = m->arch->positions ? m->c.max_position_embeddings : PAD_CELL;
	return most < PAD_CELL ? most : PAD_CELL;
}

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

struct shape shape_of(const struct model *m, const struct batch *b)
{
	const struct ops *o = m->o;
	struct shape s = {.cells = b->ncell,
		.tokens = b->ncell ? b->offset[b->ncell] : 0,
		.ranks = b->rank && m->arch->positions,
		.values = b->value != NULL,
		.counts = b->count != NULL};
	s.T = round_up(s.tokens, o->round_tokens);
	s.B = s.cells + (o->round_tokens - 1 + pad_cell(m) - 1) / pad_cell(m);
	return s;
}

/* The arrays of a batch, one after the other, the same way on the device and on the host. */
static void carve_batch(const struct model *m, struct arrays *x, const struct shape *s, const struct batch *b, struct arena *a)
{
#define INT(wanted, n) ((wanted) ? arena_bytes(a, (n) * sizeof(uint32_t)) : NULL)
	x->step = INT(1, 1);
	x->offset = INT(1, s->B + 1);
	x->id = INT(1, s->T);
	x->pos = INT(1, s->T);
	x->cell = INT(1, s->T);
	x->key = INT(1, s->B);
	x->tile = INT(1, seq_tiles(s->B, s->T));
	x->order = INT(s->train, s->T);
	x->start = INT(s->train, m->c.vocab_size + 1);
	x->rank = INT(s->ranks, s->T);
	x->rank_order = INT(s->ranks && s->train, s->T);
	x->rank_start = INT(s->ranks && s->train, m->c.max_position_embeddings + 1);
	x->range = INT(s->ranges, 2 * s->B * s->ranges);
	x->count = INT(b->count != NULL, s->T);
	x->value = b->value ? arena_real(a, s->T) : NULL;
	x->group.offset = INT(m->c.num_groups, s->B + 1);
	x->group.id = INT(m->c.num_groups, s->B);
	x->group.cell = INT(m->c.num_groups, s->B);
	x->group.order = INT(m->c.num_groups && s->train, s->B);
	x->group.start = INT(m->c.num_groups && s->train, m->c.num_groups + 1);
	size_t rows = b->value ? value_rows(&m->c) : 0;
	x->coded.row = INT(rows, s->T);
	x->coded.offset = INT(rows, s->T + 1);
	x->coded.id = INT(rows, s->T);
	x->coded.cell = INT(rows, s->T);
	x->coded.order = INT(rows && s->train, s->T);
	x->coded.start = INT(rows && s->train, rows + 2);
	x->scale = s->train ? arena_real(a, LOSSES_MAX) : NULL;
	for (size_t i = 0; i < m->nhead; i++) {
		const struct head *h = m->head[i];
		int on = s->heads >> i & 1, labels = on && s->labels;
		x->head[i].row = INT(on && h->kind->rows == ROWS_LISTED, h->N);
		x->head[i].range = INT(on && h->kind->rows == ROWS_CELL, 2 * s->B);
		x->head[i].to = (struct target_arrays){0};
		if (labels)
			target_kind[h->kind->target].carve(&x->head[i].to, m, h, a);
	}
#undef INT
}

static void carve_input(struct model *m, struct arena *a, const struct shape *s)
{
	m->input.given = s->given ? arena_act(a, s->T * m->c.hidden_size) : NULL;
	m->input.presence = NULL;
	m->input.sums = s->given ? arena_real(a, s->T) : NULL;
	m->input.pooled = s->given && s->ranges ? arena_act(a, s->B * m->c.hidden_size) : NULL;
	m->input.ready = 0;
}

/* Everything: the batch, then the activations. Returns the bytes. */
static size_t carve_all(struct model *m, const struct shape *s, const struct batch *b, char *base)
{
	struct arena a = {.base = base, .act_size = m->o->act_size};
	carve_batch(m, &m->dev, s, b, &a);
	m->arch->carve(m, &a, s);
	carve_input(m, &a, s);
	for (size_t i = 0; i < m->nhead; i++)
		if (s->heads >> i & 1) {
			readout_carve(m->head[i], m, &a, s);
			m->head[i]->kind->carve(m->head[i], m, &a, s);
		}
	size_t states = m->arch->per_cell ? s->B : s->T, n = states * m->c.hidden_size;
	m->dx = s->train ? arena_act(&a, n) : NULL;
	m->dx_more = s->train && m->nhead > 1 ? arena_act(&a, n) : NULL;
	m->pooled = s->ranges ? arena_real(&a, s->B * s->ranges * m->c.hidden_size) : NULL;
	return a.used;
}

/* ---- filling ---- */

/* Tokens sorted by id < V, for the gradient of an embedding: counting sort. start [V+1], order [T]. */
static void sort_tokens(uint32_t *start, uint32_t *order, const uint32_t *id, size_t T, size_t V)
{
	memset(start, 0, (V + 1) * sizeof *start);
	for (size_t t = 0; t < T; t++)
		start[id[t] + 1]++;
	for (size_t v = 0; v < V; v++)
		start[v + 1] += start[v];
	for (size_t t = 0; t < T; t++)
		order[start[id[t]]++] = (uint32_t)t;
	for (size_t v = V; v > 0; v--)
		start[v] = start[v - 1];
	start[0] = 0;
}

struct length {
	uint32_t cell, tokens;
};

COMPARE(by_length, struct length, ORDER(b->tokens, a->tokens) ?: ORDER(a->cell, b->cell))

/* Where the cells' stretches of SEQ_TILE tokens begin. The longest cells come first: their stretches take longest. */
static void list_tiles(uint32_t *tile, const uint32_t *offset, size_t B, size_t T)
{
	FREED struct length *all = xcalloc(B, sizeof *all);
	size_t n = 0;
	for (uint32_t b = 0; b < B; b++)
		all[b] = (struct length){b, offset[b + 1] - offset[b]};
	qsort(all, B, sizeof *all, by_length);
	for (size_t i = 0; i < B; i++)
		for (uint32_t t = 0; t < all[i].tokens; t += SEQ_TILE)
			tile[n++] = offset[all[i].cell] + t;
	while (n < seq_tiles(B, T))
		tile[n++] = ROW_NONE;
}

static void pad_with(uint32_t *to, const uint32_t *from, size_t n, size_t all, uint32_t rest)
{
	if (n)
		memcpy(to, from, n * sizeof *to);
	for (size_t i = n; i < all; i++)
		to[i] = rest;
}

static void pad_real(real *to, const real *from, size_t n, size_t all)
{
	if (n)
		memcpy(to, from, n * sizeof *to);
	for (size_t i = n; i < all; i++)
		to[i] = 0;
}

/* offset, pos, cell, key; returns the tokens of the longest cell. */
static size_t fill_cells(const struct model *m, const struct arrays *x, const struct batch *b, const struct shape *s)
{
	size_t longest = 0;
	x->offset[0] = 0;
	for (size_t i = 0, at = 0; i < s->B; i++) {
		size_t len = i < s->cells ? b->offset[i + 1] - at : s->T - at < pad_cell(m) ? s->T - at : pad_cell(m);
		longest = len > longest ? len : longest;
		x->key[i] = i < s->cells && b->key ? b->key[i] : (uint32_t)i;
		for (size_t t = 0; t < len; t++) {
			x->pos[at + t] = (uint32_t)t;
			x->cell[at + t] = (uint32_t)i;
		}
		at += len;
		x->offset[i + 1] = (uint32_t)at;
	}
	return longest;
}

/* A token for each cell with a covariate. */
static void fill_groups(const struct model *m, const struct arrays *x, const struct batch *b, const struct shape *s)
{
	uint32_t n = 0;
	for (size_t i = 0; i < s->B; i++) {
		x->group.offset[i] = n;
		if (i >= s->cells || !b->group || b->group[i] == ROW_NONE)
			continue;
		x->group.id[n] = b->group[i];
		x->group.cell[n++] = (uint32_t)i;
	}
	x->group.offset[s->B] = n;
	if (x->group.order)
		sort_tokens(x->group.start, x->group.order, x->group.id, n, m->c.num_groups);
}

/*
 * The tokens whose values are no numbers. Of the row that is not learned, which is filled as if it came behind the others, no token is in the
 * order for the gradient.
 */
static void fill_coded(const struct model *m, const struct arrays *x, const struct shape *s)
{
	uint32_t n = 0, pad = value_pad(&m->c), last = (uint32_t)value_rows(&m->c);
	for (size_t t = 0; t < s->T; t++) {
		uint32_t row = t < s->tokens ? value_row(&m->c, (double)x->value[t]) : ROW_NONE;
		x->coded.row[t] = row;
		x->coded.offset[t] = n;
		if (row == ROW_NONE)
			continue;
		x->coded.id[n] = row == pad ? last : row;
		x->coded.cell[n++] = (uint32_t)t;
	}
	x->coded.offset[s->T] = n;
	if (x->coded.order)
		sort_tokens(x->coded.start, x->coded.order, x->coded.id, n, last + 1);
	for (uint32_t i = 0; i < n; i++)
		x->coded.id[i] = x->coded.id[i] == last ? pad : x->coded.id[i];
}

static void fill_head(const struct model *m, const struct head *h, const struct arrays *x, const struct batch *b, const struct shape *s)
{
	const struct goal *g = &b->goal[h->index];
	uint32_t *row = x->head[h->index].row, *range = x->head[h->index].range;
	if (row)
		pad_with(row, g->row, h->rows, h->N, ROW_NONE);
	for (size_t i = 0; range && i < s->B; i++) {
		uint32_t at = x->offset[i] + h->spec.position, has = at < x->offset[i + 1];
		range[2 * i] = has ? at : x->offset[i];
		range[2 * i + 1] = range[2 * i] + has;
	}
	if (s->labels)
		target_kind[h->kind->target].fill(&x->head[h->index].to, m, h, g);
}

static size_t fill(const struct model *m, const struct arrays *x, const struct batch *b, const struct shape *s, const struct forward *f,
	const uint32_t *range)
{
	size_t longest = fill_cells(m, x, b, s);
	*x->step = (uint32_t)f->step;
	pad_with(x->id, b->id, s->tokens, s->T, m->c.pad_token_id);
	if (x->range)
		pad_with(x->range, range, 2 * s->cells * s->ranges, 2 * s->B * s->ranges, 0);
	list_tiles(x->tile, x->offset, s->B, s->T);
	if (x->order)
		sort_tokens(x->start, x->order, x->id, s->T, m->c.vocab_size);
	if (x->rank)
		pad_with(x->rank, b->rank, s->tokens, s->T, 0);
	if (x->rank_order)
		sort_tokens(x->rank_start, x->rank_order, x->rank, s->T, m->c.max_position_embeddings);
	if (x->group.offset)
		fill_groups(m, x, b, s);
	if (x->count)
		pad_with(x->count, b->count, s->tokens, s->T, 0);
	if (x->value)
		pad_real(x->value, b->value, s->tokens, s->T);
	if (x->coded.row)
		fill_coded(m, x, s);
	for (size_t i = 0; x->scale && i < LOSSES_MAX; i++)
		x->scale[i] = i < m->nloss ? (real)m->host_scale[i] : 0;
	for (size_t i = 0; i < m->nhead; i++)
		if (s->heads >> i & 1)
			fill_head(m, m->head[i], x, b, s);
	return longest;
}

/* Rows of each head, and the factor of its gradient. */
static void set_heads(struct model *m, const struct batch *b, const struct shape *s, const struct forward *f)
{
	for (size_t i = 0; i < m->nhead; i++) {
		struct head *h = m->head[i];
		h->rows = goal_rows(h, b);
		h->N = h->kind->rows == ROWS_CELL ? s->B : h->kind->rows == ROWS_TOKEN ? s->T : round_up(h->rows, m->o->round_rows);
	}
	for (size_t i = 0; i < m->nloss; i++)
		m->host_scale[i] = f->scale ? f->scale[i] : m->weight[i];
	for (size_t i = 0; i < m->nhead; i++)
		m->head[i]->host_scale = m->host_scale[m->head[i]->first];
}

/* The cells of this batch as the ops see them: its tokens, its groups, its coded values. */
static void name_cells(struct model *m, const struct shape *s, size_t longest)
{
	m->seq = (struct seq){
		.B = s->B,
		.T = s->T,
		.L = longest,
		.offset = m->dev.offset,
		.id = m->dev.id,
		.pos = m->dev.pos,
		.cell = m->dev.cell,
		.key = m->dev.key,
		.order = m->dev.order,
		.start = m->dev.start,
		.tile = m->dev.tile,
		.ntile = seq_tiles(s->B, s->T),
		.rank = m->dev.rank,
		.rank_order = m->dev.rank_order,
		.rank_start = m->dev.rank_start,
	};
	m->groups = (struct seq){
		.B = s->B,
		.offset = m->dev.group.offset,
		.id = m->dev.group.id,
		.cell = m->dev.group.cell,
		.order = m->dev.group.order,
		.start = m->dev.group.start,
	};
	m->coded = (struct seq){
		.B = s->T,
		.offset = m->dev.coded.offset,
		.id = m->dev.coded.id,
		.cell = m->dev.coded.cell,
		.order = m->dev.coded.order,
		.start = m->dev.coded.start,
	};
}

int batch_send(struct model *m, const struct batch *b, struct shape s, const struct forward *f, const uint32_t *range, struct error *e)
{
	struct ops *o = m->o;
	struct stage *g = &m->stage[m->turn ^= 1];
	struct arena measure = {.act_size = o->act_size};
	struct arrays host;
	if (batch_check(m, b, s.heads, s.labels, e) || (m->arch->check_batch && m->arch->check_batch(&m->c, b, s.train, e)) ||
		o->wait(o, MARK_STAGE + m->turn, e))
		return -1;
	set_heads(m, b, &s, f);
	carve_batch(m, &host, &s, b, &measure);
	size_t bytes = measure.used, all = carve_all(m, &s, b, NULL);
	if (bytes > g->cap) {
		o->host_free(o, g->host);
		g->host = o->host_alloc(o, bytes);
		g->cap = bytes;
	}
	if (all > m->memory_cap) {
		o->free(o, m->memory);
		m->memory = o->alloc(o, all);
		m->memory_cap = all;
	}
	if (s.train)
		params_array(&m->p, GRAD);
	carve_batch(m, &host, &s, b, &(struct arena){.base = g->host, .act_size = o->act_size});
	carve_all(m, &s, b, m->memory);
	for (size_t i = 0; i < m->nhead; i++) /* one loss of weight 1: nothing to multiply */
		m->head[i]->scale = s.train && (m->nloss > 1 || m->head[i]->host_scale != 1) ? m->dev.scale + m->head[i]->first : NULL;
	size_t longest = fill(m, &host, b, &s, f, range);
	o->send(o, m->memory, g->host, bytes);
	o->mark(o, MARK_STAGE + m->turn);
	name_cells(m, &s, longest);
	m->shape = s;
	m->tokens += s.tokens;
	m->rows += s.T;
	return 0;
}
