/*
 * A number by squared error, y = x w + b;  loss = (y - value)^2, with x the state of
 *     value   a listed token [transformers BertForTokenClassification with one label]
 *     number  the pooler [transformers BertForSequenceClassification with one label]
 * The host computes the loss: it has one number a row. transformers has no such loss of tokens.
 */

#include "nn/head_linear.h"

struct value {
	struct linear_head of;
	real *host; /* [N] */
	size_t host_cap;
};

static int host_loss(struct head *h, struct model *m, const struct goal *g, int train, double sum[2])
{
	struct value *k = (struct value *)h;
	grow(k->host, k->host_cap, h->N);
	m->o->download_act(m->o, k->host, h->z, h->N);
	for (size_t i = 0; i < h->N; i++) {
		double off = i < h->rows && !isnan(g->value[i]) ? (double)k->host[i] - g->value[i] : 0;
		sum[0] += off * off;
		sum[1] += off * off;
		k->host[i] = (real)(2 * off * h->host_scale);
	}
	if (train)
		m->o->upload_act(m->o, h->dz, k->host, h->N);
	return 1;
}

void head_value_rescale(struct model *m, size_t i, double by, double plus)
{
	const struct linear_head *k = (const struct linear_head *)m->head[i];
	for (const struct tensor *t = m->p.tensor; t < m->p.tensor + m->p.n; t++) {
		if (t->at != k->w && t->at != k->b)
			continue;
		FREED real *v = xmalloc(t->n * sizeof *v);
		params_read(&m->p, PARAM, t, v);
		for (size_t j = 0; j < t->n; j++)
			v[j] = (real)((double)v[j] * by + (t->at == k->b ? plus : 0));
		params_write(&m->p, PARAM, t, v);
	}
}

static void number_head_release(struct head *h, struct model *m)
{
	free(((struct value *)h)->host);
}

/* In the unit of the column that it predicts. */
static double rmse(const struct loss *l, const struct head_spec *s)
{
	return (s->scale == 0 ? 1 : s->scale) * sqrt(l->measure / l->count);
}

/* The share of the variance of the targets that the predictions explain; 0 is as good as their mean. */
static double r2(const struct loss *l, const struct head_spec *s)
{
	double spread = l->square - l->target * l->target / l->count;
	return spread > 0 ? 1 - l->measure / spread : NAN;
}

static const struct head_metric metrics[] = {
	{"rmse", rmse, 0},
	{"r2", r2, 1},
	{0},
};

#define COMMON \
	LINEAR_HEAD, .problem_type = "regression", .prefix = (const char *const[]){"classifier.", NULL}, .drop = 1, \
		     .target = TARGET_VALUE, .metric = metrics, .size = sizeof(struct value), .host_loss = host_loss, \
		     .release = number_head_release

const struct head_kind head_value = {
	.name = "value",
	.class_name = "ForTokenClassification",
	.rows = ROWS_LISTED,
	COMMON,
};

const struct head_kind head_number = {
	.name = "number",
	.class_name = "ForSequenceClassification",
	.rows = ROWS_CELL,
	.pool = 1,
	COMMON,
};
