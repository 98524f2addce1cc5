/*
 * Gradients with respect to the vectors of tokens (lib/nn/input.h), in double precision: for both encoders with attention, with and without
 * values, the function is what the model gives, and its gradient that of central differences, for the logits of classes, a number and means of
 * states of any layer; the weights stay, and a training step afterwards is the same; what is refused.
 */
#include "double.h"

#include "arch_bag.c"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { VOCAB = 41, WIDTH = 8, CELLS = 4, TOKENS = 17, CLASSES = 3 };
static const uint32_t OFFSET[] = {0, 7, 7, 8, 17};
static const uint32_t RANGE[] = {1, 7, 0, 0, 7, 8, 10, 12};

static struct model_config encoder(const struct arch *arch, enum value_kind kind)
{
	return (struct model_config){
		.arch = arch,
		.vocab_size = VOCAB,
		.hidden_size = WIDTH,
		.num_hidden_layers = 2,
		.num_attention_heads = 2,
		.intermediate_size = 12,
		.max_position_embeddings = 16,
		.type_vocab_size = 2,
		.hidden_act = ACT_GELU,
		.hidden_dropout_prob = 0.3, /* must be off */
		.classifier_dropout = 0.5,
		.layer_norm_eps = 1e-12,
		.initializer_range = 0.4,
		.own = {1e-5},
		.value = {.kind = kind, .frequencies = 4, .scale = 0.05, .specials = 36},
	};
}

struct cells {
	struct batch b;
	uint32_t id[TOKENS];
	real value[TOKENS];
};

static void draw(struct cells *x)
{
	for (uint32_t t = 0; t < TOKENS; t++) {
		x->id[t] = 1 + t * 29 % (VOCAB - 1);
		x->value[t] = t % 5 == 0 ? 0 : t % 7 == 1 ? -4 : (real)(1 + t * 37 % 90) / 16;
	}
	x->b = (struct batch){.ncell = CELLS, .offset = OFFSET, .id = x->id, .value = x->value};
}

/* sum dy y, the number whose gradient is taken */
static double number(struct model *m, const struct cells *x, const real *v, const struct input_to *to, const real *dy, real *y, size_t n)
{
	struct error e;
	double sum = 0;
	if (input_forward(m, &x->b, v, to, y, NULL, &e))
		fail_msg("%s", e.msg);
	for (size_t i = 0; i < CELLS * n; i++)
		sum += isnan(y[i]) ? 0 : y[i] * dy[i];
	return sum;
}

static void check(struct model *m, const struct cells *x, const struct input_to *to, size_t n)
{
	struct error e;
	real v[TOKENS * WIDTH], dv[TOKENS * WIDTH], y[CELLS * WIDTH], want[CELLS * WIDTH], dy[CELLS * WIDTH];
	double worst = 0, size = 0, off = 0;
	for (size_t i = 0; i < CELLS * n; i++)
		dy[i] = (real)(1 + i * 5 % 7) / 4 - 1;
	assert_int_equal(input_vectors(m, &x->b, v, &e), 0);
	number(m, x, v, to, dy, y, n);
	assert_int_equal(input_backward(m, dy, dv, NULL, &e), 0);
	assert_int_equal(input_backward(m, dy, dv, NULL, &e), -1); /* once */
	if (to->range) {
		assert_int_equal(model_embed(m, &x->b, to->layer, to->range, 1, &e), 0);
		assert_int_equal(model_embedded(m, want, &e), 0);
	} else {
		assert_int_equal(model_logits(m, &x->b, to->head, want, &e), 0);
	}
	for (size_t i = 0; i < CELLS * n; i++)
		if (!isnan(want[i]) || !isnan(y[i]))
			off = fmax(off, fabs(want[i] - y[i]));
	for (size_t k = 0; k < TOKENS * WIDTH; k++) {
		real was = v[k], h = 1e-5;
		v[k] = was + h;
		double up = number(m, x, v, to, dy, y, n);
		v[k] = was - h;
		double down = number(m, x, v, to, dy, y, n);
		v[k] = was;
		worst = fmax(worst, fabs((up - down) / (2 * h) - dv[k]));
		size = fmax(size, fabs(dv[k]));
	}
	print_message("  %s: values apart by %.1e, gradients by %.1e of %.1e\n", model_config(m)->arch->name, off, worst, size);
	assert_true(off < 1e-12 && size > 1e-3 && worst < 1e-7 * size);
}

static double step(struct model *m, const struct cells *x)
{
	static const uint32_t class[] = {2, 0, ROW_NONE, 1};
	struct cells with = *x;
	struct loss l[LOSSES_MAX];
	struct error e;
	double norm;
	with.b.id = with.id;
	with.b.value = with.value;
	with.b.goal[0].target = class;
	model_zero_grad(m);
	assert_int_equal(model_forward(m, &with.b, &(struct forward){.train = 1, .step = 3}, l, &e), 0);
	assert_int_equal(model_backward(m, &e), 0);
	size_t n = model_size(m, GRAD);
	real *g = xcalloc(n, sizeof *g);
	model_read_all(m, GRAD, g);
	norm = 0;
	for (size_t i = 0; i < n; i++)
		norm += g[i] * g[i] * (1 + (double)(i % 13));
	free(g);
	return norm;
}

static void gradients(void **state)
{
	static const struct arch *const archs[] = {&arch_bert, &arch_bmfm_llama};
	const struct head_spec head[] = {
		{.kind = &head_cells, .nlabel = CLASSES},
		{.kind = &head_number, .name = "age", .prefix = "heads.age.", .position = 1, .direct = 1, .reverse = 2},
		{.kind = &head_genes, .name = "of genes", .prefix = "heads.genes.", .nlabel = 2},
	};
	for (int a = 0; a < 2; a++)
		for (enum value_kind kind = VALUE_NONE; kind <= VALUE_MLP_SPECIAL; kind++) {
			struct error e;
			struct ops *o = ops_cpu_new(2);
			struct model_config c = encoder(archs[a], kind);
			struct model *m = model_new(&c, head, 3, o, 3, &e);
			struct cells x;
			assert_non_null(m);
			draw(&x);
			double before = step(m, &x);
			check(m, &x, &(struct input_to){.head = 0}, CLASSES);
			check(m, &x, &(struct input_to){.head = 1}, 1);
			for (int layer = -2; layer <= 0; layer++)
				check(m, &x, &(struct input_to){.range = RANGE, .layer = layer}, WIDTH);
			assert_true(step(m, &x) == before);
			assert_int_equal(input_check(m, &(struct input_to){.head = 2}, &e), -1);
			assert_string_equal(e.msg, "head 'of genes' has no classes and no number of a cell");
			assert_int_equal(input_check(m, &(struct input_to){.head = 3}, &e), -1);
			assert_int_equal(input_check(m, &(struct input_to){.range = RANGE, .layer = -3}, &e), -1);
			model_free(m);
			o->destroy(o);
		}
}

/*
 * Presence. A cell in which every token stands N times is the cell itself, and where one of them stands N + 1 or N - 1 times its presence is
 * 1 +- 1 / N. Copies share their place (rank).
 */
enum { GENES = 6, COPIES = 24 };
static double copied(struct model *m, size_t token, size_t more, const real *dy, size_t copies)
{
	static uint32_t id[GENES * COPIES * 2 + 1], rank[GENES * COPIES * 2 + 1];
	static real v[(GENES * COPIES * 2 + 1) * WIDTH];
	uint32_t n = 0;
	real y[WIDTH];
	struct error e;
	for (uint32_t t = 0; t < GENES; t++)
		for (size_t k = 0; k < copies + (t == token ? more : 0); k++) {
			id[n] = 3 + 5 * t;
			rank[n++] = t;
		}
	struct batch b = {.ncell = 1, .offset = (uint32_t[]){0, n}, .id = id, .rank = rank};
	assert_int_equal(input_vectors(m, &b, v, &e), 0);
	assert_int_equal(input_forward(m, &b, v, &(struct input_to){.range = (uint32_t[]){0, n}, .layer = -1}, y, NULL, &e), 0);
	double sum = 0;
	for (size_t i = 0; i < WIDTH; i++)
		sum += y[i] * dy[i];
	return sum;
}

/* From N + 1 and N - 1 copies: an error of the order 1 / N^2. */
static double slope(struct model *m, size_t token, const real *dy, size_t copies)
{
	return (copied(m, token, 1, dy, copies) - copied(m, token, (size_t)-1, dy, copies)) * (double)copies / 2;
}

static void presence(void **state)
{
	static const struct arch *const archs[] = {&arch_bert, &arch_bmfm_llama};
	for (int a = 0; a < 2; a++) {
		struct error e;
		struct ops *o = ops_cpu_new(2);
		struct model_config c = encoder(archs[a], VALUE_NONE);
		c.max_position_embeddings = GENES * COPIES * 2 + 1;
		struct model *m = model_new(&c, NULL, 0, o, 3, &e);
		real v[GENES * WIDTH], y[WIDTH], dy[WIDTH], dv[GENES * WIDTH], with[GENES];
		uint32_t id[GENES], rank[GENES], offset[] = {0, GENES};
		for (uint32_t t = 0; t < GENES; t++) {
			id[t] = 3 + 5 * t;
			rank[t] = t;
		}
		for (size_t i = 0; i < WIDTH; i++)
			dy[i] = (real)(1 + i * 5 % 7) / 4 - 1;
		struct batch b = {.ncell = 1, .offset = offset, .id = id, .rank = rank};
		struct input_to to = {.range = offset, .layer = -1};
		assert_int_equal(input_vectors(m, &b, v, &e), 0);
		assert_int_equal(input_forward(m, &b, v, &to, y, NULL, &e), 0);
		assert_int_equal(input_backward(m, dy, dv, with, &e), 0);
		double worst = 0, size = 0;
		for (size_t t = 0; t < GENES; t++) {
			double want = (4 * slope(m, t, dy, COPIES) - slope(m, t, dy, COPIES / 2)) / 3; /* and of 1 / N^4 */
			worst = fmax(worst, fabs(want - with[t]));
			size = fmax(size, fabs(want));
		}
		print_message("  %s: presence apart by %.1e of %.1e\n", c.arch->name, worst, size);
		assert_true(size > 1e-3 && worst < 1e-5 * size);
		/* how a token's vector differs one place further ahead */
		const struct tensor *p = model_find(m, "bert.embeddings.position_embeddings.weight");
		real *table = xcalloc(p ? p->n : 1, sizeof *table);
		if (p)
			model_read(m, PARAM, p, table);
		b.rank = NULL;
		assert_int_equal(input_ahead(m, &b, v, &e), 0);
		for (size_t i = 0; i < GENES * WIDTH; i++)
			assert_true(v[i] == (p && i >= WIDTH ? table[i - WIDTH] - table[i] : 0));
		free(table);
		model_free(m);
		o->destroy(o);
	}
}

/* What the first LayerNorm divides by: a cell whose vectors are 0 has that of position and type, or eps alone. */
static void deviations(void **state)
{
	struct error e;
	struct ops *o = ops_cpu_new(1);
	struct model_config c = encoder(&arch_bmfm_llama, VALUE_NONE);
	struct model *m = model_new(&c, NULL, 0, o, 3, &e);
	struct cells x;
	real v[TOKENS * WIDTH] = {0}, y[CELLS * WIDTH], sd[TOKENS];
	draw(&x);
	for (size_t i = 0; i < WIDTH; i++)
		v[3 * WIDTH + i] = i % 2 ? 5 : 1;
	assert_int_equal(input_forward(m, &x.b, v, &(struct input_to){.range = RANGE}, y, sd, &e), 0);
	for (size_t t = 0; t < TOKENS; t++)
		assert_true(fabs(sd[t] - (t == 3 ? 2 : 1e-6)) < 1e-9);
	model_free(m);
	o->destroy(o);
}

static void refused(void **state)
{
	struct error e;
	struct ops *o = ops_cpu_new(1);
	struct model_config c = {.arch = &arch_bag, .vocab_size = VOCAB, .hidden_size = 6, .initializer_range = 0.4};
	struct model *m = model_new(&c, &(struct head_spec){.kind = &head_cells, .nlabel = 3}, 1, o, 3, &e);
	assert_non_null(m);
	assert_int_equal(input_check(m, &(struct input_to){.head = 0}, &e), -1);
	assert_string_equal(e.msg, "architecture bag has no vectors of tokens");
	model_free(m);
	o->destroy(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gradients), cmocka_unit_test(presence), cmocka_unit_test(deviations), cmocka_unit_test(refused)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
