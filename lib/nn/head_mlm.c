/*
 * The token at a masked position [transformers BertLMPredictionHead]:
 *     t = LN(act(x W_t + b_t));  logits = t word^T + bias
 * The decoder is tied to the token embedding where the architecture shares it (arch.h: token_embedding), else it has a matrix of its own. Logits
 * are made tile by tile inside the loss and never stored.
 */
#include <math.h>

#include "nn/model_impl.h"

#define DECODER "cls.predictions.decoder"

struct mlm {
	struct head h;
	size_t dense_w, dense_b, norm_w, norm_b, decoder, bias; /* offsets */
	const void *x; /* [N, C] what it reads */
	void *z, *zpre, *y, *dz, *logit; /* [N, C]; logit [N, V] where it is wanted */
	real *stat, *lse;
};

static void tensors(const struct head_spec *s, struct params *p, const struct model_config *c)
{
	int layer = (int)c->num_hidden_layers;
	params_add(p, INIT_ZERO, 0, layer, c->vocab_size, 0, "cls.predictions.bias");
	if (!c->arch->token_embedding)
		params_add_weight(p, layer, c->vocab_size, c->hidden_size, DECODER);
	params_add_linear(p, layer, c->hidden_size, c->hidden_size, "cls.predictions.transform.dense");
	params_add_norm(p, layer, c->hidden_size, "cls.predictions.transform.LayerNorm");
}

static void resolve(struct head *h, struct model *m)
{
	struct mlm *t = (struct mlm *)h;
	t->dense_w = params_at(&m->p, "cls.predictions.transform.dense.weight");
	t->dense_b = params_at(&m->p, "cls.predictions.transform.dense.bias");
	t->norm_w = params_at(&m->p, "cls.predictions.transform.LayerNorm.weight");
	t->norm_b = params_at(&m->p, "cls.predictions.transform.LayerNorm.bias");
	t->bias = params_at(&m->p, "cls.predictions.bias");
	t->decoder = m->arch->token_embedding ? m->tied : params_at(&m->p, DECODER ".weight");
}

static size_t outputs(const struct head *h, const struct model *m)
{
	return m->c.vocab_size;
}

static void carve(struct head *h, struct model *m, struct arena *a, const struct shape *s)
{
	struct mlm *t = (struct mlm *)h;
	size_t n = h->N * m->c.hidden_size;
	t->z = arena_act(a, n);
	t->zpre = m->c.hidden_act == ACT_GELU ? arena_act(a, n) : NULL;
	t->y = arena_act(a, n);
	t->stat = arena_real(a, 2 * h->N);
	t->lse = arena_real(a, h->N);
	t->logit = s->logits >> h->index & 1 ? arena_act(a, h->N * m->c.vocab_size) : NULL;
	t->dz = s->train ? arena_act(a, n) : NULL;
}

static void forward(struct head *h, struct model *m, const struct forward *f, const void *x)
{
	struct mlm *t = (struct mlm *)h;
	struct ops *o = m->o;
	size_t N = h->N, C = m->c.hidden_size;
	t->x = readout(h, m, f, x);
	o->linear(o, t->z, t->zpre, t->x, P(m, t->dense_w), P(m, t->dense_b), N, C, C, m->c.hidden_act);
	o->norm(o, t->y, t->z, t->stat, t->z, NULL, P(m, t->norm_w), P(m, t->norm_b), NULL, N, C, m->c.layer_norm_eps, NULL);
}

static void loss(struct head *h, struct model *m, double *sum)
{
	struct mlm *t = (struct mlm *)h;
	m->o->mlm_loss(m->o, sum, t->lse, t->y, P(m, t->decoder), P(m, t->bias), m->dev.head[h->index].to.target, h->N, m->c.hidden_size,
		m->c.vocab_size);
}

static const void *logits(struct head *h, struct model *m)
{
	struct mlm *t = (struct mlm *)h;
	m->o->linear(m->o, t->logit, NULL, t->y, P(m, t->decoder), P(m, t->bias), h->N, m->c.hidden_size, m->c.vocab_size, ACT_NONE);
	return t->logit;
}

static void backward(struct head *h, struct model *m, const struct forward *f, void *dx)
{
	struct mlm *t = (struct mlm *)h;
	struct ops *o = m->o;
	size_t N = h->N, C = m->c.hidden_size;
	o->mlm_loss_back(o, t->dz, G(m, t->decoder), G(m, t->bias), t->y, P(m, t->decoder), P(m, t->bias), m->dev.head[h->index].to.target,
		t->lse, h->scale, N, C, m->c.vocab_size);
	o->norm_back(o, NULL, t->dz, G(m, t->norm_w), G(m, t->norm_b), NULL, t->dz, t->z, t->stat, P(m, t->norm_w), NULL, N, C, NULL);
	o->linear_back(o, readout_grad(h, m, dx), G(m, t->dense_w), G(m, t->dense_b), t->dz, t->x, P(m, t->dense_w), t->z, t->zpre, N, C, C,
		m->c.hidden_act, 0);
	readout_back(h, m, f, dx);
}

static double perplexity(const struct loss *l, const struct head_spec *s)
{
	return exp(l->sum / l->count);
}

static const struct head_metric metrics[] = {
	{"accuracy", head_accuracy, 1},
	{"perplexity", perplexity, 0},
	{0},
};

static const struct op_need need[] = {
	OP(gather),
	OP(scatter),
	OP(linear),
	OP(linear_back),
	OP(norm),
	OP(norm_back),
	OP(mlm_loss),
	OP(mlm_loss_back),
	{0},
};

const struct head_kind head_mlm = {
	.name = "mlm",
	.class_name = "ForMaskedLM",
	.prefix = (const char *const[]){"cls.predictions.", NULL},
	.copy = (const char *const[][2]){{DECODER ".weight", ""}, {DECODER ".bias", "cls.predictions.bias"}, {0}},
	.rows = ROWS_LISTED,
	.target = TARGET_TOKEN,
	.metric = metrics,
	.need = need,
	.size = sizeof(struct mlm),
	.tensors = tensors,
	.resolve = resolve,
	.outputs = outputs,
	.carve = carve,
	.forward = forward,
	.loss = loss,
	.logits = logits,
	.backward = backward,
};
