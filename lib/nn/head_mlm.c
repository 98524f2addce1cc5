/*
 * The token at a masked position [transformers BertLMPredictionHead]:
 *     t = LN(act(x W_t + b_t));  logits = t word^T + bias
 * The decoder is tied to the token embedding where the architecture shares it (arch.h: token_embedding), else it has a matrix of its own. Logits
 * are made tile by tile inside the loss and never stored.
 */

#include "nn/transform.h"

#define DECODER "cls.predictions.decoder"

struct mlm {
	struct head h;
	struct transform t;
	size_t decoder, bias; /* offsets */
	void *dy, *logit; /* [N, C]; [N, V] where it is wanted */
	real *lse;
};

static void mlm_tensors(const struct head_spec *s, struct params *p, const struct model_config *c)
{
	int layer = (int)c->num_hidden_layers;
	params_add(p, INIT_ZERO, 0, layer, c->vocab_size, 0, "cls.predictions.bias");
	if (!c->arch->token_embedding)
		params_add_weight(p, layer, c->vocab_size, c->hidden_size, DECODER);
	transform_tensors(p, c, s->kind);
}

static void mlm_resolve(struct head *h, struct model *m)
{
	struct mlm *t = (struct mlm *)h;
	transform_resolve(&t->t, m, h->kind);
	t->bias = params_at(&m->p, "cls.predictions.bias");
	t->decoder = m->arch->token_embedding ? m->tied : params_at(&m->p, DECODER ".weight");
}

static size_t outputs(const struct head *h, const struct model *m)
{
	return m->c.vocab_size;
}

static void mlm_carve(struct head *h, struct model *m, struct arena *a, const struct shape *s)
{
	struct mlm *t = (struct mlm *)h;
	transform_carve(&t->t, h, m, a);
	t->lse = arena_real(a, h->N);
	t->logit = s->logits >> h->index & 1 ? arena_act(a, h->N * m->c.vocab_size) : NULL;
	t->dy = s->train ? arena_act(a, h->N * m->c.hidden_size) : NULL;
}

static void mlm_forward(struct head *h, struct model *m, const struct forward *f, const void *x)
{
	transform_forward(&((struct mlm *)h)->t, h, m, readout(h, m, f, x));
}

static void mlm_device_loss(struct head *h, struct model *m, double *sum)
{
	struct mlm *t = (struct mlm *)h;
	m->o->mlm_loss(m->o, sum, t->lse, t->t.y, P(m, t->decoder), P(m, t->bias), m->dev.head[h->index].to.target, h->N, m->c.hidden_size,
		m->c.vocab_size);
}

static const void *logits(struct head *h, struct model *m)
{
	struct mlm *t = (struct mlm *)h;
	m->o->linear(m->o, t->logit, NULL, t->t.y, P(m, t->decoder), P(m, t->bias), h->N, m->c.hidden_size, m->c.vocab_size, ACT_NONE);
	return t->logit;
}

static void mlm_backward(struct head *h, struct model *m, const struct forward *f, void *dx)
{
	struct mlm *t = (struct mlm *)h;
	m->o->mlm_loss_back(m->o, t->dy, G(m, t->decoder), G(m, t->bias), t->t.y, P(m, t->decoder), P(m, t->bias),
		m->dev.head[h->index].to.target, t->lse, h->scale, h->N, m->c.hidden_size, m->c.vocab_size);
	transform_back(&t->t, h, m, readout_grad(h, m, dx), t->dy);
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

const struct head_kind head_mlm = {
	.name = "mlm",
	.class_name = "ForMaskedLM",
	.prefix = (const char *const[]){"cls.predictions.", NULL},
	.copy = (const char *const[][2]){{DECODER ".weight", ""}, {DECODER ".bias", "cls.predictions.bias"}, {0}},
	.rows = ROWS_LISTED,
	.target = TARGET_TOKEN,
	.metric = metrics,
	.size = sizeof(struct mlm),
	.tensors = mlm_tensors,
	.resolve = mlm_resolve,
	.outputs = outputs,
	.carve = mlm_carve,
	.forward = mlm_forward,
	.loss = mlm_device_loss,
	.logits = logits,
	.backward = mlm_backward,
};
