/*
 * The parts of a model are what they claim: an architecture that the library does not know, one file, trains in it; one
 * model takes several heads; buffers are kept and not trained; a backend that lacks an op is refused by name. In double precision.
 */
#include "double.h"

#include "arch_bag.c"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { V = 11, N = 4 };
static const uint32_t OFFSET[] = {0, 5, 6, 9, 16};
static const uint32_t ID[] = {1, 4, 9, 2, 3, 10, 7, 8, 1, 5, 6, 4, 2, 9, 10, 1};
static const real VALUE[] = {0.5, NAN, 2};
static const uint32_t CLASS[] = {2, ROW_NONE, 0, 1}, ROW[] = {1, 5, 12}, TARGET[] = {3, 9, 10};

static struct model_config bag(void)
{
	return (struct model_config){.arch = &arch_bag, .vocab_size = V, .hidden_size = 6, .initializer_range = 0.4};
}

static struct model_config bert(void)
{
	return (struct model_config){
		.arch = &arch_bert,
		.vocab_size = V,
		.hidden_size = 6,
		.num_hidden_layers = 1,
		.num_attention_heads = 2,
		.intermediate_size = 8,
		.max_position_embeddings = 8,
		.type_vocab_size = 1,
		.hidden_act = ACT_GELU,
		.classifier_dropout = -1,
		.layer_norm_eps = 1e-12,
		.initializer_range = 0.4,
	};
}

static struct batch batch(void)
{
	return (struct batch){.ncell = N, .offset = OFFSET, .id = ID};
}

/* sum_h scale_h loss_h, the function whose gradient backward gives. */
static double total(struct model *m, const struct batch *b, const double *scale)
{
	struct loss l[HEADS_MAX];
	struct error e;
	double sum = 0;
	if (model_forward(m, b, &(struct forward){.train = 1, .scale = scale}, l, &e))
		fail_msg("%s", e.msg);
	for (size_t i = 0; i < model_nhead(m); i++)
		sum += l[i].sum * scale[i];
	return sum;
}

/* Every learned value against a central difference. */
static void check_gradients(struct model *m, const struct batch *b, const double *scale)
{
	struct error e;
	size_t n = model_size(m, GRAD);
	real *g = xcalloc(n, sizeof *g), *p = m->p.array[PARAM];
	model_zero_grad(m);
	total(m, b, scale);
	assert_int_equal(model_backward(m, &e), 0);
	model_read_all(m, GRAD, g);
	double worst = 0, size = 0;
	for (size_t i = 0; i < model_ntensor(m); i++) {
		const struct tensor *t = model_tensor(m, i);
		for (size_t k = t->at; t->role == LEARNED && k < t->at + t->n; k++) {
			if (t->zero_row != NO_ROW && (k - t->at) / t->shape[1] == t->zero_row)
				continue;
			real was = p[k], h = 1e-5;
			p[k] = was + h;
			double up = total(m, b, scale);
			p[k] = was - h;
			double down = total(m, b, scale);
			p[k] = was;
			worst = fmax(worst, fabs((up - down) / (2 * h) - g[k]));
			size = fmax(size, fabs(g[k]));
		}
	}
	print_message("  worst %.1e of gradients up to %.1e\n", worst, size);
	assert_true(size > 1e-2 && worst < 1e-7 * size);
	free(g);
}

static void another_architecture(void **state)
{
	struct error e;
	struct ops *o = ops_cpu_new(1);
	struct model_config c = bag();
	struct head_spec head = {.kind = &head_cells, .nlabel = 3};
	struct model *m = model_new(&c, &head, 1, o, 3, &e);
	assert_non_null(m);
	struct batch b = batch();
	b.goal[0].target = CLASS;
	check_gradients(m, &b, (double[]){1});

	/* the buffer lies behind what is learned, takes no part in the update, and is read and written like the other tensors */
	const struct tensor *t = model_find(m, "bag.running_mean");
	assert_true(t->role == BUFFER && t->at >= model_size(m, GRAD) && t->at + t->n <= model_size(m, PARAM));
	assert_int_equal(model_nparam(m), V * 6 + 6 + 12 + 42 + 42 + 21);
	real mean[6] = {1, 2, 3, 4, 5, 6}, back[6];
	model_write(m, PARAM, t, mean);
	struct optim opt;
	struct loss l;
	double first = 0, last = 0;
	optim_init(&opt);
	opt.lr = 0.05;
	opt.schedule = SCHEDULE_CONSTANT;
	for (uint64_t k = 0; k < 60; k++) {
		model_zero_grad(m);
		assert_int_equal(model_forward(m, &b, &(struct forward){.train = 1, .step = k}, &l, &e), 0);
		assert_true(l.count == 3);
		assert_int_equal(model_backward(m, &e), 0);
		assert_int_equal(model_step(m, &opt, k, l.count, NULL, &e), 0);
		first = k ? first : l.sum;
		last = l.sum;
	}
	assert_true(last < 0.01 * first);
	model_read(m, PARAM, t, back);
	assert_memory_equal(mean, back, sizeof mean);

	/* predictions, and the states themselves: one row a cell */
	real y[N * 3], x[N * 6];
	assert_int_equal(model_logits(m, &b, 0, y, &e), 0);
	for (size_t i = 0; i < N * 3; i++)
		assert_true(CLASS[i / 3] == ROW_NONE || CLASS[i / 3] == i % 3 || y[i] < y[i / 3 * 3 + CLASS[i / 3]]);
	assert_int_equal(model_hidden(m, &b, 0, x, &e), 0);
	assert_int_equal(model_embed(m, &b, 0, (uint32_t[2 * N]){0}, 1, &e), -1);
	model_free(m);
	o->destroy(o);
}

/* Two heads on one transformer: the gradient is the weighted sum, and a head without targets in a batch is passed over. */
static void several_heads(void **state)
{
	struct error e;
	struct ops *o = ops_cpu_new(1);
	struct model_config c = bert();
	const struct head_spec head[] = {{.kind = &head_mlm}, {.kind = &head_cells, .nlabel = 3, .weight = 0.5, .position = 1}};
	struct model *m = model_new(&c, head, 2, o, 3, &e);
	assert_non_null(m);
	struct batch b = batch();
	b.goal[0] = (struct goal){.n = 3, .row = ROW, .target = TARGET};
	b.goal[1].target = CLASS;
	check_gradients(m, &b, (double[]){0.7, -2});
	/* without a scale it is the weights */
	size_t n = model_size(m, GRAD);
	real *a = xcalloc(n, sizeof *a), *d = xcalloc(n, sizeof *d);
	struct loss l[2];
	for (int k = 0; k < 2; k++) {
		model_zero_grad(m);
		const double weights[] = {1, 0.5};
		assert_int_equal(model_forward(m, &b, &(struct forward){.train = 1, .scale = k ? weights : NULL}, l, &e), 0);
		assert_int_equal(model_backward(m, &e), 0);
		model_read_all(m, GRAD, k ? d : a);
	}
	assert_memory_equal(a, d, n * sizeof *a);
	assert_true(l[0].count == 3 && l[1].count == 3);
	/* the classes are read from position 1; a cell of one token has none, and its state is 0 */
	real y[N * 3], x[16 * 6], pool[36], pool_bias[6], w[18], bias[3];
	model_read(m, PARAM, model_find(m, "bert.pooler.dense.weight"), pool);
	model_read(m, PARAM, model_find(m, "bert.pooler.dense.bias"), pool_bias);
	model_read(m, PARAM, model_find(m, "classifier.weight"), w);
	model_read(m, PARAM, model_find(m, "classifier.bias"), bias);
	assert_int_equal(model_hidden(m, &b, 0, x, &e), 0);
	assert_int_equal(model_logits(m, &b, 1, y, &e), 0);
	for (size_t i = 0; i < N; i++) {
		double want[3] = {bias[0], bias[1], bias[2]};
		for (size_t j = 0; j < 6; j++) {
			double z = pool_bias[j];
			for (size_t k = 0; OFFSET[i] + 1 < OFFSET[i + 1] && k < 6; k++)
				z += pool[j * 6 + k] * x[(OFFSET[i] + 1) * 6 + k];
			for (size_t k = 0; k < 3; k++)
				want[k] += w[k * 6 + j] * tanh(z);
		}
		for (size_t k = 0; k < 3; k++)
			assert_true(fabs(y[i * 3 + k] - want[k]) < 1e-12);
	}
	/* a loss that the host computes is scaled too */
	head_class_focal(m, 1, 2);
	check_gradients(m, &b, (double[]){0.7, -2});
	b.goal[0].n = 0;
	assert_int_equal(model_forward(m, &b, &(struct forward){.train = 1}, l, &e), 0);
	assert_true(l[0].count == 0 && l[0].sum == 0 && l[1].count == 3 && l[1].sum > 0);
	assert_int_equal(m->shape.heads, 1 << 1);
	check_gradients(m, &b, (double[]){1, 1});
	free(a);
	free(d);
	model_free(m);
	/* a loss of the device beside one of the host */
	const struct head_spec host[] = {{.kind = &head_mlm}, {.kind = &head_value}};
	m = model_new(&c, host, 2, o, 3, &e);
	assert_non_null(m);
	b.goal[0].n = 3;
	b.goal[1] = (struct goal){.n = 3, .row = ROW, .value = VALUE};
	check_gradients(m, &b, (double[]){0.7, -2});
	assert_int_equal(model_forward(m, &b, &(struct forward){.train = 1}, l, &e), 0);
	assert_true(l[0].count == 3 && l[1].count == 2);
	model_free(m);
	/* heads that would share a tensor */
	const struct head_spec clash[] = {{.kind = &head_cells, .nlabel = 2}, {.kind = &head_genes, .nlabel = 2}};
	assert_null(model_new(&c, clash, 2, o, 3, &e));
	assert_non_null(strstr(e.msg, "two heads have a tensor 'classifier.weight'"));
	o->destroy(o);
}

static void impossible(void **state)
{
	struct error e;
	struct ops *o = ops_cpu_new(1);
	struct model_config c = bag();
	assert_null(model_new(&c, &(struct head_spec){.kind = &head_mlm}, 1, o, 3, &e));
	assert_non_null(strstr(e.msg, "head mlm: architecture bag has no hidden states of tokens"));
	c.hidden_size = 0;
	assert_null(model_new(&c, NULL, 0, o, 3, &e));
	assert_string_equal(e.msg, "hidden_size is 0");
	c = bert();
	void (*attention)(struct ops *, void *, real *, const void *, const struct seq *, size_t, size_t, const struct dropout *) =
		o->attention;
	o->attention = NULL;
	assert_null(model_new(&c, NULL, 0, o, 3, &e));
	assert_string_equal(e.msg, "device cpu has no operation 'attention', which bert needs: use --device cpu");
	o->attention = attention;
	o->class_loss = NULL;
	assert_null(model_new(&c, &(struct head_spec){.kind = &head_genes, .nlabel = 2}, 1, o, 3, &e));
	assert_non_null(strstr(e.msg, "'class_loss', which genes needs"));
	o->destroy(o);
}

/* torch.optim.Adam with weight_decay: the decay goes into the gradient. Two updates by hand. */
static void l2_decay(void **state)
{
	struct ops *o = ops_cpu_new(1);
	double p[2] = {1, -2}, g[2] = {0.5, 0.25}, m[2] = {0}, v[2] = {0}, want[2] = {1, -2}, wm[2] = {0}, wv[2] = {0}, norm2 = 1;
	for (uint64_t t = 1; t <= 2; t++) {
		struct adamw_args a = {.variant = ADAMW_L2,
			.lr = 0.1,
			.beta1 = 0.9,
			.beta2 = 0.99,
			.eps = 1e-8,
			.decay = 0.3,
			.decayed = 1,
			.t = t,
			.gscale = 1};
		o->adamw(o, p, g, m, v, 2, &norm2, &a);
		for (int i = 0; i < 2; i++) {
			double gi = g[i] + (i == 0 ? 0.3 * want[i] : 0);
			wm[i] = 0.9 * wm[i] + 0.1 * gi;
			wv[i] = 0.99 * wv[i] + 0.01 * gi * gi;
			want[i] -= 0.1 * (wm[i] / (1 - pow(0.9, (double)t))) / (sqrt(wv[i] / (1 - pow(0.99, (double)t))) + 1e-8);
		}
	}
	assert_true(fabs(p[0] - want[0]) < 1e-14 && fabs(p[1] - want[1]) < 1e-14);
	o->destroy(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_architecture),
		cmocka_unit_test(several_heads),
		cmocka_unit_test(impossible),
		cmocka_unit_test(l2_decay),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
