/*
 * A second kind of head, to prove that one is a file of its own: a number a row, by squared error.
 *     y = x w + b;  loss = (y - value)^2
 * The loss is worked out on the host from the downloaded predictions.
 */
#include <math.h>
#include <stdlib.h>

#include "nn/model_impl.h"

struct regress {
	struct head h;
	size_t w, b;
	const void *x;
	void *y, *dy;
	real *host;
	size_t host_cap;
};

static void regress_tensors(const struct head_spec *s, struct params *p, const struct model_config *c)
{
	params_add_linear(p, (int)c->num_hidden_layers, 1, c->hidden_size, "regress");
}

static void regress_resolve(struct head *h, struct model *m)
{
	struct regress *r = (struct regress *)h;
	r->w = params_at(&m->p, "regress.weight");
	r->b = params_at(&m->p, "regress.bias");
}

static size_t regress_outputs(const struct head *h, const struct model *m)
{
	return 1;
}

static void regress_carve(struct head *h, struct model *m, struct arena *a, const struct shape *s)
{
	struct regress *r = (struct regress *)h;
	head_carve_in(h, m, a, s);
	r->y = arena_act(a, h->N);
	r->dy = arena_act(a, h->N);
}

static void regress_forward(struct head *h, struct model *m, const struct forward *f, const void *x)
{
	struct regress *r = (struct regress *)h;
	r->x = head_in(h, m, x);
	m->o->linear(m->o, r->y, NULL, r->x, P(m, r->w), P(m, r->b), h->N, m->c.hidden_size, 1, ACT_NONE);
}

static void regress_loss(struct head *h, struct model *m, double *sum)
{
}

static int regress_host_loss(struct head *h, struct model *m, const struct goal *g, size_t rows, int train, double sum[3])
{
	struct regress *r = (struct regress *)h;
	grow(r->host, r->host_cap, h->N);
	m->o->download_act(m->o, r->host, r->y, h->N);
	for (size_t i = 0; i < h->N; i++) {
		double d = i < rows && !isnan(g->value[i]) ? r->host[i] - g->value[i] : 0;
		sum[0] += d * d;
		r->host[i] = (real)(2 * d * h->host_scale);
	}
	m->o->upload_act(m->o, r->dy, r->host, h->N);
	return 1;
}

static const void *regress_logits(struct head *h, struct model *m)
{
	return ((struct regress *)h)->y;
}

static void regress_backward(struct head *h, struct model *m, const struct forward *f, void *dx)
{
	struct regress *r = (struct regress *)h;
	m->o->linear_back(m->o, head_din(h, m, dx), G(m, r->w), G(m, r->b), r->dy, r->x, P(m, r->w), NULL, NULL, h->N, m->c.hidden_size, 1,
		ACT_NONE, 0);
	head_back(h, m, dx);
}

static void regress_release(struct head *h, struct model *m)
{
	free(((struct regress *)h)->host);
}

static double rmse(const struct loss *l)
{
	return sqrt(l->sum / l->count);
}

static const struct head_metric regress_metrics[] = {{"rmse", rmse, 0}, {0}};
static const struct op_need regress_need[] = {OP(linear), OP(linear_back), {0}};

static const struct head_kind head_regress = {
	.name = "regress",
	.class_name = "ForRegression",
	.prefix = (const char *const[]){"regress.", NULL},
	.rows = ROWS_CELL,
	.width = 1,
	.metric = regress_metrics,
	.need = regress_need,
	.size = sizeof(struct regress),
	.tensors = regress_tensors,
	.resolve = regress_resolve,
	.outputs = regress_outputs,
	.carve = regress_carve,
	.forward = regress_forward,
	.loss = regress_loss,
	.host_loss = regress_host_loss,
	.logits = regress_logits,
	.backward = regress_backward,
	.release = regress_release,
};
