/*
 * The expression of a gene at a listed position, of which the model sees the gene or the value [BMFM-RNA, masked language modelling]:
 *     t = LN(act(x W_t + b_t));   m = t . w + b, its value if it is expressed;   a = t . w' + b', the logit that it is not
 * with the losses of ops.expression_loss: cross-entropy of a, and squared error of m where the value is not 0. Here is also what it
 * shares with head_wced.c.
 */

#include "nn/expression.h"

/* ---- what both heads do ---- */

size_t expression_outputs(const struct head *h, const struct model *m)
{
	return h->kind->rows == ROWS_CELL ? 2 * (size_t)m->c.vocab_size : 2;
}

void expression_carve(struct head *h, struct model *m, struct arena *a, const struct shape *s)
{
	struct expression *k = (struct expression *)h;
	transform_carve(&k->t, h, m, a);
	h->z = arena_act(a, h->N * expression_outputs(h, m));
	k->dy = s->train ? arena_act(a, h->N * m->c.hidden_size) : NULL;
}

void expression_forward(struct head *h, struct model *m, const struct forward *f, const void *x)
{
	struct expression *k = (struct expression *)h;
	const void *y = transform_forward(&k->t, h, m, readout(h, m, f, x));
	m->o->linear(m->o, h->z, NULL, y, P(m, k->w), P(m, k->b), h->N, m->c.hidden_size, expression_outputs(h, m), ACT_NONE);
}

void expression_loss(struct head *h, struct model *m, double *sum)
{
	const struct target_arrays *to = &m->dev.head[h->index].to;
	m->o->expression_loss(m->o, sum, h->z, to->value, to->mask, h->N, expression_outputs(h, m) / 2);
}

void expression_backward(struct head *h, struct model *m, const struct forward *f, void *dx)
{
	struct expression *k = (struct expression *)h;
	struct ops *o = m->o;
	const struct target_arrays *to = &m->dev.head[h->index].to;
	size_t n = expression_outputs(h, m);
	o->expression_loss_back(o, h->z, to->value, to->mask, h->scale, h->N, n / 2);
	o->linear_back(o, k->dy, G(m, k->w), G(m, k->b), h->z, k->t.y, P(m, k->w), NULL, NULL, h->N, m->c.hidden_size, n, ACT_NONE, 0);
	transform_back(&k->t, h, m, readout_grad(h, m, dx), k->dy);
	readout_back(h, m, f, dx);
}

/* ---- the head of listed positions ---- */

#define DECODER "cls.predictions.predictions.decoder.field_decoders.expressions_"

static void expression_tensors(const struct head_spec *s, struct params *p, const struct model_config *c)
{
	int layer = (int)c->num_hidden_layers;
	transform_tensors(p, c, s->kind);
	params_add_weight(p, layer, 1, c->hidden_size, DECODER "regression");
	params_add_weight(p, layer, 1, c->hidden_size, DECODER "is_zero")->joined = 1;
	params_add(p, INIT_ZERO, 0, layer, 1, 0, DECODER "regression.bias");
	params_add(p, INIT_ZERO, 0, layer, 1, 0, DECODER "is_zero.bias")->joined = 1;
}

static void expression_resolve(struct head *h, struct model *m)
{
	struct expression *k = (struct expression *)h;
	transform_resolve(&k->t, m, h->kind);
	k->w = params_at(&m->p, DECODER "regression.weight");
	k->b = params_at(&m->p, DECODER "regression.bias");
}

static void count_parts(const struct head *h, const struct model *m, const struct goal *g, size_t rows, double *count)
{
	count[0] = count[1] = 0;
	for (size_t i = 0; i < rows && g->value; i++) {
		count[0] += !isnan(g->value[i]);
		count[1] += !isnan(g->value[i]) && g->value[i] != 0;
	}
}

static const struct head_part parts[] = {{"is_zero", 1.5}, {"value", 1}, {0}};

static const struct head_metric metrics[] = {
	{"is_zero", head_mean, 0, 0},
	{"zero_accuracy", head_accuracy, 1, 0},
	{"mse", head_mean, 0, 1},
	{0},
};

const struct head_kind head_expression = {
	.name = "expression",
	.class_name = "ForExpression",
	.prefix = (const char *const[]){"cls.predictions.predictions.", NULL},
	.rows = ROWS_LISTED,
	.target = TARGET_VALUE,
	.part = parts,
	.metric = metrics,
	.tensors = expression_tensors,
	.resolve = expression_resolve,
	.count_parts = count_parts,
	EXPRESSION_HEAD,
};
