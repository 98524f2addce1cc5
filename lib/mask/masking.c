#include "mask/masking.h"

#include "base/threads.h"

/* ---- columns ---- */

enum { LISTS = 6 };
static const char *const lists[3][LISTS] = {{"input", "position", "target", "rank"}, {"gene", "count", "masked"},
	{"input", "input_value", "position", "target", "value", PANEL_COLUMN}}; /* of tokens, of counts, of tokens with counts */

int masking_counted(const struct header *in, const struct masking_columns *c)
{
	int token = header_find(in, "token"), count = header_find(in, "count");
	return c->cell ||
		(c->value && token >= 0 && count >= 0 && in->col[count].shape == RAGGED && in->col[token].group == in->col[count].group);
}

static int keep_column(
	struct header *want, struct header *out, const struct header *in, int which, const char *column, const char *name, struct error *e)
{
	int c = header_need(in, column, COLUMN_TYPES, SCALAR, name, e);
	if (c < 0 && (c = header_need(in, column, COLUMN_TYPES, FIXED, name, NULL)) < 0)
		return -1;
	int taken = header_find(out, column) >= 0;
	for (size_t i = 0; i < LISTS && lists[which][i]; i++)
		taken |= strcmp(column, lists[which][i]) == 0;
	if (taken)
		return error_set(e, "%s: column '%s' cannot be kept: a masked stream has one of its own", name, column);
	header_add_like(want, &in->col[c]);
	header_add_like(out, &in->col[c]);
	return 0;
}

static int groups_column(struct header *want, const struct header *in, const char *column, int token, const char *name, struct error *e)
{
	int c = header_need(in, column, I32, RAGGED, name, e);
	if (c < 0)
		return -1;
	if (in->col[c].group != in->col[token].group)
		return error_set(e, "%s: column '%s' is not in the group of column token", name, column);
	header_add_ragged(want, column, I32, in->group[in->col[c].group]);
	return 0;
}

/* The lists of a tokens stream that are read, and those that are written. */
static int token_lists(struct header *want, struct header *out, const struct header *in, const struct masking_columns *c, const char *name,
	struct error *e)
{
	int token = header_need(in, "token", U32, RAGGED, name, e);
	if (token < 0)
		return -1;
	enum column_type id = in->col[token].type;
	const char *group = in->group[in->col[token].group];
	header_add_ragged(want, "token", id, group);
	if (c->groups && groups_column(want, in, c->groups, token, name, e))
		return -1;
	header_add_ragged(out, "input", id, "input");
	int tie = header_beside(in, "tie", U16, token, name, e), rank = header_beside(in, "rank", U16, token, name, e),
	    value = c->value ? header_beside(in, "value", F32, token, name, e) : -1;
	if (tie < -1 || rank < -1 || value < -1)
		return -1;
	if (c->runs && tie < 0)
		return error_set(e, "%s: no list 'tie' next to the tokens: --strategy runs needs tokens of rankenc --ties random", name);
	if (tie >= 0)
		header_add_ragged(want, "tie", U16, group);
	if (rank >= 0) {
		header_add_ragged(want, "rank", U16, group);
		header_add_ragged(out, "rank", U16, "input");
	}
	header_add_ragged(out, "position", U16, "masked");
	header_add_ragged(out, "target", id, "masked");
	if (!c->value)
		return 0;
	if (rank < 0 || value < 0)
		return error_set(e,
			"%s: no list 'count' next to the tokens, nor 'rank' and 'value': --objective value needs tokens of rankenc "
			"--vocab-style bmfm, or of --ties group --value",
			name);
	header_add_ragged(want, "value", F32, group);
	header_add_ragged(out, "value", F32, "masked");
	return 0;
}

static int value_lists(struct header *want, struct header *out, const struct header *in, const struct masking_columns *c, const char *name,
	struct error *e)
{
	int token = header_need(in, "token", U32, RAGGED, name, e);
	if (token < 0)
		return -1;
	int count = header_beside(in, "count", U32, token, name, e),
	    panel = panels_there(in) ? header_need(in, PANEL_COLUMN, U32, SCALAR, name, e) : -1;
	if (count < -1 || (panels_there(in) && panel < 0))
		return -1;
	if (count < 0)
		return error_set(
			e, "%s: no list 'count' next to the tokens: --objective cell needs tokens of rankenc --vocab-style bmfm", name);
	enum column_type id = in->col[token].type;
	const char *group = in->group[in->col[token].group];
	header_add_ragged(want, "token", id, group);
	header_add_ragged(want, "count", U32, group);
	if (panel >= 0)
		header_add(want, PANEL_COLUMN, U32);
	if (panel >= 0 && c->cell && !c->unmeasured)
		header_add(out, PANEL_COLUMN, U32);
	else
		panels_drop(out);
	const char *targets = c->cell ? "target" : "masked";
	header_add_ragged(out, "input", id, "input");
	header_add_ragged(out, "input_value", F32, "input");
	if (!c->cell)
		header_add_ragged(out, "position", U16, targets);
	header_add_ragged(out, "target", id, targets);
	if (c->cell || c->fields & FIELD_VALUE)
		header_add_ragged(out, "value", F32, targets);
	return 0;
}

/* The same for a counts stream. */
static int count_lists(struct header *want, struct header *out, const struct header *in, const char *name, struct error *e)
{
	int gene = header_need(in, "gene", U32, RAGGED, name, e), count;
	if (gene < 0 || (count = header_need(in, "count", U32, RAGGED, name, e)) < 0)
		return -1;
	const char *group = in->group[in->col[gene].group];
	if (in->col[count].group != in->col[gene].group)
		return error_set(e, "%s: column 'count' is not in the group of column gene", name);
	panels_drop(out);
	header_add_ragged(want, "gene", in->col[gene].type, group);
	header_add_ragged(want, "count", in->col[count].type, group);
	header_add_ragged(out, "gene", in->col[gene].type, "gene");
	header_add_ragged(out, "count", in->col[count].type, "gene");
	header_add_ragged(out, "masked", in->col[gene].type, "masked");
	return 0;
}

int masking_headers(struct header *want, struct header *out, const struct header *in, const struct masking_columns *c, const char *name,
	struct error *e)
{
	enum stream_kind kind = c->counts ? STREAM_COUNTS : STREAM_TOKENS;
	header_init(want, kind);
	header_copy(out, in);
	out->kind = c->counts ? STREAM_MASKED_COUNTS : STREAM_MASKED;
	while (out->ncol)
		header_drop(out, out->col[out->ncol - 1].name);
	int cell;
	if (header_kind(in, kind, name, e) || (cell = header_need(in, "cell", U64, SCALAR, name, e)) < 0)
		return -1;
	header_add_like(want, &in->col[cell]);
	header_add_like(out, &in->col[cell]);
	header_add(out, "epoch", U32);
	header_add(out, "step", U32);
	if (c->balance) {
		header_add(want, "batch_row", U32);
		header_add(out, "batch_row", U32);
	}
	for (size_t i = 0; i < c->nkeep; i++) {
		for (size_t j = 0; j < i; j++)
			if (!strcmp(c->keep[j], c->keep[i]))
				return error_set(e, "%s: column '%s' is to be kept twice", name, c->keep[i]);
		if (keep_column(want, out, in, masking_counted(in, c) ? 2 : c->counts, c->keep[i], name, e))
			return -1;
	}
	return c->counts                 ? count_lists(want, out, in, name, e)
		: masking_counted(in, c) ? value_lists(want, out, in, c, name, e)
					 : token_lists(want, out, in, c, name, e);
}

/* ---- one batch ---- */

struct masking_worker { /* the scratch of one thread */
	struct masker *masker;
	struct tie_order order;
	uint32_t token[MASK_ROW_MAX], input[MASK_ROW_MAX];
	int32_t module[MASK_ROW_MAX]; /* in the order drawn */
	uint16_t position[MASK_ROW_MAX], renumbered[UINT16_MAX + 1];
	uint8_t *state; /* [vocab], zero: for audit_cell */
	uint32_t *gene; /* [vocab], for mask_columns */
	struct inputs *inputs; /* with values as input */
};

/* Hide the ranks of k of a row's n tokens: they become 0. The others are numbered anew, so that no gap among them tells a hidden one. */
static void hide_ranks(uint16_t *rank, uint32_t n, const uint16_t *masked, uint32_t k, uint16_t *renumbered)
{
	uint32_t last = 0, seen = 0;
	for (uint32_t i = 0; i < k; i++)
		rank[masked[i]] = 0;
	for (uint32_t i = 0; i < n; i++)
		last = rank[i] > last ? rank[i] : last;
	memset(renumbered, 0, (last + 1) * sizeof *renumbered);
	for (uint32_t i = 0; i < n; i++)
		renumbered[rank[i]] = 1;
	renumbered[0] = 0;
	for (uint32_t r = 1; r <= last; r++)
		renumbered[r] = (uint16_t)(renumbered[r] ? ++seen : 0);
	for (uint32_t i = 0; i < n; i++)
		rank[i] = renumbered[rank[i]];
}

/* The values of the n masked tokens at `position`, of the row that starts at item `at`, as items `had`, ... of the output. */
static void copy_values(const struct masking *m, struct masked_batch *j, uint64_t at, const uint16_t *position, uint32_t n, uint64_t had)
{
	float *value = (float *)j->block.col[m->value].data + had;
	const float *from = (const float *)j->in.col[m->value_from].data + at;
	for (uint32_t i = 0; i < n; i++)
		value[i] = from[position[i]];
}

/* The tokens of the row that starts at item `at`, in the order that the model sees: with ties, one drawn for this epoch. */
static struct mask_tokens row_tokens(
	const struct masking *m, struct masking_worker *w, struct masked_batch *j, uint64_t cell, uint64_t at, uint32_t n)
{
	struct block *b = &j->block;
	struct mask_tokens t = {.n = n, .token = w->token};
	const uint16_t *tie = m->tie < 0 ? NULL : (const uint16_t *)j->in.col[m->tie].data + at;
	if (m->group >= 0)
		t.module = (const int32_t *)j->in.col[m->group].data + at;
	for (uint32_t i = 0; i < n; i++)
		w->token[i] = block_id(&j->in, m->token, at + i);
	if (!tie)
		return t;
	if (m->plan->strategy == MASK_RUNS) {
		t.tie = tie;
		return t;
	}
	tie_order_draw(&w->order, tie, n, m->plan->seed, cell, (uint32_t)j->epoch);
	for (uint32_t i = 0; i < n; i++) {
		w->token[i] = block_id(&j->in, m->token, at + w->order.from[i]);
		block_set_id(b, m->input, at + i, w->token[i]);
		if (t.module)
			w->module[i] = t.module[w->order.from[i]];
	}
	if (t.module)
		t.module = w->module;
	return t;
}

/* How often partners are masked: in the graph of --audit in every cell; without one, in the graph of the masks, in one cell of eight. */
static void audit_row(const struct masking *m, struct masking_worker *w, struct masked_batch *j, const uint32_t *token, uint32_t n,
	size_t row, const uint16_t *position, uint32_t k, uint32_t structural)
{
	if (m->audit)
		audit_cell(&j->audit, m->audit, m->plan->nspecial, token, n, position, k, structural, w->state);
	else if (m->plan->graph && row % 8 == 0)
		audit_rates(&j->audit, m->plan->graph, m->plan->nspecial, token, n, position, k);
}

static void mask_row(const struct masking *m, struct masking_worker *w, struct masked_batch *j, size_t row)
{
	struct block *b = &j->block;
	const uint64_t *o = b->group[m->input_list].offset;
	uint64_t *end = b->group[m->masked_list].offset, at = o[row], had = end[row];
	uint64_t cell = ((const uint64_t *)b->col[m->cell].data)[row];
	uint32_t n = (uint32_t)(o[row + 1] - at), structural;
	struct mask_tokens t = row_tokens(m, w, j, cell, at, n);
	uint32_t k, first = 0, scored; /* of the k masked positions, those to predict are first .. first + scored */
	if (m->plan->strategy == MASK_PROBE) {
		k = structural = mask_probe(w->masker, cell, (uint32_t)j->epoch, w->token, n, w->position, &first);
		scored = k > 0;
		for (uint32_t i = 0; i < k; i++)
			w->input[i] = m->plan->mask_id;
	} else {
		k = scored = mask_cell(w->masker, j->rate, j->lambda, cell, (uint32_t)j->epoch, &t, w->position, w->input, &structural);
	}
	audit_row(m, w, j, w->token, n, row, w->position, k, structural);
	block_set_items(b, m->masked_list, had + scored);
	memcpy((uint16_t *)b->col[m->position].data + had, w->position + first, scored * sizeof *w->position);
	for (uint32_t i = 0; i < scored; i++)
		block_set_id(b, m->target, had + i, w->token[w->position[first + i]]);
	if (m->value >= 0) {
		hide_ranks((uint16_t *)b->col[m->rank].data + at, n, w->position, k, w->renumbered);
		copy_values(m, j, at, w->position + first, scored, had);
	}
	for (uint32_t i = 0; i < k && m->value < 0; i++)
		block_set_id(b, m->input, at + w->position[i], w->input[i]);
	end[row + 1] = had + scored;
	j->masked += k;
}

/* Start the block: the copied columns, epoch and step. */
static void copy_cells(const struct masking *m, struct masked_batch *j)
{
	struct block *b = &j->block;
	block_reset(b, m->header);
	block_take(b, m->map, &j->in, NULL, j->in.rows);
	for (size_t row = 0; row < b->rows; row++) {
		((uint32_t *)b->col[m->epoch].data)[row] = (uint32_t)j->epoch;
		((uint32_t *)b->col[m->step].data)[row] = (uint32_t)j->step;
	}
}

/* The tokens before masking as input, and their ranks. */
static void copy_tokens(const struct masking *m, struct masked_batch *j)
{
	struct block *b = &j->block;
	const struct block *in = &j->in;
	const uint64_t *o = in->group[m->token_list].offset;
	uint64_t items = block_items(in, m->token_list);
	memcpy(b->group[m->input_list].offset, o, (in->rows + 1) * sizeof *o);
	block_set_items(b, m->input_list, items);
	memcpy(b->col[m->input].data, in->col[m->token].data, items * type_size(in->header->col[m->token].type));
	if (m->rank >= 0)
		memcpy(b->col[m->rank].data, in->col[m->rank_from].data, items * sizeof(uint16_t));
	j->tokens = items;
}

/* The list of masked genes, the same one for every cell. */
static void hide_columns(const struct masking *m, struct masking_worker *w, struct masked_batch *j)
{
	struct block *b = &j->block;
	uint32_t k = mask_columns(m->plan, j->rate, j->lambda, j->step % m->loader->per_epoch, (uint32_t)j->epoch, w->gene);
	block_set_items(b, m->masked_list, b->rows * k);
	for (size_t row = 0; row < b->rows; row++) {
		for (uint32_t i = 0; i < k; i++)
			block_set_id(b, m->position, row * k + i, w->gene[i]);
		b->group[m->masked_list].offset[row + 1] = (row + 1) * k;
	}
	j->tokens = b->rows * (uint64_t)(m->plan->vocab - m->plan->nspecial);
	j->masked = b->rows * (uint64_t)k;
}

/* Row `row` of the batch, for a model that reads values. */
static struct counted_cell counted_row(const struct masking *m, struct masking_worker *w, const struct masked_batch *j, size_t row)
{
	const struct block *in = &j->in;
	const uint64_t *o = in->group[m->token_list].offset;
	struct counted_cell c = {
		.cell = ((const uint64_t *)j->block.col[m->cell].data)[row],
		.epoch = (uint32_t)j->epoch,
		.n = (uint32_t)(o[row + 1] - o[row]),
		.token = w->token,
		.count = (const uint32_t *)in->col[m->count].data + o[row],
		.panel = m->panel < 0 ? 0 : ((const uint32_t *)in->col[m->panel].data)[row],
	};
	for (uint32_t i = 0; i < c.n; i++)
		w->token[i] = block_id(in, m->token, o[row] + i);
	return c;
}

/* Append the input and the targets of row `row`. */
static void append_cell(const struct masking *m, struct masked_batch *j, size_t row, const struct masked_cell *c)
{
	struct block *b = &j->block;
	uint64_t *input = b->group[m->input_list].offset, *target = b->group[m->masked_list].offset, at = input[row], had = target[row];
	block_set_items(b, m->input_list, at + c->n);
	block_set_items(b, m->masked_list, had + c->targets);
	for (uint32_t i = 0; i < c->n; i++)
		block_set_id(b, m->input, at + i, c->input[i]);
	for (uint32_t i = 0; i < c->targets; i++)
		block_set_id(b, m->target, had + i, c->target[i]);
	memcpy((float *)b->col[m->input_value].data + at, c->value, c->n * sizeof *c->value);
	if (m->position >= 0)
		memcpy((uint16_t *)b->col[m->position].data + had, c->position, c->targets * sizeof *c->position);
	if (m->value >= 0)
		memcpy((float *)b->col[m->value].data + had, c->target_value, c->targets * sizeof *c->target_value);
	input[row + 1] = at + c->n;
	target[row + 1] = had + c->targets;
}

static int too_long(const struct masking *m, struct masked_batch *j, size_t row, uint64_t n)
{
	return error_set(&j->error, "%s: cell %llu: %llu tokens, expected at most %d", stream_name(m->loader->in),
		(unsigned long long)((const uint64_t *)j->block.col[m->cell].data)[row], (unsigned long long)n, MASK_ROW_MAX);
}

/* All rows of a batch, for a model that reads values. -1 with j->error set. */
static int make_inputs(const struct masking *m, struct masking_worker *w, struct masked_batch *j)
{
	const uint64_t *o = j->in.group[m->token_list].offset;
	inputs_start(w->inputs);
	for (size_t row = 0; row < j->block.rows; row++) {
		if (o[row + 1] - o[row] > MASK_ROW_MAX)
			return too_long(m, j, row, o[row + 1] - o[row]);
		struct counted_cell c = counted_row(m, w, j, row);
		if (m->plan_input->zeros == ZEROS_BATCH)
			inputs_note(w->inputs, c.token, c.count, c.n);
	}
	for (size_t row = 0; row < j->block.rows; row++) {
		struct counted_cell c = counted_row(m, w, j, row);
		struct masked_cell made;
		struct error e;
		if (inputs_make(w->inputs, &made, w->masker, &c, j->rate, j->lambda, &e))
			return error_set(&j->error, "%s: cell %llu: %s", stream_name(m->loader->in), (unsigned long long)c.cell, e.msg);
		audit_row(m, w, j, made.tokens, made.seen, row, made.places, made.chosen, made.structural);
		append_cell(m, j, row, &made);
		j->tokens += made.seen;
		j->masked += made.chosen;
	}
	return 0;
}

static void mask_batch(void *arg, size_t i, int thread)
{
	const struct masking *m = arg;
	struct masked_batch *j = &m->batch[i];
	copy_cells(m, j);
	j->masked = 0;
	j->audit = (struct audit){0};
	if (m->plan->strategy == MASK_COLUMNS) {
		hide_columns(m, &m->worker[thread], j);
		return;
	}
	if (m->plan_input) {
		j->tokens = 0;
		j->failed = make_inputs(m, &m->worker[thread], j);
		return;
	}
	copy_tokens(m, j);
	const uint64_t *o = j->in.group[m->token_list].offset;
	for (size_t row = 0; row < j->block.rows; row++) {
		uint64_t n = o[row + 1] - o[row];
		if (n > MASK_ROW_MAX) {
			j->failed = too_long(m, j, row, n);
			return;
		}
		mask_row(m, &m->worker[thread], j, row);
	}
}

/* ---- all batches ---- */

void masking_init(struct masking *m)
{
	const struct header *want = m->loader->want, *out = m->header;
	int counts = m->plan->strategy == MASK_COLUMNS;
	m->token = header_find(want, counts ? "gene" : "token");
	m->group = m->groups ? header_find(want, m->groups) : -1;
	m->tie = counts ? -1 : header_beside(want, "tie", U16, m->token, NULL, NULL);
	m->cell = header_find(out, "cell");
	m->epoch = header_find(out, "epoch");
	m->step = header_find(out, "step");
	m->input = header_find(out, counts ? "gene" : "input");
	m->position = header_find(out, counts ? "masked" : "position");
	m->target = header_find(out, "target");
	m->rank_from = counts ? -1 : header_beside(want, "rank", U16, m->token, NULL, NULL);
	m->rank = counts ? -1 : header_beside(out, "rank", U16, m->input, NULL, NULL);
	m->value_from = counts ? -1 : header_beside(want, "value", F32, m->token, NULL, NULL);
	m->value = counts ? -1 : header_beside(out, "value", F32, m->target, NULL, NULL);
	m->token_list = want->col[m->token].group;
	m->input_list = out->col[m->input].group;
	m->masked_list = out->col[m->position < 0 ? m->target : m->position].group;
	m->count = m->plan_input ? header_find(want, "count") : -1;
	m->panel = m->plan_input ? header_find(want, PANEL_COLUMN) : -1;
	m->input_value = m->plan_input ? header_find(out, "input_value") : -1;
	m->map = xcalloc(out->ncol, sizeof *m->map);
	header_map(out, want, m->map);
	m->nbatch = m->threads > 1 ? 4 * (size_t)m->threads : 1; /* batches differ in size, so each thread gets several */
	m->batch = xcalloc(m->nbatch, sizeof *m->batch);
	m->worker = xcalloc((size_t)m->threads, sizeof *m->worker);
	for (struct masking_worker *w = m->worker; w < m->worker + m->threads; w++) {
		w->masker = masker_new(m->plan);
		w->state = xcalloc(m->plan->vocab, sizeof *w->state);
		w->gene = xcalloc(m->plan->vocab, sizeof *w->gene);
		w->inputs = m->plan_input ? inputs_new(m->plan_input, m->plan) : NULL;
	}
}

void masking_release(struct masking *m)
{
	for (size_t i = 0; i < m->nbatch; i++) {
		block_release(&m->batch[i].in);
		block_release(&m->batch[i].block);
	}
	for (int i = 0; m->worker && i < m->threads; i++) {
		masker_free(m->worker[i].masker);
		tie_order_release(&m->worker[i].order);
		free_all(m->worker[i].state, m->worker[i].gene);
		inputs_free(m->worker[i].inputs);
	}
	free_all(m->worker, m->batch, m->map);
	*m = (struct masking){0};
}

/* Load the next batches and mask them. */
static int mask_more(struct masking *m, struct error *e)
{
	int got = 1;
	m->n = m->at = 0;
	while (m->n < m->nbatch) {
		struct masked_batch *j = &m->batch[m->n];
		got = loader_next(m->loader, &j->in, &j->epoch, &j->step, e);
		if (got < 1)
			break;
		j->rate = mask_schedule_at(&m->rate, m->loader, j->epoch, j->step);
		j->lambda = mask_schedule_at(&m->lambda, m->loader, j->epoch, j->step);
		m->n++;
	}
	if (got < 0)
		return -1;
	pool_for(m->threads, m->n, mask_batch, m);
	return 0;
}

int masking_next(struct masking *m, const struct masked_batch **b, struct error *e)
{
	if (m->at == m->n && mask_more(m, e))
		return -1;
	if (m->at == m->n)
		return 0;
	const struct masked_batch *j = *b = &m->batch[m->at++];
	return j->failed ? error_set(e, "%s", j->error.msg) : 1;
}
