/*
 * R2MAE's single-cell model in double: likelihood and gradients against the reference numbers, gradients against central differences, and
 * batch norm in both modes, a training of 50 updates and an embedding against PyTorch (tests/ref/nb_golden.py describes the files), all of it
 * without and with a curriculum of genes.
 * Tolerances are a little above the measured errors, which are noted beside them.
 */
#include "double.h"

#include "numbers.h"

#include "base/gamma.h"
#include "nn/curriculum.h"
#include "nn/model_impl.h"

static const char *const GOLDEN[] = {"tests/golden/v1/nb.bin", "tests/golden/v1/nb_curriculum.bin"};

/* ---- special functions and the likelihood, against mpmath and scipy ---- */

static void gamma_function(void **state)
{
	static const struct {
		double x, psi;
	} want[] = {{1e-3, -1000.5755719318103005}, {0.3, -3.5025242222001332}, {1, -0.57721566490153286061}, {1.5, 0.03648997397857652056},
		{2.5, 0.70315664064524318723}, {9.75, 2.2251095350445760}, {100, 4.6001618527380874002}, {1e6, 13.815510057964191}};
	for (size_t i = 0; i < sizeof want / sizeof *want; i++)
		assert_true(fabs(digamma(want[i].x) - want[i].psi) < 1e-14 * (1 + fabs(want[i].psi)));
	/* both sides of GAMMA_TERMS, by the recurrences */
	for (uint32_t x = 0; x < 3 * GAMMA_TERMS; x++) {
		for (double t = 1e-3; t < 1e5; t *= 7) {
			double log_sum = 0, sum = 0;
			for (uint32_t i = 0; i < x; i++) {
				log_sum += log(t + i);
				sum += 1 / (t + i);
			}
			assert_true(fabs(lgamma_rise(t, x) - log_sum) < 1e-14 * (1 + fabs(log_sum) + lgamma(t + x)));
			assert_true(fabs(digamma_rise(t, x) - sum) < 1e-13 * (1 + sum));
		}
	}
}

/* One cell of two genes. The first is masked and has count x and mean mu of the library size L. */
static void one_gene(uint32_t x, double mu, double theta, double *ll, double *dlogmu, double *dlogtheta)
{
	struct ops *o = ops_cpu_new(1);
	const uint32_t offset[] = {0, 2}, id[] = {0, 1}, count[] = {x, 10}, mask[] = {1};
	const struct seq s = {.B = 1, .T = 2, .offset = offset, .id = id};
	double share = mu / (x + 10.0), z[2] = {log(share), log(1 - share)}, t[2] = {log(theta), 0}, dt[2] = {0}, lse, sum = 0;
	o->nb_loss(o, &sum, &lse, z, t, &s, count, mask, NULL, 1, 2);
	o->nb_loss_back(o, z, dt, t, &s, count, mask, &lse, NULL, NULL, 1, 2);
	*ll = -sum;
	*dlogmu = -z[0] / (1 - share); /* dloss/dz_0 = dloss/dlog mu (1 - share) */
	*dlogtheta = -dt[0];
	assert_true(fabs(z[0] + z[1]) < 1e-14 && dt[1] == 0);
	o->destroy(o);
}

static void reference_numbers(void **state)
{
	static const struct {
		uint32_t x;
		double mu, theta, ll, dlogmu, dlogtheta;
	} want[] = {
		{0, 0.5, 2.0, -0.4462871026284194, -0.4, -0.04628710262841951},
		{3, 2.0, 1.5, -2.167034815137441, 0.4285714285714284, 0.32905320941919447},
		{10, 4.0, 0.3, -4.24015674565913, 0.41860465116278966, 0.51822090132135},
		{1, 0.001, 10.0, -6.9088552239858005, NAN, NAN},
	};
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		double ll, dlogmu, dlogtheta;
		one_gene(want[i].x, want[i].mu, want[i].theta, &ll, &dlogmu, &dlogtheta);
		assert_true(fabs(ll - want[i].ll) < 1e-12);
		assert_true(isnan(want[i].dlogmu) || fabs(dlogmu - want[i].dlogmu) < 1e-12);
		assert_true(isnan(want[i].dlogtheta) || fabs(dlogtheta - want[i].dlogtheta) < 1e-12);
	}
}

/* ---- gradients of the whole model ---- */

enum { G = 37, N = 5 };

static struct model_config config(void)
{
	return (struct model_config){
		.arch = &arch_mlp_nb, .vocab_size = G, .hidden_size = 4, .intermediate_size = 6, .num_groups = 3, .own = {1e-3, 0.1}};
}

struct cells {
	uint32_t offset[N + 1], id[N * G], count[N * G], mask[N * 2], group[N];
	real value[N * G];
	struct batch b;
};

static void make_cells(struct cells *c)
{
	uint32_t x = 7, n = 0, masked = 0;
	*c = (struct cells){.group = {0, 2, ROW_NONE, 0, 2}};
	for (size_t b = 0; b < N; b++) {
		for (uint32_t g = 0; g < G; g++) {
			x = x * 1664525u + 1013904223u;
			uint32_t hidden = x >> 16 & 1, count = x >> 20 & 1 ? x >> 28 : 0;
			c->mask[b * 2 + g / 32] |= hidden << g % 32;
			masked += hidden;
			if (!count)
				continue;
			c->id[n] = g;
			c->count[n] = count;
			c->value[n++] = hidden ? 0 : log1p(count);
		}
		c->offset[b + 1] = n;
	}
	c->b = (struct batch){.ncell = N, .offset = c->offset, .id = c->id, .value = c->value, .count = c->count, .group = c->group};
	c->b.goal[0] = (struct goal){.n = masked, .mask = c->mask};
}

enum { STEP = 20 };

static int of_curriculum(const struct tensor *t)
{
	return !strncmp(t->name, CURRICULUM_PREFIX, strlen(CURRICULUM_PREFIX));
}

static double total(struct model *m, const struct batch *b)
{
	struct loss l;
	struct error e;
	if (model_forward(m, b, &(struct forward){.train = 1, .step = STEP, .scale = (double[]){0.7}}, &l, &e))
		fail_msg("%s", e.msg);
	return 0.7 * l.sum;
}

/* slope: what the gradient of the curriculum's network is multiplied by. Of each of its large tensors, every 97th weight is checked. */
static void check_gradients(const struct curriculum *curriculum, double slope)
{
	struct error e;
	struct ops *o = ops_cpu_new(2);
	struct model_config c = config();
	struct cells x;
	make_cells(&x);
	x.b.goal[0].ratio = curriculum->ratios ? curriculum->ratios - 1 : 0;
	struct model *m = model_new(&c, &(struct head_spec){.kind = &head_nb, .curriculum = *curriculum}, 1, o, 5, &e);
	assert_non_null(m);
	size_t n = model_size(m, GRAD);
	real *g = xcalloc(n, sizeof *g), *p = m->p.array[PARAM];
	model_zero_grad(m);
	total(m, &x.b);
	assert_int_equal(model_backward(m, &e), 0);
	model_read_all(m, GRAD, g);
	double worst = 0, size = 0, own = 0;
	for (size_t i = 0; i < model_ntensor(m); i++) {
		const struct tensor *t = model_tensor(m, i);
		int weights = of_curriculum(t);
		for (size_t k = t->at; t->role == LEARNED && k<t->at + t->n; k += t->n> 1000 ? 97 : 1) {
			const real was = p[k], h = 1e-6;
			p[k] = was + h;
			double up = total(m, &x.b);
			p[k] = was - h;
			double down = total(m, &x.b);
			p[k] = was;
			worst = fmax(worst, fabs((weights ? slope : 1) * (up - down) / (2 * h) - g[k]));
			size = fmax(size, fabs(g[k]));
			own = weights ? fmax(own, fabs(g[k])) : own;
		}
	}
	print_message("  worst %.1e of gradients up to %.1e, %.1e of a curriculum\n", worst, size, own);
	assert_true(size > 1 && worst < 4e-9 * size); /* 9e-10 */
	assert_true(!curriculum->ratios == !(own > 0.1));
	free(g);
	model_free(m);
	o->destroy(o);
}

static void gradients(void **state)
{
	check_gradients(&(struct curriculum){0}, 1);
	check_gradients(&(struct curriculum){.ratios = 1, .steps = 100}, 1);
	check_gradients(&(struct curriculum){.ratios = 4, .steps = 100}, 1);
	check_gradients(&(struct curriculum){.ratios = 4, .hard = 1, .steps = 80}, 1 - 2. * (20 - 10) / 30);
	check_gradients(&(struct curriculum){.ratios = 2, .hard = 1, .steps = 21}, -1);
}

/* ---- Sinkhorn ---- */

/* facts: r2mae_reference_values.json, which has the scaled matrix alone. There is one such matrix for every D1 W D2, so each gives it again. */
static void sinkhorn(void **state)
{
	static const double want[4][3] = {{0.6396230490432163, 1.3459299770264617, 1.014446973930322},
		{0.9647959348415582, 1.0150883183141717, 1.0201157468442699}, {1.6756047799094087, 0.8814749196039855, 0.442920300486606},
		{0.7199762362058167, 0.757506785055381, 1.5225169787388022}};
	struct sinkhorn x;
	double w[4], worst = 0;
	sinkhorn_init(&x, 4, 3, 60);
	for (size_t j = 0; j < 4; j++)
		for (size_t k = 0; k < 3; k++)
			x.s[j * 3 + k] = want[j][k] * (0.3 + (double)j) / (2 + (double)k);
	sinkhorn_forward(&x);
	for (size_t k = 0; k < 3; k++) {
		sinkhorn_column(&x, k, w);
		for (size_t j = 0; j < 4; j++)
			worst = fmax(worst, fabs(w[j] - want[j][k]));
	}
	print_message("  apart by %.1e\n", worst);
	assert_true(worst < 1e-14); /* 9e-16 */
	sinkhorn_release(&x);
	/* two columns: every row has the sum 2 and every column the mean 1 */
	sinkhorn_init(&x, 4, 2, 60);
	memcpy(x.s, (double[]){1, 2, 6, 1, .5, 3, 4, 4}, 8 * sizeof *x.s);
	sinkhorn_forward(&x);
	double row[4] = {0};
	for (size_t k = 0; k < 2; k++) {
		double mean = 0;
		sinkhorn_column(&x, k, w);
		for (size_t j = 0; j < 4; j++) {
			row[j] += w[j];
			mean += w[j] / 4;
		}
		assert_true(fabs(mean - 1) < 1e-14);
	}
	for (size_t j = 0; j < 4; j++)
		assert_true(fabs(row[j] - 2) < 1e-14);
	sinkhorn_release(&x);
	/* one column: its mean is 1, the weights are in proportion to s */
	sinkhorn_init(&x, 3, 1, 10);
	memcpy(x.s, (double[]){1, 2, 6}, 3 * sizeof *x.s);
	sinkhorn_forward(&x);
	sinkhorn_column(&x, 0, w);
	assert_true(fabs(w[0] - 1. / 3) < 1e-15 && fabs(w[1] - 2. / 3) < 1e-15 && fabs(w[2] - 2) < 1e-15);
	sinkhorn_release(&x);
}

/* The schedule of `hard`, and where the network starts to learn. */
static void slope(void **state)
{
	const struct curriculum hard = {.ratios = 1, .hard = 1, .steps = 240}, easy = {.ratios = 1, .steps = 240};
	assert_int_equal(curriculum_start(&hard), 4);
	static const struct {
		uint64_t step;
		double slope;
	} want[] = {{0, 1}, {30, 1}, {75, 0}, {90, -1. / 3}, {120, -1}, {239, -1}};
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		assert_true(fabs(curriculum_slope(&hard, want[i].step) - want[i].slope) < 1e-15);
		assert_true(curriculum_slope(&easy, want[i].step) == 1);
	}
}

/* ---- PyTorch ---- */

static int setup(void **state)
{
	return read_arrays(GOLDEN[0]) || read_arrays(GOLDEN[1]);
}

struct golden_batch {
	struct batch b;
	real *value;
	uint32_t *mask;
};

static void get_batch(struct golden_batch *x, int k, size_t genes)
{
	const struct array *offset = find("b%d.offset", k), *id = find("b%d.id", k), *masked = find("b%d.masked", k);
	const uint32_t *at = offset->data, *gene = id->data, *count = find("b%d.count", k)->data, *bit = masked->data;
	size_t cells = offset->n - 1, n = 0, words = nb_words(genes);
	x->value = xcalloc(id->n, sizeof *x->value);
	x->mask = xcalloc(cells * words, sizeof *x->mask);
	for (size_t b = 0; b < cells; b++) {
		for (size_t g = 0; g < genes; g++) {
			x->mask[b * words + g / 32] |= bit[b * genes + g] << g % 32;
			n += bit[b * genes + g];
		}
		for (size_t t = at[b]; t < at[b + 1]; t++)
			x->value[t] = bit[b * genes + gene[t]] ? 0 : log1p(count[t]);
	}
	x->b = (struct batch){
		.ncell = cells, .offset = at, .id = gene, .value = x->value, .count = count, .group = find("b%d.group", k)->data};
	x->b.goal[0] = (struct goal){.n = n, .mask = x->mask};
}

enum { EVERY = 61 }; /* of the curriculum's tensors */

/* of: the tensors of the curriculum, or all others */
static void near_all(struct model *m, enum which w, int of, const char *what, double factor, double tolerance)
{
	double worst = 0;
	for (size_t i = 0; i < model_ntensor(m); i++) {
		const struct tensor *t = model_tensor(m, i);
		size_t every = of ? EVERY : 1;
		if ((w != PARAM && t->role == BUFFER) || of_curriculum(t) != of)
			continue;
		real *got = xcalloc(t->n, sizeof *got);
		model_read(m, w, t, got);
		for (size_t k = 0; k < t->n; k += every)
			got[k / every] = got[k] * factor;
		const struct array *want = find("%s.%s", what, t->name);
		assert_int_equal(want->n, (t->n + every - 1) / every);
		double d = apart(got, want->data, want->n);
		if (!(d <= tolerance))
			fail_msg("%s.%s: apart by %g of the largest value", what, t->name, d);
		worst = fmax(worst, d);
		free(got);
	}
	print_message("  %s: apart by %.1e\n", what, worst);
}

/* As tests/ref/nb_golden.py sets them. */
static void set_start(struct model *m, const struct tensor *t)
{
	const struct array *a = of_curriculum(t) ? NULL : find("param.%s", t->name);
	assert_true(!a || a->n == t->n);
	real *x = xcalloc(t->n, sizeof *x);
	for (size_t k = 0; !a && k < t->n; k++)
		x[k] = sin(1 + (double)k) * (t->ndim == 2 ? 1 / sqrt((double)t->shape[1]) : 0.1);
	model_write(m, PARAM, t, a ? a->data : x);
	free(x);
}

static void check_eval(struct model *m, struct golden_batch *x, size_t genes, size_t latent)
{
	struct error e;
	real *h = xcalloc(x->b.ncell * latent, sizeof *h), *z = xcalloc(x->b.ncell * genes, sizeof *z);
	for (size_t t = 0; t < x->b.offset[x->b.ncell]; t++)
		x->value[t] = log1p(x->b.count[t]);
	assert_int_equal(model_hidden(m, &x->b, 0, h, &e), 0);
	assert_int_equal(model_logits(m, &x->b, 0, z, &e), 0);
	double a = apart(h, find("latent")->data, x->b.ncell * latent), b = apart(z, find("logit")->data, x->b.ncell * genes);
	print_message("  latent %.1e, logits %.1e\n", a, b);
	assert_true(a < 1e-10 && b < 1e-10); /* 1.1e-11, by processor */
	free(h);
	free(z);
}

static void train_as_pytorch(const struct curriculum *curriculum)
{
	struct error e;
	struct ops *o = ops_cpu_new(2);
	const uint32_t *c = find("config")->data;
	const struct array *losses = find("loss");
	struct model_config k = {.arch = &arch_mlp_nb,
		.vocab_size = c[0],
		.hidden_size = c[1],
		.intermediate_size = c[2],
		.num_groups = c[3],
		.own = {1e-5, 0.1}};
	struct model *m = model_blank(&k, &(struct head_spec){.kind = &head_nb, .curriculum = *curriculum}, 1, o, 5, &e);
	assert_non_null(m);
	for (size_t i = 0; i < model_ntensor(m); i++)
		set_start(m, model_tensor(m, i));
	struct golden_batch x[4];
	for (int i = 0; i < 4; i++) {
		get_batch(&x[i], i, c[0]);
		x[i].b.goal[0].ratio = curriculum->ratios ? (uint32_t)i % curriculum->ratios : 0;
	}
	struct optim opt;
	optim_init(&opt);
	opt.variant = ADAMW_L2;
	opt.schedule = SCHEDULE_CONSTANT;
	opt.lr = 1e-3;
	opt.weight_decay = 1e-4;
	opt.max_norm = 0;
	double worst = 0;
	for (uint64_t s = 0; s < c[4]; s++) {
		struct loss l;
		model_zero_grad(m);
		assert_int_equal(model_forward(m, &x[s % 4].b, &(struct forward){.train = 1, .step = s}, &l, &e), 0);
		assert_int_equal(model_backward(m, &e), 0);
		worst = fmax(worst, fabs(l.sum / l.count - ((const double *)losses->data)[s]));
		if (s == 0)
			near_all(m, GRAD, 0, "grad", 1 / l.count, 1e-12); /* 3e-15 */
		if (s == 8 && curriculum->ratios)
			near_all(m, GRAD, 1, "grad8", 1 / l.count, 1e-12); /* 6e-14 */
		assert_int_equal(model_step(m, &opt, s, l.count, NULL, &e), 0);
	}
	print_message("  %u losses: apart by %.1e\n", c[4], worst);
	assert_true(losses->n == c[4] && worst < 1e-10); /* 8e-14 */
	near_all(m, PARAM, 0, "final", 1, 1e-9); /* 6e-12 */
	near_all(m, PARAM, 1, "final", 1, 1e-9);
	check_eval(m, &x[0], c[0], c[1]);
	for (int i = 0; i < 4; i++) {
		free(x[i].value);
		free(x[i].mask);
	}
	model_free(m);
	o->destroy(o);
}

static void pytorch(void **state)
{
	train_as_pytorch(&(struct curriculum){0});
	prefix = "c.";
	train_as_pytorch(&(struct curriculum){.ratios = 3, .hard = 1, .steps = 50});
	prefix = "";
}

/* ---- what cannot be computed ---- */

static void refused(void **state)
{
	struct error e;
	struct loss l;
	struct cells x;
	struct ops *o = ops_cpu_new(1);
	struct model_config c = config(), bad = config();
	const struct head_spec nb = {.kind = &head_nb};
	struct model *m = model_new(&c, &nb, 1, o, 5, &e);
	make_cells(&x);
	x.b.ncell = 1;
	assert_int_equal(model_forward(m, &x.b, &(struct forward){.train = 1}, &l, &e), -1);
	assert_string_equal(e.msg, "a batch of one cell: batch normalisation needs at least two");
	assert_int_equal(model_forward(m, &x.b, &(struct forward){0}, &l, &e), 0); /* the running averages know more cells */
	assert_true(l.sum > 0);
	x.b.ncell = N;
	x.group[3] = 3;
	assert_int_equal(model_forward(m, &x.b, &(struct forward){0}, &l, &e), -1);
	assert_string_equal(e.msg, "cell 3 of the batch: category 3, the model has 3");
	x.b.value = NULL;
	x.b.group = NULL;
	assert_int_equal(model_forward(m, &x.b, &(struct forward){0}, &l, &e), -1);
	assert_string_equal(e.msg, "batch: tokens without counts");
	bad.own[0] = 0;
	assert_int_equal(model_check(&bad, &e), -1);
	assert_non_null(strstr(e.msg, "batch_norm_eps is 0"));
	assert_null(model_new(&c, &(struct head_spec){.kind = &head_mlm}, 1, o, 5, &e));
	model_free(m);
	assert_int_equal(model_preset(&c, "tiny", &e), 0);
	c.vocab_size = G;
	assert_null(model_new(&c, &nb, 1, o, 5, &e));
	assert_string_equal(e.msg, "head nb: architecture bert has no state of a cell");
	o->destroy(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gamma_function),
		cmocka_unit_test(reference_numbers),
		cmocka_unit_test(gradients),
		cmocka_unit_test(sinkhorn),
		cmocka_unit_test(slope),
		cmocka_unit_test(pytorch),
		cmocka_unit_test(refused),
	};
	return cmocka_run_group_tests(tests, setup, free_arrays);
}
