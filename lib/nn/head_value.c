/*
 * A number at each listed position [transformers BertForTokenClassification with one label]:
 *     y = dropout(x) w + b;   loss = (y - value)^2
 * The host computes the loss: it has one number a row. transformers does not compute it: the class has no loss of numbers.
 */
#include <math.h>
#include <stdlib.h>

#include "nn/model_impl.h"

struct value {
	struct head h;
	size_t w, b;   /* offsets */
	void *dropped; /* [T, C] the hidden states after dropout; NULL: they have none */
	const void *x; /* [N, C] the rows it reads */
	void *y, *dy;  /* [N] */
	real *host;    /* [N] */
	size_t host_cap;
};

static int check(const struct head_spec *s, const struct model_config *c, struct error *e)
{
	if (c->arch->per_cell)
		return error_set(e, "head %s: architecture %s has no hidden states of tokens", s->kind->name, c->arch->name);
	return 0;
}

static void tensors(const struct head_spec *s, struct params *p, const struct model_config *c)
{
	params_add_linear(p, (int)c->num_hidden_layers, 1, c->hidden_size, "classifier");
}

static void resolve(struct head *h, struct model *m)
{
	struct value *k = (struct value *)h;
	k->w = params_at(&m->p, "classifier.weight");
	k->b = params_at(&m->p, "classifier.bias");
}

static size_t outputs(const struct head *h, const struct model *m)
{
	return 1;
}

static void carve(struct head *h, struct model *m, struct arena *a, const struct shape *s)
{
	struct value *k = (struct value *)h;
	head_carve_in(h, m, a, s);
	k->dropped = s->train ? arena_act(a, s->T * m->c.hidden_size) : NULL;
	k->y = arena_act(a, h->N);
	k->dy = s->train ? arena_act(a, h->N) : NULL;
}

/* Dropout comes before the rows are gathered, so a state loses the same columns whichever other positions are listed. */
static void forward(struct head *h, struct model *m, const struct forward *f, const void *x)
{
	struct value *k = (struct value *)h;
	struct ops *o = m->o;
	size_t C = m->c.hidden_size;
	struct dropout d = head_dropout(m, f);
	if (k->dropped)
		o->drop(o, k->dropped, x, &m->seq, 0, C, &d);
	k->x = head_in(h, m, k->dropped ? k->dropped : x);
	o->linear(o, k->y, NULL, k->x, P(m, k->w), P(m, k->b), h->N, C, 1, ACT_NONE);
}

static int host_loss(struct head *h, struct model *m, const struct goal *g, int train, double sum[3])
{
	struct value *k = (struct value *)h;
	grow(k->host, k->host_cap, h->N);
	m->o->download_act(m->o, k->host, k->y, h->N);
	for (size_t i = 0; i < h->N; i++) {
		double off = i < h->rows && !isnan(g->value[i]) ? (double)k->host[i] - g->value[i] : 0;
		sum[0] += off * off;
		k->host[i] = (real)(2 * off * h->host_scale);
	}
	if (train)
		m->o->upload_act(m->o, k->dy, k->host, h->N);
	return 1;
}

static const void *logits(struct head *h, struct model *m)
{
	return ((struct value *)h)->y;
}

static void backward(struct head *h, struct model *m, const struct forward *f, void *dx)
{
	struct value *k = (struct value *)h;
	struct ops *o = m->o;
	size_t C = m->c.hidden_size;
	struct dropout d = head_dropout(m, f);
	o->linear_back(o, head_din(h, m, dx), G(m, k->w), G(m, k->b), k->dy, k->x, P(m, k->w), NULL, NULL, h->N, C, 1, ACT_NONE, 0);
	head_back(h, m, dx);
	o->drop(o, dx, dx, &m->seq, 0, C, &d);
}

static void release(struct head *h, struct model *m)
{
	free(((struct value *)h)->host);
}

static double rmse(const struct loss *l)
{
	return sqrt(l->sum / l->count);
}

/* The share of the variance of the targets that the predictions explain; 0 is as good as their mean. */
static double r2(const struct loss *l)
{
	double spread = l->square - l->target * l->target / l->count;
	return spread > 0 ? 1 - l->sum / spread : NAN;
}

static const struct head_metric metrics[] = {
	{"rmse", rmse, 0},
	{"r2", r2, 1},
	{0},
};

static const struct op_need need[] = {OP(gather), OP(scatter), OP(linear), OP(linear_back), OP(drop), {0}};

const struct head_kind head_value = {
	.name = "value",
	.class_name = "ForTokenClassification",
	.problem_type = "regression",
	.prefix = (const char *const[]){"classifier.", NULL},
	.rows = ROWS_LISTED,
	.width = 1,
	.metric = metrics,
	.need = need,
	.size = sizeof(struct value),
	.check = check,
	.tensors = tensors,
	.resolve = resolve,
	.outputs = outputs,
	.carve = carve,
	.forward = forward,
	.host_loss = host_loss,
	.logits = logits,
	.backward = backward,
	.release = release,
};
