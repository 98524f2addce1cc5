/*
 * The counts of masked genes [R2MAE's single-cell model, Dong et al. 2025; the decoder and likelihood are those of scVI, Lopez et al. 2018]:
 *     y = ReLU(BN(latent W_hidden + c W_groups));   share = softmax(y W_output + b);   mu = library size * share
 *     loss = -log NB(count; mu, theta), theta_g = exp(log_theta_g)
 * summed over the masked genes of all cells. The library size counts masked genes too. c is the one-hot covariate of the cell. In training, a
 * curriculum can give the genes weights (curriculum.h); evaluation has none.
 */
#include "nn/curriculum.h"
#include "nn/mlp.h"

struct nb {
	struct head h; /* z: its gradient after the backward */
	size_t hidden, groups, output_w, output_b, log_theta; /* offsets */
	const void *x; /* [B, hidden_size] */
	struct mlp_layer layer;
	real *lse; /* [B] */
	void *dy; /* [B, intermediate_size] */
	struct curriculum_net net;
	struct gene_weight w; /* weight NULL: all are 1 */
};

static int nb_check(const struct head_spec *s, const struct model_config *c, struct error *e)
{
	if (!c->arch->per_cell)
		return error_set(e, "head %s: architecture %s has no state of a cell", s->kind->name, c->arch->name);
	return 0;
}

static void nb_tensors(const struct head_spec *s, struct params *p, const struct model_config *c)
{
	int layer = (int)c->num_hidden_layers;
	size_t H = c->intermediate_size, in = (size_t)c->hidden_size + c->num_groups;
	mlp_add_linear(p, layer, H, c->hidden_size, 0, "decoder.hidden");
	mlp_add_bag(p, layer, c->num_groups, H, in, "decoder.groups");
	mlp_add_norm(p, layer, H, "decoder.norm");
	mlp_add_linear(p, layer, c->vocab_size, H, 1, "decoder.output");
	params_add(p, INIT_NORMAL, 1, layer, c->vocab_size, 0, "decoder.log_theta")->std = 1;
	curriculum_tensors(&s->curriculum, p, layer, c->vocab_size);
}

static void nb_resolve(struct head *h, struct model *m)
{
	struct nb *t = (struct nb *)h;
	t->hidden = params_at(&m->p, "decoder.hidden.weight");
	t->groups = m->c.num_groups ? params_at(&m->p, "decoder.groups.weight") : NO_ROW;
	t->output_w = params_at(&m->p, "decoder.output.weight");
	t->output_b = params_at(&m->p, "decoder.output.bias");
	t->log_theta = params_at(&m->p, "decoder.log_theta");
	mlp_resolve(&t->layer, &m->p, "decoder.norm");
	curriculum_resolve(&t->net, &h->spec.curriculum, m);
}

static size_t outputs(const struct head *h, const struct model *m)
{
	return m->c.vocab_size;
}

static void nb_carve(struct head *h, struct model *m, struct arena *a, const struct shape *s)
{
	struct nb *t = (struct nb *)h;
	mlp_carve(&t->layer, a, s->B, m->c.intermediate_size);
	h->z = arena_act(a, s->B * m->c.vocab_size);
	t->lse = arena_real(a, s->B);
	t->dy = s->train ? arena_act(a, s->B * m->c.intermediate_size) : NULL;
	if (s->train)
		curriculum_carve(&t->net, a);
	t->w = (struct gene_weight){s->train ? t->net.weight : NULL, s->train ? t->net.loss : NULL};
}

static void prepare(struct head *h, struct model *m, const struct batch *b)
{
	curriculum_weigh(&((struct nb *)h)->net, m, b, b->goal[h->index].ratio);
}

static void prepare_back(struct head *h, struct model *m, const struct forward *f)
{
	curriculum_back(&((struct nb *)h)->net, m, f->step, h->host_scale);
}

static void nb_forward(struct head *h, struct model *m, const struct forward *f, const void *x)
{
	struct nb *t = (struct nb *)h;
	struct ops *o = m->o;
	size_t N = m->shape.cells, H = m->c.intermediate_size;
	t->x = readout(h, m, f, x);
	o->linear(o, t->layer.z, NULL, t->x, P(m, t->hidden), NULL, N, m->c.hidden_size, H, ACT_NONE);
	if (m->c.num_groups)
		o->bag(o, t->layer.z, P(m, t->groups), &m->groups, NULL, N, H, 1);
	mlp_forward(&t->layer, m, f, H);
	o->linear(o, h->z, NULL, t->layer.y, P(m, t->output_w), P(m, t->output_b), N, H, m->c.vocab_size, ACT_NONE);
}

static void nb_device_loss(struct head *h, struct model *m, double *sum)
{
	struct nb *t = (struct nb *)h;
	m->o->nb_loss(m->o, sum, t->lse, h->z, P(m, t->log_theta), &m->seq, m->dev.count, m->dev.head[h->index].to.mask,
		t->w.weight ? &t->w : NULL, m->shape.cells, m->c.vocab_size);
}

static void nb_backward(struct head *h, struct model *m, const struct forward *f, void *dx)
{
	struct nb *t = (struct nb *)h;
	struct ops *o = m->o;
	size_t N = m->shape.cells, H = m->c.intermediate_size, V = m->c.vocab_size;
	o->nb_loss_back(o, h->z, G(m, t->log_theta), P(m, t->log_theta), &m->seq, m->dev.count, m->dev.head[h->index].to.mask, t->lse,
		h->scale, t->w.weight, N, V);
	o->linear_back(
		o, t->dy, G(m, t->output_w), G(m, t->output_b), h->z, t->layer.y, P(m, t->output_w), NULL, NULL, N, H, V, ACT_NONE, 0);
	mlp_back(&t->layer, m, t->dy, H);
	if (m->c.num_groups)
		o->bag_back(o, G(m, t->groups), t->dy, &m->groups, NULL, m->c.num_groups, H);
	o->linear_back(o, readout_grad(h, m, dx), G(m, t->hidden), NULL, t->dy, t->x, P(m, t->hidden), NULL, NULL, N, m->c.hidden_size, H,
		ACT_NONE, 0);
	readout_back(h, m, f, dx);
}

static void nb_release(struct head *h, struct model *m)
{
	curriculum_release(&((struct nb *)h)->net);
}

static const struct head_metric metrics[] = {{0}};

const struct head_kind head_nb = {
	.name = "nb",
	.class_name = "ForMaskedCounts",
	.prefix = (const char *const[]){"decoder.", NULL},
	.only_training = CURRICULUM_PREFIX,
	.rows = ROWS_CELL,
	.target = TARGET_COUNTS,
	.metric = metrics,
	.size = sizeof(struct nb),
	.check = nb_check,
	.tensors = nb_tensors,
	.resolve = nb_resolve,
	.outputs = outputs,
	.carve = nb_carve,
	.prepare = prepare,
	.prepare_back = prepare_back,
	.forward = nb_forward,
	.loss = nb_device_loss,
	.backward = nb_backward,
	.release = nb_release,
};
