/*
 * The encoder of R2MAE's single-cell model [Dong et al. 2025]: a multilayer perceptron on the counts of a cell, one state a cell.
 *
 *     x = log(1 + count), 0 where masked;   c = one-hot covariate of the cell
 *     y1 = ReLU(BN(x W_genes + c W_groups));   y2 = ReLU(BN(y1 W_hidden));   latent = y2 W_latent
 *
 * No layer has a bias: a batch normalisation follows each, the decoder's follows the last one, and would remove it. Most x are 0, so the
 * first layer adds up the rows of W_genes of the expressed genes (op bag). The decoder is a head (head_nb.c). Where the paper gives no
 * number, the defaults of torch.nn.BatchNorm1d are taken.
 *
 * A training forward normalises by the cells of its own batch: with several parts (--accum) or ranks, by those of the part on the rank.
 */
#include "nn/mlp.h"

struct mlp_nb {
	size_t genes, groups, hidden, project; /* offsets */
	struct mlp_layer layer[2];
	void *latent; /* [B, hidden_size] */
	void *d[2]; /* [B, intermediate_size] gradients */
};

#define FIELD(name) offsetof(struct model_config, name)

static const struct config_field fields[] = {
	{"batch_norm_eps", FIELD_REAL, FIELD(own[MLP_EPS]), 1e-5, NULL, 0},
	{"batch_norm_momentum", FIELD_REAL, FIELD(own[MLP_MOMENTUM]), 0.1, NULL, 0},
	{"hidden_size", FIELD_WHOLE, FIELD(hidden_size), 512, NULL, 0},
	{"intermediate_size", FIELD_WHOLE, FIELD(intermediate_size), 1024, NULL, 0},
	{"masked_max", FIELD_REAL, FIELD(masked_most), 0, NULL, 0},
	{"masked_min", FIELD_REAL, FIELD(masked_least), 0, NULL, 0},
	{"num_groups", FIELD_WHOLE, FIELD(num_groups), 0, NULL, 0},
	{"vocab_size", FIELD_WHOLE, FIELD(vocab_size), 0, NULL, 0},
	{0},
};

static int mlp_nb_check(const struct model_config *c, struct error *e)
{
	if (c->vocab_size < 2 || c->vocab_size > 1 << 24)
		return error_set(e, "vocab_size is %u: expected 2 to %d genes", c->vocab_size, 1 << 24);
	if (c->hidden_size < 1 || c->hidden_size > 1 << 16)
		return error_set(e, "hidden_size is %u: expected 1 to %d", c->hidden_size, 1 << 16);
	if (c->intermediate_size < 1 || c->intermediate_size > 1 << 16)
		return error_set(e, "intermediate_size is %u: expected 1 to %d", c->intermediate_size, 1 << 16);
	if (c->num_groups > 1 << 20)
		return error_set(e, "num_groups is %u: expected at most %d", c->num_groups, 1 << 20);
	if (!(c->masked_least >= 0 && c->masked_least <= c->masked_most && c->masked_most <= 1))
		return error_set(e, "masked_min is %g, masked_max %g: expected 0 to 1 in order", c->masked_least, c->masked_most);
	if (!(c->own[MLP_EPS] > 0 && c->own[MLP_EPS] <= 1))
		return error_set(e, "batch_norm_eps is %g: expected a number above 0, at most 1", c->own[MLP_EPS]);
	if (!(c->own[MLP_MOMENTUM] > 0 && c->own[MLP_MOMENTUM] <= 1))
		return error_set(e, "batch_norm_momentum is %g: expected a number above 0, at most 1", c->own[MLP_MOMENTUM]);
	return 0;
}

static int check_batch(const struct model_config *c, const struct batch *b, int train, struct error *e)
{
	if (!b->value)
		return error_set(e, "batch: tokens without counts");
	if (train && b->ncell == 1)
		return error_set(e, "a batch of one cell: batch normalisation needs at least two");
	return 0;
}

static void mlp_nb_tensors(struct params *p, const struct model_config *c)
{
	size_t H = c->intermediate_size, in = (size_t)c->vocab_size + c->num_groups;
	mlp_add_bag(p, -1, c->vocab_size, H, in, "encoder.genes");
	mlp_add_bag(p, -1, c->num_groups, H, in, "encoder.groups");
	mlp_add_norm(p, -1, H, "encoder.norm1");
	mlp_add_linear(p, -1, H, H, 0, "encoder.hidden");
	mlp_add_norm(p, -1, H, "encoder.norm2");
	mlp_add_linear(p, -1, c->hidden_size, H, 0, "encoder.latent");
}

static void mlp_nb_resolve(struct model *m)
{
	struct mlp_nb *n = m->arch_state;
	n->genes = params_at(&m->p, "encoder.genes.weight");
	n->groups = m->c.num_groups ? params_at(&m->p, "encoder.groups.weight") : NO_ROW;
	n->hidden = params_at(&m->p, "encoder.hidden.weight");
	n->project = params_at(&m->p, "encoder.latent.weight");
	mlp_resolve(&n->layer[0], &m->p, "encoder.norm1");
	mlp_resolve(&n->layer[1], &m->p, "encoder.norm2");
}

static void mlp_nb_carve(struct model *m, struct arena *a, const struct shape *s)
{
	struct mlp_nb *n = m->arch_state;
	for (int i = 0; i < 2; i++) {
		mlp_carve(&n->layer[i], a, s->B, m->c.intermediate_size);
		n->d[i] = s->train ? arena_act(a, s->B * m->c.intermediate_size) : NULL;
	}
	n->latent = arena_act(a, s->B * m->c.hidden_size);
}

static void *mlp_nb_forward(struct model *m, const struct forward *f, uint32_t layers)
{
	struct mlp_nb *n = m->arch_state;
	struct ops *o = m->o;
	size_t N = m->shape.cells, H = m->c.intermediate_size, C = m->c.hidden_size;
	o->bag(o, n->layer[0].z, P(m, n->genes), &m->seq, m->dev.value, N, H, 0);
	if (m->c.num_groups)
		o->bag(o, n->layer[0].z, P(m, n->groups), &m->groups, NULL, N, H, 1);
	mlp_forward(&n->layer[0], m, f, H);
	o->linear(o, n->layer[1].z, NULL, n->layer[0].y, P(m, n->hidden), NULL, N, H, H, ACT_NONE);
	mlp_forward(&n->layer[1], m, f, H);
	o->linear(o, n->latent, NULL, n->layer[1].y, P(m, n->project), NULL, N, H, C, ACT_NONE);
	o->zero(o, (char *)n->latent + N * C * o->act_size,
		(m->shape.B - N) * C * o->act_size); /* cells of padding, which heads may read */
	return n->latent;
}

static void mlp_nb_backward(struct model *m, const struct forward *f, uint32_t layers)
{
	struct mlp_nb *n = m->arch_state;
	struct ops *o = m->o;
	size_t N = m->shape.cells, H = m->c.intermediate_size, C = m->c.hidden_size;
	o->linear_back(o, n->d[1], G(m, n->project), NULL, m->dx, n->layer[1].y, P(m, n->project), NULL, NULL, N, H, C, ACT_NONE, 0);
	mlp_back(&n->layer[1], m, n->d[1], H);
	o->linear_back(o, n->d[0], G(m, n->hidden), NULL, n->d[1], n->layer[0].y, P(m, n->hidden), NULL, NULL, N, H, H, ACT_NONE, 0);
	mlp_back(&n->layer[0], m, n->d[0], H);
	o->bag_back(o, G(m, n->genes), n->d[0], &m->seq, m->dev.value, m->c.vocab_size, H);
	if (m->c.num_groups)
		o->bag_back(o, G(m, n->groups), n->d[0], &m->groups, NULL, m->c.num_groups, H);
	model_finished(m, -1);
}

static void fill_large(struct model_config *c)
{
	*c = (struct model_config){.arch = &arch_mlp_nb, .hidden_size = 512, .intermediate_size = 1024, .own = {1e-5, 0.1}};
}

static void fill_tiny(struct model_config *c)
{
	fill_large(c);
	c->hidden_size = 32;
	c->intermediate_size = 64;
}

static const struct arch_preset presets[] = {{"mlp-nb", fill_large}, {"mlp-nb-tiny", fill_tiny}, {0}};

const struct arch arch_mlp_nb = {
	.name = "mlp_nb",
	.class_name = "MlpNb",
	.prefix = "encoder.",
	.field = fields,
	.preset = presets,
	.per_cell = 1,
	.counts = 1,
	.own_config = 1,
	.size = sizeof(struct mlp_nb),
	.check = mlp_nb_check,
	.check_batch = check_batch,
	.tensors = mlp_nb_tensors,
	.resolve = mlp_nb_resolve,
	.carve = mlp_nb_carve,
	.forward = mlp_nb_forward,
	.backward = mlp_nb_backward,
};
