/* Whole training steps on the CUDA backend against the CPU's, and against themselves. See test_cuda.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "both.h"
#include "nn/model.h"

#ifdef EMULATED
extern unsigned emu_replays;
#endif

struct run {
	struct batch b;
	uint32_t *offset, *id, *mask, *target, *label;
	float *value, *input; /* of targets; of all tokens */
};

static void make_run(struct run *r, const uint32_t *len, size_t B, uint32_t V, uint32_t K)
{
	r->offset = xcalloc(B + 1, 4);
	for (size_t i = 0; i < B; i++)
		r->offset[i + 1] = r->offset[i] + len[i];
	size_t T = r->offset[B], n = 0;
	r->id = xcalloc(T, 4), r->mask = xcalloc(T, 4), r->target = xcalloc(T, 4), r->label = xcalloc(T, 4);
	r->value = xcalloc(T, 4), r->input = xcalloc(T, 4);
	for (uint32_t t = 0; t < T; t++) {
		r->id[t] = 2 + rng(V - 2);
		r->label[t] = rng(K);
		r->input[t] = t % 4 == 1 ? 0 : t % 5 == 2 ? -5 : (float)(1 + rng(500)) / 64;
		if (rng(100) < 15) {
			r->mask[n] = t;
			r->value[n] = n % 5 == 1 ? NAN : 1 + (float)r->id[t] / (float)V;
			r->target[n++] = r->id[t];
			r->id[t] = 1;
		}
	}
	r->b = (struct batch){
		.ncell = B, .offset = r->offset, .id = r->id, .goal = {{.n = n, .row = r->mask, .target = r->target, .value = r->value}}};
}

static void free_run(struct run *r)
{
	free(r->offset), free(r->id), free(r->mask), free(r->target), free(r->label), free(r->value), free(r->input);
}

static struct model *model_on(struct ops *o, const struct model_config *c, const struct head_kind *kind, const float *class_weight)
{
	struct error e;
	struct model *m = model_new(c, &(struct head_spec){.kind = kind, .nlabel = 3}, 1, o, 5, &e);
	if (!m)
		fail_msg("%s", e.msg);
	if (kind->target == TARGET_CLASS)
		head_class_weight(m, 0, class_weight);
	return m;
}

/* model_collect gives the same sums as model_forward, bit for bit. */
static void same_loss(const struct loss *a, const struct loss *b)
{
	assert_true(a->sum == b->sum && a->measure == b->measure && a->count == b->count);
}

/* One step. later: it is only queued. */
static void one_step(struct model *m, const struct run *r, uint64_t k, struct loss *l, int later)
{
	struct error e;
	struct optim opt;
	optim_init(&opt);
	opt.total = 10;
	model_zero_grad(m);
	if (model_forward(m, &r->b, &(struct forward){.train = 1, .step = k, .later = later}, l, &e) || model_backward(m, &e))
		fail_msg("%s", e.msg);
	if (later)
		model_step_later(m, &opt, k, l->count);
	else if (model_step(m, &opt, k, l->count, NULL, &e))
		fail_msg("%s", e.msg);
}

/* Means of hidden states, of all tokens but a cell's first. */
static void embed_one(struct model *a, struct model *b, const struct run *r)
{
	struct error e;
	size_t B = r->b.ncell, n = B * model_config(a)->hidden_size;
	uint32_t range[2 * CELLS];
	float *x = xcalloc(n, 4), *y = xcalloc(n, 4);
	for (size_t i = 0; i < B; i++) {
		range[2 * i + 1] = r->offset[i + 1];
		range[2 * i] = r->offset[i] < r->offset[i + 1] ? r->offset[i] + 1 : r->offset[i];
	}
	if (model_embed(a, &r->b, -1, range, 1, &e) || model_embed(b, &r->b, -1, range, 1, &e) || model_embed(b, &r->b, -1, range, 1, &e) ||
		model_embedded(a, x, &e) || model_embedded(b, y, &e) || model_embedded(b, y, &e))
		fail_msg("%s", e.msg);
	for (size_t i = 0; i < n; i++) {
		size_t cell = i / model_config(a)->hidden_size;
		if (range[2 * cell] < range[2 * cell + 1])
			continue;
		assert_true(isnan(x[i]) && isnan(y[i]));
		x[i] = y[i] = 0;
	}
	within("embedding", distance(y, x, n), 1e-2, 0.2);
	range[1]++;
	assert_int_equal(model_embed(b, &r->b, -1, range, 1, &e), -1);
	free(x), free(y);
}

/*
 * A few steps on both, of batches that differ but have one size: losses, every tensor's gradient in the first step, parameters at the
 * end. A third model takes the same steps, queued one step ahead: its bits are equal. The first step runs directly, the second is captured,
 * the others are replayed.
 */
static void steps_of(
	const struct model_config *config, const uint32_t *len, size_t B, const struct head_kind *kind, double tol_float, double tol_bf16)
{
	const struct model_config c = *config;
	const float class_weight[] = {1, 0.5f, 2};
	struct run all[2], r;
	uint32_t turned[CELLS];
	for (size_t i = 0; i < B; i++)
		turned[i] = len[B - 1 - i];
	make_run(&all[0], len, B, c.vocab_size, 3);
	make_run(&all[1], turned, B, c.vocab_size, 3);
	for (size_t i = 0; kind == &head_cells && i < B; i++) { /* the empty cell has none */
		all[0].label[i] = len[i] ? all[0].label[i] : ROW_NONE;
		all[1].label[i] = turned[i] ? all[1].label[i] : ROW_NONE;
	}
	for (int i = 0; kind->target == TARGET_CLASS && i < 2; i++)
		all[i].b.goal[0] = (struct goal){.target = all[i].label};
	for (int i = 0; c.value.kind != VALUE_NONE && i < 2; i++)
		all[i].b.value = all[i].input;
	struct model *a = model_on(cpu, &c, kind, class_weight), *b = model_on(gpu, &c, kind, class_weight),
		     *again = model_on(gpu, &c, kind, class_weight);
	size_t n = model_size(a, PARAM);
	float *x = xcalloc(n, 4), *y = xcalloc(n, 4), *z = xcalloc(n, 4), *start = xcalloc(n, 4);
	model_read_all(a, PARAM, start);
	/* the layouts differ (ops.align): tensors are compared by name */
	struct loss lb[STEPS], lc;
	double norm;
#ifdef EMULATED
	unsigned replays = emu_replays;
#endif
	for (uint64_t k = 0; k < STEPS; k++) {
		struct loss la;
		r = all[k % 2];
		one_step(a, &r, k, &la, 0);
		one_step(b, &r, k, &lb[k], 0);
		one_step(again, &r, k, &lc, 1);
		within_sum("loss", fabs(la.sum - lb[k].sum) / la.sum, 2e-4, 2e-2);
		assert_true(la.count == lb[k].count && la.count == lc.count);
		if (k > 0) {
			struct error e;
			if (model_collect(again, &lc, &norm, &e))
				fail_msg("%s", e.msg);
			same_loss(&lb[k - 1], &lc);
		}
		for (size_t i = 0; k == 0 && i < model_ntensor(a); i++) {
			const struct tensor *t = model_tensor(a, i), *u = model_find(b, t->name);
			if (t->role == BUFFER)
				continue;
			model_read(a, GRAD, t, x);
			model_read(b, GRAD, u, y);
			double size = 0;
			for (size_t j = 0; j < t->n; j++)
				size += (double)x[j] * x[j];
			if (strstr(t->name, "key.bias")) /* its gradient is 0 but for rounding */
				continue;
			within(t->name, size > 0 ? distance(y, x, t->n) : distance(y, x, t->n) * 1e3, tol_float, tol_bf16);
		}
	}
#ifdef EMULATED
	assert_true(emu_replays - replays >= 2 * 2 * (STEPS - 1)); /* forward and backward of both models, in all steps but the first */
#endif
	struct error e;
	assert_int_equal(model_collect(again, &lc, &norm, &e), 0);
	same_loss(&lb[STEPS - 1], &lc);
	assert_true(norm > 0);
	embed_one(a, b, &r);
	for (size_t i = 0; i < model_ntensor(a); i++) {
		const struct tensor *t = model_tensor(a, i), *u = model_find(b, t->name);
		model_read(b, PARAM, u, y);
		model_read(again, PARAM, u, z);
		assert_memory_equal(y, z, t->n * 4);
		model_read(a, PARAM, t, x);
		if (t->ndim == 2) /* a bias is what AdamW made of the sign of its gradients, however small */
			within("parameters", distance(y, x, t->n), 1e-3, 0.1);
	}
	free(x), free(y), free(z), free(start);
	model_free(a), model_free(b), model_free(again);
	free_run(&all[0]), free_run(&all[1]);
}

static void steps_one(const uint32_t *len, size_t B, const struct head_kind *kind, enum act act, uint32_t C, uint32_t NH, double tol_float,
	double tol_bf16)
{
	const struct model_config c = {.vocab_size = WORDS,
		.hidden_size = C,
		.num_hidden_layers = 2,
		.num_attention_heads = NH,
		.intermediate_size = 2 * C,
		.max_position_embeddings = POSITIONS,
		.type_vocab_size = 2,
		.hidden_act = act,
		.hidden_dropout_prob = 0.1,
		.attention_probs_dropout_prob = 0.1,
		.classifier_dropout = -1,
		.layer_norm_eps = 1e-12,
		.initializer_range = 0.05};
	steps_of(&c, len, B, kind, tol_float, tol_bf16);
}

/* The encoder of BMFM-RNA, or a BERT, that reads values. */
static void steps_values(const char *preset, enum value_kind kind, const struct head_kind *head, double tol_float, double tol_bf16)
{
	const uint32_t few[] = {9, 1, 0, 33};
	struct error e;
	struct model_config c;
	if (model_preset(&c, preset, &e))
		fail_msg("%s", e.msg);
	c.vocab_size = WORDS;
	c.hidden_dropout_prob = 0.1;
	c.value = (struct value_config){.kind = kind,
		.frequencies = 9,
		.learned = 1,
		.scale = 0.1,
		.specials = 36,
		.center = {2, {1, 3}},
		.orientation = {2, {1, -2}}};
	steps_of(&c, few, 4, head, tol_float, tol_bf16);
}

void steps(void)
{
	/* with ReLU, rounding turns a few units on or off: half a percent of them is 7 % of the gradient */
	const uint32_t few[] = {9, 1, 0, 33};
	steps_one(few, 4, &head_mlm, ACT_GELU, 64, 1, 2e-5, 0.04);
	steps_values("bmfm-tiny", VALUE_PERIODIC, &head_mlm, 4e-5, 0.1);
	if (SANITIZED)
		return;
	steps_one(cells, CELLS, &head_mlm, ACT_RELU, 128, 2, 2e-5, 0.2);
	steps_one(few, 4, &head_cells, ACT_GELU, 64, 4, 1e-4,
		0.3); /* only the first token's gradient: small differences of rounded numbers */
	steps_one(few, 4, &head_genes, ACT_GELU, 64, 1, 2e-5, 0.04);
	steps_one(few, 4, &head_value, ACT_GELU, 64, 1, 2e-5, 0.04);
	steps_values("bmfm-tiny", VALUE_MLP, &head_cells, 1e-4, 0.3);
	steps_values("tiny", VALUE_MLP_SPECIAL, &head_genes, 4e-5, 0.1);
}

/* Class weights that are set after work was recorded without any are used by the steps that follow. So are arrays that only some batches have,
 * which move those behind them. */
void settings(void)
{
	const struct model_config c = {.vocab_size = WORDS,
		.hidden_size = 64,
		.num_hidden_layers = 1,
		.num_attention_heads = 1,
		.intermediate_size = 64,
		.max_position_embeddings = POSITIONS,
		.type_vocab_size = 2,
		.hidden_act = ACT_GELU,
		.classifier_dropout = -1,
		.layer_norm_eps = 1e-12,
		.initializer_range = 0.05};
	const float class_weight[] = {0.25f, 0.5f, 4};
	const uint32_t len[] = {9, 5, 1};
	struct run r;
	make_run(&r, len, 3, c.vocab_size, 3);
	r.b.goal[0] = (struct goal){.target = r.label};
	r.label[0] = 2;
	struct model *a = model_on(cpu, &c, &head_cells, NULL), *b = model_on(gpu, &c, &head_cells, NULL);
	for (uint64_t k = 0; k < 9; k++) {
		struct loss la, lb;
		r.b.value = k == 0 || (k > 4 && k % 2) ? r.value : NULL; /* at first the most, or the memory would grow */
		r.b.count = k == 0 || k > 6 ? r.id : NULL;
		if (k == 3)
			head_class_weight(a, 0, class_weight), head_class_weight(b, 0, class_weight);
		one_step(a, &r, k, &la, 0);
		one_step(b, &r, k, &lb, 0);
		within_sum("loss", fabs(la.sum / la.count - lb.sum / lb.count) / (la.sum / la.count), 1e-3, 5e-2);
	}
	model_free(a), model_free(b);
	free_run(&r);
}

/* Updates of three batches each, as with --accum, the host waiting after every batch or never: equal bits. */
void accumulation(void)
{
	const struct model_config c = {.vocab_size = WORDS,
		.hidden_size = 64,
		.num_hidden_layers = 1,
		.num_attention_heads = 1,
		.intermediate_size = 64,
		.max_position_embeddings = POSITIONS,
		.type_vocab_size = 2,
		.hidden_act = ACT_GELU,
		.classifier_dropout = -1,
		.layer_norm_eps = 1e-12,
		.initializer_range = 0.05};
	const uint32_t len[] = {20, 5, 11};
	struct run r[3];
	struct model *m[2];
	float *x[2];
	for (int i = 0; i < 3; i++)
		make_run(&r[i], len, 3, c.vocab_size, 3);
	for (int i = 0; i < 2; i++) {
		struct error e;
		struct loss l;
		struct optim opt;
		double count = 0;
		m[i] = model_on(gpu, &c, &head_mlm, NULL);
		optim_init(&opt);
		opt.total = 10;
		model_zero_grad(m[i]);
		for (uint64_t k = 0; k < 3; k++) {
			if (model_forward(m[i], &r[k].b, &(struct forward){.train = 1, .step = k, .later = 1}, &l, &e) ||
				model_backward(m[i], &e) || (i == 0 && gpu->sync(gpu, &e)))
				fail_msg("%s", e.msg);
			count += l.count;
		}
		model_step_later(m[i], &opt, 0, count);
		x[i] = xcalloc(model_size(m[i], PARAM), sizeof *x[i]);
		model_read_all(m[i], PARAM, x[i]);
	}
	assert_memory_equal(x[0], x[1], model_size(m[0], PARAM) * sizeof *x[0]);
	for (int i = 0; i < 2; i++)
		model_free(m[i]), free(x[i]);
	for (int i = 0; i < 3; i++)
		free_run(&r[i]);
}
