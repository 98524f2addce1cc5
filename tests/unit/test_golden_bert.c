/*
 * The float model against transformers and torch: same weights, same batches, dropout 0. tests/ref/bert_golden.py made
 * the values and describes the file. Tolerances are a little above the measured errors, which are noted beside them.
 */
#include "numbers.h"

#include "nn/model.h"

#define GOLDEN "tests/golden/v1/"

static int setup(void **state)
{
	return read_arrays(GOLDEN "bert.bin") || read_arrays(GOLDEN "value.bin");
}

static double apart_from(const float *got, const struct array *want, size_t n)
{
	double *b = xcalloc(n, sizeof *b);
	assert_int_equal(want->n, n);
	for (size_t i = 0; i < n; i++)
		b[i] = (double)((const float *)want->data)[i];
	double d = apart(got, b, n);
	free(b);
	return d;
}

static void near(const char *what, const float *got, const struct array *want, size_t n, double tol)
{
	double d = apart_from(got, want, n);
	if (!(d <= tol))
		fail_msg("%s: apart by %g of the largest value, at most %g expected", what, d, tol);
}

static const struct head_spec MLM[] = {{.kind = &head_mlm}}, CELLS[] = {{.kind = &head_cells}}, GENES[] = {{.kind = &head_genes}},
			      VALUE[] = {{.kind = &head_value}};

static struct batch get_batch(const char *name, int k, const struct head_spec *head)
{
	static uint32_t class[4096];
	const struct array *offset = find("%s.b%d.offset", name, k), *id = find("%s.b%d.id", name, k);
	struct batch b = {.ncell = offset->n - 1, .offset = offset->data, .id = id->data};
	struct goal *g = &b.goal[0];
	if (head == MLM || head == VALUE) {
		const struct array *mask = find("%s.b%d.mask", name, k);
		*g = (struct goal){.n = mask->n, .row = mask->data};
	}
	if (head == MLM) {
		g->target = find("%s.b%d.target", name, k)->data;
	} else if (head == VALUE) {
		const struct array *value = find("%s.b%d.value", name, k), *rank = find("%s.b%d.rank", name, k);
		assert_true(value->n == g->n && rank->n == id->n);
		b.rank = rank->data;
		g->value = value->data;
	} else {
		const struct array *label = find("%s.b%d.label", name, k);
		assert_true(label->n <= sizeof class / sizeof *class);
		for (size_t i = 0; i < label->n; i++)
			class[i] = ((const int32_t *)label->data)[i] < 0 ? ROW_NONE : ((const uint32_t *)label->data)[i];
		g->target = class;
	}
	return b;
}

static struct model *load(const char *name, const struct head_spec *head, struct ops *o, struct error *e)
{
	const int32_t *c = find("%s.config", name)->data;
	struct model_config config = {
		.vocab_size = (uint32_t)c[0],
		.hidden_size = (uint32_t)c[1],
		.num_hidden_layers = (uint32_t)c[2],
		.num_attention_heads = (uint32_t)c[3],
		.intermediate_size = (uint32_t)c[4],
		.max_position_embeddings = (uint32_t)c[5],
		.hidden_act = (enum act)c[7],
		.type_vocab_size = 2,
		.layer_norm_eps = 1e-12,
		.initializer_range = 0.02,
	};
	struct head_spec spec = {.kind = head->kind, .nlabel = (uint32_t)c[6]};
	struct model *m = model_new(&config, &spec, 1, o, 1, e);
	assert_non_null(m);
	for (size_t i = 0; i < model_ntensor(m); i++) {
		const struct tensor *t = model_tensor(m, i);
		const struct array *a = find("%s.param.%s", name, t->name);
		assert_int_equal(a->n, t->n);
		model_write(m, PARAM, t, a->data);
	}
	return m;
}

static void check_forward(const char *name, const struct head_spec *head)
{
	struct error e;
	struct ops *o = ops_cpu_new(1);
	struct model *m = load(name, head, o, &e);
	struct batch b = get_batch(name, 0, head);
	struct loss loss;
	size_t T = b.offset[b.ncell], C = model_config(m)->hidden_size, L = model_config(m)->num_hidden_layers;
	const struct array *z = find("%s.logits", name);
	float *h = xcalloc(T * C, 4), *logit = xcalloc(z->n, 4), *g = xcalloc(model_size(m, PARAM), 4);
	for (size_t l = 0; l <= L; l++) {
		char what[32];
		snprintf(what, sizeof what, "hidden%zu", l);
		assert_int_equal(model_hidden(m, &b, (int)l - (int)L, h, &e), 0);
		near(what, h, find("%s.%s", name, what), T * C, 2e-6); /* 6e-7 */
	}
	assert_int_equal(model_logits(m, &b, 0, logit, &e), 0);
	near("logits", logit, z, z->n, 3e-6); /* 8e-7 */
	assert_int_equal(model_forward(m, &b, &(struct forward){.train = 1}, &loss, &e), 0);
	assert_true(fabs(loss.sum / loss.count / *(const float *)find("%s.loss", name)->data - 1) < 1e-6);
	assert_int_equal(model_backward(m, &e), 0);
	for (size_t i = 0; i < model_ntensor(m); i++) {
		const struct tensor *t = model_tensor(m, i);
		model_read(m, GRAD, t, g);
		for (size_t j = 0; j < t->n; j++)
			g[j] /= (float)loss.count;
		const struct array *want = find("%s.grad.%s", name, t->name);
		double top = 0;
		for (size_t j = 0; j < t->n; j++)
			top = fmax(top, fabs((double)((const float *)want->data)[j]));
		if (top > 1e-6) /* the gradient of a key bias is 0 but for rounding */
			near(t->name, g, want, t->n, 1e-5); /* 2e-6 */
	}
	free(h);
	free(logit);
	free(g);
	model_free(m);
	o->destroy(o);
}

static void check_steps(const char *name, const struct head_spec *head)
{
	struct error e;
	struct ops *o = ops_cpu_new(1);
	struct model *m = load(name, head, o, &e);
	const char *opt = "torch";
	const struct array *losses = find("%s.%s.loss", name, opt);
	const float *want = losses->data, *norms = find("%s.%s.norm", name, opt)->data;
	struct optim s;
	optim_init(&s);
	s.schedule = SCHEDULE_LINEAR;
	s.lr = 2e-3;
	s.weight_decay = 0.05;
	s.warmup = 20;
	s.total = 220;
	double worst = 0, worst_norm = 0, worst_weight = 0;
	for (size_t k = 0; k < losses->n; k++) {
		struct batch b = get_batch(name, (int)(k % 4), head);
		struct loss loss;
		double norm;
		model_zero_grad(m);
		assert_int_equal(model_forward(m, &b, &(struct forward){.train = 1, .step = k}, &loss, &e), 0);
		assert_int_equal(model_backward(m, &e), 0);
		assert_int_equal(model_step(m, &s, k, loss.count, &norm, &e), 0);
		worst = fmax(worst, fabs(loss.sum / loss.count / want[k] - 1));
		worst_norm = fmax(worst_norm, fabs(norm / norms[k] - 1));
	}
	float *p = xcalloc(model_size(m, PARAM), 4);
	for (size_t i = 0; i < model_ntensor(m); i++) {
		const struct tensor *t = model_tensor(m, i);
		char what[TENSOR_NAME + 16];
		snprintf(what, sizeof what, "%s.final.%s", opt, t->name);
		if (strstr(t->name, "key.bias")) /* its gradient is 0 but for rounding, which Adam makes large */
			continue;
		model_read(m, PARAM, t, p);
		worst_weight = fmax(worst_weight, apart_from(p, find("%s.%s", name, what), t->n));
	}
	print_message("  %s %s, %zu updates: losses within %.1e, norms %.1e, weights %.1e\n", name, opt, losses->n, worst, worst_norm,
		worst_weight);
	assert_true(worst < 1e-5);
	assert_true(worst_norm < 1e-4);
	assert_true(worst_weight < 1e-5);
	free(p);
	model_free(m);
	o->destroy(o);
}

static void mlm(void **state)
{
	check_forward("mlm", MLM);
}

static void gelu(void **state)
{
	check_forward("gelu", MLM);
}

static void cells(void **state)
{
	check_forward("cells", CELLS);
}

static void genes(void **state)
{
	check_forward("genes", GENES);
}

static void value(void **state)
{
	check_forward("value", VALUE);
}

static void steps(void **state)
{
	check_steps("mlm", MLM);
	check_steps("gelu", MLM);
	check_steps("cells", CELLS);
	check_steps("value", VALUE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mlm),
		cmocka_unit_test(gelu),
		cmocka_unit_test(cells),
		cmocka_unit_test(genes),
		cmocka_unit_test(value),
		cmocka_unit_test(steps),
	};
	return cmocka_run_group_tests(tests, setup, free_arrays);
}
