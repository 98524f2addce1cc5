/* The same arrays and batches on the CPU and on the device, and how far the results of both are apart. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "nn/ops.h"

#ifdef __SANITIZE_ADDRESS__ /* which makes fibers ten times slower: fewer cases */
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

enum {
	GUARD = 64,
	MAX_ARRAYS = 64,
};

extern struct ops *cpu, *gpu;
extern int fp32;
extern int large; /* at the sizes too that fibers are too slow for */

/* ---- arrays ---- */

struct arr {
	const char *name;
	size_t n;
	int act;
	float *x; /* what the CPU op sees */
	void *d;
};
extern struct arr arrays[MAX_ARRAYS];
extern size_t narray;

void rng_start(void); /* the same data for a test, whichever tests run before it */
uint32_t rng(uint32_t n); /* below n */

/* n random numbers up to size, as activations or as float32, with guard elements behind them. */
struct arr *array(const char *name, int act, size_t n, float size);
#define ACTS(name, n) array(name, 1, n, 2)
#define REALS(name, n) array(name, 0, n, 0.5f)

void put(const struct arr *a); /* the CPU's numbers to the device */
void *to_gpu(const void *x, size_t bytes);
void release(void); /* all of them; the device must be without a fault */

/* ---- comparisons ---- */

/*
 * How far may a result be from the CPU's, which computes in float? In float mode, as far as the tolerance says. Bf16 is judged by what its
 * roundings must cost: the emulation runs the same kernels with the same roundings on the CPU, and writes its errors to a file
 * (-w). The device's error may be ROUNDINGS times as large. What the file has not, and the emulation itself, are held to a tolerance.
 */
#define ROUNDINGS 2
int roundings_open(const char *path, int write); /* -1: it cannot be opened or read */
int roundings_close(void);
void begin_test(const char *name);
/* Prints a line for each name: comparisons, largest error, its share of the limit, ratios to the emulation's errors. Fails if any was beyond. */
void end_test(void);

double distance(const float *got, const float *want, size_t n); /* ||got - want|| / ||want|| */
void within(const char *name, double error, double tol_float, double tol_bf16);
/* Of a single number, whose error can be near 0 by chance: judged by the largest rounding of its name. */
void within_sum(const char *name, double error, double tol_float, double tol_bf16);
void same(const struct arr *a, double tol_float, double tol_bf16); /* the device's array and the CPU's */
void guarded(const struct arr *a); /* nothing was written behind it */
void same_sums(const char *name, const double *got, const double *want, size_t n, double tol_float, double tol_bf16);

/* ---- batches ---- */

struct both {
	struct seq c, g; /* for the CPU, for the device */
	uint32_t *offset, *id, *pos, *cell, *key, *order, *start, *tile;
};
void pack(struct both *p, const uint32_t *len, size_t B, size_t V);
void unpack(struct both *p); /* releases the arrays too */

static const uint32_t cells[] = {9, 1, 64, 0, 70, 3};
enum { STEPS = 3, WORDS = 97, POSITIONS = 80 };
#define CELLS (sizeof cells / sizeof *cells)
extern const uint32_t step;
extern uint32_t *gpu_step; /* the same, on the device */

struct dropout drop(uint32_t site, uint32_t threshold);
const struct dropout *on_gpu(const struct dropout *d); /* NULL for NULL; until the next call */

/* test_cuda_instructions.c */
void instructions(void);
/* test_cuda_steps.c */
void steps(void);
void settings(void);
void accumulation(void);
/* test_cuda_backend.c */
void usage(void);
void faults(void);
/* test_cuda_cells.c */
void cell_ops(void);
void cell_steps(void);
