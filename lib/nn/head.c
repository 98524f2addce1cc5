/* The kinds of heads, and the rows of hidden states that they read. */
#include <string.h>

#include "nn/model_impl.h"

static const struct head_kind *const all[] = {&head_mlm, &head_cells, &head_genes, &head_value, &head_nb};

const struct head_kind *head_at(size_t i)
{
	return i < sizeof all / sizeof *all ? all[i] : NULL;
}

const struct head_kind *head_find(const char *name)
{
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (strcmp(all[i]->name, name) == 0)
			return all[i];
	return NULL;
}

double head_accuracy(const struct loss *l)
{
	return l->correct / l->count;
}

struct dropout head_dropout(const struct model *m, const struct forward *f)
{
	return model_dropout(m, f, SITE_HEAD, 0, m->c.classifier_dropout >= 0 ? m->c.classifier_dropout : m->c.hidden_dropout_prob);
}

/* Are the hidden states themselves its rows? */
static int reads_all(const struct head *h, const struct model *m)
{
	return h->kind->rows == (m->arch->per_cell ? ROWS_CELL : ROWS_TOKEN);
}

void head_carve_in(struct head *h, struct model *m, struct arena *a, const struct shape *s)
{
	size_t n = h->N * m->c.hidden_size;
	h->in = reads_all(h, m) ? NULL : arena_act(a, n);
	h->din = reads_all(h, m) || !s->train ? NULL : arena_act(a, n);
}

const void *head_in(struct head *h, struct model *m, const void *x)
{
	struct ops *o = m->o;
	if (reads_all(h, m))
		return x;
	if (h->kind->rows == ROWS_LISTED)
		o->gather(o, h->in, x, m->dev.head[h->index].row, h->N, m->c.hidden_size);
	else
		o->pool(o, h->in, x, m->dev.head[h->index].range, h->N, m->c.hidden_size, 0);
	return h->in;
}

void *head_din(struct head *h, struct model *m, void *dx)
{
	return reads_all(h, m) ? dx : h->din;
}

void head_back(struct head *h, struct model *m, void *dx)
{
	struct ops *o = m->o;
	if (reads_all(h, m))
		return;
	if (h->kind->rows == ROWS_LISTED)
		o->scatter(o, dx, h->din, m->dev.head[h->index].row, h->N, model_states(m), m->c.hidden_size);
	else
		o->pool_back(o, dx, h->din, m->dev.head[h->index].range, &m->seq, m->c.hidden_size);
}
