/* What heads predict: one row of the table is one kind of target, with its arrays in the batch and on the device. */

#include "nn/model_impl.h"

/* ---- classes and tokens ---- */

static int check_class(const struct model *m, const struct head *h, const struct batch *b, size_t rows, struct error *e)
{
	const struct goal *g = &b->goal[h->index];
	int token = h->kind->target == TARGET_TOKEN;
	uint32_t limit = token ? m->c.vocab_size : h->kind->target == TARGET_SET ? h->spec.nset : h->spec.nlabel;
	const uint32_t *row = h->kind->rows == ROWS_LISTED ? g->row : NULL;
	for (size_t i = 0; g->target && i < rows; i++) {
		if (g->target[i] < limit || (g->target[i] == ROW_NONE && !row))
			continue;
		if (row)
			return error_set(
				e, "batch: target token %u at masked position %u, the vocabulary has %u", g->target[i], row[i], limit);
		return error_set(e, "batch: label %d of %s %zu, the model has %u", (int)g->target[i],
			h->kind->rows == ROWS_CELL ? "cell" : "token", i, limit);
	}
	return 0;
}

static void carve_class(struct target_arrays *x, const struct model *m, const struct head *h, struct arena *a)
{
	x->target = arena_bytes(a, h->N * sizeof *x->target);
}

static void fill_class(const struct target_arrays *x, const struct model *m, const struct head *h, const struct goal *g)
{
	for (size_t i = 0; i < h->N; i++)
		x->target[i] = i < h->rows ? g->target[i] : ROW_NONE;
}

static double count_class(const struct goal *g, size_t rows)
{
	size_t n = 0;
	for (size_t i = 0; g->target && i < rows; i++)
		n += g->target[i] != ROW_NONE;
	return (double)n;
}

/* ---- numbers ---- */

static int check_value(const struct model *m, const struct head *h, const struct batch *b, size_t rows, struct error *e)
{
	const struct goal *g = &b->goal[h->index];
	if (h->kind->rows == ROWS_LISTED && rows && !g->value)
		return error_set(e, "batch: no values for head %s", h->spec.name);
	return 0;
}

static void carve_value(struct target_arrays *x, const struct model *m, const struct head *h, struct arena *a)
{
	x->value = arena_real(a, h->N);
}

static void fill_value(const struct target_arrays *x, const struct model *m, const struct head *h, const struct goal *g)
{
	for (size_t i = 0; i < h->N; i++)
		x->value[i] = i < h->rows ? g->value[i] : NAN;
}

static double count_value(const struct goal *g, size_t rows)
{
	size_t n = 0;
	for (size_t i = 0; g->value && i < rows; i++)
		n += !isnan(g->value[i]);
	return (double)n;
}

/* How far the targets are apart. */
static void spread_value(struct loss *l, const struct goal *g, size_t rows)
{
	for (size_t i = 0; i < rows; i++) {
		double v = isnan(g->value[i]) ? 0 : g->value[i];
		l->target += v;
		l->square += v * v;
	}
}

/* ---- counts ---- */

static int check_counts(const struct model *m, const struct head *h, const struct batch *b, size_t rows, struct error *e)
{
	if (!b->goal[h->index].mask || !b->count)
		return error_set(e, "batch: no counts, or no mask, for head %s", h->spec.name);
	return 0;
}

static void carve_counts(struct target_arrays *x, const struct model *m, const struct head *h, struct arena *a)
{
	x->mask = arena_bytes(a, h->N * nb_words(m->c.vocab_size) * sizeof *x->mask);
}

static void fill_counts(const struct target_arrays *x, const struct model *m, const struct head *h, const struct goal *g)
{
	size_t words = nb_words(m->c.vocab_size);
	for (size_t i = 0; i < h->N * words; i++)
		x->mask[i] = i < h->rows * words ? g->mask[i] : 0;
}

static double count_counts(const struct goal *g, size_t rows)
{
	return (double)g->n;
}

/* ---- whole cells ---- */

static int check_cell(const struct model *m, const struct head *h, const struct batch *b, size_t rows, struct error *e)
{
	const struct goal *g = &b->goal[h->index];
	return rows && (!g->value || !g->mask) ? error_set(e, "batch: no whole cells for head %s", h->spec.name) : 0;
}

static void carve_cell(struct target_arrays *x, const struct model *m, const struct head *h, struct arena *a)
{
	x->value = arena_real(a, h->N * m->c.vocab_size);
	carve_counts(x, m, h, a);
}

static void fill_cell(const struct target_arrays *x, const struct model *m, const struct head *h, const struct goal *g)
{
	size_t n = h->rows * m->c.vocab_size;
	memcpy(x->value, g->value, n * sizeof *x->value);
	for (size_t i = n; i < h->N * m->c.vocab_size; i++)
		x->value[i] = NAN;
	fill_counts(x, m, h, g);
}

const struct target_kind target_kind[] = {
	[TARGET_TOKEN] = {check_class, carve_class, fill_class, count_class, NULL},
	[TARGET_CLASS] = {check_class, carve_class, fill_class, count_class, NULL},
	[TARGET_SET] = {check_class, carve_class, fill_class, count_class, NULL},
	[TARGET_VALUE] = {check_value, carve_value, fill_value, count_value, spread_value},
	[TARGET_CELL] = {check_cell, carve_cell, fill_cell, count_counts, NULL},
	[TARGET_COUNTS] = {check_counts, carve_counts, fill_counts, count_counts, NULL},
};
EVERY_ROW(target_kind, TARGETS);
