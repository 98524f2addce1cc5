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

/* A model with one head of four classes whose logits are z for every cell: its states do not matter. */
static struct model *with_logits(struct head_spec head, const real *z, struct ops *o)
{
	struct error e;
	struct model_config c = bert();
	head.nlabel = 4;
	struct model *m = model_new(&c, &head, 1, o, 3, &e);
	assert_non_null(m);
	real zero[4 * 6] = {0};
	model_write(m, PARAM, model_find(m, "classifier.weight"), zero);
	model_write(m, PARAM, model_find(m, "classifier.bias"), z);
	return m;
}

/* Mean loss over the N cells with these targets, and the gradient of the logits, which is that of the bias. */
static double loss_at(struct model *m, const uint32_t *target, real *grad, struct loss *l)
{
	struct error e;
	struct batch b = batch();
	b.goal[0].target = target;
	model_zero_grad(m);
	if (model_forward(m, &b, &(struct forward){.train = 1}, l, &e))
		fail_msg("%s", e.msg);
	assert_int_equal(model_backward(m, &e), 0);
	if (grad)
		model_read(m, GRAD, model_find(m, "classifier.bias"), grad);
	return l->sum / l->count;
}

/*
 * Hierarchical cross-entropy: the values of shared/facts/bmfm.md, section 12, for the leaves direct, leaf1, leaf2, shared and the sets
 * of root, A, B, C, direct. Then a set far below the largest logit, and no set at all.
 */
static void hierarchical(void **state)
{
	static const uint32_t set[] = {15, 2 | 8, 4 | 8, 4, 1};
	static const double want[] = {0, 1.965070613, 0.213019180, 0.352405938, 1.852405938};
	static const double slope[] = {0.156859318, -0.214739850, 0.702994692, -0.645114160}; /* of A */
	static const real z[] = {0.5, -1, 2, 0.1}, far[] = {1000, 1000, -1000, -1000}, behind[] = {0, 0, 120, -1000};
	struct ops *o = ops_cpu_new(1);
	struct loss l;
	real g[4];
	struct head_spec head = {.kind = &head_hce, .nset = 5, .set = set, .over_all = 1};
	struct model *m = with_logits(head, z, o);
	for (uint32_t k = 0; k < 5; k++) {
		const uint32_t all[N] = {k, k, k, k}, half[N] = {ROW_NONE, k, k, ROW_NONE};
		assert_true(fabs(loss_at(m, all, g, &l) - want[k]) < 2e-9);
		assert_true(l.count == N && l.measure == (set[k] >> 2 & 1 ? N : 0));
		for (int i = 0; i < 4 && k == 1; i++)
			assert_true(fabs(g[i] / N - slope[i]) < 2e-9);
		assert_true(fabs(loss_at(m, half, g, &l) - want[k] / 2) < 2e-9 && l.count == N); /* the cells without a label count */
		for (int i = 0; i < 4 && k == 1; i++)
			assert_true(fabs(g[i] / N - slope[i] / 2) < 2e-9);
	}
	model_free(m);
	head.over_all = 0;
	m = with_logits(head, z, o);
	assert_true(fabs(loss_at(m, (uint32_t[]){ROW_NONE, 1, 1, ROW_NONE}, NULL, &l) - want[1]) < 2e-9 && l.count == 2);
	model_free(m);
	static const uint32_t two[] = {1 | 2};
	head.set = two;
	head.nset = 1;
	m = with_logits(head, far, o);
	assert_true(loss_at(m, (uint32_t[N]){0}, NULL, &l) == 0);
	model_free(m);
	m = with_logits(head, behind, o);
	assert_true(fabs(loss_at(m, (uint32_t[N]){0}, g, &l) - (120 - log(2))) < 1e-12);
	assert_true(fabs(g[0] / N + 0.5) < 1e-12 && fabs(g[1] / N + 0.5) < 1e-12 && fabs(g[2] / N - 1) < 1e-12);
	model_free(m);
	/* focal loss, gamma 2; theirs has an epsilon of 1.2e-7 in the logarithm */
	static const double focal[] = {1.316849295, 3.121840758, 0.031086472, 1.803644183};
	m = with_logits((struct head_spec){.kind = &head_cells}, z, o);
	head_class_focal(m, 0, 2);
	for (uint32_t k = 0; k < 4; k++)
		assert_true(fabs(loss_at(m, (uint32_t[N]){k, k, k, k}, NULL, &l) - focal[k]) < 5e-6);
	model_free(m);
	/* a target that is no set */
	struct error e;
	struct batch b = batch();
	m = with_logits(head, z, o);
	b.goal[0].target = (uint32_t[N]){0, 1};
	assert_int_equal(model_forward(m, &b, &(struct forward){.train = 1}, &l, &e), -1);
	assert_non_null(strstr(e.msg, "label 1 of cell 1, the model has 1"));
	model_free(m);
	o->destroy(o);
}

/* All gradients of sets against central differences: through the pooler, and from a token itself. */
static void sets_learn(void **state)
{
	static const uint32_t set[] = {1 | 4, 2, 7}, of[N] = {0, 2, ROW_NONE, 1};
	struct error e;
	struct ops *o = ops_cpu_new(1);
	struct model_config c = bert();
	for (int direct = 0; direct < 2; direct++) {
		const struct head_spec head = {
			.kind = &head_hce, .nlabel = 3, .nset = 3, .set = set, .direct = direct, .position = (uint32_t)direct};
		struct model *m = model_new(&c, &head, 1, o, 3, &e);
		assert_non_null(m);
		assert_true((model_find(m, "bert.pooler.dense.weight") == NULL) == direct);
		struct batch b = batch();
		b.goal[0].target = of;
		check_gradients(m, &b, (double[]){1});
		/* the logits are those of the state of the token */
		real y[N * 3], x[16 * 6], w[18], bias[3];
		model_read(m, PARAM, model_find(m, "classifier.weight"), w);
		model_read(m, PARAM, model_find(m, "classifier.bias"), bias);
		assert_int_equal(model_hidden(m, &b, 0, x, &e), 0);
		assert_int_equal(model_logits(m, &b, 0, y, &e), 0);
		for (size_t i = 0; direct && i < N * 3; i++) {
			size_t at = OFFSET[i / 3] + 1;
			double want = bias[i % 3];
			for (size_t k = 0; at < OFFSET[i / 3 + 1] && k < 6; k++)
				want += w[i % 3 * 6 + k] * x[at * 6 + k];
			assert_true(fabs(y[i] - want) < 1e-12);
		}
		model_free(m);
	}
	o->destroy(o);
}

/* Gradient reversal: the head learns as it would without, and the gradient of all that is before its linear layer is multiplied by -reverse. */
static void reversal(void **state)
{
	static const real value[N] = {0.3, NAN, -2, 1};
	struct error e;
	struct ops *o = ops_cpu_new(1);
	struct model_config c = bert();
	for (int k = 0; k < 4; k++) { /* classes and numbers, with and without the pooler */
		real *g[2];
		size_t n = 0;
		for (int r = 0; r < 2; r++) {
			const struct head_spec head = {.kind = k < 2 ? &head_cells : &head_number,
				.nlabel = k < 2 ? 3 : 0,
				.direct = k % 2,
				.reverse = r ? 0.7 : 0};
			struct model *m = model_new(&c, &head, 1, o, 3, &e);
			assert_non_null(m);
			struct batch b = batch();
			struct loss l;
			b.goal[0] = (struct goal){.target = k < 2 ? CLASS : NULL, .value = k < 2 ? NULL : value};
			model_zero_grad(m);
			assert_int_equal(model_forward(m, &b, &(struct forward){.train = 1}, &l, &e), 0);
			assert_int_equal(model_backward(m, &e), 0);
			n = model_size(m, GRAD);
			g[r] = xcalloc(n, sizeof *g[r]);
			model_read_all(m, GRAD, g[r]);
			double encoder = 0, own = 0;
			for (size_t i = 0; r && i < model_ntensor(m); i++) {
				const struct tensor *t = model_tensor(m, i);
				int is_own = strncmp(t->name, "classifier.", 11) == 0;
				for (size_t j = t->at; j < t->at + t->n; j++) {
					assert_true(fabs(g[1][j] - (is_own ? 1 : -0.7) * g[0][j]) < 1e-15 + 1e-12 * fabs(g[0][j]));
					*(is_own ? &own : &encoder) += fabs(g[0][j]);
				}
			}
			assert_true(!r || (encoder > 0.1 && own > 0.1));
			model_free(m);
		}
		free(g[0]);
		free(g[1]);
	}
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
		cmocka_unit_test(hierarchical),
		cmocka_unit_test(sets_learn),
		cmocka_unit_test(reversal),
		cmocka_unit_test(impossible),
		cmocka_unit_test(l2_decay),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
