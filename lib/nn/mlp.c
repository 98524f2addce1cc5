#include "nn/mlp.h"

void mlp_add_linear(struct params *p, int layer, size_t out, size_t in, int bias, const char *name)
{
	params_add(p, INIT_NORMAL, 1, layer, out, in, "%s.weight", name)->std = sqrt(1.0 / (3.0 * (double)in));
	if (bias)
		params_add(p, INIT_ZERO, 1, layer, out, 0, "%s.bias", name);
}

void mlp_add_bag(struct params *p, int layer, size_t rows, size_t C, size_t in, const char *name)
{
	if (rows)
		params_add(p, INIT_NORMAL, 1, layer, rows, C, "%s.weight", name)->std = sqrt(1.0 / (3.0 * (double)in));
}

void mlp_add_norm(struct params *p, int layer, size_t C, const char *name)
{
	params_add(p, INIT_ONE, 1, layer, C, 0, "%s.weight", name);
	params_add(p, INIT_ZERO, 1, layer, C, 0, "%s.bias", name);
	params_add(p, INIT_ZERO, 0, layer, C, 0, "%s.running_mean", name)->role = BUFFER;
	params_add(p, INIT_ONE, 0, layer, C, 0, "%s.running_var", name)->role = BUFFER;
}

void mlp_resolve(struct mlp_layer *l, const struct params *p, const char *name)
{
	*l = (struct mlp_layer){
		.gamma = params_at(p, "%s.weight", name),
		.beta = params_at(p, "%s.bias", name),
		.mean = params_at(p, "%s.running_mean", name),
		.var = params_at(p, "%s.running_var", name),
	};
}

void mlp_carve(struct mlp_layer *l, struct arena *a, size_t N, size_t C)
{
	l->z = arena_act(a, N * C);
	l->y = arena_act(a, N * C);
	l->stat = arena_real(a, 2 * C);
}

void mlp_forward(struct mlp_layer *l, struct model *m, const struct forward *f, size_t C)
{
	model_moments(m, f, l->z, C, l->mean, l->var);
	m->o->batch_norm(m->o, l->y, l->stat, l->z, P(m, l->gamma), P(m, l->beta), P(m, l->mean), P(m, l->var), m->shape.cells, C,
		m->c.own[MLP_EPS], m->c.own[MLP_MOMENTUM], f->train, ACT_RELU);
}

void mlp_back(struct mlp_layer *l, struct model *m, void *dy, size_t C)
{
	m->o->batch_norm_back(
		m->o, dy, G(m, l->gamma), G(m, l->beta), dy, l->z, l->y, l->stat, P(m, l->gamma), m->shape.cells, C, ACT_RELU);
}
