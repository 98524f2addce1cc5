/*
 * Training speed of corrmask-paper on the CPU against the machine's own matrix product, in one run:
 *     bench_sctrain [THREADS [STEPS [LENGTH BATCH]...]]
 * Work is counted by what training needs, not by what is run: per token forward 2 L (4 C^2 + 2 C F) in linear layers,
 * 4 L C length in attention, 2 C (C + V) for the masked share in the head; three times that with the backward pass.
 * tokens_per_s is the median step's (after one to warm up), the times by op, wall and CPU, are each op's best step.
 * roofline_share = tokens_per_s x that / sgemm 4096^3 rate on the same threads, best of 5. Recomputing the scores in the
 * backward pass is not counted, so a perfect run at length 2,048 stands at about 0.9.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <cblas.h>

#include "model.h"

void openblas_set_num_threads(int n);

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double cpu(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Every op timed, by a table that calls the real one. */
static struct ops *inner;
static struct op_time {
	const char *name;
	double seconds, cpu; /* this step */
	double best, best_cpu;
} op_time[32];

static void op_add(const char *name, double seconds, double cpu_seconds)
{
	size_t i = 0;
	while (op_time[i].name && strcmp(op_time[i].name, name))
		i++;
	op_time[i].name = name;
	op_time[i].seconds += seconds;
	op_time[i].cpu += cpu_seconds;
}

#define TIMED(op, params, args) \
	static void timed_##op params \
	{ \
		double t = now(), u = cpu(); \
		inner->op args; \
		op_add(#op, now() - t, cpu() - u); \
	}

TIMED(embed, (struct ops *o, void *y, real *stat, const real *w, const real *p, const real *t0, const real *ga, const real *be, const struct seq *s,
	size_t C, double eps, const struct dropout *d), (inner, y, stat, w, p, t0, ga, be, s, C, eps, d))
TIMED(embed_back, (struct ops *o, real *dw, real *dp, real *dt, real *dg, real *db, void *dy, const real *stat, const real *w, const real *p,
	const real *t0, const real *ga, const struct seq *s, size_t V, size_t P, size_t C, uint32_t pad, const struct dropout *d),
	(inner, dw, dp, dt, dg, db, dy, stat, w, p, t0, ga, s, V, P, C, pad, d))
TIMED(linear, (struct ops *o, void *y, void *pre, const void *x, const real *W, const real *b, size_t T, size_t K, size_t N, enum act act),
	(inner, y, pre, x, W, b, T, K, N, act))
TIMED(linear_back, (struct ops *o, void *dx, real *dW, real *db, void *dy, const void *x, const real *W, const void *y, const void *pre,
	size_t T, size_t K, size_t N, enum act act, int add), (inner, dx, dW, db, dy, x, W, y, pre, T, K, N, act, add))
TIMED(attention, (struct ops *o, void *y, real *lse, const void *qkv, const struct seq *s, size_t C, size_t NH, const struct dropout *d),
	(inner, y, lse, qkv, s, C, NH, d))
TIMED(attention_back, (struct ops *o, void *dqkv, const void *dy, const void *y, const real *lse, const void *qkv, const struct seq *s,
	size_t C, size_t NH, const struct dropout *d), (inner, dqkv, dy, y, lse, qkv, s, C, NH, d))
TIMED(norm, (struct ops *o, void *y, void *r, real *stat, const void *a, const void *x, const real *ga, const real *be, const struct seq *s,
	size_t T, size_t C, double eps, const struct dropout *d), (inner, y, r, stat, a, x, ga, be, s, T, C, eps, d))
TIMED(norm_back, (struct ops *o, void *da, void *dx, real *dg, real *db, const void *dy, const void *r, const real *stat, const real *ga,
	const struct seq *s, size_t T, size_t C, const struct dropout *d), (inner, da, dx, dg, db, dy, r, stat, ga, s, T, C, d))
TIMED(mlm_loss, (struct ops *o, double *sum, real *lse, const void *h, const real *W, const real *b, const uint32_t *target, size_t N, size_t C,
	size_t V), (inner, sum, lse, h, W, b, target, N, C, V))
TIMED(mlm_loss_back, (struct ops *o, void *dh, real *dW, real *db, const void *h, const real *W, const real *b, const uint32_t *target,
	const real *lse, size_t N, size_t C, size_t V), (inner, dh, dW, db, h, W, b, target, lse, N, C, V))
TIMED(sumsq, (struct ops *o, double *sum, const real *g, size_t n), (inner, sum, g, n))
TIMED(adamw, (struct ops *o, real *p, const real *g, real *m, real *v, size_t n, const double *norm2, const struct adamw_args *a),
	(inner, p, g, m, v, n, norm2, a))

static double gemm_gflops(int threads)
{
	size_t n = 4096;
	float *a = xcalloc(n * n, 4), *b = xcalloc(n * n, 4), *c = xcalloc(n * n, 4);
	for (size_t i = 0; i < n * n; i++) {
		a[i] = (float)(i % 7);
		b[i] = (float)(i % 5);
	}
	double best = 1e9;
	openblas_set_num_threads(threads);
	for (int k = 0; k < 5; k++) {
		double t = now();
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, (int)n, (int)n, 1, a, (int)n, b, (int)n, 0, c, (int)n);
		t = now() - t;
		best = t < best ? t : best;
	}
	openblas_set_num_threads(1);
	free(a);
	free(b);
	free(c);
	return 2.0 * (double)n * (double)n * (double)n / best * 1e-9;
}

static uint32_t rng(uint32_t n)
{
	static uint32_t x = 1;
	x = x * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)x * n >> 32);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void bench(int threads, int steps, uint32_t length, uint32_t batch, double gflops)
{
	struct error e;
	struct model_config c;
	struct optim opt;
	model_preset(&c, "corrmask-paper", &e);
	c.vocab_size = 25426;
	inner = ops_cpu_new(threads);
	struct ops table = *inner;
#define USE(op) table.op = timed_##op;
	USE(embed) USE(embed_back) USE(linear) USE(linear_back) USE(attention) USE(attention_back) USE(norm) USE(norm_back)
	USE(mlm_loss) USE(mlm_loss_back) USE(sumsq) USE(adamw)
	struct model *m = model_new(&c, TASK_MLM, &table, 1, &e);
	optim_init(&opt);
	opt.total = 1000;
	size_t T = (size_t)length * batch, n = 0;
	uint32_t *offset = xcalloc(batch + (size_t)1, 4), *id = xcalloc(T, 4), *mask = xcalloc(T, 4), *target = xcalloc(T, 4);
	double best = 1e9, *took = xcalloc((size_t)steps + 1, sizeof *took);
	for (int k = 0; k <= steps; k++) {
		struct loss loss;
		n = 0;
		for (uint32_t i = 0; i <= batch; i++)
			offset[i] = i * length;
		for (uint32_t t = 0; t < T; t++) {
			id[t] = 2 + rng(c.vocab_size - 2);
			if (rng(100) < 15) {
				mask[n] = t;
				target[n++] = id[t];
			}
		}
		struct batch b = { .ncell = batch, .offset = offset, .id = id, .nmask = n, .mask = mask, .target = target };
		for (size_t i = 0; op_time[i].name; i++)
			op_time[i].seconds = op_time[i].cpu = 0;
		double t = now();
		model_zero_grad(m);
		if (model_forward(m, &b, &(struct forward){ .train = 1, .step = (uint64_t)k }, &loss, &e) || model_backward(m, &e) ||
		    model_step(m, &opt, (uint64_t)k, loss.count, NULL, &e)) {
			fprintf(stderr, "bench_sctrain: %s\n", e.msg);
			exit(1);
		}
		t = now() - t;
		if (!k && fabs(loss.sum / loss.count / log(c.vocab_size) - 1) > 0.05) {
			fprintf(stderr, "bench_sctrain: an untrained model has loss %g, expected about ln %u\n", loss.sum / loss.count, c.vocab_size);
			exit(1);
		}
		took[k] = t;
		best = k && t < best ? t : best; /* the first step warms up */
		for (size_t i = 0; k && op_time[i].name; i++) {
			struct op_time *p = &op_time[i];
			p->best = k == 1 || p->seconds < p->best ? p->seconds : p->best;
			p->best_cpu = k == 1 || p->cpu < p->best_cpu ? p->cpu : p->best_cpu;
		}
	}
	double C = c.hidden_size, F = c.intermediate_size, L = c.num_hidden_layers, share = (double)n / (double)T;
	double flop = 3 * (2 * L * (4 * C * C + 2 * C * F) + 4 * L * C * length + share * 2 * C * (C + c.vocab_size));
	qsort(took + 1, (size_t)steps, sizeof *took, compare);
	double rate = (double)T / took[1 + steps / 2], total = 0;
	struct rusage ru;
	getrusage(RUSAGE_SELF, &ru);
	printf("config corrmask-paper length %u batch %u threads %d tokens_per_s %.0f (best %.0f) mflop_per_token %.1f gemm_gflops %.1f roofline_share %.3f "
	       "model_mb %.0f peak_mb %.0f\n", length, batch, threads, rate, (double)T / best, flop * 1e-6, gflops, rate * flop * 1e-9 / gflops,
		(double)model_bytes(m) / 1e6, (double)ru.ru_maxrss / 1e3);
	for (size_t i = 0; op_time[i].name; i++)
		total += op_time[i].best_cpu;
	for (size_t i = 0; op_time[i].name; i++)
		printf("  %-16s %8.1f ms  cpu %8.1f ms  %5.1f %%\n", op_time[i].name, op_time[i].best * 1e3, op_time[i].best_cpu * 1e3,
			100 * op_time[i].best_cpu / total);
	memset(op_time, 0, sizeof op_time);
	fflush(stdout);
	free(took);
	free(offset);
	free(id);
	free(mask);
	free(target);
	model_free(m);
	inner->destroy(inner);
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 2, steps = argc > 2 ? atoi(argv[2]) : 3;
	if (threads < 1 || steps < 1)
		return 2;
	double gflops = gemm_gflops(threads);
	if (argc <= 3) {
		bench(threads, steps, 256, 12, gflops);
		bench(threads, steps, 2048, 12, gflops);
	}
	for (int i = 3; i + 1 < argc; i += 2)
		bench(threads, steps, (uint32_t)atoi(argv[i]), (uint32_t)atoi(argv[i + 1]), gflops);
	return 0;
}
