#include "nn/head_linear.h"

/* Classes, or one number. */
static size_t outputs(const struct head_spec *s)
{
	return head_classifies(s->kind) ? s->nlabel : 1;
}

void linear_tensors(const struct head_spec *s, struct params *p, const struct model_config *c)
{
	char name[TENSOR_NAME];
	snprintf(name, sizeof name, "%.*s", (int)strcspn(*s->kind->prefix, "."), *s->kind->prefix);
	params_add_last(p, (int)c->num_hidden_layers, outputs(s), c->hidden_size, name);
}

void linear_resolve(struct head *h, struct model *m)
{
	struct linear_head *k = (struct linear_head *)h;
	k->w = params_at(&m->p, "%sweight", *h->kind->prefix);
	k->b = params_at(&m->p, "%sbias", *h->kind->prefix);
}

size_t linear_outputs(const struct head *h, const struct model *m)
{
	return outputs(&h->spec);
}

void linear_carve(struct head *h, struct model *m, struct arena *a, const struct shape *s)
{
	h->z = arena_act(a, h->N * outputs(&h->spec));
	h->dz = s->train ? arena_act(a, h->N * outputs(&h->spec)) : NULL;
}

void linear_forward(struct head *h, struct model *m, const struct forward *f, const void *x)
{
	struct linear_head *k = (struct linear_head *)h;
	k->x = readout(h, m, f, x);
	m->o->linear(m->o, h->z, NULL, k->x, P(m, k->w), P(m, k->b), h->N, m->c.hidden_size, outputs(&h->spec), ACT_NONE);
}

void linear_backward(struct head *h, struct model *m, const struct forward *f, void *dx)
{
	struct linear_head *k = (struct linear_head *)h;
	m->o->linear_back(m->o, readout_grad(h, m, dx), G(m, k->w), G(m, k->b), h->dz, k->x, P(m, k->w), NULL, NULL, h->N, m->c.hidden_size,
		outputs(&h->spec), ACT_NONE, 0);
	readout_back(h, m, f, dx);
}
