#include "train/batch.h"

#include "base/json.h"

static const struct masked_columns no_columns = {.cell = -1,
	.epoch = -1,
	.step = -1,
	.input = -1,
	.rank = -1,
	.tie = -1,
	.count = -1,
	.position = -1,
	.target = -1,
	.value = -1,
	.input_value = -1,
	.batch_row = -1,
	.panel = -1,
	.masked_group = -1};

int tokens_columns(struct masked_columns *c, const struct header *h, const char *name, struct error *e)
{
	*c = no_columns;
	c->plain = 1;
	if (header_kind(h, STREAM_TOKENS, name, e) || (c->cell = header_need(h, "cell", U64, SCALAR, name, e)) < 0 ||
		(c->input = header_need(h, "token", U32, RAGGED, name, e)) < 0)
		return -1;
	c->input_group = h->col[c->input].group;
	c->rank = header_beside(h, "rank", U16, c->input, name, e);
	c->tie = header_beside(h, "tie", U16, c->input, name, e);
	c->count = header_beside(h, "count", U32, c->input, name, e);
	c->value = header_beside(h, "value", F32, c->input, name, e);
	if (c->rank < -1 || c->tie < -1 || c->count < -1 || c->value < -1)
		return -1;
	return 0;
}

/* Are the targets whole cells (maskgen --objective cell)? */
static int is_whole_cell(const struct header *h)
{
	const cJSON *loader = json_get(h->extra, "loader");
	const char *objective = json_text(loader, "objective");
	return objective && !strcmp(objective, "cell");
}

/* Which genes were measured. */
static int panel_column(struct masked_columns *c, const struct header *h, const char *name, struct error *e)
{
	if (!panels_there(h))
		return 0;
	if ((c->panel = header_need(h, PANEL_COLUMN, U32, SCALAR, name, e)) < 0)
		return -1;
	return panels_read(&c->panels, h, name, e);
}

void masked_columns_release(struct masked_columns *c)
{
	panels_release(&c->panels);
}

int masked_columns(struct masked_columns *c, const struct header *h, const char *name, struct error *e)
{
	*c = no_columns;
	if (header_kind(h, STREAM_MASKED, name, e) || (c->cell = header_need(h, "cell", U64, SCALAR, name, e)) < 0 ||
		(c->epoch = header_need(h, "epoch", U32, SCALAR, name, e)) < 0 ||
		(c->step = header_need(h, "step", U32, SCALAR, name, e)) < 0 ||
		(c->input = header_need(h, "input", U32, RAGGED, name, e)) < 0 ||
		(c->target = header_need(h, "target", U32, RAGGED, name, e)) < 0)
		return -1;
	c->batch_row = header_find(h, "batch_row");
	if (c->batch_row >= 0 && (h->col[c->batch_row].type != U32 || h->col[c->batch_row].shape != SCALAR))
		c->batch_row = -1; /* a user's column that has this name */
	c->input_group = h->col[c->input].group;
	c->rank = header_beside(h, "rank", U16, c->input, name, e);
	c->value = header_beside(h, "value", F32, c->target, name, e);
	c->input_value = header_beside(h, "input_value", F32, c->input, name, e);
	if (c->rank < -1 || c->value < -1 || c->input_value < -1)
		return -1;
	c->masked_group = h->col[c->target].group;
	if (is_whole_cell(h)) {
		if (c->value < 0)
			return error_set(e, "%s: no list 'value' next to the targets, the expression of the whole cell", name);
		return panel_column(c, h, name, e);
	}
	if ((c->position = header_need(h, "position", U16, RAGGED, name, e)) < 0)
		return -1;
	if (h->col[c->position].group != c->masked_group)
		return error_set(e, "%s: columns 'position' and 'target' are not of one ragged group", name);
	return 0;
}

int counts_columns(struct masked_columns *c, const struct header *h, int plain, const char *name, struct error *e)
{
	*c = no_columns;
	if (header_kind(h, plain ? STREAM_COUNTS : STREAM_MASKED_COUNTS, name, e) ||
		(c->cell = header_need(h, "cell", U64, SCALAR, name, e)) < 0 ||
		(c->input = header_need(h, "gene", U32, RAGGED, name, e)) < 0 ||
		(c->count = header_need(h, "count", U32, RAGGED, name, e)) < 0)
		return -1;
	c->input_group = h->col[c->input].group;
	if (h->col[c->count].group != c->input_group)
		return error_set(e, "%s: columns 'gene' and 'count' are not of one ragged group", name);
	if (!h->vocab.n)
		return error_set(e, "%s: no table of genes in the header", name);
	if (plain)
		return 0;
	if ((c->epoch = header_need(h, "epoch", U32, SCALAR, name, e)) < 0 ||
		(c->step = header_need(h, "step", U32, SCALAR, name, e)) < 0 ||
		(c->target = header_need(h, "masked", U32, RAGGED, name, e)) < 0)
		return -1;
	c->masked_group = h->col[c->target].group;
	return 0;
}

static unsigned long long cell_of(const struct masked_columns *c, const struct block *b, size_t row)
{
	return ((const uint64_t *)b->col[c->cell].data)[row];
}

/* The ranks of the tokens first .. first + keep of a cell, which are packed from p->id[at] on. */
static int pack_ranks(struct packed *p, const struct masked_columns *c, const struct block *b, size_t row, size_t first, size_t at,
	size_t keep, size_t limit, int cut, const char *name, struct error *e)
{
	const uint16_t *rank = (const uint16_t *)b->col[c->rank].data + first;
	for (size_t k = 0; k < keep; k++) {
		if (rank[k] >= limit && !cut)
			return error_set(e, "%s: cell %llu, position %zu: rank %u, but the model has %zu positions", name,
				cell_of(c, b, row), k, rank[k], limit);
		p->rank[at + k] = rank[k] < limit ? rank[k] : (uint32_t)limit - 1;
	}
	return 0;
}

static float special_value(uint32_t id)
{
	return -(float)(id + 1);
}

/* The values of a cell's tokens, n of them from item `first`, of which the first `keep` are packed from p->id[at] on. */
static int pack_input_values(struct packed *p, const struct masked_columns *c, const struct block *b, size_t row, size_t first, size_t n,
	size_t at, size_t keep, const char *name, struct error *e)
{
	uint32_t special = (uint32_t)b->header->vocab.nspecial;
	const float *value = c->input_value >= 0 ? b->col[c->input_value].data
		: c->count >= 0 || c->value < 0  ? NULL
						 : b->col[c->value].data;
	const uint32_t *count = value ? NULL : (const uint32_t *)b->col[c->count].data + first;
	double divisor = 1;
	for (size_t i = 0; i < n && count; i++)
		divisor += count[i];
	for (size_t k = 0; k < keep; k++) {
		uint32_t id = p->id[at + k];
		size_t i = c->tie < 0 ? k : p->order.from[k];
		real v = value ? value[first + i] : log_norm(count[i], divisor);
		p->value[at + k] = c->input_value < 0 && id < special ? special_value(id) : v;
		if (c->input_value >= 0 && !(v >= 0 && isfinite(v)) && !(v < 0 && v >= special_value(special - 1) && v == truncf(v)))
			return error_set(e, "%s: cell %llu, position %zu: input value %g, expected a number from 0, or of a special token",
				name, cell_of(c, b, row), k, (double)v);
	}
	return 0;
}

/* A cell with counts has each gene once, and special tokens only around the genes, as maskgen wants it. p->mask: bits of the vocabulary, 0. */
static int check_genes(struct packed *p, const struct masked_columns *c, const struct block *b, size_t row, size_t at, size_t keep,
	const char *name, struct error *e)
{
	const uint32_t special = (uint32_t)b->header->vocab.nspecial, *id = keep ? p->id + at : NULL;
	int genes = 0, bad = 0;
	size_t k = 0;
	for (; k < keep && !bad; k++) {
		uint32_t g = id[k];
		if (g >= special && genes && id[k - 1] < special)
			bad = error_set(e, "%s: cell %llu, position %zu: a special token (%u) between genes", name, cell_of(c, b, row),
				k - 1, id[k - 1]);
		else if (g >= special && p->mask[g / 32] >> g % 32 & 1)
			bad = error_set(e, "%s: cell %llu, position %zu: gene %u occurs twice", name, cell_of(c, b, row), k, g);
		genes |= g >= special;
		p->mask[g / 32] |= 1u << g % 32;
	}
	while (k-- > 0)
		p->mask[id[k] / 32] = 0;
	return bad;
}

/* The tokens of the rows. */
static int pack_ids(struct packed *p, const struct masked_columns *c, const struct block *b, size_t from, size_t to, size_t limit, int cut,
	uint32_t eos, const char *name, struct error *e)
{
	const uint64_t *offset = b->group[c->input_group].offset;
	size_t n = to - from, T = offset[to] - offset[from], V = b->header->vocab.n, at = 0;
	if (T > UINT32_MAX)
		return error_set(e, "%s: a batch of %zu tokens: at most %u fit", name, T, UINT32_MAX);
	grow(p->offset, p->offset_cap, n + 1);
	grow(p->id, p->id_cap, T);
	int values = c->input_value >= 0 || (c->plain && (c->count >= 0 || c->value >= 0));
	if (c->rank >= 0)
		grow(p->rank, p->rank_cap, T);
	if (values)
		grow(p->value, p->value_cap, T);
	for (size_t i = 0; i < n; i++) {
		size_t first = offset[from + i], len = offset[from + i + 1] - first;
		p->offset[i] = (uint32_t)at;
		if (len > limit && !cut)
			return error_set(e, "%s: cell %llu has %zu tokens, but the model has %zu positions", name, cell_of(c, b, from + i),
				len, limit);
		size_t keep = len > limit ? limit : len;
		if (c->tie >= 0)
			tie_order_draw(
				&p->order, (const uint16_t *)b->col[c->tie].data + first, (uint32_t)keep, 1, cell_of(c, b, from + i), 0);
		for (size_t k = 0; k < keep; k++) {
			uint32_t id = block_id(b, c->input, first + (c->tie < 0 ? k : p->order.from[k]));
			if (id >= V)
				return error_set(e, "%s: cell %llu, position %zu: token %u, the vocabulary has %zu", name,
					cell_of(c, b, from + i), k, id, V);
			p->id[at + k] = id;
		}
		if (c->rank >= 0 && pack_ranks(p, c, b, from + i, first, at, keep, limit, cut, name, e))
			return -1;
		if (values && pack_input_values(p, c, b, from + i, first, len, at, keep, name, e))
			return -1;
		at += keep;
		if (keep && keep < len && block_id(b, c->input, first + len - 1) == eos) {
			p->id[at - 1] = eos;
			if (values)
				p->value[at - 1] = special_value(eos);
			if (c->rank >= 0)
				p->rank[at - 1] = 0;
		}
	}
	p->offset[n] = (uint32_t)at;
	p->b = (struct batch){
		.ncell = n, .offset = p->offset, .id = p->id, .rank = c->rank < 0 ? NULL : p->rank, .value = values ? p->value : NULL};
	return 0;
}

int batch_tokens(struct packed *p, const struct masked_columns *c, const struct block *b, size_t from, size_t to, size_t limit, int cut,
	uint32_t eos, const char *name, struct error *e)
{
	if (pack_ids(p, c, b, from, to, limit, cut, eos, name, e))
		return -1;
	if (c->count < 0)
		return 0;
	size_t words = nb_words(b->header->vocab.n);
	grow(p->mask, p->mask_cap, words);
	memset(p->mask, 0, words * sizeof *p->mask);
	for (size_t i = 0; i < to - from; i++)
		if (check_genes(p, c, b, from + i, p->offset[i], p->offset[i + 1] - p->offset[i], name, e))
			return -1;
	return 0;
}

/* The numbers of the rows in the global batch. */
static void pack_keys(
	struct packed *p, const struct masked_columns *c, const struct block *b, size_t from, size_t to, uint32_t shard, uint32_t shards)
{
	grow(p->key, p->key_cap, to - from);
	for (size_t i = from; i < to; i++)
		p->key[i - from] = c->batch_row < 0 ? shard + (uint32_t)i * shards : ((const uint32_t *)b->col[c->batch_row].data)[i];
	p->b.key = p->key;
}

/* Row `row` as the target: y [V], and the bits of the genes in its input. Returns how many genes are targets, -1 with e set. */
static int64_t pack_cell(
	struct packed *p, const struct masked_columns *c, const struct block *b, size_t row, size_t i, const char *name, struct error *e)
{
	const struct vocab *v = &b->header->vocab;
	const uint64_t *offset = b->group[c->masked_group].offset;
	const float *value = b->col[c->value].data;
	const uint32_t panel = c->panel < 0 ? 0 : ((const uint32_t *)b->col[c->panel].data)[row];
	uint32_t last = 0, *in = p->mask + i * nb_words(v->n);
	real *y = p->cell + i * v->n;
	int64_t n = 0;
	if (c->panel >= 0 && panel >= c->panels.n)
		return error_set(e, "%s: cell %llu: panel %u, but the header has %zu", name, cell_of(c, b, row), panel, c->panels.n);
	const uint32_t *measured = c->panel < 0 ? NULL : c->panels.bits + panel * c->panels.words;
	memset(in, 0, nb_words(v->n) * sizeof *in);
	for (uint32_t t = p->offset[i]; t < p->offset[i + 1]; t++)
		if (p->id[t] >= v->nspecial)
			in[p->id[t] / 32] |= 1u << p->id[t] % 32;
	for (uint32_t g = 0; g < v->n; g++) {
		int is = g >= v->nspecial && (!measured || panel_has(measured, g));
		y[g] = is ? 0 : NAN;
		n += is;
	}
	for (uint64_t k = offset[row]; k < offset[row + 1]; k++) {
		uint32_t g = block_id(b, c->target, k);
		if (g >= v->n || g < v->nspecial || (k > offset[row] && g <= last))
			return error_set(e, "%s: cell %llu: target %u is not a gene of the vocabulary, or out of order", name,
				cell_of(c, b, row), g);
		if (isnan(y[g]))
			return error_set(e, "%s: cell %llu: gene %u has a value, but was not measured", name, cell_of(c, b, row), g);
		if (!(value[k] >= 0) || isinf(value[k]))
			return error_set(e, "%s: cell %llu: gene %u has the value %g, expected a number from 0", name, cell_of(c, b, row),
				g, (double)value[k]);
		y[g] = value[k];
		last = g;
	}
	return n;
}

static int pack_cells(
	struct packed *p, const struct masked_columns *c, const struct block *b, size_t from, size_t to, const char *name, struct error *e)
{
	size_t V = b->header->vocab.n, n = 0;
	grow(p->cell, p->cell_cap, (to - from) * V);
	grow(p->mask, p->mask_cap, (to - from) * nb_words(V));
	for (size_t i = from; i < to; i++) {
		int64_t more = pack_cell(p, c, b, i, i - from, name, e);
		if (more < 0)
			return -1;
		n += (size_t)more;
	}
	p->masked = (struct goal){.n = n, .value = p->cell, .mask = p->mask};
	return 0;
}

int batch_masked(struct packed *p, const struct masked_columns *c, const struct block *b, size_t from, size_t to, size_t limit,
	uint32_t shard, uint32_t shards, const char *name, struct error *e)
{
	if (pack_ids(p, c, b, from, to, limit, 0, 0, name, e))
		return -1;
	pack_keys(p, c, b, from, to, shard, shards);
	if (c->position < 0)
		return pack_cells(p, c, b, from, to, name, e);
	const uint64_t *offset = b->group[c->masked_group].offset;
	const uint16_t *position = b->col[c->position].data;
	const float *value = c->value < 0 ? NULL : b->col[c->value].data;
	size_t n = to - from, M = offset[to] - offset[from], V = b->header->vocab.n, at = 0;
	grow(p->mask, p->mask_cap, M);
	grow(p->target, p->target_cap, M);
	for (size_t i = 0; i < n; i++) {
		uint32_t len = p->offset[i + 1] - p->offset[i];
		for (uint64_t k = offset[from + i]; k < offset[from + i + 1]; k++) {
			if (position[k] >= len || (k > offset[from + i] && position[k] <= position[k - 1]))
				return error_set(e, "%s: cell %llu: masked position %u is not below its %u tokens, or out of order", name,
					cell_of(c, b, from + i), position[k], len);
			p->mask[at] = p->offset[i] + position[k];
			p->target[at] = block_id(b, c->target, k);
			if (p->target[at++] >= V)
				return error_set(e, "%s: cell %llu, position %u: target %u, the vocabulary has %zu", name,
					cell_of(c, b, from + i), position[k], p->target[at - 1], V);
			if (value && isinf(value[k]))
				return error_set(
					e, "%s: cell %llu, position %u: the value is infinite", name, cell_of(c, b, from + i), position[k]);
		}
	}
	p->masked = (struct goal){.n = M, .row = p->mask, .target = p->target, .value = value ? value + offset[from] : NULL};
	return 0;
}

/* The bits of the masked genes of row `row`, in bits [nb_words]. Returns their number, or -1. */
static int64_t pack_mask(
	uint32_t *bits, const struct masked_columns *c, const struct block *b, size_t row, const char *name, struct error *e)
{
	const uint64_t *offset = b->group[c->masked_group].offset;
	uint32_t genes = (uint32_t)b->header->vocab.n, last = 0;
	memset(bits, 0, nb_words(genes) * sizeof *bits);
	for (uint64_t k = offset[row]; k < offset[row + 1]; k++) {
		uint32_t g = block_id(b, c->target, k);
		if (g >= genes || (k > offset[row] && g <= last))
			return error_set(
				e, "%s: cell %llu: masked gene %u is not below %u, or out of order", name, cell_of(c, b, row), g, genes);
		bits[g / 32] |= 1u << g % 32;
		last = g;
	}
	return (int64_t)(offset[row + 1] - offset[row]);
}

/* Counts and values of row `row`, whose genes are packed at at[0 .. n). */
static int pack_values(struct packed *p, const struct masked_columns *c, const struct block *b, size_t row, size_t at, size_t n,
	const uint32_t *bits, const char *name, struct error *e)
{
	uint64_t first = b->group[c->input_group].offset[row];
	for (size_t k = 0; k < n; k++) {
		uint32_t g = p->id[at + k], x = block_id(b, c->count, first + k);
		if (k && g <= p->id[at + k - 1])
			return error_set(e, "%s: cell %llu: gene %u comes after gene %u: expected increasing order", name,
				cell_of(c, b, row), g, p->id[at + k - 1]);
		p->count[at + k] = x;
		p->value[at + k] = bits && bits[g / 32] >> g % 32 & 1 ? 0 : log1pf((float)x);
	}
	return 0;
}

int batch_counts(
	struct packed *p, const struct masked_columns *c, const struct block *b, size_t from, size_t to, const char *name, struct error *e)
{
	size_t words = nb_words(b->header->vocab.n), n = to - from;
	int64_t masked = 0;
	if (pack_ids(p, c, b, from, to, SIZE_MAX, 0, 0, name, e))
		return -1;
	grow(p->count, p->count_cap, p->offset[n]);
	grow(p->value, p->value_cap, p->offset[n]);
	grow(p->mask, p->mask_cap, n * words);
	for (size_t i = 0; i < n; i++) {
		uint32_t *bits = c->masked_group < 0 ? NULL : p->mask + i * words, at = p->offset[i];
		int64_t of_cell = bits ? pack_mask(bits, c, b, from + i, name, e) : 0;
		if (of_cell < 0 || pack_values(p, c, b, from + i, at, p->offset[i + 1] - at, bits, name, e))
			return -1;
		masked += of_cell;
	}
	p->b.count = p->count;
	p->b.value = p->value;
	p->masked = (struct goal){.n = (size_t)masked, .mask = c->masked_group < 0 ? NULL : p->mask};
	return 0;
}

void packed_release(struct packed *p)
{
	free_all(p->offset, p->id, p->rank);
	tie_order_release(&p->order);
	free_all(p->mask, p->target, p->key, p->count, p->value, p->cell);
	*p = (struct packed){0};
}
