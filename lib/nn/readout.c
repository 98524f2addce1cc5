/*
 * What a head reads: rows of the hidden states, with what its kind asks for between them and its own tensors.
 *
 *     tokens (listed or all)     y = x[rows], after dropout
 *     cells                      y = dropout(tanh(x[position] W_pool + b_pool)), or without the pooler: dropout(x[position])
 *
 * Of tokens, dropout comes before the rows are taken, so a state loses the same columns whichever other positions are listed. The pooler is the
 * architecture's [transformers BertPooler]; its tensors are there if a head reads through it, and all heads share them.
 */

#include "nn/model_impl.h"

/* Are the hidden states themselves its rows? */
static int reads_all(const struct head *h, const struct model *m)
{
	return h->kind->rows == (m->arch->per_cell ? ROWS_CELL : ROWS_TOKEN);
}

static int of_cells(const struct head *h)
{
	return h->kind->rows == ROWS_CELL;
}

int readout_check(const struct head_kind *k, const struct model_config *c, struct error *e)
{
	if (k->rows != ROWS_CELL && c->arch->per_cell)
		return error_set(e, "head %s: architecture %s has no hidden states of tokens", k->name, c->arch->name);
	return 0;
}

static int pools(const struct head_spec *s, const struct arch *a)
{
	return s->kind->pool && a->pooler && !s->direct;
}

void readout_tensors(const struct head_spec *s, struct params *p, const struct model_config *c)
{
	char name[TENSOR_NAME];
	if (!pools(s, c->arch))
		return;
	snprintf(name, sizeof name, "%s.weight", c->arch->pooler);
	const struct tensor *there = params_find(p, name);
	size_t at = there ? (size_t)(there - p->tensor) : p->n;
	if (!there)
		params_add_linear(p, (int)c->num_hidden_layers, c->hidden_size, c->hidden_size, c->arch->pooler);
	for (size_t i = at; i < at + 2; i++) /* weight and bias: updates, and their decay, begin with the first head that reads them */
		p->tensor[i].start = there && p->tensor[i].start < s->from ? p->tensor[i].start : s->from;
}

void readout_resolve(struct head *h, struct model *m)
{
	struct readout *r = &h->read;
	if (!pools(&h->spec, m->arch))
		return;
	r->pool_w = params_at(&m->p, "%s.weight", m->arch->pooler);
	r->pool_b = params_at(&m->p, "%s.bias", m->arch->pooler);
}

void readout_carve(struct head *h, struct model *m, struct arena *a, const struct shape *s)
{
	struct readout *r = &h->read;
	size_t C = m->c.hidden_size, n = h->N * C;
	int pool = pools(&h->spec, m->arch), drop = h->kind->drop && s->train;
	r->in = reads_all(h, m) ? NULL : arena_act(a, n);
	r->din = reads_all(h, m) || !s->train ? NULL : arena_act(a, n);
	r->pooled = pool ? arena_act(a, n) : NULL;
	r->dpooled = pool && s->train ? arena_act(a, n) : NULL;
	r->dropped = drop ? arena_act(a, of_cells(h) ? n : s->T * C) : NULL;
}

/* The dropout of a classifier's input. */
static struct dropout dropout(const struct model *m, const struct forward *f)
{
	return model_dropout(m, f, SITE_HEAD, 0, m->c.classifier_dropout >= 0 ? m->c.classifier_dropout : m->c.hidden_dropout_prob);
}

static const void *drop(struct head *h, struct model *m, const struct forward *f, const void *x)
{
	struct dropout d = dropout(m, f);
	if (!h->read.dropped)
		return x;
	m->o->drop(m->o, h->read.dropped, x, &m->seq, of_cells(h), m->c.hidden_size, &d);
	return h->read.dropped;
}

static const void *take_rows(struct head *h, struct model *m, const void *x)
{
	struct ops *o = m->o;
	void *in = h->read.in;
	if (reads_all(h, m))
		return x;
	if (h->kind->rows == ROWS_LISTED)
		o->gather(o, in, x, m->dev.head[h->index].row, h->N, m->c.hidden_size);
	else
		o->pool(o, in, x, m->dev.head[h->index].range, h->N, m->c.hidden_size, 0);
	return in;
}

const void *readout(struct head *h, struct model *m, const struct forward *f, const void *x)
{
	struct readout *r = &h->read;
	size_t C = m->c.hidden_size;
	if (!of_cells(h))
		return take_rows(h, m, drop(h, m, f, x));
	r->x = take_rows(h, m, x);
	if (!r->pooled)
		return drop(h, m, f, r->x);
	m->o->linear(m->o, r->pooled, NULL, r->x, P(m, r->pool_w), P(m, r->pool_b), h->N, C, C, ACT_TANH);
	return drop(h, m, f, r->pooled);
}

void *readout_grad(struct head *h, struct model *m, void *dx)
{
	return h->read.dpooled ? h->read.dpooled : reads_all(h, m) ? dx : h->read.din;
}

static void drop_back(struct head *h, struct model *m, const struct forward *f, void *dx)
{
	struct dropout d = dropout(m, f);
	if (h->read.dropped)
		m->o->drop(m->o, dx, dx, &m->seq, of_cells(h), m->c.hidden_size, &d);
}

static void rows_back(struct head *h, struct model *m, void *dx)
{
	struct ops *o = m->o;
	if (reads_all(h, m))
		return;
	if (h->kind->rows == ROWS_LISTED)
		o->scatter(o, dx, h->read.din, m->dev.head[h->index].row, h->N, model_states(m), m->c.hidden_size);
	else
		o->pool_back(o, dx, h->read.din, m->dev.head[h->index].range, &m->seq, m->c.hidden_size);
}

void readout_back(struct head *h, struct model *m, const struct forward *f, void *dx)
{
	struct readout *r = &h->read;
	size_t C = m->c.hidden_size;
	void *grad = readout_grad(h, m, dx);
	if (h->spec.reverse > 0 && !m->input.given) /* the reversal is for a training */
		m->o->scale(m->o, grad, grad, -h->spec.reverse, h->N * C);
	if (!of_cells(h)) {
		rows_back(h, m, dx);
		drop_back(h, m, f, dx);
		return;
	}
	drop_back(h, m, f, grad);
	if (r->pooled)
		m->o->linear_back(m->o, reads_all(h, m) ? dx : r->din, G(m, r->pool_w), G(m, r->pool_b), r->dpooled, r->x, P(m, r->pool_w),
			r->pooled, NULL, h->N, C, C, ACT_TANH, 0);
	rows_back(h, m, dx);
}
