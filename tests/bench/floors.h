/*
 * What the benchmarks of training share: the times of every op, and the floors that a step is measured against in turns: a loop of FMA in
 * registers (fma_peak.h) and sgemm 4096^3.
 */
#ifndef FLOORS_H
#define FLOORS_H

#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "fma_peak.h"
#include "nn/ops.h"

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
	float *a, *b, *c; /* [GEMM, GEMM] */
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

static void floors_free(struct floors *f)
{
	free(f->a);
	free(f->b);
	free(f->c);
}

static void floors_measure(struct floors *f, int threads)
{
	measure(&f->fma, 0);
	f->fma_flop = fma_run(threads, FMA_ROUNDS);
	measure(&f->fma, 1);
	openblas_set_num_threads(threads);
	measure(&f->gemm, 0);
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

#endif
