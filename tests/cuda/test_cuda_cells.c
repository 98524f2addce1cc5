/* Ops of networks on cells, and steps of the model of counts, on the CUDA backend against the CPU's. See test_cuda.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "both.h"
#include "nn/model.h"

/* ---- bag ---- */

static void bag_one(size_t V, size_t C, int weighted)
{
	struct both p;
	pack(&p, cells, CELLS, V);
	size_t T = p.c.T, B = p.c.B;
	struct arr *W = REALS("bag W", V * C), *y = ACTS("bag y", B * C), *value = REALS("bag value", T), *dW = REALS("bag dW", V * C),
		   *dy = ACTS("bag dy", B * C);
	for (size_t t = 0; t < T; t += 3)
		value->x[t] = 0;
	put(value);
	const float *host = weighted ? value->x : NULL, *dev = weighted ? value->d : NULL;
	for (int add = 1; add >= 0; add--) {
		cpu->bag(cpu, y->x, W->x, &p.c, host, B, C, add);
		gpu->bag(gpu, y->d, W->d, &p.g, dev, B, C, add);
		same(y, 1e-6, 3e-3);
		put(y);
	}
	cpu->bag_back(cpu, dW->x, dy->x, &p.c, host, V, C);
	gpu->bag_back(gpu, dW->d, dy->d, &p.g, dev, V, C);
	same(dW, 1e-6, 1e-6);
	unpack(&p);
}

/* ---- batch norm ---- */

static void batch_norm_one(size_t N, size_t C, enum act act)
{
	struct arr *x = ACTS("batch_norm x", N * C), *y = ACTS("batch_norm y", N * C), *stat = REALS("batch_norm stat", 2 * C),
		   *gamma = REALS("gamma", C), *beta = REALS("beta", C), *mean = REALS("running mean", C), *var = REALS("running var", C);
	struct arr *dy = ACTS("batch_norm dy", N * C), *dg = REALS("batch_norm dgamma", C), *db = REALS("batch_norm dbeta", C);
	for (size_t i = 0; i < C; i++)
		var->x[i] = 1 + fabsf(var->x[i]);
	put(var);
	cpu->batch_norm(cpu, y->x, stat->x, x->x, gamma->x, beta->x, mean->x, var->x, N, C, 1e-3, 0.1, 1, act);
	gpu->batch_norm(gpu, y->d, stat->d, x->d, gamma->d, beta->d, mean->d, var->d, N, C, 1e-3, 0.1, 1, act);
	same(y, 2e-6, 3e-3), same(stat, 1e-6, 1e-6), same(mean, 1e-6, 1e-6), same(var, 1e-6, 1e-6);
	gpu->download_act(gpu, y->x, y->d, N * C); /* both pass the same values on */
	cpu->batch_norm_back(cpu, dy->x, dg->x, db->x, dy->x, x->x, y->x, stat->x, gamma->x, N, C, act);
	gpu->batch_norm_back(gpu, dy->d, dg->d, db->d, dy->d, x->d, y->d, stat->d, gamma->d, N, C, act);
	same(dy, N == 2 ? 1e-4 : 5e-6, 3e-3); /* of two rows almost all of the gradient cancels out */
	same(dg, 5e-6, 5e-6), same(db, 5e-6, 5e-6);
	cpu->batch_norm(cpu, x->x, NULL, x->x, gamma->x, beta->x, mean->x, var->x, N, C, 1e-3, 0.1, 0, act);
	gpu->batch_norm(gpu, x->d, NULL, x->d, gamma->d, beta->d, mean->d, var->d, N, C, 1e-3, 0.1, 0, act);
	same(x, 2e-6, 3e-3), same(mean, 1e-6, 1e-6), same(var, 1e-6, 1e-6);
	release();
}

/* ---- negative binomial ---- */

/* Counts of the packed tokens, and masks: of every cell other genes. */
static void make_counts(struct both *p, size_t G, uint32_t *count, uint32_t *mask)
{
	for (uint32_t t = 0; t < p->c.T; t++) {
		p->id[t] = p->pos[t] + p->cell[t];
		assert_true(p->id[t] < G);
		count[t] = rng(8) ? rng(6) : rng(3000);
	}
	for (size_t b = 0; b < p->c.B; b++)
		for (size_t g = 0; g < G; g++)
			mask[b * nb_words(G) + g / 32] |= (uint32_t)!rng(3) << g % 32;
}

static void nb_one(size_t G, int scaled, int weighted)
{
	struct both p;
	pack(&p, cells, CELLS, G);
	size_t T = p.c.T, B = p.c.B, words = nb_words(G);
	uint32_t *count = xcalloc(T, 4), *mask = xcalloc(B * words, 4);
	make_counts(&p, G, count, mask);
	p.g.id = to_gpu(p.id, T * 4);
	const uint32_t *count_d = to_gpu(count, T * 4), *mask_d = to_gpu(mask, B * words * 4);
	struct arr *z = ACTS("nb z", B * G), *t = REALS("log theta", G), *dt = REALS("dlog theta", G), *lse = REALS("nb lse", B),
		   *scale = REALS("scale", 1), *weight = REALS("weight", G), *loss = REALS("nb gene losses", G);
	const struct gene_weight w = {weight->x, loss->x}, w_d = {weight->d, loss->d};
	for (size_t g = 0; g < G; g++)
		weight->x[g] = fabsf(weight->x[g]);
	put(weight);
	double want = 3, got = 3, *sum = to_gpu(&got, sizeof got);
	cpu->nb_loss(cpu, &want, lse->x, z->x, t->x, &p.c, count, mask, weighted ? &w : NULL, B, G);
	gpu->nb_loss(gpu, sum, lse->d, z->d, t->d, &p.g, count_d, mask_d, weighted ? &w_d : NULL, B, G);
	gpu->download(gpu, &got, sum, sizeof got);
	/* count * log(mu): a count of thousands multiplies the rounding of a float, on processors in different ways */
	same_sums("nb loss", &got, &want, 1, 1e-5, 1e-5);
	same(lse, 1e-6, 1e-6);
	same(loss, 1e-5, 1e-5);
	cpu->nb_loss_back(cpu, z->x, dt->x, t->x, &p.c, count, mask, lse->x, scaled ? scale->x : NULL, weighted ? weight->x : NULL, B, G);
	gpu->nb_loss_back(
		gpu, z->d, dt->d, t->d, &p.g, count_d, mask_d, lse->d, scaled ? scale->d : NULL, weighted ? weight->d : NULL, B, G);
	same(z, 2e-6, 3e-3);
	same(dt, 5e-6, 5e-6);
	free(count), free(mask);
	unpack(&p);
}

/* Logits of both signs, some large; a third of the targets is 0, some are none. */
static void expression_one(size_t N, size_t G, int apart)
{
	struct arr *z = ACTS("expression z", 2 * N * G), *y = REALS("expression", N * G), *scale = REALS("scale", 6);
	size_t words = nb_words(G), sums = apart ? 12 : 4;
	uint32_t *in = xcalloc(N * words, 4);
	double want[12], got[12];
	for (size_t i = 0; i < N * G; i++) {
		y->x[i] = rng(3) == 0 ? 0 : rng(9) == 0 ? NAN : fabsf(y->x[i]);
		z->x[2 * i + 1] *= rng(5) ? 1 : 32;
		in[i / G * words + i % G / 32] |= (uint32_t)!rng(4) << i % G % 32;
	}
	put(y), put(z);
	for (size_t i = 0; i < 12; i++)
		want[i] = got[i] = 3;
	const uint32_t *in_d = to_gpu(in, N * words * 4);
	double *sum = to_gpu(got, sizeof got);
	cpu->expression_loss(cpu, want, z->x, y->x, apart ? in : NULL, N, G);
	gpu->expression_loss(gpu, sum, z->d, y->d, apart ? in_d : NULL, N, G);
	gpu->download(gpu, got, sum, sizeof got);
	same_sums("expression loss", got, want, sums, 1e-6, 1e-6);
	cpu->expression_loss_back(cpu, z->x, y->x, apart ? in : NULL, scale->x, N, G);
	gpu->expression_loss_back(gpu, z->d, y->d, apart ? in_d : NULL, scale->d, N, G);
	same(z, 2e-6, 5e-3);
	release();
	free(in);
}

void cell_ops(void)
{
	expression_one(3, 701, 1);
	expression_one(9, 1500, 0);
	expression_one(301, 1, 0);
	bag_one(37, 5, 0);
	bag_one(90, 64, 1);
	bag_one(90, 264, 1);
	batch_norm_one(2, 5, ACT_NONE);
	batch_norm_one(70, 64, ACT_RELU);
	batch_norm_one(33, 264, ACT_RELU);
	nb_one(160, 0, 0);
	nb_one(701, 1, 0);
	nb_one(160, 0, 1);
	nb_one(701, 1, 1);
}

/* ---- steps of the whole model ---- */

struct cells_run {
	struct both p;
	struct batch b;
	uint32_t *count, *mask, group[CELLS];
	float *value;
};

static void make_run(struct cells_run *r, size_t G)
{
	size_t words = nb_words(G), masked = 0;
	pack(&r->p, cells, CELLS, G);
	r->count = xcalloc(r->p.c.T, 4), r->mask = xcalloc(CELLS * words, 4), r->value = xcalloc(r->p.c.T, 4);
	make_counts(&r->p, G, r->count, r->mask);
	for (size_t b = 0; b < CELLS; b++) {
		r->group[b] = b == 2 ? ROW_NONE : rng(3);
		for (size_t g = 0; g < G; g++)
			masked += r->mask[b * words + g / 32] >> g % 32 & 1;
		for (size_t t = r->p.offset[b]; t < r->p.offset[b + 1]; t++)
			r->value[t] = r->mask[b * words + r->p.id[t] / 32] >> r->p.id[t] % 32 & 1 ? 0 : log1pf((float)r->count[t]);
	}
	r->b = (struct batch){
		.ncell = CELLS, .offset = r->p.offset, .id = r->p.id, .value = r->value, .count = r->count, .group = r->group};
	r->b.goal[0] = (struct goal){.n = masked, .mask = r->mask};
}

static void one_step(struct model *m, const struct cells_run *r, uint64_t k, struct loss *l, int later)
{
	struct error e;
	struct optim opt;
	optim_init(&opt);
	opt.variant = ADAMW_L2;
	opt.schedule = SCHEDULE_CONSTANT;
	model_zero_grad(m);
	if (model_forward(m, &r->b, &(struct forward){.train = 1, .step = k, .later = later}, l, &e) || model_backward(m, &e))
		fail_msg("%s", e.msg);
	if (later)
		model_step_later(m, &opt, k, l->count);
	else if (model_step(m, &opt, k, l->count, NULL, &e))
		fail_msg("%s", e.msg);
}

static void compare(struct model *a, struct model *b, enum which w, double tol_float, double tol_bf16)
{
	size_t n = model_size(a, w) > model_size(b, w) ? model_size(a, w) : model_size(b, w);
	float *x = xcalloc(n, 4), *y = xcalloc(n, 4);
	for (size_t i = 0; i < model_ntensor(a); i++) {
		const struct tensor *t = model_tensor(a, i);
		if (w != PARAM && t->role == BUFFER)
			continue;
		model_read(a, w, t, x);
		model_read(b, w, model_tensor(b, i), y);
		within(t->name, distance(y, x, t->n), tol_float, tol_bf16);
	}
	free(x), free(y);
}

static void same_bits(struct model *a, struct model *b)
{
	size_t n = model_size(a, PARAM);
	float *x = xcalloc(n, 4), *y = xcalloc(n, 4);
	model_read_all(a, PARAM, x);
	model_read_all(b, PARAM, y);
	assert_memory_equal(x, y, n * sizeof *x);
	free(x), free(y);
}

/* The same steps on both, of batches of one size. A third model queues them: its bits are equal. */
static void steps_of(const struct curriculum *curriculum)
{
	struct error e;
	struct model_config c = {
		.arch = &arch_mlp_nb, .vocab_size = 301, .hidden_size = 24, .intermediate_size = 40, .num_groups = 3, .own = {1e-5, 0.1}};
	struct model *m[3];
	struct loss l[3];
	double norm;
	for (int i = 0; i < 3; i++)
		if (!(m[i] = model_new(&c, &(struct head_spec){.kind = &head_nb, .curriculum = *curriculum}, 1, i ? gpu : cpu, 5, &e)))
			fail_msg("%s", e.msg);
	for (uint64_t k = 0; k < STEPS; k++) {
		struct cells_run r;
		make_run(&r, c.vocab_size);
		r.b.goal[0].ratio = curriculum->ratios ? (uint32_t)k % curriculum->ratios : 0;
		for (int i = 0; i < 3; i++)
			one_step(m[i], &r, k, &l[i], i == 2);
		if (k == 0)
			compare(m[0], m[1], GRAD, 2e-5, 0.2);
		assert_int_equal(model_collect(m[2], &l[2], &norm, &e), 0);
		within_sum("nb steps: loss", fabs(l[1].sum / l[0].sum - 1), 1e-5, 2e-2);
		assert_true(l[1].sum == l[2].sum && l[1].count == l[0].count);
		/* the latent, by the running averages */
		float *x = xcalloc(CELLS * 24, 4), *y = xcalloc(CELLS * 24, 4);
		if (model_hidden(m[0], &r.b, 0, x, &e) || model_hidden(m[1], &r.b, 0, y, &e))
			fail_msg("%s", e.msg);
		within("latent", distance(y, x, CELLS * 24), 1e-3, 0.2);
		free(x), free(y), free(r.count), free(r.mask), free(r.value);
		unpack(&r.p);
	}
	compare(m[0], m[1], PARAM, 1e-3, 0.6); /* bf16: Adam makes whole steps of gradients that rounding decides */
	same_bits(m[1], m[2]);
	for (int i = 0; i < 3; i++)
		model_free(m[i]);
}

void cell_steps(void)
{
	steps_of(&(struct curriculum){0});
	steps_of(&(struct curriculum){.ratios = 2, .hard = 1, .steps = 6});
}
