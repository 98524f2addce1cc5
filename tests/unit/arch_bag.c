/*
 * A second architecture, to prove that one is a file of its own: a bag of tokens, one state a cell.
 *     e = LN(word[id] + type[0]);  x_b = tanh(mean_t(e) W + b)
 * It has no positions, reads no config but the sizes, and keeps a BUFFER: a running mean of the first channel, which is saved and not
 * trained.
 */
#include "nn/model_impl.h"

struct bag {
	size_t word, type, norm_w, norm_b, dense_w, dense_b;
	void *e, *mean, *x, *dmean; /* [T, C], [B, C] */
	real *stat;
};

static const struct config_field bag_fields[] = {
	{"hidden_size", FIELD_WHOLE, offsetof(struct model_config, hidden_size), 8, NULL, 0},
	{"vocab_size", FIELD_WHOLE, offsetof(struct model_config, vocab_size), 0, NULL, 0},
	{"temperature", FIELD_REAL, offsetof(struct model_config, own[0]), 1, NULL, 0},
	{0},
};

static int bag_check(const struct model_config *c, struct error *e)
{
	return c->hidden_size ? 0 : error_set(e, "hidden_size is 0");
}

static void bag_tensors(struct params *p, const struct model_config *c)
{
	params_add(p, INIT_NORMAL, 1, -1, c->vocab_size, c->hidden_size, "bag.word.weight");
	params_add(p, INIT_NORMAL, 1, -1, 1, c->hidden_size, "bag.type.weight");
	params_add_norm(p, -1, c->hidden_size, "bag.norm");
	params_add(p, INIT_ONE, 0, -1, c->hidden_size, 0, "bag.running_mean")->role = BUFFER;
	params_add_linear(p, -1, c->hidden_size, c->hidden_size, "bag.dense");
}

static void bag_resolve(struct model *m)
{
	struct bag *n = m->arch_state;
	n->word = params_at(&m->p, "bag.word.weight");
	n->type = params_at(&m->p, "bag.type.weight");
	n->norm_w = params_at(&m->p, "bag.norm.weight");
	n->norm_b = params_at(&m->p, "bag.norm.bias");
	n->dense_w = params_at(&m->p, "bag.dense.weight");
	n->dense_b = params_at(&m->p, "bag.dense.bias");
}

static void bag_carve(struct model *m, struct arena *a, const struct shape *s)
{
	struct bag *n = m->arch_state;
	size_t C = m->c.hidden_size;
	n->e = arena_act(a, s->T * C);
	n->stat = arena_real(a, 2 * s->T);
	n->mean = arena_act(a, s->B * C);
	n->x = arena_act(a, s->B * C);
	n->dmean = arena_act(a, s->B * C);
}

/* Ranges of whole cells: offset[b], offset[b + 1] are two neighbours of one array, so pool wants them doubled. The test's backend is the
 * CPU, where the device's memory is ours. */
static const uint32_t *bag_ranges(struct model *m)
{
	static uint32_t range[2 * 64];
	for (size_t b = 0; b < m->seq.B; b++) {
		range[2 * b] = m->seq.offset[b];
		range[2 * b + 1] = m->seq.offset[b + 1];
	}
	return range;
}

static void *bag_forward(struct model *m, const struct forward *f, uint32_t layers)
{
	struct bag *n = m->arch_state;
	struct ops *o = m->o;
	size_t C = m->c.hidden_size, B = m->seq.B;
	struct dropout d = model_dropout(m, f, SITE_EMBED, 0, 0);
	o->embed(o, n->e, n->stat, P(m, n->word), NULL, P(m, n->type), NULL, P(m, n->norm_w), P(m, n->norm_b), &m->seq, C, 1e-12, &d);
	o->pool(o, n->mean, n->e, bag_ranges(m), B, C, 0);
	o->linear(o, n->x, NULL, n->mean, P(m, n->dense_w), P(m, n->dense_b), B, C, C, ACT_TANH);
	return n->x;
}

static void bag_backward(struct model *m, const struct forward *f, uint32_t layers)
{
	struct bag *n = m->arch_state;
	struct ops *o = m->o;
	size_t C = m->c.hidden_size, B = m->seq.B;
	struct dropout d = model_dropout(m, f, SITE_EMBED, 0, 0);
	o->linear_back(o, n->dmean, G(m, n->dense_w), G(m, n->dense_b), m->dx, n->mean, P(m, n->dense_w), n->x, NULL, B, C, C, ACT_TANH, 0);
	o->pool_back(o, n->e, n->dmean, bag_ranges(m), &m->seq, C);
	o->embed_back(o, G(m, n->word), NULL, G(m, n->type), G(m, n->norm_w), G(m, n->norm_b), n->e, n->stat, P(m, n->word), NULL,
		P(m, n->type), NULL, P(m, n->norm_w), &m->seq, m->c.vocab_size, 0, C, UINT32_MAX, &d);
	model_finished(m, -1);
}

static const struct arch arch_bag = {
	.name = "bag",
	.class_name = "Bag",
	.prefix = "bag.",
	.pooler = "bag.pooler",
	.field = bag_fields,
	.per_cell = 1,
	.size = sizeof(struct bag),
	.check = bag_check,
	.tensors = bag_tensors,
	.resolve = bag_resolve,
	.carve = bag_carve,
	.forward = bag_forward,
	.backward = bag_backward,
};
