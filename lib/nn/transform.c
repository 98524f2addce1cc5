#include "nn/transform.h"

void transform_tensors(struct params *p, const struct model_config *c, const struct head_kind *of)
{
	int layer = (int)c->num_hidden_layers;
	char name[TENSOR_NAME];
	snprintf(name, sizeof name, "%stransform.dense", *of->prefix);
	params_add_linear(p, layer, c->hidden_size, c->hidden_size, name);
	snprintf(name, sizeof name, "%stransform.LayerNorm", *of->prefix);
	params_add_norm(p, layer, c->hidden_size, name);
}

void transform_resolve(struct transform *t, const struct model *m, const struct head_kind *of)
{
	t->dense_w = params_at(&m->p, "%stransform.dense.weight", *of->prefix);
	t->dense_b = params_at(&m->p, "%stransform.dense.bias", *of->prefix);
	t->norm_w = params_at(&m->p, "%stransform.LayerNorm.weight", *of->prefix);
	t->norm_b = params_at(&m->p, "%stransform.LayerNorm.bias", *of->prefix);
}

void transform_carve(struct transform *t, const struct head *h, const struct model *m, struct arena *a)
{
	size_t n = h->N * m->c.hidden_size;
	t->z = arena_act(a, n);
	t->zpre = m->c.hidden_act == ACT_GELU ? arena_act(a, n) : NULL;
	t->y = arena_act(a, n);
	t->stat = arena_real(a, 2 * h->N);
}

const void *transform_forward(struct transform *t, const struct head *h, struct model *m, const void *x)
{
	size_t N = h->N, C = m->c.hidden_size;
	t->x = x;
	m->o->linear(m->o, t->z, t->zpre, x, P(m, t->dense_w), P(m, t->dense_b), N, C, C, m->c.hidden_act);
	m->o->norm(m->o, t->y, t->z, t->stat, t->z, NULL, P(m, t->norm_w), P(m, t->norm_b), NULL, N, C, m->c.layer_norm_eps, NULL);
	return t->y;
}

void transform_back(struct transform *t, const struct head *h, struct model *m, void *dx, void *dy)
{
	size_t N = h->N, C = m->c.hidden_size;
	m->o->norm_back(m->o, NULL, dy, G(m, t->norm_w), G(m, t->norm_b), NULL, dy, t->z, t->stat, P(m, t->norm_w), NULL, N, C, NULL);
	m->o->linear_back(
		m->o, dx, G(m, t->dense_w), G(m, t->dense_b), dy, t->x, P(m, t->dense_w), t->z, t->zpre, N, C, C, m->c.hidden_act, 0);
}
