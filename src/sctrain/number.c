/*
 * A number for each cell, such as an age or a score, by squared error. The head learns z = (number - mean) / scale, with the mean and the standard
 * deviation of the cells to train on, which the stream's header has (maskgen --strategy none --keep COL). Both are in config.json, so predictions
 * are in the unit of the column. The loss is that of z: 1 is as good as the mean.
 */
#include "heads.h"

#include "label/number.h"

struct number {
	struct numbers column[2]; /* of the training stream, of --eval */
	real *of; /* [cells of the batch] */
	size_t of_cap;
};

static void numbers_find_column(const struct train *t, struct number *x, const struct masked_source *s, const char *column)
{
	const struct header *h = stream_header(s->in);
	if (header_find(h, column) < 0)
		die("%s: no column '%s': make the stream with maskgen %s %s", s->name, column, heads_keep(t), column);
	must(numbers_init(&x->column[s->validation], h, column, s->name, &failure));
}

static void open_numbers(struct objective *o, struct train *t)
{
	const char *column = o->head.column, *name = t->source.name;
	struct masked_numbers n;
	numbers_find_column(t, o->state, &t->source, column);
	if (t->validation.source.in)
		numbers_find_column(t, o->state, &t->validation.source, column);
	must(masked_numbers(&n, t->header, column, name, &failure));
	if (n.count < 2)
		die("%s: %.0f cells have a number in column '%s': expected at least two", name, n.count, column);
	if (!(n.sd > 0))
		die("%s: the numbers in column '%s' are all %g, or differ too little from it (their standard deviation is 0): "
		    "there is nothing to predict",
			name, column, n.mean);
	if (n.count < (double)t->info.rows)
		warn("%.0f of %llu cells have no number in column '%s': its head does not learn from them", (double)t->info.rows - n.count,
			(unsigned long long)t->info.rows, column);
	o->head.mean = n.mean;
	o->head.scale = n.sd;
}

static void numbers_eval_open(struct objective *o, const char *dir, const struct masked_source *s)
{
	struct number *x = o->state;
	(void)dir;
	must(numbers_init(&x->column[s->validation], stream_header(s->in), o->head.column, s->name, &failure));
}

/* A cell without the token that the head reads has no target. */
static void number_cells(
	struct objective *o, const struct masked_source *s, struct packed *p, const struct block *b, size_t from, size_t to)
{
	struct number *x = o->state;
	grow(x->of, x->of_cap, to - from);
	for (size_t i = from; i < to; i++) {
		double v = numbers_at(&x->column[s->validation], b, i);
		if (isinf(v))
			die("%s: column '%s': an infinite number", s->name, o->head.column);
		x->of[i - from] = cell_has_token(o, p, i - from) ? (real)((v - o->head.mean) / o->head.scale) : (real)NAN;
	}
	p->b.goal[o->index] = (struct goal){.value = x->of};
}

const struct objective_kind number_objective = {
	.name = "cells",
	.head = &head_number,
	.input = INPUT_TOKENS,
	.counted = "numbers",
	.size = sizeof(struct number),
	.open = open_numbers,
	.label = number_cells,
	.eval_open = numbers_eval_open,
};

struct objective *number_add(struct objectives *list, const char *column)
{
	return objective_add(list, &number_objective, column);
}
