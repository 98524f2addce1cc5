/*
 * The encoder of BMFM-RNA and the value encoders, in double precision: states, losses and gradients of tests/ref/bmfm.py, every gradient
 * against central differences, the order of the genes, numbers of parameters, and values that are refused.
 *
 * test_bmfm_float.c compiles the first of these tests for the float model, and has the last one for itself.
 */
#ifndef BMFM_FLOAT
#include "double.h"
#define STATES 1e-9
#define LOSS 1e-9
#define GRADIENTS 1e-6
#define TRAINING 1e-9
#else /* measured: states 3.3e-7, gradients 1.0e-6, training 3.7e-7 */
#define STATES 1e-6
#define LOSS 1e-6
#define GRADIENTS 3e-6
#define TRAINING 1e-6
#endif

#include "numbers.h"

#include "nn/model_impl.h"
#include "nn/value.h"

enum { WORDS = 41, WIDTH = 8, LAYERS = 2, CLASSES = 3 };

/* ---- the cases of tests/ref/bmfm.py ---- */

static struct model_config small(void)
{
	return (struct model_config){
		.arch = &arch_bmfm_llama,
		.vocab_size = WORDS,
		.hidden_size = WIDTH,
		.num_hidden_layers = LAYERS,
		.num_attention_heads = 2,
		.hidden_act = ACT_GELU,
		.layer_norm_eps = 1e-12,
		.own = {1e-5},
		.value = {.specials = 36, .scale = 0.01},
	};
}

static struct model_config with(enum value_kind kind)
{
	struct model_config c = small();
	c.value.kind = kind;
	c.value.frequencies = 20;
	return c;
}

static struct model_config learned(void)
{
	struct model_config c = with(VALUE_PERIODIC);
	c.first_norm = 1;
	c.value = (struct value_config){
		.kind = VALUE_PERIODIC,
		.frequencies = 5,
		.learned = 1,
		.scale = 1.5,
		.shift = 0.25,
		.center = {3, {0.5, 1, 2}},
		.orientation = {3, {1, -2, 4}},
		.specials = 36,
		.zero_is_number = 1,
	};
	return c;
}

static struct model_config bare(void)
{
	struct model_config c = small();
	c.first_norm = 1;
	return c;
}

/* The next number of a sequence that a text starts, < n, as in bmfm.py. */
struct sequence {
	uint32_t x;
};

static struct sequence sequence(const char *text)
{
	struct sequence s = {2166136261u};
	for (; *text; text++)
		s.x = (s.x ^ (unsigned char)*text) * 16777619u;
	return s;
}

static uint32_t next(struct sequence *s, uint32_t n)
{
	s->x = s->x * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)s->x * n >> 32);
}

static int ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);
	return n >= k && !strcmp(s + n - k, end);
}

/* The weights of bmfm.py. Fixed frequencies are rounded to float, as files have them. */
static void set_weights(struct model *m)
{
	for (size_t i = 0; i < model_ntensor(m); i++) {
		const struct tensor *t = model_tensor(m, i);
		struct sequence s = sequence(t->name);
		real *x = xcalloc(t->n, sizeof *x);
		model_read(m, PARAM, t, x);
		for (size_t k = 0; k < t->n; k++) {
			double v = next(&s, 1 << 20) / 524288.0 - 1;
			if (t->role == BUFFER)
				x[k] = (real)(float)x[k];
			else if (ends_with(t->name, "scale") || ends_with(t->name, "LayerNorm.weight"))
				x[k] = (real)(1 + v / 4);
			else if (ends_with(t->name, "basis"))
				x[k] = (real)(4 * v);
			else
				x[k] = (real)v / (t->ndim == 2 && !strstr(t->name, "embeddings") ? 4 : 2);
		}
		model_write(m, PARAM, t, x);
		free(x);
	}
}

struct cells {
	struct batch b;
	uint32_t *offset;
	real *value;
};

/* The batch of a case; find has its prefix. */
static void golden_cells(struct cells *x, const struct head_kind *kind)
{
	const struct array *length = find("length"), *value = find("value"), *target = find("target");
	*x = (struct cells){.offset = xcalloc(length->n + 1, 4), .value = xcalloc(value->n, sizeof(real))};
	for (size_t i = 0; i < length->n; i++)
		x->offset[i + 1] = x->offset[i] + ((const uint32_t *)length->data)[i];
	for (size_t i = 0; i < value->n; i++)
		x->value[i] = (real)((const float *)value->data)[i];
	x->b = (struct batch){.ncell = length->n, .offset = x->offset, .id = find("id")->data, .value = x->value};
	x->b.goal[0] = (struct goal){.n = target->n, .target = target->data};
	if (kind->rows == ROWS_LISTED)
		x->b.goal[0].row = find("row")->data;
}

static void free_cells(struct cells *x)
{
	free(x->offset);
	free(x->value);
}

static void check_states(struct model *m, const struct batch *b)
{
	double worst = 0;
	for (int k = 0; k <= LAYERS; k++) {
		struct error e;
		const struct array *want = find("state%d", k);
		real *h = xcalloc(want->n, sizeof *h);
		assert_int_equal(model_hidden(m, b, k - LAYERS, h, &e), 0);
		worst = fmax(worst, apart(h, want->data, want->n));
		free(h);
	}
	print_message("  %sstates %.1e\n", prefix, worst);
	assert_true(worst < STATES);
}

/* The gradient of the mean loss. */
static void check_golden_gradients(struct model *m, const struct batch *b)
{
	struct error e;
	struct loss l;
	double worst = 0;
	model_zero_grad(m);
	assert_int_equal(model_forward(m, b, &(struct forward){.train = 1}, &l, &e), 0);
	assert_true(fabs(l.sum / l.count / *(const double *)find("loss")->data - 1) < LOSS);
	assert_int_equal(model_backward(m, &e), 0);
	for (size_t i = 0; i < model_ntensor(m); i++) {
		const struct tensor *t = model_tensor(m, i);
		if (t->role == BUFFER)
			continue;
		const struct array *want = find("grad.%s", t->name);
		real *g = xcalloc(t->n, sizeof *g);
		model_read(m, GRAD, t, g);
		for (size_t k = 0; k < want->n; k++)
			g[k] /= (real)l.count;
		double d = apart(g, want->data, want->n);
		if (!(d < GRADIENTS))
			fail_msg("%s%s: apart by %.1e", prefix, t->name, d);
		worst = fmax(worst, d);
		free(g);
	}
	print_message("  %sgradients %.1e\n", prefix, worst);
}

/* 50 steps from the same start, as the released models were trained. */
static void check_training(struct model *m, const struct batch *b)
{
	struct error e;
	struct optim o = *model_config(m)->arch->optim;
	const double *want = find("losses")->data;
	double worst = 0;
	o.lr = 1e-3;
	o.warmup = 5;
	for (uint64_t k = 0; k < 50; k++) {
		struct loss l;
		model_zero_grad(m);
		assert_int_equal(model_forward(m, b, &(struct forward){.train = 1, .step = k}, &l, &e), 0);
		assert_int_equal(model_backward(m, &e), 0);
		assert_int_equal(model_step(m, &o, k, l.count, NULL, &e), 0);
		worst = fmax(worst, fabs(l.sum / l.count / want[k] - 1));
	}
	print_message("  %slosses of 50 steps, %.3f to %.3f: %.1e\n", prefix, want[0], want[49], worst);
	assert_true(want[49] < 0.8 * want[0] && worst < TRAINING);
}

static void check_case(const char *name, struct model_config c, const struct head_kind *kind)
{
	struct error e;
	struct ops *o = ops_cpu_new(2);
	struct head_spec head = {.kind = kind, .nlabel = kind->target == TARGET_CLASS ? CLASSES : 0};
	struct model *m = model_new(&c, &head, 1, o, 3, &e);
	struct cells x;
	assert_non_null(m);
	prefix = name;
	golden_cells(&x, kind);
	set_weights(m);
	check_states(m, &x.b);
	check_golden_gradients(m, &x.b);
	if (c.value.kind == VALUE_PERIODIC)
		check_training(m, &x.b);
	prefix = "";
	free_cells(&x);
	model_free(m);
	o->destroy(o);
}

static void golden(void **state)
{
	check_case("periodic.", with(VALUE_PERIODIC), &head_mlm);
	check_case("learned.", learned(), &head_cells);
	check_case("mlp.", with(VALUE_MLP), &head_mlm);
	check_case("mlp_special.", with(VALUE_MLP_SPECIAL), &head_genes);
	check_case("none.", bare(), &head_mlm);
}

/* ---- drawn cells ---- */

static const uint32_t OFFSET[] = {0, 7, 7, 8, 30};

/* Four cells: of 7, 0, 1 and 22 tokens. */
struct drawn {
	struct batch b;
	uint32_t id[30], target[30];
	real value[30];
};

static void draw_cells(struct drawn *x, const struct head_kind *kind)
{
	static const uint32_t row[] = {1, 4, 8, 20, 29};
	struct sequence s = sequence("drawn");
	*x = (struct drawn){0};
	for (uint32_t t = 0; t < 30; t++) {
		x->id[t] = 1 + next(&s, WORDS - 1);
		x->target[t] = next(&s, CLASSES);
		x->value[t] = t % 5 == 0 ? 0 : t % 7 == 1 ? -4 : (real)(1 + next(&s, 900)) / 128;
	}
	x->target[1] = kind->rows == ROWS_CELL ? ROW_NONE : x->target[1];
	x->b = (struct batch){.ncell = 4, .offset = OFFSET, .id = x->id, .value = x->value};
	x->b.goal[0] =
		kind->rows == ROWS_LISTED ? (struct goal){.n = 5, .row = row, .target = x->target} : (struct goal){.target = x->target};
}

#ifndef BMFM_FLOAT
/* ---- central differences ---- */

static double loss_of(struct model *m, const struct batch *b)
{
	struct loss l;
	struct error e;
	if (model_forward(m, b, &(struct forward){.train = 1}, &l, &e))
		fail_msg("%s", e.msg);
	return l.sum;
}

/* Of every tensor some elements, the first and the last among them. */
static void check_gradients(struct model_config c, const struct head_kind *kind)
{
	struct error e;
	struct ops *o = ops_cpu_new(1);
	struct head_spec head = {.kind = kind, .nlabel = kind->target == TARGET_CLASS ? CLASSES : 0};
	struct model *m = model_new(&c, &head, 1, o, 3, &e);
	struct drawn x;
	assert_non_null(m);
	set_weights(m);
	draw_cells(&x, kind);
	size_t n = model_size(m, GRAD);
	real *g = xcalloc(n, sizeof *g), *p = m->p.array[PARAM];
	model_zero_grad(m);
	loss_of(m, &x.b);
	assert_int_equal(model_backward(m, &e), 0);
	model_read_all(m, GRAD, g);
	double worst = 0;
	for (size_t i = 0; i < model_ntensor(m); i++) {
		const struct tensor *t = model_tensor(m, i);
		double size = 0, off = 0;
		for (size_t j = 0; t->role == LEARNED && j < 8; j++) {
			size_t k = t->at + j * (t->n - 1) / 7;
			if (t->zero_row != NO_ROW && (k - t->at) / t->shape[1] == t->zero_row)
				continue;
			real was = p[k], h = 1e-5;
			p[k] = was + h;
			double up = loss_of(m, &x.b);
			p[k] = was - h;
			double down = loss_of(m, &x.b);
			p[k] = was;
			off = fmax(off, fabs((up - down) / (2 * h) - g[k]));
			size = fmax(size, fabs(g[k]));
		}
		if (!(off <= 1e-6 * fmax(size, 1e-3)))
			fail_msg("%s: %.1e of gradients up to %.1e", t->name, off, size);
		worst = fmax(worst, off);
	}
	print_message("  worst %.1e\n", worst);
	free(g);
	model_free(m);
	o->destroy(o);
}

static struct model_config bert(enum value_kind kind)
{
	struct model_config c = with(kind);
	c.arch = &arch_bert;
	c.intermediate_size = 12;
	c.max_position_embeddings = 40;
	c.type_vocab_size = 1;
	c.classifier_dropout = -1;
	c.initializer_range = 0.4;
	c.value.frequencies = 6;
	return c;
}

static void gradients(void **state)
{
	struct model_config c = with(VALUE_PERIODIC);
	check_gradients(c, &head_cells);
	c.hidden_dropout_prob = 0.2;
	check_gradients(c, &head_genes);
	check_gradients(learned(), &head_mlm);
	check_gradients(with(VALUE_MLP), &head_genes);
	check_gradients(with(VALUE_MLP_SPECIAL), &head_mlm);
	check_gradients(bert(VALUE_PERIODIC), &head_mlm);
	check_gradients(bert(VALUE_MLP), &head_cells);
	check_gradients(bert(VALUE_MLP_SPECIAL), &head_mlm);
}

/* ---- properties ---- */

/* The genes of a cell in another order: the same states, but for rounding. A BERT's states are others. */
static void order(void **state)
{
	for (int k = 0; k < 2; k++) {
		struct error e;
		struct model_config c = k ? bert(VALUE_PERIODIC) : with(VALUE_PERIODIC);
		struct ops *o = ops_cpu_new(1);
		struct model *m = model_new(&c, NULL, 0, o, 3, &e);
		struct drawn x;
		real h[30 * WIDTH], turned[30 * WIDTH], worst = 0;
		draw_cells(&x, &head_genes);
		set_weights(m);
		assert_int_equal(model_hidden(m, &x.b, 0, h, &e), 0);
		struct drawn y = x;
		y.b.id = y.id;
		y.b.value = y.value;
		for (uint32_t t = 9; t < 30; t++) { /* the first token of the last cell stays */
			y.id[t] = x.id[38 - t];
			y.value[t] = x.value[38 - t];
		}
		assert_int_equal(model_hidden(m, &y.b, 0, turned, &e), 0);
		for (uint32_t t = 0; t < 30; t++)
			for (size_t i = 0; i < WIDTH; i++)
				worst = fmax(worst, fabs(h[t * WIDTH + i] - turned[(t < 9 ? t : 38 - t) * WIDTH + i]));
		print_message("  %s: %.1e\n", c.arch->name, worst);
		assert_true(k ? worst > 1e-2 : worst < 1e-12);
		model_free(m);
		o->destroy(o);
	}
}

static size_t parameters(const char *preset, const struct head_spec *head)
{
	struct error e;
	struct model_config c;
	assert_int_equal(model_preset(&c, preset, &e), 0);
	c.vocab_size = 19321;
	struct ops *o = ops_cpu_new(1);
	struct model *m = model_blank(&c, head, head != NULL, o, 1, &e);
	assert_non_null(m);
	size_t n = model_nparam(m);
	model_free(m);
	o->destroy(o);
	return n;
}

/* The numbers of the released models: without labels, and with the pooler, which is there though no label reads it. */
static void counts(void **state)
{
	const size_t encoder = 28713600, transform = 384 * 384 + 384 + 2 * 384, pooler = 147840;
	assert_int_equal(parameters("bmfm-47m", &(struct head_spec){.kind = &head_wced}), 43739378);
	assert_int_equal(parameters("bmfm-47m", NULL), encoder);
	assert_int_equal(parameters("bmfm-32m", NULL), encoder);
	assert_int_equal(parameters("bmfm-32m", &(struct head_spec){.kind = &head_cells, .nlabel = 7}), encoder + pooler + 7 * (384 + 1));
	assert_int_equal(parameters("bmfm-32m", &(struct head_spec){.kind = &head_mlm}), encoder + transform + 19321 * (384 + 1));
}

/* What PyTorch would draw: uniform weights and biases of linear layers, normal embeddings, a row of zeros, doubling frequencies. */
static void start(void **state)
{
	struct error e;
	struct model_config c;
	assert_int_equal(model_preset(&c, "bmfm-tiny", &e), 0);
	c.vocab_size = 500;
	struct ops *o = ops_cpu_new(1);
	struct model *m = model_new(&c, &(struct head_spec){.kind = &head_cells, .nlabel = 3}, 1, o, 1, &e);
	for (size_t i = 0; i < model_ntensor(m); i++) {
		const struct tensor *t = model_tensor(m, i);
		real *x = xcalloc(t->n, sizeof *x);
		double top = 0, square = 0;
		model_read(m, PARAM, t, x);
		for (size_t k = 0; k < t->n; k++) {
			top = fmax(top, fabs(x[k]));
			square += x[k] * x[k] / (double)t->n;
		}
		if (ends_with(t->name, "embeddings.weight")) {
			assert_true(top > 3 && fabs(sqrt(square) - 1) < 0.05 && !t->decay);
			for (size_t k = 0; k < t->shape[1]; k++)
				assert_true(x[k] == 0 && x[t->shape[1] + k] != 0);
		} else if (t->ndim == 2 || !strcmp(t->name, "core.pooler.dense.bias")) {
			double bound = 1 / sqrt((double)(t->ndim == 2 ? t->shape[1] : 64));
			assert_true(top <= bound && top > 0.95 * bound && fabs(square / (bound * bound / 3) - 1) < 0.4);
			assert_true(t->decay == (t->ndim == 2));
		} else if (ends_with(t->name, "bias")) {
			assert_true(top == 0 && !t->decay);
		} else if (ends_with(t->name, "basis")) {
			for (size_t k = 0; k < t->n; k++)
				assert_true(x[k] == ldexp(2 * M_PI * 0.01, (int)k));
			assert_true(t->n == 16 && t->role == BUFFER);
		} else {
			assert_true(top == 1 && square == 1 && !t->decay);
		}
		free(x);
	}
	model_free(m);
	o->destroy(o);
}

/* ---- what is refused ---- */

static void refused_batch(enum value_kind kind, double value, const char *message)
{
	struct error e;
	struct model_config c = with(kind);
	struct ops *o = ops_cpu_new(1);
	struct model *m = model_new(&c, NULL, 0, o, 3, &e);
	struct drawn x;
	real h[30 * WIDTH];
	draw_cells(&x, &head_genes);
	x.value[9] = value;
	int bad = model_hidden(m, &x.b, 0, h, &e);
	assert_int_equal(bad, message ? -1 : 0);
	if (message)
		assert_string_equal(e.msg, message);
	model_free(m);
	o->destroy(o);
}

static void refused_config(struct model_config c, const char *message)
{
	struct error e;
	assert_int_equal(model_check(&c, &e), -1);
	if (!strstr(e.msg, message))
		fail_msg("%s", e.msg);
}

static void refused(void **state)
{
	refused_batch(VALUE_PERIODIC, -36, NULL);
	refused_batch(VALUE_PERIODIC, -37,
		"cell 3 of the batch, position 1: value -37: expected 0, a number above it, or -(id + 1) of one of 36 special tokens");
	refused_batch(VALUE_MLP_SPECIAL, -0.5,
		"cell 3 of the batch, position 1: value -0.5: expected 0, a number above it, or -(id + 1) of one of 36 special tokens");
	refused_batch(VALUE_MLP, -0.5, NULL);
	refused_batch(VALUE_MLP, NAN, "cell 3 of the batch, position 1: value nan: expected a number");
	refused_batch(VALUE_PERIODIC, INFINITY, "cell 3 of the batch, position 1: value inf: expected a number");

	struct error e;
	struct model_config c = with(VALUE_PERIODIC);
	struct ops *o = ops_cpu_new(1);
	struct model *m = model_new(&c, NULL, 0, o, 3, &e);
	struct drawn x;
	real h[30 * WIDTH];
	draw_cells(&x, &head_genes);
	x.b.value = NULL;
	assert_int_equal(model_hidden(m, &x.b, 0, h, &e), -1);
	assert_string_equal(e.msg, "batch: tokens without values, which the value encoder of the model needs");
	model_free(m);
	o->destroy(o);

	c = with(VALUE_PERIODIC);
	c.value.frequencies = 140;
	refused_config(c, "value_frequencies is 140: the last frequency");
	c.value.frequencies = 0;
	refused_config(c, "values have no feature");
	c.value.center.n = 2;
	refused_config(c, "value_sigmoid_centers has 2 numbers, value_sigmoid_orientations 0");
	c = with(VALUE_PERIODIC);
	c.value.scale = 0;
	refused_config(c, "value_scale is 0");
	c.value.scale = NAN;
	refused_config(c, "value_scale is nan");
	c = small();
	c.num_attention_heads = 3;
	refused_config(c, "hidden_size 8 is not a multiple of num_attention_heads 3");
}

#else

enum { MANY = 24 };

/* What a few steps leave in all tensors, of as many cells as fill several chunks of every op. */
static float *trained(struct model_config c, int threads, size_t *n)
{
	struct error e;
	struct ops *o = ops_cpu_new(threads);
	struct model *m = model_new(&c, &(struct head_spec){.kind = &head_genes, .nlabel = CLASSES}, 1, o, 3, &e);
	struct optim opt;
	struct drawn x;
	uint32_t offset[MANY + 1], id[MANY * 30], target[MANY * 30];
	real value[MANY * 30];
	assert_non_null(m);
	draw_cells(&x, &head_genes);
	for (uint32_t i = 0; i < MANY * 30; i++) {
		id[i] = x.id[i % 30];
		target[i] = x.target[i * 7 % 30];
		value[i] = x.value[i % 30];
		offset[i / 30 + 1] = i + 1;
	}
	offset[0] = 0;
	struct batch b = {.ncell = MANY, .offset = offset, .id = id, .value = value, .goal = {{.target = target}}};
	optim_init(&opt);
	opt.total = 10;
	for (uint64_t k = 0; k < 3; k++) {
		struct loss l;
		model_zero_grad(m);
		assert_int_equal(model_forward(m, &b, &(struct forward){.train = 1, .step = k}, &l, &e), 0);
		assert_int_equal(model_backward(m, &e), 0);
		assert_int_equal(model_step(m, &opt, k, l.count, NULL, &e), 0);
	}
	*n = model_size(m, PARAM);
	float *p = xcalloc(*n, sizeof *p);
	model_read_all(m, PARAM, p);
	model_free(m);
	o->destroy(o);
	return p;
}

static void threads(void **state)
{
	const struct model_config all[] = {with(VALUE_PERIODIC), learned(), with(VALUE_MLP), with(VALUE_MLP_SPECIAL)};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		size_t n, same;
		float *one = trained(all[i], 1, &n);
		for (int k = 2; k <= 3; k++) {
			float *p = trained(all[i], k, &same);
			assert_true(n == same && !memcmp(one, p, n * sizeof *p));
			free(p);
		}
		free(one);
	}
}
#endif

static int open_golden(void **state)
{
	return read_arrays("tests/golden/v1/bmfm.bin");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden),
#ifdef BMFM_FLOAT
		cmocka_unit_test(threads),
#else
		cmocka_unit_test(gradients),
		cmocka_unit_test(order),
		cmocka_unit_test(counts),
		cmocka_unit_test(start),
		cmocka_unit_test(refused),
#endif
	};
	return cmocka_run_group_tests(tests, open_golden, free_arrays);
}
