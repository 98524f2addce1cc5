/*
 * One of several classes, by cross-entropy: logits = x W_class, with x the state of
 *     cells  the pooler, or a token [transformers BertForSequenceClassification]
 *     genes  every token [transformers BertForTokenClassification]
 *     hce    as cells; a label is a set S of classes, such as the leaves under a term of an ontology: hierarchical cross-entropy
 *            L = log sum_k exp z_k - log sum_{k in S} exp z_k,    dL/dz_k = p_k - [k in S] p_k / P(S)        [BMFM-RNA, section 4]
 *            The second sum is scaled by the largest logit in S, not of all, so it does not underflow and L is finite.
 */

#include "base/softmax.h"
#include "nn/head_linear.h"

struct class
{
	struct linear_head of;
	real *weight, *host_weight; /* [K] loss weights on the device and on the host, or NULL */
	double focal;
	real *host_logit; /* [N, K] where the host computes the loss */
	double *row; /* [K] */
	size_t host_logit_cap, row_cap;
};

static int class_check(const struct head_spec *s, const struct model_config *c, struct error *e)
{
	if (s->nlabel < 1 || s->nlabel > 1 << 20)
		return error_set(e, "num_labels is %u: expected 1 to %d", s->nlabel, 1 << 20);
	return 0;
}

/* Does the host compute the loss? The logits of classes are few. */
static int on_host(const struct class *k)
{
	return k->focal > 0 || k->of.h.kind->target == TARGET_SET;
}

static void class_device_loss(struct head *h, struct model *m, double *sum)
{
	struct class *k = (struct class *)h;
	if (!on_host(k))
		m->o->class_loss(m->o, sum, h->dz, h->z, (const int32_t *)m->dev.head[h->index].to.target, k->weight, h->scale, h->N,
			h->spec.nlabel);
}

/*
 * Focal loss. With p = softmax(z), q = p_y:
 *     dL/dz_j = w_y (gamma q (1 - q)^(gamma - 1) log q - (1 - q)^gamma) (delta_jy - p_j)
 * z [K] becomes the gradient.
 */
static void focal_row(const struct class *k, real *z, size_t K, size_t y, double scale, double sum[2])
{
	size_t top = 0;
	double total = 0, w = k->host_weight ? k->host_weight[y] : 1;
	for (size_t i = 1; i < K; i++)
		top = z[i] > z[top] ? i : top;
	double max = z[top];
	for (size_t i = 0; i < K; i++)
		total += exp(z[i] - max);
	double logq = z[y] - max - log(total), q = exp(logq), rest = -expm1(logq);
	/* rest = 0: the factor of logq is 0 for gamma > 1, and q (1 - q)^(gamma - 1) log q goes to 0 for any gamma > 0 */
	double slope = rest > 0 ? w * (k->focal * q * pow(rest, k->focal - 1) * logq - pow(rest, k->focal)) : 0;
	sum[0] -= w * pow(rest, k->focal) * logq;
	sum[1] += top == y;
	for (size_t i = 0; i < K; i++)
		z[i] = (real)(scale * slope * ((i == y) - exp(z[i] - max) / total));
}

/* The same of hierarchical cross-entropy. row [K]: scratch. */
static void hce_row(const uint32_t *set, real *z, double *row, size_t K, double scale, double sum[2])
{
	for (size_t i = 0; i < K; i++)
		row[i] = z[i];
	double all = softmax_log_sum(row, K, NULL), in = softmax_log_sum(row, K, set);
	size_t top = softmax_argmax(row, K);
	sum[0] += all - in;
	sum[1] += set[top / 32] >> top % 32 & 1;
	for (size_t i = 0; i < K; i++)
		z[i] = (real)(scale * (exp(row[i] - all) - (set[i / 32] >> i % 32 & 1 ? exp(row[i] - in) : 0)));
}

static int host_loss(struct head *h, struct model *m, const struct goal *g, int train, double sum[2])
{
	struct class *k = (struct class *)h;
	size_t N = h->N, K = h->spec.nlabel;
	if (!on_host(k))
		return 0;
	grow(k->host_logit, k->host_logit_cap, N * K);
	grow(k->row, k->row_cap, K);
	m->o->download_act(m->o, k->host_logit, h->z, N * K);
	for (size_t i = 0; i < N; i++) {
		real *z = k->host_logit + i * K;
		uint32_t y = i < h->rows ? g->target[i] : ROW_NONE;
		if (y != ROW_NONE && h->kind->target == TARGET_SET)
			hce_row(h->spec.set + y * nb_words(K), z, k->row, K, h->host_scale, sum);
		else if (y != ROW_NONE)
			focal_row(k, z, K, y, h->host_scale, sum);
		else
			memset(z, 0, K * sizeof *z);
	}
	if (train)
		m->o->upload_act(m->o, h->dz, k->host_logit, N * K);
	return 1;
}

static double count(const struct head *h, const struct goal *g, size_t rows)
{
	const struct class *k = (const struct class *)h;
	double sum = 0;
	if (h->spec.over_all)
		return g->target ? (double)rows : 0;
	for (size_t i = 0; g->target && i < rows; i++)
		sum += g->target[i] == ROW_NONE ? 0 : k->host_weight ? (double)k->host_weight[g->target[i]] : 1;
	return sum;
}

static void class_release(struct head *h, struct model *m)
{
	struct class *k = (struct class *)h;
	m->o->free(m->o, k->weight);
	free_all(k->host_weight, k->host_logit, k->row);
}

void head_class_weight(struct model *m, size_t i, const real *weight)
{
	struct class *k = (struct class *)m->head[i];
	size_t bytes = k->of.h.spec.nlabel * sizeof *weight;
	m->o->free(m->o, k->weight);
	free(k->host_weight);
	k->weight = k->host_weight = NULL;
	if (weight) {
		k->host_weight = xmalloc(bytes);
		memcpy(k->host_weight, weight, bytes);
		k->weight = m->o->alloc(m->o, bytes);
		m->o->upload(m->o, k->weight, weight, bytes);
	}
	m->settings++;
}

void head_class_focal(struct model *m, size_t i, double gamma)
{
	((struct class *)m->head[i])->focal = gamma;
	m->settings++;
}

static const struct head_metric metrics[] = {
	{"accuracy", head_accuracy, 1},
	{"macro_f1", NULL, 1},
	{0},
};

static const struct head_metric hce_metrics[] = {
	{"accuracy", head_accuracy, 1},
	{0},
};

#define COMMON \
	LINEAR_HEAD, .drop = 1, .size = sizeof(struct class), .check = class_check, .loss = class_device_loss, .host_loss = host_loss, \
		     .count = count, .release = class_release

const struct head_kind head_cells = {
	.name = "cells",
	.class_name = "ForSequenceClassification",
	.problem_type = "single_label_classification",
	.prefix = (const char *const[]){"classifier.", NULL},
	.rows = ROWS_CELL,
	.pool = 1,
	.target = TARGET_CLASS,
	.metric = metrics,
	COMMON,
};

const struct head_kind head_hce = {
	.name = "hce",
	.class_name = "ForSequenceClassification",
	.prefix = (const char *const[]){"classifier.", NULL},
	.rows = ROWS_CELL,
	.pool = 1,
	.target = TARGET_SET,
	.metric = hce_metrics,
	COMMON,
};

const struct head_kind head_genes = {
	.name = "genes",
	.class_name = "ForTokenClassification",
	.prefix = (const char *const[]){"classifier.", NULL},
	.rows = ROWS_TOKEN,
	.target = TARGET_CLASS,
	.metric = metrics,
	COMMON,
};
