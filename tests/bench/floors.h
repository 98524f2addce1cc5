/*
 * What the benchmarks of training share: the times of every op, and the floors that a step is measured against in turns: a loop of FMA in
 * registers (fma_peak.h) and sgemm 4096^3. For bfloat16: the loop with its instruction, and oneDNN's product of that size, where there is
 * oneDNN (sctrain.mk).
 */
#pragma once

#include <cblas.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "fma_peak.h"
#include "nn/ops.h"
#ifdef WITH_ONEDNN
#include <dnnl.h>
#endif

void openblas_set_num_threads(int n);

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
		double t = clock_seconds(), u = cpu(); \
		inner->op args; \
		op_add(#op, clock_seconds() - t, cpu() - u); \
	}

/* Before a step, and after it; first: the best times begin with it. */
static void ops_reset(void)
{
	for (size_t i = 0; op_time[i].name; i++)
		op_time[i].seconds = op_time[i].cpu = 0;
}

static void ops_keep_best(int first)
{
	for (size_t i = 0; op_time[i].name; i++) {
		struct op_time *p = &op_time[i];
		p->best = first || p->seconds < p->best ? p->seconds : p->best;
		p->best_cpu = first || p->cpu < p->best_cpu ? p->cpu : p->best_cpu;
	}
}

static void ops_print(void)
{
	double total = 0;
	for (size_t i = 0; op_time[i].name; i++)
		total += op_time[i].best_cpu;
	for (size_t i = 0; op_time[i].name; i++)
		printf("  %-16s %8.1f ms  cpu %8.1f ms  %5.1f %%\n", op_time[i].name, op_time[i].best * 1e3, op_time[i].best_cpu * 1e3,
			100 * op_time[i].best_cpu / total);
}

/* ---- what is measured in turns ---- */

enum { ROUNDS_MAX = 1000 };

struct series {
	double wall[ROUNDS_MAX], cpu[ROUNDS_MAX]; /* seconds of every round; sorted at the end */
	size_t n;
};

/* Time what is between measure(s, 0) and measure(s, 1). */
static void measure(struct series *s, int end)
{
	double t = clock_seconds(), u = cpu();
	s->wall[s->n] = end ? t - s->wall[s->n] : t;
	s->cpu[s->n] = end ? u - s->cpu[s->n] : u;
	s->n += (size_t)end;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void series_sort(struct series *s)
{
	qsort(s->wall, s->n, sizeof *s->wall, compare);
	qsort(s->cpu, s->n, sizeof *s->cpu, compare);
}

/* " NAME_s 0.768 (median 0.820) NAME_cpu_s ...": seconds. */
static void print_seconds(const char *name, const struct series *s)
{
	printf(" %ss %.3f (median %.3f) %scpu_s %.3f (median %.3f)", name, s->wall[0], s->wall[s->n / 2], name, s->cpu[0],
		s->cpu[s->n / 2]);
}

enum { GEMM = 4096 };
#define FMA_ROUNDS 25000000 /* of all chains: about 50 ms */

struct floors {
	int bf16;
	float *a, *b, *c; /* [GEMM, GEMM]; with bf16, halves of a and b are used */
	struct series fma, gemm;
	double fma_flop;
};

static void floors_init(struct floors *f)
{
	*f = (struct floors){.a = xcalloc(GEMM * GEMM, 4), .b = xcalloc(GEMM * GEMM, 4), .c = xcalloc(GEMM * GEMM, 4)};
	for (size_t i = 0; i < (size_t)GEMM * GEMM; i++) {
		f->a[i] = (float)(i % 7);
		f->b[i] = (float)(i % 5);
	}
}

/* c = a b by oneDNN, a and b of bfloat16. */
static void gemm_bf16(const struct floors *f, int threads)
{
#ifdef WITH_ONEDNN
	static dnnl_primitive_t product;
	static dnnl_stream_t stream;
	static dnnl_memory_t a, b, c;
	omp_set_num_threads(threads);
	if (!product) {
		dnnl_engine_t engine;
		dnnl_dims_t size = {GEMM, GEMM};
		dnnl_memory_desc_t in, any, out;
		dnnl_matmul_desc_t what;
		dnnl_primitive_desc_t how;
		dnnl_engine_create(&engine, dnnl_cpu, 0);
		dnnl_stream_create(&stream, engine, dnnl_stream_default_flags);
		dnnl_memory_desc_init_by_tag(&in, 2, size, dnnl_bf16, dnnl_ab);
		dnnl_memory_desc_init_by_tag(&any, 2, size, dnnl_bf16, dnnl_format_tag_any); /* b in oneDNN's own form */
		dnnl_memory_desc_init_by_tag(&out, 2, size, dnnl_f32, dnnl_ab);
		dnnl_matmul_desc_init(&what, &in, &any, NULL, &out);
		dnnl_primitive_desc_create(&how, &what, NULL, engine, NULL);
		dnnl_primitive_create(&product, how);
		dnnl_memory_create(&a, &in, engine, f->a);
		dnnl_memory_create(&b, dnnl_primitive_desc_query_md(how, dnnl_query_weights_md, 0), engine, f->b);
		dnnl_memory_create(&c, &out, engine, f->c);
	}
	dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}};
	dnnl_primitive_execute(product, stream, 3, args);
	dnnl_stream_wait(stream);
#endif
}

static void floors_free(struct floors *f)
{
	free(f->a);
	free(f->b);
	free(f->c);
}

static void floors_measure(struct floors *f, int threads)
{
	measure(&f->fma, 0);
	f->fma_flop = (f->bf16 ? bf16_run : fma_run)(threads, FMA_ROUNDS);
	measure(&f->fma, 1);
	openblas_set_num_threads(threads);
	measure(&f->gemm, 0);
	if (f->bf16)
		gemm_bf16(f, threads);
	else
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, GEMM, GEMM, GEMM, 1, f->a, GEMM, f->b, GEMM, 0, f->c, GEMM);
	measure(&f->gemm, 1);
	openblas_set_num_threads(1);
}

/* After series_sort of both. */
static void floors_print(const struct floors *f)
{
	double gemm = 2.0 * GEMM * GEMM * GEMM, fma = f->fma_flop;
	printf("  fma_gflops %.1f (median %.1f)", fma * 1e-9 / f->fma.wall[0], fma * 1e-9 / f->fma.wall[f->fma.n / 2]);
	print_seconds("fma_", &f->fma);
	printf("\n  gemm_gflops %.1f (median %.1f)", gemm * 1e-9 / f->gemm.wall[0], gemm * 1e-9 / f->gemm.wall[f->gemm.n / 2]);
	print_seconds("gemm_", &f->gemm);
	putchar('\n');
}
