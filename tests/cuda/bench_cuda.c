/*
 * Speed on a device, and where the time goes:
 *     bench_cuda DEVICE STEPS [CONFIG LENGTH BATCH]...
 * CONFIG is corrmask-paper, geneformer-v1-10m or v2-104m; with "embed:" before it, cells are embedded instead of trained on. LENGTH is a
 * number of tokens, the same for all cells, or `real`: log-normal lengths, drawn as gpu_torch.py draws them. BATCH is in cells.
 *
 * Each of several shapes runs in a process of its own, so that one without memory or with a fault does not end the others. There:
 *   - the device's ceilings: a large product through ops->linear (bf16 on a GPU), and a large copy, bytes read and written (small ones
 *     with STEPS 1, which is no measurement but something for a debugger or a sanitizer to watch)
 *   - 2 STEPS steps after some to warm up, each asked for while the one before runs, as sctrain and scembed do: tokens a second, the
 *     device's idle share, mfu (work as bench_sctrain counts it, over the product's ceiling), the time a million cells take for three epochs
 *   - the same steps again, from the same weights, with nothing replayed: every loss must be the same, bit for bit. What was measured is
 *     printed before, so that a difference costs no numbers
 *   - then a step more with a wait around every op, for its time and its share of what is possible:
 *         floor = max(operations / product's ceiling, bytes / copy's ceiling),    share = floor / time
 *     Operations are those of products alone, bytes each input once and each output once, both from the op's arguments. On a GPU an op
 *     is repeated REPEAT times between two waits, since one wait takes as long as a small op. ! marks shares below .6.
 * A loss that is not that of an untrained model is an error.
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "nn/device.h"
#include "nn/model.h"

enum {
	REPEAT = 4,
	LIMIT = 40, /* seconds a shape, on a GPU: one that hangs leaves time for the others */
	MASKED = 15, /* percent */
	CAP = 2048,
	TOLD = 3, /* exit status of a shape whose failure was told */
};

static struct ops *o, real_ops;
static int timing, repeat;
static double product_rate, copy_rate; /* operations, bytes a second */
/* Of the shape, and of the batch that is timed by op. */
static double squares, tokens; /* sum of its cells' lengths squared, and of the lengths */
static size_t vocab;

static struct {
	const char *name;
	int calls;
	double seconds, floor;
} op_time[24];

static void die(const char *what)
{
	printf("FAILED: %s\n", what);
	fflush(stdout);
	_exit(TOLD);
}

static void wait_for(void)
{
	struct error e;
	if (o->sync(o, &e))
		die(e.msg);
}

static void op_add(const char *name, double seconds, double flops, double bytes)
{
	size_t i = 0;
	while (op_time[i].name && strcmp(op_time[i].name, name))
		i++;
	op_time[i].name = name;
	op_time[i].calls++;
	op_time[i].seconds += seconds;
	op_time[i].floor += fmax(flops / product_rate, bytes / copy_rate);
}

/* The table's entry is replaced in place: the backend casts the table to its own state. */
#define TIMED(op, params, args, flops, bytes) \
	static void timed_##op params \
	{ \
		if (!timing) { \
			real_ops.op args; \
			return; \
		} \
		double a = (double)real_ops.act_size; \
		(void)a; \
		wait_for(); \
		double from = clock_seconds(); \
		for (int i_ = 0; i_ < repeat; i_++) \
			real_ops.op args; \
		wait_for(); \
		op_add(#op, (clock_seconds() - from) / repeat, flops, bytes); \
	}

static double least(size_t x, size_t y)
{
	return (double)(x < y ? x : y);
}

/* Products: 2 operations for a multiplication and an addition. Weights are read as products take them, a copy of the activations' type. */
#define MUL(x, y, z) (2.0 * (double)(x) * (double)(y) * (double)(z))
#define BY(x, y) ((double)(x) * (double)(y))

TIMED(zero, (struct ops * p, void *x, size_t n), (p, x, n), 0, (double)n)
/* Rows of the tables that a batch needs are read once each: at most one a token. */
TIMED(embed,
	(struct ops * p, void *y, float *st, const float *w, const float *po, const float *ty, const void *more, const float *g,
		const float *b, const struct seq *s, size_t C, double eps, const struct dropout *d),
	(p, y, st, w, po, ty, more, g, b, s, C, eps, d), 0,
	BY(s->T, C) * a + 20.0 * (double)s->T + 4 * (double)C * (least(s->T, vocab) + (double)s->L))
TIMED(embed_back,
	(struct ops * p, float *dw, float *dp, float *dt, float *dg, float *db, void *dy, const float *st, const float *w, const float *po,
		const float *ty, const void *more, const float *g, const struct seq *s, size_t V, size_t P, size_t C, uint32_t pad,
		const struct dropout *d),
	(p, dw, dp, dt, dg, db, dy, st, w, po, ty, more, g, s, V, P, C, pad, d), 0,
	BY(s->T, C) * a + 24.0 * (double)s->T + 12 * (double)C * (least(s->T, V) + (double)s->L))
TIMED(linear, (struct ops * p, void *y, void *pre, const void *x, const float *W, const float *b, size_t T, size_t K, size_t N, enum act f),
	(p, y, pre, x, W, b, T, K, N, f), MUL(T, K, N), a *(BY(T, K) + BY(N, K) + BY(T, N) * (pre ? 2 : 1)) + (b ? 4 * (double)N : 0))
TIMED(linear_back,
	(struct ops * p, void *dx, float *dW, float *db, void *dy, const void *x, const float *W, const void *y, const void *pre, size_t T,
		size_t K, size_t N, enum act f, int add),
	(p, dx, dW, db, dy, x, W, y, pre, T, K, N, f, add), MUL(T, K, N) * ((dx != NULL) + (dW != NULL)),
	a *(BY(T, N) * (f == ACT_NONE ? 1 : 3) + (dW ? BY(T, K) : 0) + (dx ? BY(N, K) + BY(T, K) * (add ? 2 : 1) : 0)) +
		(dW ? 8 * BY(N, K) : 0) + (db ? 8 * (double)N : 0))
TIMED(attention, (struct ops * p, void *y, float *lse, const void *qkv, const struct seq *s, size_t C, size_t NH, const struct dropout *d),
	(p, y, lse, qkv, s, C, NH, d), 4 * squares * (double)C, 4 * a * BY(s->T, C) + 4 * BY(s->T, NH))
TIMED(attention_back,
	(struct ops * p, void *dqkv, const void *dy, const void *y, const float *lse, const void *qkv, const struct seq *s, size_t C,
		size_t NH, const struct dropout *d),
	(p, dqkv, dy, y, lse, qkv, s, C, NH, d), 10 * squares * (double)C, 8 * a * BY(s->T, C) + 4 * BY(s->T, NH))
TIMED(norm,
	(struct ops * p, void *y, void *r, float *st, const void *x0, const void *x, const float *g, const float *b, const struct seq *s,
		size_t T, size_t C, double eps, const struct dropout *d),
	(p, y, r, st, x0, x, g, b, s, T, C, eps, d), 0,
	a *BY(T, C) * (2 + (x != NULL) + (r && (r != x0 || x || (d && d->threshold)))) + 8 * (double)(T + C))
TIMED(norm_back,
	(struct ops * p, void *da, void *dx, float *dg, float *db, float *dbias, const void *dy, const void *r, const float *st,
		const float *g, const struct seq *s, size_t T, size_t C, const struct dropout *d),
	(p, da, dx, dg, db, dbias, dy, r, st, g, s, T, C, d), 0,
	a *BY(T, C) * (2 + (da != NULL) + (dx != NULL)) + 8 * (double)T + (dbias ? 28 : 20) * (double)C)
TIMED(gather, (struct ops * p, void *y, const void *x, const uint32_t *index, size_t N, size_t C), (p, y, x, index, N, C), 0,
	2 * a * BY(N, C) + 4 * (double)N)
TIMED(scatter, (struct ops * p, void *dx, const void *dy, const uint32_t *index, size_t N, size_t T, size_t C), (p, dx, dy, index, N, T, C),
	0, a *(BY(N, C) + BY(T, C)) + 4 * (double)N)
TIMED(pool, (struct ops * p, void *y, const void *x, const uint32_t *range, size_t B, size_t C, int as_real),
	(p, y, x, range, B, C, as_real), 0, a *tokens *(double)C + 4 * BY(B, C))
TIMED(mlm_loss,
	(struct ops * p, double *sum, float *lse, const void *h, const float *W, const float *b, const uint32_t *t, size_t N, size_t C,
		size_t V),
	(p, sum, lse, h, W, b, t, N, C, V), MUL(N, C, V), a *(BY(N, C) + BY(V, C)) + 8 * (double)N + 4 * (double)V)
/* The logits are made again: three products, as five in attention. */
TIMED(mlm_loss_back,
	(struct ops * p, void *dh, float *dW, float *db, const void *h, const float *W, const float *b, const uint32_t *t, const float *lse,
		const float *scale, size_t N, size_t C, size_t V),
	(p, dh, dW, db, h, W, b, t, lse, scale, N, C, V), 3 * MUL(N, C, V),
	a *(2 * BY(N, C) + BY(V, C)) + 8 * BY(V, C) + 8 * (double)N + 12 * (double)V)
TIMED(sumsq, (struct ops * p, double *sum, const float *g, size_t n), (p, sum, g, n), 0, 4 * (double)n)
TIMED(adamw, (struct ops * p, float *w, const float *g, float *m, float *v, size_t n, const double *norm2, const struct adamw_args *x),
	(p, w, g, m, v, n, norm2, x), 0, (28 + (a < 4 ? a : 0)) * (double)n)

static void wrap(void)
{
	real_ops = *o;
#define USE(op) (o->op = timed_##op)
	USE(zero);
	USE(embed);
	USE(embed_back);
	USE(linear);
	USE(linear_back);
	USE(attention);
	USE(attention_back);
	USE(norm);
	USE(norm_back);
	USE(gather);
	USE(scatter);
	USE(pool);
	USE(mlm_loss);
	USE(mlm_loss_back);
	USE(sumsq);
	USE(adamw);
}

static uint32_t lcg(uint32_t *x)
{
	return *x = *x * 1664525u + 1013904223u;
}

static uint32_t rng(uint32_t n)
{
	static uint32_t x = 1;
	return (uint32_t)((uint64_t)lcg(&x) * n >> 32);
}

/*
 * Lengths of cells as in Geneformer's corpus, of which 93 % have at most 2,048 tokens [Theodoris et al. 2023]: log-normal of median 1,300,
 * cut at 2,048. The normal number is the sum of twelve uniform ones, less 6. gpu_torch.py draws the same.
 */
static uint32_t real_length(uint32_t *x)
{
	double z = -6;
	for (int i = 0; i < 12; i++)
		z += (double)lcg(x) / 4294967296.0;
	double length = floor(1300 * exp(0.31 * z));
	return length < CAP ? (uint32_t)length : CAP;
}

/* Best of five; random data, since zeros run faster. */
static double product_ceiling(size_t n)
{
	size_t random = n * n < 1 << 20 ? n * n : 1 << 20;
	float *x = xcalloc(n * n, sizeof *x);
	for (size_t i = 0; i < random; i++)
		x[i] = (float)rng(1 << 16) / (1 << 15) - 1;
	for (size_t i = random; i < n * n; i++)
		x[i] = x[i - random];
	void *a = o->alloc(o, n * n * o->act_size), *y = o->alloc(o, n * n * o->act_size);
	float *W = o->alloc(o, n * n * sizeof *W);
	double best = 1e9;
	o->upload_act(o, a, x, n * n);
	o->upload(o, W, x, n * n * sizeof *W);
	o->params_changed(o, W, n * n);
	for (int i = 0; i < 6; i++) {
		wait_for();
		double t = clock_seconds();
		o->linear(o, y, NULL, a, W, NULL, n, n, n, ACT_NONE);
		wait_for();
		t = clock_seconds() - t;
		best = i && t < best ? t : best;
	}
	free(x);
	o->free(o, a), o->free(o, y), o->free(o, W);
	return MUL(n, n, n) / best;
}

static double copy_ceiling(size_t bytes)
{
	void *a = o->alloc(o, bytes), *b = o->alloc(o, bytes);
	double best = 1e9;
	for (int i = 0; i < 6; i++) {
		wait_for();
		double t = clock_seconds();
		o->copy(o, b, a, bytes);
		wait_for();
		t = clock_seconds() - t;
		best = i && t < best ? t : best;
	}
	o->free(o, a), o->free(o, b);
	return 2 * (double)bytes / best;
}

/* ---- batches ---- */

struct work {
	const char *config, *length_text;
	int embed, drawn;
	uint32_t length, ncell; /* of a cell, at most; of a batch */
	struct model_config c;
	size_t nbatch;
	struct batch *batch;
	uint32_t **range; /* embed: all tokens of each cell */
	int warm, steps; /* steps before the measured ones, and those */
	double tokens, squares, masked; /* of the measured steps */
};

static void make_batch(struct work *w, size_t k, uint32_t *draw)
{
	struct batch *b = &w->batch[k];
	uint32_t *offset = xcalloc(w->ncell + (size_t)1, 4), *range = xcalloc(2 * (size_t)w->ncell, 4);
	for (uint32_t i = 0; i < w->ncell; i++) {
		offset[i + 1] = offset[i] + (w->drawn ? real_length(draw) : w->length);
		range[2 * i] = offset[i];
		range[2 * i + 1] = offset[i + 1];
	}
	size_t T = offset[w->ncell], n = 0;
	uint32_t *id = xcalloc(T, 4), *mask = xcalloc(T, 4), *target = xcalloc(T, 4);
	for (uint32_t i = 0; i < w->ncell; i++) {
		uint32_t left = (offset[i + 1] - offset[i]) * MASKED / 100;
		for (uint32_t t = offset[i]; t < offset[i + 1]; t++) {
			id[t] = 2 + rng(w->c.vocab_size - 2);
			if (rng(offset[i + 1] - t) >= left)
				continue;
			left--;
			mask[n] = t;
			target[n++] = id[t];
			id[t] = 1;
		}
	}
	*b = (struct batch){.ncell = w->ncell, .offset = offset, .id = id, .goal = {{.n = n, .row = mask, .target = target}}};
	w->range[k] = range;
}

static double sum_squares(const struct batch *b)
{
	double sum = 0;
	for (size_t i = 0; i < b->ncell; i++)
		sum += pow(b->offset[i + 1] - b->offset[i], 2);
	return sum;
}

static int work_init(struct work *w, const char *config, const char *length, const char *ncell, int steps, struct error *e)
{
	*w = (struct work){.config = config, .length_text = length, .drawn = !strcmp(length, "real")};
	if (!strncmp(config, "embed:", 6)) {
		w->embed = 1;
		w->config += 6;
	}
	int v2 = !strcmp(w->config, "v2-104m");
	if (model_preset(&w->c, v2 ? "geneformer-v1-10m" : w->config, e))
		return -1;
	if (v2)
		w->c.hidden_size = 768, w->c.num_hidden_layers = 12, w->c.num_attention_heads = 12, w->c.intermediate_size = 3072;
	w->c.vocab_size = v2 ? 20275 : 25426;
	w->length = w->drawn ? CAP : (uint32_t)strtoul(length, NULL, 10);
	w->ncell = (uint32_t)strtoul(ncell, NULL, 10);
	if (w->length < 8 || w->length > 65535 || w->ncell < 1 || w->ncell > 65535)
		return error_set(e, "length %s, batch %s: expected 8 to 65535 or real, and 1 to 65535", length, ncell);
	if (w->length > w->c.max_position_embeddings)
		w->c.max_position_embeddings = w->length;
	/* Sizes that come again are recorded the second time and replayed from the third on. */
	w->nbatch = (size_t)steps;
	w->warm = w->drawn ? 2 * steps : 3;
	w->steps = 2 * steps;
	w->batch = xcalloc(w->nbatch, sizeof *w->batch);
	w->range = xcalloc(w->nbatch, sizeof *w->range);
	uint32_t draw = 1;
	for (size_t k = 0; k < w->nbatch; k++)
		make_batch(w, k, &draw);
	for (int k = w->warm; k < w->warm + w->steps; k++) {
		const struct batch *b = &w->batch[(size_t)k % w->nbatch];
		w->tokens += b->offset[b->ncell];
		w->squares += sum_squares(b);
		w->masked += (double)b->goal[0].n;
	}
	vocab = w->c.vocab_size;
	return 0;
}

/* ---- steps ---- */

struct result {
	double seconds, busy, idle, padding, bytes;
	double *loss; /* [steps with those to warm up]; of an embedding the first cell's first number */
};

static int ask(struct work *w, struct model *m, const struct optim *opt, int k, struct error *e)
{
	struct batch *b = &w->batch[(size_t)k % w->nbatch];
	struct loss loss;
	if (w->embed)
		return model_embed(m, b, -1, w->range[(size_t)k % w->nbatch], 1, e);
	model_zero_grad(m);
	if (model_forward(m, b, &(struct forward){.train = 1, .step = (uint64_t)k, .later = 1}, &loss, e) || model_backward(m, e))
		return -1;
	model_step_later(m, opt, (uint64_t)k, loss.count);
	return 0;
}

static int collect(struct work *w, struct model *m, float *x, double *loss, struct error *e)
{
	struct loss sum;
	double norm;
	if (w->embed ? model_embedded(m, x, e) : model_collect(m, &sum, &norm, e))
		return -1;
	*loss = w->embed ? (double)x[0] : sum.sum / sum.count;
	return 0;
}

/* All steps; with by_op one more, for the time by op. */
static int run(struct work *w, struct model *m, struct result *r, int by_op, struct error *e)
{
	struct optim opt;
	float *x = xcalloc((size_t)w->ncell * w->c.hidden_size, sizeof *x);
	int failed = 0, n = w->warm + w->steps;
	double from = 0, busy = 0, idle = 0;
	r->loss = xcalloc((size_t)n, sizeof *r->loss);
	optim_init(&opt);
	opt.total = 1000;
	for (int k = 0; k <= n && !failed; k++) {
		failed = (k < n && ask(w, m, &opt, k, e)) || (k > 0 && collect(w, m, x, &r->loss[k - 1], e));
		if (k == w->warm) { /* the steps before are done, and the first measured one runs */
			from = clock_seconds();
			o->usage(o, &busy, &idle);
		}
	}
	if (!failed) {
		r->seconds = clock_seconds() - from;
		o->usage(o, &r->busy, &r->idle);
		r->busy -= busy;
		r->idle -= idle;
		r->padding = model_padding(m);
		r->bytes = (double)model_bytes(m);
	}
	if (!failed && !w->embed && fabs(r->loss[0] / log(w->c.vocab_size) - 1) > 0.05 + 0.2 / sqrt((double)w->batch[0].goal[0].n))
		failed = error_set(e, "an untrained model has loss %g, expected about ln %u", r->loss[0], w->c.vocab_size);
	if (!failed && by_op) {
		const struct batch *b = &w->batch[(size_t)n % w->nbatch];
		struct error ignored; /* repeated ops add up: this step's loss and norm mean nothing */
		double nothing;
		squares = sum_squares(b);
		tokens = b->offset[b->ncell];
		timing = 1;
		failed = ask(w, m, &opt, n, e);
		timing = 0;
		if (!failed)
			collect(w, m, x, &nothing, &ignored);
	}
	free(x);
	return failed ? -1 : 0;
}

/* A replayed op does not come by its wrapper. */
static int no_replay(struct ops *p, const uint64_t key[OPS_KEY])
{
	return 0;
}

static void no_replay_end(struct ops *p)
{
}

/* Back to the weights that model_new drew. */
static void rewind_model(struct model *m, float *weights)
{
	model_write_all(m, PARAM, weights);
	memset(weights, 0, model_size(m, PARAM) * sizeof *weights);
	model_write_all(m, MOMENT1, weights);
	model_write_all(m, MOMENT2, weights);
}

/* ---- a shape ---- */

static double ratio(double part, double rest)
{
	return part + rest > 0 ? part / (part + rest) : NAN;
}

/* Ends without the line's end: what no_replay found follows. */
static void print_speed(const struct work *w, const struct result *r)
{
	double C = w->c.hidden_size, F = w->c.intermediate_size, L = w->c.num_hidden_layers - w->embed, rate = w->tokens / r->seconds;
	double head = w->masked / w->tokens * 2 * C * (C + w->c.vocab_size);
	double flop = 2 * L * (4 * C * C + 2 * C * F) + 4 * L * C * w->squares / w->tokens;
	flop = w->embed ? flop : 3 * (flop + head);
	printf("tokens_per_s %.0f step_ms %.3f mfu %.3f idle %.3f padding %.3f ", rate, r->seconds / w->steps * 1e3,
		rate * flop / product_rate, ratio(r->idle, r->busy), r->padding);
	if (!w->embed)
		printf("million_cells_3_epochs_min %.1f ", 3e6 * w->tokens / (w->steps * (double)w->ncell) / rate / 60);
	printf("model_mb %.0f ", r->bytes / 1e6);
	fflush(stdout);
}

/* The losses of both runs must be equal: says where they are not. */
static int compare(const struct work *w, const struct result *r, const struct result *plain)
{
	int different = 0, first = -1, n = w->warm + w->steps;
	for (int k = n - 1; k >= 0; k--)
		if (r->loss[k] != plain->loss[k]) {
			different++;
			first = k;
		}
	if (different)
		printf("FAILED: %s of %d of %d steps differs, first in step %d: %.17g with replays, %.17g without\n",
			w->embed ? "a value" : "the loss", different, n, first, r->loss[first], plain->loss[first]);
	return different ? -1 : 0;
}

static void print_remarks(void)
{
	char text[256] = "";
	if (o->remarks)
		o->remarks(o, text, sizeof text);
	if (*text)
		printf("remarks %s\n", text);
}

static void print_ops(double step)
{
	double all = 0, floor = 0;
	for (size_t i = 0; op_time[i].name; i++) {
		all += op_time[i].seconds;
		floor += op_time[i].floor;
	}
	printf("  %-16s %5s %9s %6s %9s %6s\n", "op", "calls", "ms", "%", "floor_ms", "share");
	for (size_t i = 0; op_time[i].name; i++)
		printf("  %-16s %5d %9.3f %6.1f %9.3f %6.2f%s\n", op_time[i].name, op_time[i].calls, op_time[i].seconds * 1e3,
			100 * op_time[i].seconds / all, op_time[i].floor * 1e3, op_time[i].floor / op_time[i].seconds,
			op_time[i].floor < .6 * op_time[i].seconds ? " !" : "");
	printf("  %-16s %5s %9.3f %6.1f %9.3f %6.2f of the measured step %.2f\n", "all", "", all * 1e3, 100.0, floor * 1e3, floor / all,
		floor / step);
}

/* -1: measured, but something was wrong, and was told. */
static int bench(const char *spec, struct work *w, int first)
{
	struct error e;
	struct result r = {0}, plain = {0};
	char what[256];
	o = device_open(spec, 2, 0, what, sizeof what, &e);
	if (!o)
		die(e.msg);
	wrap();
	int gpu = strcmp(o->name, "cpu") != 0;
	int small = !gpu || w->nbatch == 1;
	if (!small)
		alarm(LIMIT);
	repeat = gpu ? REPEAT : 1;
	product_rate = product_ceiling(small ? 1024 : 8192);
	copy_rate = copy_ceiling((size_t)(small ? 64 : 2048) << 20);
	if (first)
		printf("device %s\ngemm_tflops %.2f copy_gb_s %.0f\n", what, product_rate * 1e-12, copy_rate * 1e-9);
	printf("%sconfig %s length %s batch %u ", w->embed ? "embed_" : "", w->config, w->length_text, w->ncell);
	fflush(stdout);
	struct model *m = model_new(&w->c, &(struct head_spec){.kind = &head_mlm}, !w->embed, o, 1, &e);
	if (!m)
		die(e.msg);
	float *weights = xcalloc(model_size(m, PARAM), sizeof *weights);
	model_read_all(m, PARAM, weights);
	if (run(w, m, &r, 0, &e))
		die(e.msg);
	print_speed(w, &r);
	rewind_model(m, weights);
	o->replay = no_replay;
	o->replay_end = no_replay_end;
	if (run(w, m, &plain, 1, &e)) {
		printf("\n");
		die(e.msg);
	}
	printf("no_replay_tokens_per_s %.0f\n", w->tokens / plain.seconds);
	print_ops(r.seconds / w->steps);
	print_remarks();
	int failed = compare(w, &r, &plain);
	free(weights);
	free(r.loss);
	free(plain.loss);
	model_free(m);
	o->destroy(o);
	return failed;
}

static int bench_here(const char *spec, const char *config, const char *length, const char *ncell, int steps, int first)
{
	struct work w;
	struct error e;
	if (work_init(&w, config, length, ncell, steps, &e))
		die(e.msg);
	int failed = bench(spec, &w, first);
	fflush(stdout);
	return failed;
}

/* A process a shape; nothing of CUDA or OpenMP has been touched before the fork. */
static int bench_alone(const char *spec, const char *config, const char *length, const char *ncell, int steps, int first)
{
	int status = 0;
	fflush(stdout);
	pid_t child = fork();
	if (child < 0) {
		perror("bench_cuda: fork");
		return -1;
	}
	if (child == 0)
		_exit(bench_here(spec, config, length, ncell, steps, first) ? TOLD : 0);
	while (waitpid(child, &status, 0) < 0)
		;
	if (WIFSIGNALED(status))
		printf("FAILED: signal %d%s (%s %s %s)\n", WTERMSIG(status), WTERMSIG(status) == SIGALRM ? ", out of time" : "", config,
			length, ncell);
	else if (WEXITSTATUS(status) && WEXITSTATUS(status) != TOLD)
		printf("FAILED: exit status %d, most likely out of memory (%s %s %s)\n", WEXITSTATUS(status), config, length, ncell);
	return status ? -1 : 0;
}

int main(int argc, char **argv)
{
	int steps = argc > 2 ? atoi(argv[2]) : 0, failed = 0;
	if (steps < 1 || argc % 3 || argc < 6) {
		fprintf(stderr, "usage: bench_cuda DEVICE STEPS CONFIG LENGTH|real BATCH [CONFIG LENGTH|real BATCH]...\n");
		return 2;
	}
	if (argc == 6) /* tools that watch one process */
		return bench_here(argv[1], argv[3], argv[4], argv[5], steps, 1) ? 1 : 0;
	for (int i = 3; i + 2 < argc; i += 3)
		failed |= bench_alone(argv[1], argv[i], argv[i + 1], argv[i + 2], steps, i == 3);
	return failed ? 1 : 0;
}
