/*
 * Training speed on a device, and where the time goes:
 *     bench_cuda DEVICE STEPS [CONFIG LENGTH BATCH]...       CONFIG: corrmask-paper, geneformer-v1-10m or v2-104m
 * First the device's own ceilings: a large product through ops->linear (bf16 on a GPU), and a large copy, bytes read and written.
 * For each shape: median of STEPS whole steps after two to warm up, tokens a second, share of the product ceiling (mfu,
 * work as bench_sctrain counts it), the time a million cells take for three epochs at this length, and then one more
 * step with a wait after every op, for the time by op. A loss that is not that of an untrained model is an error.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device.h"
#include "model.h"

static struct ops *o, real_ops;
static int timing;
static struct {
	const char *name;
	double seconds;
} op_time[16];

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void wait_for(void)
{
	struct error e;
	if (o->sync(o, &e)) {
		fprintf(stderr, "bench_cuda: %s\n", e.msg);
		exit(1);
	}
}

static void op_add(const char *name, double from)
{
	size_t i = 0;
	wait_for();
	while (op_time[i].name && strcmp(op_time[i].name, name))
		i++;
	op_time[i].name = name;
	op_time[i].seconds += now() - from;
}

/* The table's entry is replaced in place: the backend casts the table to its own state. */
#define TIMED(op, params, args) \
	static void timed_##op params \
	{ \
		double from_ = now(); \
		real_ops.op args; \
		if (timing) \
			op_add(#op, from_); \
	}

TIMED(embed, (struct ops *p, void *y, float *st, const float *w, const float *po, const float *ty, const float *g, const float *b, const struct seq *s,
	size_t C, double eps, const struct dropout *d), (p, y, st, w, po, ty, g, b, s, C, eps, d))
TIMED(embed_back, (struct ops *p, float *dw, float *dp, float *dt, float *dg, float *db, void *dy, const float *st, const float *w,
	const float *po, const float *ty, const float *g, const struct seq *s, size_t V, size_t P, size_t C, uint32_t pad, const struct dropout *d),
	(p, dw, dp, dt, dg, db, dy, st, w, po, ty, g, s, V, P, C, pad, d))
TIMED(linear, (struct ops *p, void *y, void *pre, const void *x, const float *W, const float *b, size_t T, size_t K, size_t N, enum act a),
	(p, y, pre, x, W, b, T, K, N, a))
TIMED(linear_back, (struct ops *p, void *dx, float *dW, float *db, void *dy, const void *x, const float *W, const void *y, const void *pre,
	size_t T, size_t K, size_t N, enum act a, int add), (p, dx, dW, db, dy, x, W, y, pre, T, K, N, a, add))
TIMED(attention, (struct ops *p, void *y, float *lse, const void *qkv, const struct seq *s, size_t C, size_t NH, const struct dropout *d),
	(p, y, lse, qkv, s, C, NH, d))
TIMED(attention_back, (struct ops *p, void *dqkv, const void *dy, const void *y, const float *lse, const void *qkv, const struct seq *s,
	size_t C, size_t NH, const struct dropout *d), (p, dqkv, dy, y, lse, qkv, s, C, NH, d))
TIMED(norm, (struct ops *p, void *y, void *r, float *st, const void *a, const void *x, const float *g, const float *b, const struct seq *s,
	size_t T, size_t C, double eps, const struct dropout *d), (p, y, r, st, a, x, g, b, s, T, C, eps, d))
TIMED(norm_back, (struct ops *p, void *da, void *dx, float *dg, float *db, const void *dy, const void *r, const float *st, const float *g,
	const struct seq *s, size_t T, size_t C, const struct dropout *d), (p, da, dx, dg, db, dy, r, st, g, s, T, C, d))
TIMED(mlm_loss, (struct ops *p, double *sum, float *lse, const void *h, const float *W, const float *b, const uint32_t *t, size_t N, size_t C,
	size_t V), (p, sum, lse, h, W, b, t, N, C, V))
TIMED(mlm_loss_back, (struct ops *p, void *dh, float *dW, float *db, const void *h, const float *W, const float *b, const uint32_t *t,
	const float *lse, size_t N, size_t C, size_t V), (p, dh, dW, db, h, W, b, t, lse, N, C, V))
TIMED(sumsq, (struct ops *p, double *sum, const float *g, size_t n), (p, sum, g, n))
TIMED(adamw, (struct ops *p, float *w, const float *g, float *m, float *v, size_t n, const double *norm2, const struct adamw_args *a),
	(p, w, g, m, v, n, norm2, a))

static uint32_t rng(uint32_t n)
{
	static uint32_t x = 1;
	x = x * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)x * n >> 32);
}

/* Best of five; random data, since zeros run faster. */
static double gemm_tflops(size_t n)
{
	float *x = xcalloc(n * n, sizeof *x);
	for (size_t i = 0; i < n * n; i++)
		x[i] = (float)rng(1 << 16) / (1 << 15) - 1;
	void *a = o->alloc(o, n * n * o->act_size), *y = o->alloc(o, n * n * o->act_size);
	float *W = o->alloc(o, n * n * sizeof *W);
	double best = 1e9;
	o->upload_act(o, a, x, n * n);
	o->upload(o, W, x, n * n * sizeof *W);
	o->params_changed(o, W, n * n);
	for (int i = 0; i < 6; i++) {
		wait_for();
		double t = now();
		real_ops.linear(o, y, NULL, a, W, NULL, n, n, n, ACT_NONE);
		wait_for();
		t = now() - t;
		best = i && t < best ? t : best;
	}
	free(x);
	o->free(o, a), o->free(o, y), o->free(o, W);
	return 2e-12 * (double)n * (double)n * (double)n / best;
}

static double copy_gbs(size_t bytes)
{
	void *a = o->alloc(o, bytes), *b = o->alloc(o, bytes);
	double best = 1e9;
	for (int i = 0; i < 6; i++) {
		wait_for();
		double t = now();
		o->copy(o, b, a, bytes);
		wait_for();
		t = now() - t;
		best = i && t < best ? t : best;
	}
	o->free(o, a), o->free(o, b);
	return 2e-9 * (double)bytes / best;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static int bench(const char *name, uint32_t length, uint32_t batch, int steps, double tflops)
{
	struct error e;
	struct model_config c;
	struct optim opt;
	int v2 = !strcmp(name, "v2-104m");
	if (model_preset(&c, v2 ? "geneformer-v1-10m" : name, &e)) {
		fprintf(stderr, "bench_cuda: %s\n", e.msg);
		return -1;
	}
	if (v2) {
		c.hidden_size = 768, c.num_hidden_layers = 12, c.num_attention_heads = 12, c.intermediate_size = 3072;
	}
	c.vocab_size = v2 ? 20275 : 25426;
	c.max_position_embeddings = length > c.max_position_embeddings ? length : c.max_position_embeddings;
	struct model *m = model_new(&c, TASK_MLM, o, 1, &e);
	size_t T = (size_t)length * batch, n = 0;
	uint32_t *offset = xcalloc(batch + (size_t)1, 4), *id = xcalloc(T, 4), *mask = xcalloc(T, 4), *target = xcalloc(T, 4);
	double *took = xcalloc((size_t)steps + 3, sizeof *took);
	int failed = !m;
	optim_init(&opt);
	opt.total = 1000;
	memset(op_time, 0, sizeof op_time);
	for (int k = 0; k < steps + 3 && !failed; k++) {
		struct loss loss;
		n = 0;
		for (uint32_t i = 0; i <= batch; i++)
			offset[i] = i * length;
		for (uint32_t t = 0; t < T; t++) {
			id[t] = 2 + rng(c.vocab_size - 2);
			if (rng(100) < 15) {
				mask[n] = t;
				target[n++] = id[t];
				id[t] = 1;
			}
		}
		struct batch b = { .ncell = batch, .offset = offset, .id = id, .nmask = n, .mask = mask, .target = target };
		timing = k == steps + 2;
		double t = now();
		model_zero_grad(m);
		failed = model_forward(m, &b, &(struct forward){ .train = 1, .step = (uint64_t)k }, &loss, &e) || model_backward(m, &e) ||
			model_step(m, &opt, (uint64_t)k, loss.count, NULL, &e);
		took[k] = now() - t;
		if (!failed && !k && fabs(loss.sum / loss.count / log(c.vocab_size) - 1) > 0.05)
			failed = error_set(&e, "an untrained model has loss %g, expected about ln %u", loss.sum / loss.count, c.vocab_size);
	}
	timing = 0;
	if (failed) {
		printf("config %s length %u batch %u FAILED: %s\n", name, length, batch, e.msg);
	} else {
		double C = c.hidden_size, F = c.intermediate_size, L = c.num_hidden_layers, share = (double)n / (double)T, total = 0;
		double flop = 3 * (2 * L * (4 * C * C + 2 * C * F) + 4 * L * C * length + share * 2 * C * (C + c.vocab_size));
		qsort(took + 2, (size_t)steps, sizeof *took, compare);
		double rate = (double)T / took[2 + steps / 2];
		printf("config %s length %u batch %u tokens_per_s %.0f step_ms %.2f mfu %.3f million_cells_3_epochs_min %.1f model_mb %.0f\n", name, length, batch,
			rate, took[2 + steps / 2] * 1e3, rate * flop * 1e-12 / tflops, 3e6 * length / rate / 60, (double)model_bytes(m) / 1e6);
		for (size_t i = 0; op_time[i].name; i++)
			total += op_time[i].seconds;
		for (size_t i = 0; op_time[i].name; i++)
			printf("  %-16s %8.3f ms  %5.1f %%\n", op_time[i].name, op_time[i].seconds * 1e3, 100 * op_time[i].seconds / total);
	}
	fflush(stdout);
	free(offset), free(id), free(mask), free(target), free(took);
	if (m)
		model_free(m);
	return failed ? -1 : 0;
}

int main(int argc, char **argv)
{
	struct error e;
	char what[256];
	int steps = argc > 2 ? atoi(argv[2]) : 0, failed = 0;
	if (steps < 1 || argc % 3) {
		fprintf(stderr, "usage: bench_cuda DEVICE STEPS [CONFIG LENGTH BATCH]...\n");
		return 2;
	}
	o = device_open(argv[1], 2, what, sizeof what, &e);
	if (!o) {
		fprintf(stderr, "bench_cuda: %s\n", e.msg);
		return 1;
	}
	real_ops = *o;
#define USE(op) o->op = timed_##op;
	USE(embed) USE(embed_back) USE(linear) USE(linear_back) USE(attention) USE(attention_back) USE(norm) USE(norm_back)
	USE(mlm_loss) USE(mlm_loss_back) USE(sumsq) USE(adamw)
	int gpu = strcmp(o->name, "cpu") != 0;
	double tflops = gemm_tflops(gpu ? 8192 : 1024), gbs = copy_gbs((size_t)(gpu ? 2048 : 64) << 20);
	printf("device %s\ngemm_tflops %.2f copy_gb_s %.0f\n", what, tflops, gbs);
	for (int i = 3; i + 2 < argc; i += 3)
		failed |= bench(argv[i], (uint32_t)atoi(argv[i + 1]), (uint32_t)atoi(argv[i + 2]), steps, tflops);
	o->destroy(o);
	return failed ? 1 : 0;
}
