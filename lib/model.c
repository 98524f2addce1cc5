/*
 * The model as a table of named tensors: layout, initial values, access from the host, freezing and the optimiser step.
 *
 * Layout. Parameters, gradients and the two Adam moments are four arrays of equal shape. Tensors with weight decay come
 * first, the others after, so an update of all parameters is one call of the adamw op, unless some are frozen. Starts are aligned for the
 * backend, except that query, key and value of a layer touch each other.
 */
#include "model.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_impl.h"
#include "rng.h"

int model_preset(struct model_config *c, const char *name, struct error *e)
{
	/* What Geneformer V1 has and the CorrMask paper took over (its section 5.1). */
	*c = (struct model_config){
		.hidden_size = 256, .num_hidden_layers = 6, .num_attention_heads = 4, .intermediate_size = 512,
		.max_position_embeddings = 2048, .type_vocab_size = 2, .hidden_act = ACT_RELU,
		.hidden_dropout_prob = 0.02, .attention_probs_dropout_prob = 0.02, .classifier_dropout = -1,
		.layer_norm_eps = 1e-12, .initializer_range = 0.02,
	};
	if (!strcmp(name, "corrmask-paper") || !strcmp(name, "geneformer-v1-10m"))
		return 0;
	if (!strcmp(name, "tiny")) {
		c->hidden_size = 64;
		c->num_hidden_layers = 2;
		c->num_attention_heads = 2;
		c->intermediate_size = 128;
		return 0;
	}
	return error_set(e, "unknown configuration '%s': expected tiny, corrmask-paper or geneformer-v1-10m", name);
}

static int in_range(const char *field, double x, double lo, double hi, struct error *e)
{
	return x >= lo && x <= hi ? 0 : error_set(e, "%s is %g: expected %g to %g", field, x, lo, hi);
}

int model_check(const struct model_config *c, enum task task, struct error *e)
{
	/* The upper bounds of positions, layers and heads are what a dropout counter holds (ops.h). */
	if (in_range("vocab_size", c->vocab_size, 1, 1 << 24, e) || in_range("hidden_size", c->hidden_size, 1, 1 << 16, e) ||
	    in_range("num_hidden_layers", c->num_hidden_layers, 1, 4095, e) ||
	    in_range("num_attention_heads", c->num_attention_heads, 1, 65535, e) ||
	    in_range("intermediate_size", c->intermediate_size, 1, 1 << 20, e) ||
	    in_range("max_position_embeddings", c->max_position_embeddings, 1, 65535, e) ||
	    in_range("type_vocab_size", c->type_vocab_size, 1, 65535, e) ||
	    in_range("pad_token_id", c->pad_token_id, 0, c->vocab_size - 1.0, e) ||
	    in_range("hidden_dropout_prob", c->hidden_dropout_prob, 0, 0.999, e) ||
	    in_range("attention_probs_dropout_prob", c->attention_probs_dropout_prob, 0, 0.999, e) ||
	    in_range("classifier_dropout", c->classifier_dropout, -1, 0.999, e) ||
	    in_range("layer_norm_eps", c->layer_norm_eps, 1e-20, 1, e) ||
	    in_range("initializer_range", c->initializer_range, 0, 100, e))
		return -1;
	if (c->hidden_size % c->num_attention_heads)
		return error_set(e, "hidden_size %u is not a multiple of num_attention_heads %u", c->hidden_size, c->num_attention_heads);
	if (c->hidden_act != ACT_RELU && c->hidden_act != ACT_GELU)
		return error_set(e, "hidden_act: expected relu or gelu");
	if ((task == TASK_CELLS || task == TASK_GENES) && in_range("num_labels", c->num_labels, 1, 1 << 20, e))
		return -1;
	return 0;
}

/* ---- the table ---- */

static void add_tensor(struct model *m, enum init init, int decay, int layer, size_t d0, size_t d1, const char *fmt, ...)
	__attribute__((format(printf, 7, 8)));

static void add_tensor(struct model *m, enum init init, int decay, int layer, size_t d0, size_t d1, const char *fmt, ...)
{
	struct tensor *t = &m->tensor[m->ntensor++];
	*t = (struct tensor){ .ndim = d1 ? 2 : 1, .shape = { d0, d1 }, .n = d0 * (d1 ? d1 : 1), .init = init, .decay = decay, .layer = layer };
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(t->name, sizeof t->name, fmt, ap);
	va_end(ap);
}

static void add_linear(struct model *m, int layer, size_t out, size_t in, const char *name)
{
	add_tensor(m, INIT_NORMAL, 1, layer, out, in, "%s.weight", name);
	add_tensor(m, INIT_ZERO, 0, layer, out, 0, "%s.bias", name);
}

static void add_norm(struct model *m, int layer, size_t C, const char *name)
{
	add_tensor(m, INIT_ONE, 0, layer, C, 0, "%s.weight", name);
	add_tensor(m, INIT_ZERO, 0, layer, C, 0, "%s.bias", name);
}

static void make_table(struct model *m)
{
	const struct model_config *c = &m->c;
	size_t C = c->hidden_size, F = c->intermediate_size, L = c->num_hidden_layers;
	static const char *const part[] = {
		"attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense",
		"attention.output.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm",
	};
	m->tensor = xcalloc(16 * L + 16, sizeof *m->tensor);
	add_tensor(m, INIT_NORMAL, 1, -1, c->vocab_size, C, "bert.embeddings.word_embeddings.weight");
	add_tensor(m, INIT_NORMAL, 1, -1, c->max_position_embeddings, C, "bert.embeddings.position_embeddings.weight");
	add_tensor(m, INIT_NORMAL, 1, -1, c->type_vocab_size, C, "bert.embeddings.token_type_embeddings.weight");
	add_norm(m, -1, C, "bert.embeddings.LayerNorm");
	for (size_t l = 0; l < L; l++) {
		char name[64];
		for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
			snprintf(name, sizeof name, "bert.encoder.layer.%zu.%s", l, part[i]);
			if (i == 4 || i == 7)
				add_norm(m, (int)l, C, name);
			else
				add_linear(m, (int)l, i == 5 ? F : C, i == 6 ? F : C, name);
		}
	}
	if (m->task == TASK_MLM) {
		add_tensor(m, INIT_ZERO, 0, (int)L, c->vocab_size, 0, "cls.predictions.bias");
		add_linear(m, (int)L, C, C, "cls.predictions.transform.dense");
		add_norm(m, (int)L, C, "cls.predictions.transform.LayerNorm");
	}
	if (m->task == TASK_CELLS)
		add_linear(m, (int)L, C, C, "bert.pooler.dense");
	if (m->task == TASK_CELLS || m->task == TASK_GENES)
		add_linear(m, (int)L, c->num_labels, C, "classifier");
}

static void place(struct model *m)
{
	size_t at = 0, align = m->o->align ? m->o->align : 1;
	for (int decay = 1; decay >= 0; decay--) {
		for (size_t i = 0; i < m->ntensor; i++) {
			struct tensor *t = &m->tensor[i];
			if (t->decay != decay)
				continue;
			if (!strstr(t->name, ".key.") && !strstr(t->name, ".value."))
				at = (at + align - 1) / align * align;
			t->at = at;
			at += t->n;
			m->nparam += t->n;
		}
		if (decay)
			m->decayed = at;
	}
	m->size = (at + align - 1) / align * align;
}

static size_t at_of(const struct model *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Offset of a tensor; one that this task does not have is never used, and gets 0. */
static size_t at_of(const struct model *m, const char *fmt, ...)
{
	char name[96];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(name, sizeof name, fmt, ap);
	va_end(ap);
	const struct tensor *t = model_find(m, name);
	return t ? t->at : 0;
}

static void resolve(struct model *m)
{
	m->word = at_of(m, "bert.embeddings.word_embeddings.weight");
	m->posw = at_of(m, "bert.embeddings.position_embeddings.weight");
	m->type = at_of(m, "bert.embeddings.token_type_embeddings.weight");
	m->norm_w = at_of(m, "bert.embeddings.LayerNorm.weight");
	m->norm_b = at_of(m, "bert.embeddings.LayerNorm.bias");
	m->at = xcalloc(m->c.num_hidden_layers, sizeof *m->at);
	for (uint32_t l = 0; l < m->c.num_hidden_layers; l++) {
#define AT(name) at_of(m, "bert.encoder.layer.%u.%s", l, name)
		m->at[l] = (struct layer_at){
			.qkv_w = AT("attention.self.query.weight"), .qkv_b = AT("attention.self.query.bias"),
			.out_w = AT("attention.output.dense.weight"), .out_b = AT("attention.output.dense.bias"),
			.norm1_w = AT("attention.output.LayerNorm.weight"), .norm1_b = AT("attention.output.LayerNorm.bias"),
			.up_w = AT("intermediate.dense.weight"), .up_b = AT("intermediate.dense.bias"),
			.down_w = AT("output.dense.weight"), .down_b = AT("output.dense.bias"),
			.norm2_w = AT("output.LayerNorm.weight"), .norm2_b = AT("output.LayerNorm.bias"),
		};
#undef AT
	}
	m->head = (struct head_at){
		.dense_w = at_of(m, "cls.predictions.transform.dense.weight"), .dense_b = at_of(m, "cls.predictions.transform.dense.bias"),
		.norm_w = at_of(m, "cls.predictions.transform.LayerNorm.weight"),
		.norm_b = at_of(m, "cls.predictions.transform.LayerNorm.bias"), .bias = at_of(m, "cls.predictions.bias"),
		.pool_w = at_of(m, "bert.pooler.dense.weight"), .pool_b = at_of(m, "bert.pooler.dense.bias"),
		.class_w = at_of(m, "classifier.weight"), .class_b = at_of(m, "classifier.bias"),
	};
}

/* ---- initial values ---- */

static uint64_t name_hash(const char *s) /* FNV-1a */
{
	uint64_t h = 0xcbf29ce484222325u;
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	return h;
}

static void init_tensor(const struct model *m, const struct tensor *t, real *p)
{
	struct rng r = rng_at((uint32_t)(m->seed ^ m->seed >> 32), RNG_INIT, name_hash(t->name), 0);
	for (size_t i = 0; i < t->n; i++)
		p[i] = t->init == INIT_ONE ? 1 : t->init == INIT_ZERO ? 0 : (real)(rng_normal(&r) * m->c.initializer_range);
	if (t->at == m->word && t->ndim == 2)
		memset(p + (size_t)m->c.pad_token_id * t->shape[1], 0, t->shape[1] * sizeof *p);
}

void model_draw(struct model *m, const struct tensor *t)
{
	real *host = xcalloc(t->n, sizeof *host);
	init_tensor(m, t, host);
	model_write(m, PARAM, t, host);
	free(host);
}

real *model_array(struct model *m, enum which w)
{
	if (!m->array[w])
		m->array[w] = m->o->alloc(m->o, m->size * sizeof(real));
	return m->array[w];
}

struct model *model_blank(const struct model_config *c, enum task task, struct ops *o, uint64_t seed, struct error *e)
{
	if (model_check(c, task, e))
		return NULL;
	struct model *m = xcalloc(1, sizeof *m);
	m->c = *c;
	m->task = task;
	m->o = o;
	m->seed = seed;
	make_table(m);
	place(m);
	resolve(m);
	model_array(m, PARAM);
	m->sums = o->alloc(o, 4 * sizeof *m->sums);
	for (int i = 0; i < 2; i++)
		m->result[i].sums = o->host_alloc(o, 4 * sizeof *m->sums);
	m->act = xcalloc(c->num_hidden_layers, sizeof *m->act);
	return m;
}

struct model *model_new(const struct model_config *c, enum task task, struct ops *o, uint64_t seed, struct error *e)
{
	struct model *m = model_blank(c, task, o, seed, e);
	for (size_t i = 0; m && i < m->ntensor; i++)
		model_draw(m, &m->tensor[i]);
	return m;
}

void model_free(struct model *m)
{
	if (!m)
		return;
	for (int w = 0; w < 4; w++)
		m->o->free(m->o, m->array[w]);
	m->o->free(m->o, m->class_weight);
	m->o->free(m->o, m->sums);
	m->o->free(m->o, m->arena);
	for (int i = 0; i < 2; i++) {
		m->o->host_free(m->o, m->stage[i].host);
		m->o->host_free(m->o, m->result[i].sums);
		m->o->host_free(m->o, m->result[i].x);
	}
	free(m->host_weight);
	free(m->host_logit);
	free(m->act);
	free(m->at);
	free(m->tensor);
	free(m);
}

/* ---- access ---- */

const struct model_config *model_config(const struct model *m)
{
	return &m->c;
}

enum task model_task(const struct model *m)
{
	return m->task;
}

size_t model_ntensor(const struct model *m)
{
	return m->ntensor;
}

const struct tensor *model_tensor(const struct model *m, size_t i)
{
	return &m->tensor[i];
}

const struct tensor *model_find(const struct model *m, const char *name)
{
	for (size_t i = 0; i < m->ntensor; i++)
		if (!strcmp(m->tensor[i].name, name))
			return &m->tensor[i];
	return NULL;
}

void model_read(struct model *m, enum which w, const struct tensor *t, real *host)
{
	m->o->download(m->o, host, model_array(m, w) + t->at, t->n * sizeof *host);
}

void model_write(struct model *m, enum which w, const struct tensor *t, const real *host)
{
	m->o->upload(m->o, model_array(m, w) + t->at, host, t->n * sizeof *host);
	if (w == PARAM)
		m->o->params_changed(m->o, m->array[w] + t->at, t->n);
}

size_t model_size(const struct model *m)
{
	return m->size;
}

void model_read_all(struct model *m, enum which w, real *host)
{
	m->o->download(m->o, host, model_array(m, w), m->size * sizeof *host);
}

void model_write_all(struct model *m, enum which w, const real *host)
{
	m->o->upload(m->o, model_array(m, w), host, m->size * sizeof *host);
	if (w == PARAM)
		m->o->params_changed(m->o, m->array[w], m->size);
}

void model_read_part(struct model *m, enum which w, size_t from, size_t to, real *host)
{
	m->o->download(m->o, host, model_array(m, w) + from, (to - from) * sizeof *host);
}

size_t model_nparam(const struct model *m)
{
	return m->nparam;
}

size_t model_bytes(const struct model *m)
{
	size_t arrays = 0;
	for (int w = 0; w < 4; w++)
		arrays += m->array[w] != NULL;
	return arrays * m->size * sizeof(real) + m->arena_cap + m->stage[0].cap + m->stage[1].cap;
}

double model_padding(const struct model *m)
{
	return m->rows ? 1 - (double)m->tokens / (double)m->rows : 0;
}

void model_freeze(struct model *m, size_t n)
{
	m->frozen = n < m->c.num_hidden_layers ? n : m->c.num_hidden_layers;
	for (size_t i = 0; i < m->ntensor; i++)
		m->tensor[i].frozen = m->tensor[i].layer >= 0 && m->tensor[i].layer < (int)m->frozen;
}

void model_class_weight(struct model *m, const real *weight)
{
	m->o->free(m->o, m->class_weight);
	free(m->host_weight);
	m->class_weight = m->host_weight = NULL;
	if (weight) {
		m->host_weight = xcalloc(m->c.num_labels, sizeof *weight);
		memcpy(m->host_weight, weight, m->c.num_labels * sizeof *weight);
		m->class_weight = m->o->alloc(m->o, m->c.num_labels * sizeof *weight);
		m->o->upload(m->o, m->class_weight, weight, m->c.num_labels * sizeof *weight);
	}
}

void model_focal(struct model *m, double gamma)
{
	m->focal = gamma;
}

/* ---- the optimiser step ---- */

/* place() has laid the matrices of one layer side by side. */
void model_grad_part(struct model *m, int layer, model_part *f, void *arg)
{
	size_t from = m->size, to = 0, rest = m->size;
	for (size_t i = 0; i < m->ntensor; i++) {
		const struct tensor *t = &m->tensor[i];
		if (!t->decay) {
			rest = t->at < rest ? t->at : rest;
		} else if (t->layer == layer && !t->frozen) {
			from = t->at < from ? t->at : from;
			to = t->at + t->n > to ? t->at + t->n : to;
		}
	}
	if (from < to)
		f(arg, from, to);
	if (layer < 0)
		f(arg, rest, m->size);
}

void model_grad_parts(struct model *m, model_part *f, void *arg)
{
	for (int l = (int)m->c.num_hidden_layers; l >= -1; l--)
		model_grad_part(m, l, f, arg);
}

void model_on_grad(struct model *m, model_part *f, void *arg)
{
	m->on_grad = f;
	m->on_grad_arg = arg;
}

void model_zero_grad(struct model *m)
{
	m->o->zero(m->o, model_array(m, GRAD), m->size * sizeof(real));
	m->o->zero(m->o, m->sums, 4 * sizeof *m->sums);
	memset(m->host_sum, 0, sizeof m->host_sum);
}

/* Stretches of the arrays without a frozen tensor: f gets [from, to) of each. */
static void each_run(struct model *m, void (*f)(struct model *, size_t from, size_t to, void *), void *arg)
{
	const struct tensor *first = NULL, *last = NULL;
	for (int decay = 1; decay >= 0; decay--) { /* the order in which they lie */
		for (size_t i = 0; i < m->ntensor; i++) {
			const struct tensor *t = &m->tensor[i];
			if (t->decay != decay)
				continue;
			if (!t->frozen) {
				first = first ? first : t;
				last = t;
			} else if (first) {
				f(m, first->at, last->at + last->n, arg);
				first = NULL;
			}
		}
	}
	if (first)
		f(m, first->at, last->at + last->n, arg);
}

static void sum_run(struct model *m, size_t from, size_t to, void *arg)
{
	m->o->sumsq(m->o, m->sums, model_array(m, GRAD) + from, to - from);
}

static void update_run(struct model *m, size_t from, size_t to, void *arg)
{
	struct adamw_args a = *(const struct adamw_args *)arg;
	a.decayed = from < m->decayed ? m->decayed - from : 0;
	m->o->adamw(m->o, model_array(m, PARAM) + from, model_array(m, GRAD) + from, model_array(m, MOMENT1) + from, model_array(m, MOMENT2) + from,
		to - from, m->sums, &a);
}

static void sum_squares(struct model *m)
{
	m->o->zero(m->o, m->sums, sizeof *m->sums);
	each_run(m, sum_run, NULL);
}

double model_grad_norm(struct model *m, double scale)
{
	double sum;
	sum_squares(m);
	m->o->download(m->o, &sum, m->sums, sizeof sum);
	return sqrt(sum) * fabs(scale);
}

static int check_norm(double norm, uint64_t done, struct error *e)
{
	return isfinite(norm) ? 0 : error_set(e, "update %llu: the gradient's norm is %g", (unsigned long long)done + 1, norm);
}

/* The update does nothing where m->sums[0] is not finite. */
static void update(struct model *m, const struct optim *o, uint64_t done, double count)
{
	struct adamw_args a = {
		.variant = o->variant, .lr = o->lr * optim_factor(o, done), .beta1 = o->beta1, .beta2 = o->beta2, .eps = o->eps,
		.decay = o->weight_decay, .t = done + 1, .gscale = 1 / count, .max_norm = o->max_norm,
	};
	each_run(m, update_run, &a);
}

int model_step(struct model *m, const struct optim *o, uint64_t done, double count, double *norm, struct error *e)
{
	if (!(count > 0))
		return error_set(e, "update %llu: no labelled position in the batch", (unsigned long long)done + 1);
	double n = model_grad_norm(m, 1 / count);
	if (norm)
		*norm = n;
	if (check_norm(n, done, e))
		return -1;
	update(m, o, done, count);
	return m->o->sync(m->o, e);
}

void model_step_later(struct model *m, const struct optim *o, uint64_t done, double count)
{
	unsigned slot = m->posted++ % 2;
	struct result *r = &m->result[slot];
	assert(m->posted - m->taken <= 2);
	sum_squares(m);
	update(m, o, done, count);
	m->o->fetch(m->o, r->sums, m->sums, 4 * sizeof *m->sums);
	m->o->mark(m->o, MARK_RESULT + slot);
	memcpy(r->host, m->host_sum, sizeof r->host);
	r->count = count;
	r->done = done;
}

int model_collect(struct model *m, struct loss *loss, double *norm, struct error *e)
{
	unsigned slot = m->taken++ % 2;
	const struct result *r = &m->result[slot];
	assert(m->taken <= m->posted);
	if (m->o->wait(m->o, MARK_RESULT + slot, e))
		return -1;
	*loss = (struct loss){ .sum = r->sums[1] + r->host[0], .correct = r->sums[2] + r->host[1], .count = r->count };
	*norm = sqrt(r->sums[0]) / r->count;
	if (!isfinite(loss->sum))
		return error_set(e, "the loss is %g", loss->sum);
	return check_norm(*norm, r->done, e);
}
