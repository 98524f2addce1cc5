/*
 * The whole network in double precision: every gradient against central differences, and the rules around a step.
 * lib/nn is built for it with real = double (double.h).
 */
#include "double.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "nn/model_impl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

struct fixture {
	struct ops *ops;
	struct model *m;
	struct batch b;
	struct forward f;
};

static const struct head_spec MLM[] = {{.kind = &head_mlm}}, CELLS[] = {{.kind = &head_cells, .nlabel = 3}},
			      GENES[] = {{.kind = &head_genes, .nlabel = 3}}, VALUE[] = {{.kind = &head_value}};

static uint32_t rng_state = 1;

static uint32_t draw(uint32_t n)
{
	rng_state = rng_state * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)rng_state * n >> 32);
}

static struct model_config small(enum act act, double drop)
{
	return (struct model_config){
		.vocab_size = 43,
		.hidden_size = 15,
		.num_hidden_layers = 2,
		.num_attention_heads = 3,
		.intermediate_size = 17,
		.max_position_embeddings = 21,
		.type_vocab_size = 2,
		.hidden_act = act,
		.hidden_dropout_prob = drop,
		.attention_probs_dropout_prob = drop,
		.classifier_dropout = -1,
		.layer_norm_eps = 1e-12,
		.initializer_range = 0.3,
	};
}

/* Cells of the given lengths with random tokens, every third token masked, every third label or value missing. */
static void make_batch(struct batch *b, const struct head_spec *head, const uint32_t *len, size_t ncell, uint32_t V)
{
	uint32_t *offset = xcalloc(ncell + 1, 4);
	for (size_t i = 0; i < ncell; i++)
		offset[i + 1] = offset[i] + len[i];
	uint32_t T = offset[ncell];
	uint32_t *id = xcalloc(T, 4), *mask = xcalloc(T, 4), *target = xcalloc(T, 4);
	uint32_t *label = xcalloc(T + ncell, 4);
	real *value = xcalloc(T, sizeof *value);
	size_t n = 0;
	for (uint32_t t = 0; t < T; t++) {
		id[t] = draw(V);
		if (t % 3 == 0) {
			mask[n] = t;
			value[n] = head == VALUE && n % 3 == 1 ? NAN : 2 + (double)t / T;
			target[n++] = draw(V);
		}
	}
	for (uint32_t i = 0; i < (head == GENES ? T : ncell); i++)
		label[i] = i % 3 == 1 ? ROW_NONE : draw(3);
	*b = (struct batch){.ncell = ncell, .offset = offset, .id = id};
	if (head == MLM || head == VALUE) {
		b->goal[0] = (struct goal){.n = n, .row = mask, .target = target, .value = value};
		free(label);
	} else {
		b->goal[0] = (struct goal){.target = label};
		free(mask);
		free(target);
		free(value);
	}
}

static void free_batch(struct batch *b)
{
	free((void *)b->offset);
	free((void *)b->id);
	free((void *)b->goal[0].row);
	free((void *)b->goal[0].target);
	free((void *)b->goal[0].value);
}

static double loss_of(struct fixture *x)
{
	struct loss loss;
	struct error e;
	if (model_forward(x->m, &x->b, &x->f, &loss, &e))
		fail_msg("%s", e.msg);
	return loss.sum;
}

static double focal; /* gamma */

/* Largest |difference quotient - gradient| over a tensor, relative to the tensor's largest gradient. */
static void check_gradients(const struct head_spec *head, struct model_config c, const uint32_t *len, size_t ncell)
{
	struct error e;
	struct fixture x = {.ops = ops_cpu_new(1), .f = {.train = 1, .step = 3}};
	x.m = model_new(&c, head, 1, x.ops, 7, &e);
	assert_non_null(x.m);
	make_batch(&x.b, head, len, ncell, c.vocab_size);
	if (head == CELLS)
		head_class_weight(x.m, 0, (double[]){0.5, 1, 2});
	if (head == CELLS || head == GENES)
		head_class_focal(x.m, 0, focal);
	/* Biases and LayerNorm weights away from 0 and 1, or their gradients would hardly be tested. */
	real *p = xcalloc(model_size(x.m, PARAM), sizeof *p), *g = xcalloc(model_size(x.m, PARAM), sizeof *g);
	model_read_all(x.m, PARAM, p);
	for (size_t i = 0; i < model_size(x.m, PARAM); i++)
		p[i] += 0.1 * (draw(1000) / 500.0 - 1);
	model_write_all(x.m, PARAM, p);
	loss_of(&x);
	assert_int_equal(model_backward(x.m, &e), 0);
	model_read_all(x.m, GRAD, g);
	double worst = 0;
	const char *where = "";
	for (size_t i = 0; i < model_ntensor(x.m); i++) {
		const struct tensor *t = model_tensor(x.m, i);
		double err = 0, top = 1e-2; /* a gradient that is 0 by theory (key biases) is all rounding */
		for (size_t j = 0; j<t->n; j += t->n> 60 ? 4 : 1) { /* 4 divides no row length: every column is met */
			double *at = x.m->p.array[PARAM] + t->at + j, was = *at, h = 1e-5;
			double f[4];
			for (int k = 0; k < 4; k++) {
				*at = was + h * (double[]){-2, -1, 1, 2}[k];
				f[k] = loss_of(&x);
			}
			*at = was;
			double fd = (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h), d = fabs(fd - g[t->at + j]);
			/* The lookup sends no gradient to the padding row, by definition; the difference quotient sees it. */
			if (t->zero_row != NO_ROW && j / t->shape[1] == t->zero_row)
				continue;
			err = fmax(err, d);
			top = fmax(top, fabs(g[t->at + j]));
		}
		if (!(err / top < worst)) {
			worst = err / top;
			where = t->name;
		}
		if (!(err / top < 1e-6))
			print_error("%s: relative error %g of gradients up to %g\n", t->name, err / top, top);
	}
	print_message("  worst %.1e at %s\n", worst, where);
	assert_true(worst < 1e-6);
	free(p);
	free(g);
	free_batch(&x.b);
	model_free(x.m);
	x.ops->destroy(x.ops);
}

static const uint32_t RAGGED[] = {1, 13, 2, 21, 8, 0, 16};

static void mlm_relu(void **state)
{
	check_gradients(MLM, small(ACT_RELU, 0), RAGGED, 7);
}

static void mlm_dropout(void **state)
{
	check_gradients(MLM, small(ACT_RELU, 0.2), RAGGED, 7);
}

static void mlm_gelu(void **state)
{
	check_gradients(MLM, small(ACT_GELU, 0.1), RAGGED, 7);
}

static void cells(void **state)
{
	check_gradients(CELLS, small(ACT_RELU, 0.2), (uint32_t[]){1, 13, 2, 21, 8, 3, 16}, 7);
}

static void genes(void **state)
{
	check_gradients(GENES, small(ACT_GELU, 0.2), RAGGED, 7);
}

static void value(void **state)
{
	check_gradients(VALUE, small(ACT_RELU, 0), RAGGED, 7);
	check_gradients(VALUE, small(ACT_GELU, 0.2), RAGGED, 7);
	check_gradients(VALUE, small(ACT_GELU, 0.2), (uint32_t[]){1}, 1);
}

/* Loss and metrics, from the model's own predictions by the formulas; a row without a value has no part in them. */
static void value_loss(void **state)
{
	struct error e;
	struct model_config c = small(ACT_RELU, 0);
	struct ops *o = ops_cpu_new(1);
	struct model *m = model_new(&c, VALUE, 1, o, 7, &e);
	struct batch b;
	struct loss loss;
	double y[32], n = 0, sum = 0, mean = 0, spread = 0;
	make_batch(&b, VALUE, RAGGED, 7, c.vocab_size);
	const struct goal *g = &b.goal[0];
	assert_true(g->n <= sizeof y / sizeof *y);
	assert_int_equal(model_logits(m, &b, 0, y, &e), 0);
	for (size_t i = 0; i < g->n; i++) {
		n += !isnan(g->value[i]);
		mean += isnan(g->value[i]) ? 0 : g->value[i];
	}
	mean /= n;
	for (size_t i = 0; i < g->n; i++) {
		sum += isnan(g->value[i]) ? 0 : pow(y[i] - g->value[i], 2);
		spread += isnan(g->value[i]) ? 0 : pow(g->value[i] - mean, 2);
	}
	assert_true(n > 10 && n < g->n && spread > 0.1);
	assert_int_equal(model_forward(m, &b, &(struct forward){0}, &loss, &e), 0);
	assert_true(loss.count == n && fabs(loss.sum - sum) < 1e-12 * sum);
	assert_string_equal(head_value.metric[0].name, "rmse");
	assert_true(fabs(head_value.metric[0].of(&loss, model_head(m, 0)) - sqrt(sum / n)) < 1e-12);
	assert_string_equal(head_value.metric[1].name, "r2");
	assert_true(fabs(head_value.metric[1].of(&loss, model_head(m, 0)) - (1 - sum / spread)) < 1e-9);
	free((void *)g->value);
	b.goal[0].value = NULL;
	assert_int_equal(model_forward(m, &b, &(struct forward){0}, &loss, &e), -1);
	assert_string_equal(e.msg, "batch: no values for head value");
	free_batch(&b);
	model_free(m);
	o->destroy(o);
}

static void focal_gradients(void **state)
{
	for (focal = 0.5; focal < 4; focal *= 2) {
		check_gradients(CELLS, small(ACT_RELU, 0.2), (uint32_t[]){1, 13, 2, 21, 8, 3, 16}, 7);
		check_gradients(GENES, small(ACT_GELU, 0.2), RAGGED, 7);
	}
	focal = 0;
}

/* The value, from the model's own logits by the formula; gamma 0 is cross-entropy. */
static void focal_value(void **state)
{
	struct error e;
	struct model_config c = small(ACT_RELU, 0);
	struct ops *o = ops_cpu_new(1);
	struct model *m = model_new(&c, CELLS, 1, o, 7, &e);
	struct batch b;
	struct loss loss;
	double z[7 * 8], w[] = {0.5, 1, 2};
	make_batch(&b, CELLS, RAGGED, 7, c.vocab_size);
	head_class_weight(m, 0, w);
	assert_int_equal(model_logits(m, &b, 0, z, &e), 0);
	for (double gamma = 0; gamma < 4; gamma += 0.5) {
		double sum = 0, count = 0;
		for (size_t i = 0; i < b.ncell; i++) {
			double all = 0, q;
			if (b.goal[0].target[i] == ROW_NONE)
				continue;
			for (size_t k = 0; k < 3; k++)
				all += exp(z[i * 3 + k]);
			q = exp(z[i * 3 + b.goal[0].target[i]]) / all;
			sum -= w[b.goal[0].target[i]] * pow(1 - q, gamma) * log(q);
			count += w[b.goal[0].target[i]];
		}
		head_class_focal(m, 0, gamma);
		assert_int_equal(model_forward(m, &b, &(struct forward){0}, &loss, &e), 0);
		assert_true(fabs(loss.sum - sum) < 1e-9 * sum && loss.count == count && count > 0);
	}
	free_batch(&b);
	model_free(m);
	o->destroy(o);
}

static void one_token(void **state)
{
	check_gradients(MLM, small(ACT_RELU, 0.1), (uint32_t[]){1}, 1);
	check_gradients(MLM, small(ACT_RELU, 0.1), (uint32_t[]){19}, 1);
}

/* Two micro-batches with their cells' numbers give the gradient of the whole batch, dropout included. */
static void accumulate(void **state)
{
	struct error e;
	struct model_config c = small(ACT_RELU, 0.2);
	struct ops *o = ops_cpu_new(1);
	struct model *m = model_new(&c, MLM, 1, o, 7, &e);
	struct batch b, part[2];
	struct forward f = {.train = 1, .step = 9};
	struct loss loss, l;
	make_batch(&b, MLM, RAGGED, 7, c.vocab_size);
	assert_int_equal(model_forward(m, &b, &f, &loss, &e), 0);
	assert_int_equal(model_backward(m, &e), 0);
	real *whole = xcalloc(model_size(m, PARAM), sizeof *whole), *sum = xcalloc(model_size(m, PARAM), sizeof *sum);
	model_read_all(m, GRAD, whole);
	model_zero_grad(m);
	double total = 0;
	size_t from = 0;
	for (int i = 0; i < 2; i++) {
		uint32_t first = i ? 3 : 0, n = i ? 4 : 3, offset[8], key[8], mask[80], t0 = b.offset[first];
		size_t k = 0;
		for (uint32_t j = 0; j <= n; j++)
			offset[j] = b.offset[first + j] - t0;
		for (uint32_t j = 0; j < n; j++)
			key[j] = first + j;
		while (from + k < b.goal[0].n && b.goal[0].row[from + k] < t0 + offset[n]) {
			mask[k] = b.goal[0].row[from + k] - t0;
			k++;
		}
		part[i] = (struct batch){.ncell = n,
			.offset = offset,
			.id = b.id + t0,
			.key = key,
			.goal = {{.n = k, .row = mask, .target = b.goal[0].target + from}}};
		assert_int_equal(model_forward(m, &part[i], &f, &l, &e), 0);
		memset(offset, 0xff, sizeof offset); /* the model must not look again */
		assert_int_equal(model_backward(m, &e), 0);
		total += l.sum;
		from += k;
	}
	assert_true(fabs(total - loss.sum) < 1e-10 * loss.sum);
	model_read_all(m, GRAD, sum);
	for (size_t i = 0; i < model_size(m, PARAM); i++)
		assert_true(fabs(sum[i] - whole[i]) < 1e-10);
	free(whole);
	free(sum);
	free_batch(&b);
	model_free(m);
	o->destroy(o);
}

static void table(void **state)
{
	struct error e;
	struct model_config c;
	struct ops *o = ops_cpu_new(1);
	assert_int_equal(model_preset(&c, "geneformer-v1-10m", &e), 0);
	c.vocab_size = 25426;
	struct model *m = model_new(&c, MLM, 1, o, 1, &e);
	assert_int_equal(model_ntensor(m), 106);
	/* 41,167,056 bytes of a safetensors file: 8 + 12,160 of header, then the parameters */
	assert_int_equal(model_nparam(m) * 4, 41167056 - 12168);
	const struct tensor *w = model_find(m, "bert.embeddings.word_embeddings.weight");
	real *p = xcalloc(w->n, sizeof *p);
	model_read(m, PARAM, w, p);
	double s = 0, s2 = 0, s4 = 0, n = (double)w->n - 256;
	for (size_t i = 0; i < 256; i++)
		assert_true(p[i] == 0);
	for (size_t i = 256; i < w->n; i++) {
		s += p[i];
		s2 += p[i] * p[i];
		s4 += p[i] * p[i] * p[i] * p[i];
	}
	assert_true(fabs(s / n) < 5 * 0.02 / sqrt(n));
	assert_true(fabs(s2 / n / 0.0004 - 1) < 5 * sqrt(2 / n));
	assert_true(fabs(s4 / n / (3 * 0.0004 * 0.0004) - 1) < 0.01);
	/* a blank model is zeros, and draws the same; what is not trained has no gradient */
	struct model *blank = model_blank(&c, MLM, 1, o, 1, &e);
	real *q = xcalloc(w->n, sizeof *q);
	model_read(blank, PARAM, w, q);
	for (size_t i = 0; i < w->n; i++)
		assert_true(q[i] == 0);
	model_draw(blank, w);
	model_read(blank, PARAM, w, q);
	assert_memory_equal(p, q, w->n * sizeof *p);
	assert_true(model_bytes(blank) < 1.1 * (double)model_nparam(m) * sizeof(real));
	model_zero_grad(blank);
	assert_true(model_bytes(blank) > 2 * model_nparam(m) * sizeof(real));
	model_free(blank);
	free(p);
	free(q);
	assert_null(model_find(m, "bert.pooler.dense.weight"));
	model_free(m);
	c.num_attention_heads = 7;
	assert_null(model_new(&c, MLM, 1, o, 1, &e));
	assert_non_null(strstr(e.msg, "hidden_size 256"));
	o->destroy(o);
}

static void bad_batches(void **state)
{
	struct error e;
	struct model_config c = small(ACT_RELU, 0);
	struct ops *o = ops_cpu_new(1);
	struct model *m = model_new(&c, MLM, 1, o, 7, &e);
	struct forward f = {.train = 1};
	struct loss loss;
	struct batch b;
	make_batch(&b, MLM, RAGGED, 7, c.vocab_size);
	((uint32_t *)b.id)[1] = 43;
	assert_int_equal(model_forward(m, &b, &f, &loss, &e), -1);
	assert_non_null(strstr(e.msg, "cell 1 of the batch, position 0: token 43"));
	((uint32_t *)b.id)[1] = 2;
	((uint32_t *)b.goal[0].target)[2] = 99;
	assert_int_equal(model_forward(m, &b, &f, &loss, &e), -1);
	assert_non_null(strstr(e.msg, "target token 99"));
	((uint32_t *)b.goal[0].target)[2] = 0;
	((uint32_t *)b.offset)[7] = b.offset[6] + 22;
	assert_int_equal(model_forward(m, &b, &f, &loss, &e), -1);
	assert_non_null(strstr(e.msg, "22 tokens"));
	((uint32_t *)b.offset)[7] = b.offset[6] + 16;
	assert_int_equal(model_forward(m, &b, &f, &loss, &e), 0);
	assert_int_equal(model_backward(m, &e), 0);
	assert_int_equal(model_backward(m, &e), -1);

	/* A poisoned weight shows up as an error of the forward pass, a poisoned gradient as one of the step. */
	const struct tensor *t = model_find(m, "bert.encoder.layer.1.output.dense.weight");
	struct optim opt;
	optim_init(&opt);
	opt.total = 10;
	m->p.array[GRAD][t->at] = INFINITY;
	real was = m->p.array[PARAM][t->at];
	assert_int_equal(model_step(m, &opt, 0, loss.count, NULL, &e), -1);
	assert_true(m->p.array[PARAM][t->at] == was);
	assert_int_equal(model_step(m, &opt, 0, 0, NULL, &e), -1);
	m->p.array[PARAM][t->at] = NAN;
	assert_int_equal(model_forward(m, &b, &f, &loss, &e), -1);
	assert_non_null(strstr(e.msg, "loss is nan"));
	free_batch(&b);
	model_free(m);
	o->destroy(o);
}

/* Frozen embeddings and layers neither move nor count in the norm. */
static void freeze(void **state)
{
	struct error e;
	struct model_config c = small(ACT_RELU, 0);
	struct ops *o = ops_cpu_new(1);
	struct model *m = model_new(&c, MLM, 1, o, 7, &e);
	struct forward f = {.train = 1};
	struct loss loss;
	struct batch b;
	struct optim opt;
	optim_init(&opt);
	opt.total = 10;
	make_batch(&b, MLM, RAGGED, 7, c.vocab_size);
	model_freeze(m, 1);
	real *before = xcalloc(model_size(m, PARAM), sizeof *before), *after = xcalloc(model_size(m, PARAM), sizeof *after);
	model_read_all(m, PARAM, before);
	model_forward(m, &b, &f, &loss, &e);
	model_backward(m, &e);
	double norm, sum = 0;
	assert_int_equal(model_step(m, &opt, 0, loss.count, &norm, &e), 0);
	model_read_all(m, PARAM, after);
	for (size_t i = 0; i < model_ntensor(m); i++) {
		const struct tensor *t = model_tensor(m, i);
		int moved = 0;
		for (size_t j = t->at; j < t->at + t->n; j++)
			moved |= before[j] != after[j];
		assert_int_equal(moved, t->layer > 0);
		for (size_t j = t->at; t->layer > 0 && j < t->at + t->n; j++)
			sum += m->p.array[GRAD][j] * m->p.array[GRAD][j];
	}
	assert_true(fabs(sqrt(sum) / loss.count - norm) < 1e-12 * norm);
	free(before);
	free(after);
	free_batch(&b);
	model_free(m);
	o->destroy(o);
}

/* Hidden states of an evaluation equal those of a training forward without dropout, for every layer. */
static void hidden(void **state)
{
	struct error e;
	struct model_config c = small(ACT_RELU, 0);
	c.num_hidden_layers = 3;
	struct ops *o = ops_cpu_new(2);
	struct model *m = model_new(&c, MLM, 1, o, 7, &e);
	struct forward f = {.train = 1};
	struct loss loss;
	struct batch b;
	make_batch(&b, MLM, RAGGED, 7, c.vocab_size);
	size_t n = b.offset[7] * 15u;
	real *kept = xcalloc(4 * n, sizeof *kept), *h = xcalloc(n, sizeof *h);
	model_forward(m, &b, &f, &loss, &e);
	for (uint32_t l = 0; l <= 3; l++) /* in the places of a training forward: each layer has its own */
		memcpy(kept + l * n, m->arch->forward(m, &f, l), n * sizeof *h);
	for (int l = 0; l >= -3; l--) {
		assert_int_equal(model_hidden(m, &b, l, h, &e), 0);
		assert_memory_equal(h, kept + (size_t)(3 + l) * n, n * sizeof *h);
	}
	assert_int_equal(model_hidden(m, &b, 1, h, &e), -1);
	assert_int_equal(model_hidden(m, &b, -4, h, &e), -1);
	/* and the logits give the loss back */
	real *z = xcalloc(b.goal[0].n * 43, sizeof *z);
	assert_int_equal(model_logits(m, &b, 0, z, &e), 0);
	double sum = 0;
	for (size_t i = 0; i < b.goal[0].n; i++) {
		double l = 0;
		for (size_t v = 0; v < 43; v++)
			l += exp(z[i * 43 + v]);
		sum += log(l) - z[i * 43 + b.goal[0].target[i]];
	}
	assert_true(fabs(sum - loss.sum) < 1e-10 * sum);
	free(z);
	free(kept);
	free(h);
	free_batch(&b);
	model_free(m);
	o->destroy(o);
}

/* What model_on_grad hands out is final, complete, in the announced order, and leaves frozen layers out. */
struct parts {
	struct model *m;
	size_t n, from[8], to[8];
	real *value; /* [model_size], NaN where no part came by */
};

static void take_part(void *arg, size_t from, size_t to)
{
	struct parts *p = arg;
	assert_true(p->n < 8 && from < to && to <= model_size(p->m, PARAM));
	p->from[p->n] = from;
	p->to[p->n++] = to;
	for (size_t i = from; p->value && i < to; i++)
		assert_true(isnan(p->value[i]));
	if (p->value)
		model_read_part(p->m, GRAD, from, to, p->value + from);
}

static void parts_of(const struct head_spec *head, size_t frozen, size_t nlabel)
{
	struct error e;
	struct loss loss;
	struct ops *o = ops_cpu_new(1);
	struct model_config c = small(ACT_RELU, 0.1);
	struct model *m = model_new(&c, head, 1, o, 7, &e);
	size_t size = model_size(m, PARAM);
	struct parts said = {.m = m}, got = {.m = m, .value = xcalloc(size, sizeof(real))};
	real *grad = xcalloc(size, sizeof *grad);
	struct batch b;
	model_freeze(m, frozen);
	make_batch(&b, head, (const uint32_t[]){7, 3, 11}, 3, c.vocab_size);
	if (!nlabel) {
		b.goal[0].n = 0;
		for (size_t i = 0; i < 3; i++)
			((uint32_t *)b.goal[0].target)[i] = ROW_NONE;
	}
	for (size_t i = 0; i < size; i++)
		got.value[i] = NAN;
	model_grad_parts(m, take_part, &said);
	assert_int_equal(said.n, 2 + 1 + 2 - frozen - !!frozen); /* head, layers, embeddings, what does not decay */
	model_on_grad(m, take_part, &got);
	assert_int_equal(model_forward(m, &b, &(struct forward){.train = 1}, &loss, &e), 0);
	assert_int_equal(model_backward(m, &e), 0);
	assert_int_equal(got.n, said.n);
	assert_memory_equal(got.from, said.from, sizeof said.from);
	assert_memory_equal(got.to, said.to, sizeof said.to);
	model_read_all(m, GRAD, grad);
	for (size_t i = 0; i < model_ntensor(m); i++) {
		const struct tensor *t = model_tensor(m, i);
		for (size_t k = t->at; k < t->at + t->n; k++) {
			if (t->frozen && t->decay)
				assert_true(isnan(got.value[k]));
			else
				assert_true(got.value[k] == grad[k]);
		}
	}
	/* the function of model_on_grad is called in one backward pass only */
	assert_int_equal(model_forward(m, &b, &(struct forward){.train = 1}, &loss, &e), 0);
	assert_int_equal(model_backward(m, &e), 0);
	assert_int_equal(got.n, said.n);
	free(grad);
	free(got.value);
	free_batch(&b);
	model_free(m);
	o->destroy(o);
}

static void parts(void **state)
{
	for (size_t frozen = 0; frozen < 3; frozen++) {
		parts_of(MLM, frozen, 1);
		parts_of(CELLS, frozen, 1);
		parts_of(GENES, frozen, 1);
		parts_of(VALUE, frozen, 1);
	}
	parts_of(MLM, 0, 0);
	parts_of(CELLS, 1, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mlm_relu),
		cmocka_unit_test(mlm_dropout),
		cmocka_unit_test(mlm_gelu),
		cmocka_unit_test(cells),
		cmocka_unit_test(genes),
		cmocka_unit_test(focal_gradients),
		cmocka_unit_test(focal_value),
		cmocka_unit_test(one_token),
		cmocka_unit_test(accumulate),
		cmocka_unit_test(table),
		cmocka_unit_test(bad_batches),
		cmocka_unit_test(freeze),
		cmocka_unit_test(hidden),
		cmocka_unit_test(parts),
		cmocka_unit_test(value),
		cmocka_unit_test(value_loss),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
