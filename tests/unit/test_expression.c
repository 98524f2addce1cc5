/*
 * The heads of expression in double precision: the values of the released formulas, gradients of all six losses against central differences,
 * the loss of the model as a weighted mean of means, and the same gradient from one batch and from its parts.
 */
#include "double.h"

#include "numbers.h"

#include "nn/model_impl.h"
#include "stream/counts.h"

enum { V = 11, SPECIAL = 3, N = 4, WORDS = 1 };
static const uint32_t OFFSET[] = {0, 5, 6, 9, 16};
static const uint32_t ID[] = {1, 4, 9, 2, 3, 10, 7, 8, 1, 5, 6, 4, 2, 9, 10, 1};
static const uint32_t ROW[] = {1, 5, 8, 12};
static const real VALUE[] = {0.5, 0, NAN, 2};

/* ---- formulas ---- */

/* Counts (3, 0, 1, 6), by a script of its own in double precision. */
static void normalised(void **state)
{
	const uint32_t count[] = {3, 0, 1, 6};
	const double kept[] = {7.911423987, 0, 6.813544495, 8.604387885}, all[] = {8.006700845, 0, 6.908754779, 8.699681401};
	for (size_t i = 0; i < 4; i++) {
		assert_true(fabs((double)log_norm(count[i], 11) - kept[i]) < 1e-6);
		assert_true(fabs((double)log_norm(count[i], 10) - all[i]) < 1e-6);
	}
}

/* y = (0, 1.5, none, 2), a = (.3, -1.2, 9, .7), m = (9, 1, 9, 2.5); the released means divide by their number + 1e-6. */
static void losses(void **state)
{
	struct ops *o = ops_cpu_new(1);
	real y[] = {0, 1.5, NAN, 2}, z[] = {9, 0.3, 1, -1.2, 9, 9, 2.5, 0.7};
	const uint32_t in[] = {1 << 1 | 1 << 2};
	double sum[12] = {0};
	o->expression_loss(o, sum, z, y, NULL, 1, 4);
	assert_true(fabs(sum[0] / (3 + 1e-6) - 0.640274373) < 5e-10);
	assert_true(fabs(sum[2] / (2 + 1e-6) - 0.249999875) < 5e-10);
	assert_true(sum[1] == 2 && sum[3] == 0);
	/* all, those with a bit, the others; and the same with the genes as rows */
	double apart[12] = {0}, rows[4] = {0};
	o->expression_loss(o, apart, z, y, in, 1, 4);
	o->expression_loss(o, rows, z, y, NULL, 4, 1);
	for (size_t i = 0; i < 4; i++) {
		assert_true(apart[i] == sum[i] && fabs(rows[i] - sum[i]) < 1e-15);
		assert_true(fabs(apart[4 + i] + apart[8 + i] - sum[i]) < 1e-15);
	}
	assert_true(fabs(apart[4] - log1p(exp(-1.2))) < 1e-15 && fabs(apart[6] - 0.25) < 1e-15 && apart[5] == 1);
	/* a loss that is not a number shows, large logits are no trouble, a gene without a target has neither */
	z[1] = 900, z[3] = -900, z[5] = NAN;
	memset(sum, 0, sizeof sum);
	o->expression_loss(o, sum, z, y, NULL, 1, 4);
	assert_true(isfinite(sum[0]));
	z[3] = NAN;
	o->expression_loss(o, sum, z, y, NULL, 1, 4);
	assert_true(isnan(sum[0]));
	o->destroy(o);
}

/* ---- models ---- */

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

/* Whole cells of N, the targets of a third of whose genes are 0; gene 7 of cell 1 was not measured. */
struct cells {
	real y[N * V];
	uint32_t in[N * WORDS];
};

static void make_cells(struct cells *c)
{
	*c = (struct cells){{0}, {0}};
	for (size_t i = 0; i < N; i++) {
		for (uint32_t g = 0; g < V; g++)
			c->y[i * V + g] = g < SPECIAL || (i == 1 && g == 7) ? NAN : (i + g) % 3 ? 0.3 * (double)(1 + (i * 7 + g) % 5) : 0;
		for (uint32_t t = OFFSET[i]; t < OFFSET[i + 1]; t++)
			c->in[i] |= (uint32_t)(ID[t] >= SPECIAL) << ID[t];
	}
}

static struct batch batch(const struct cells *c)
{
	struct batch b = {.ncell = N, .offset = OFFSET, .id = ID};
	b.goal[0] = c ? (struct goal){.n = N * (V - SPECIAL) - 1, .value = c->y, .mask = c->in}
		      : (struct goal){.n = N, .row = ROW, .value = VALUE};
	return b;
}

static double total(struct model *m, const struct batch *b, const double *scale, struct loss *l)
{
	struct error e;
	double sum = 0;
	if (model_forward(m, b, &(struct forward){.train = 1, .scale = scale}, l, &e))
		fail_msg("%s", e.msg);
	for (size_t i = 0; i < model_nloss(m); i++)
		sum += l[i].sum * scale[i];
	return sum;
}

static void check_gradients(struct model *m, const struct batch *b, const double *scale)
{
	struct error e;
	struct loss l[LOSSES_MAX];
	size_t n = model_size(m, GRAD);
	real *g = xcalloc(n, sizeof *g), *p = m->p.array[PARAM];
	model_zero_grad(m);
	total(m, b, scale, l);
	assert_int_equal(model_backward(m, &e), 0);
	model_read_all(m, GRAD, g);
	double worst = 0, size = 0;
	for (size_t i = 0; i < model_ntensor(m); i++) {
		const struct tensor *t = model_tensor(m, i);
		for (size_t k = t->at; k < t->at + t->n; k++) {
			if (t->zero_row != NO_ROW && (k - t->at) / t->shape[1] == t->zero_row)
				continue;
			real was = p[k], h = 1e-5;
			p[k] = was + h;
			double up = total(m, b, scale, l);
			p[k] = was - h;
			double down = total(m, b, scale, l);
			p[k] = was;
			worst = fmax(worst, fabs((up - down) / (2 * h) - g[k]));
			size = fmax(size, fabs(g[k]));
		}
	}
	print_message("  worst %.1e of gradients up to %.1e\n", worst, size);
	assert_true(size > 1e-2 && worst < 1e-7 * size); /* measured: 2e-9 */
	free(g);
}

static void gradients(void **state)
{
	struct error e;
	struct cells c;
	struct ops *o = ops_cpu_new(2);
	struct model_config config = bert();
	const double scale[] = {0.7, 1.3, 0.4, 0.2, 1.1, 0.6};
	make_cells(&c);
	for (int whole = 0; whole < 2; whole++) {
		struct model *m = model_new(&config, &(struct head_spec){.kind = whole ? &head_wced : &head_expression}, 1, o, 5, &e);
		assert_non_null(m);
		assert_int_equal(model_nloss(m), whole ? 6 : 2);
		struct batch b = batch(whole ? &c : NULL);
		check_gradients(m, &b, scale);
		check_gradients(m, &b, (double[]){1, 1, 0, 0, 0, 0});
		model_free(m);
	}
	o->destroy(o);
}

/* The loss of the model, and its gradient, from the whole batch and from its cells one by one. */
static void weighed(void **state)
{
	struct error e;
	struct cells c;
	struct ops *o = ops_cpu_new(1);
	struct model_config config = bert();
	make_cells(&c);
	struct model *m = model_new(&config, &(struct head_spec){.kind = &head_wced}, 1, o, 5, &e);
	assert_non_null(m);
	size_t n = model_size(m, GRAD);
	real *g = xcalloc(n, sizeof *g), *parts = xcalloc(n, sizeof *parts);
	struct batch b = batch(&c);
	struct loss l[LOSSES_MAX], one[LOSSES_MAX];
	double count[LOSSES_MAX], scale[LOSSES_MAX], sum[LOSSES_MAX] = {0};
	assert_int_equal(model_count(m, &b, 0, count, &e), 0);
	assert_true(count[0] == N * (V - SPECIAL) - 1 && count[0] == count[2] + count[4] && count[1] == count[3] + count[5]);
	double divisor = model_weigh(m, count, scale);
	model_zero_grad(m);
	double all = total(m, &b, scale, l) / divisor;
	assert_int_equal(model_backward(m, &e), 0);
	model_read_all(m, GRAD, g);
	double want = (l[0].sum / count[0] + l[1].sum / count[1]) / 2;
	assert_true(fabs(all - want) < 1e-14 && scale[2] == 0 && scale[5] == 0);
	model_zero_grad(m);
	for (uint32_t i = 0; i < N; i++) {
		const uint32_t offset[] = {0, OFFSET[i + 1] - OFFSET[i]};
		struct batch part = {.ncell = 1, .offset = offset, .id = ID + OFFSET[i]};
		part.goal[0] = (struct goal){.n = V, .value = c.y + i * V, .mask = c.in + i};
		total(m, &part, scale, one);
		assert_int_equal(model_backward(m, &e), 0);
		for (size_t k = 0; k < 6; k++)
			sum[k] += one[k].sum;
	}
	model_read_all(m, GRAD, parts);
	double worst = 0;
	for (size_t i = 0; i < n; i++)
		worst = fmax(worst, fabs(g[i] - parts[i]));
	for (size_t k = 0; k < 6; k++)
		assert_true(fabs(sum[k] - l[k].sum) < 1e-12);
	assert_true(fabs(model_mean_loss(m, sum, count) - want) < 1e-14);
	assert_true(worst < 1e-12);
	free(g), free(parts);
	model_free(m);
	o->destroy(o);
}

static void refused(void **state)
{
	struct error e;
	struct loss l[LOSSES_MAX];
	struct ops *o = ops_cpu_new(1);
	struct model_config config = bert(),
			    nb = {.arch = &arch_mlp_nb, .vocab_size = V, .hidden_size = 4, .intermediate_size = 6, .own = {1e-3, 0.1}};
	assert_null(model_new(&nb, &(struct head_spec){.kind = &head_wced}, 1, o, 5, &e));
	assert_non_null(strstr(e.msg, "has no hidden states of tokens"));
	struct model *m = model_new(&config, &(struct head_spec){.kind = &head_wced}, 1, o, 5, &e);
	struct batch b = batch(NULL);
	b.goal[0] = (struct goal){.n = 4};
	assert_int_equal(model_forward(m, &b, &(struct forward){0}, l, &e), -1);
	assert_non_null(strstr(e.msg, "no whole cells for head wced"));
	model_free(m);
	o->destroy(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(normalised), cmocka_unit_test(losses), cmocka_unit_test(gradients),
		cmocka_unit_test(weighed), cmocka_unit_test(refused)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
