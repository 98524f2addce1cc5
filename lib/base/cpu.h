/*
 * What the processor can do, and the vectors that kernels with several versions use: the widest that the processor and the build have.
 * CORRMASK_CPU=avx2 or avx512 names others, to compare. CORRMASK_CPU=portable is avx2 with OpenBLAS's kernels for Haswell (nn/blas.h): the
 * same bits on all x86-64 processors with AVX2. (A build for any x86-64 processor, MARCH=, also has generic.) Results in floating point
 * depend on the choice, because sums are split over the lanes of a vector.
 */
#pragma once

#include "base/error.h"

struct cpu_features {
	int intel;
	int avx2; /* with FMA */
	int avx512; /* F, DQ, BW, VL and CD */
	int bf16; /* AVX512_BF16 */
};

/* Of the processor and the operating system. */
void cpu_features(struct cpu_features *f);

enum cpu_vectors {
	CPU_GENERIC, /* what the compiler makes for the processor of the build: anywhere but on x86-64 with AVX2 */
	CPU_AVX2, /* 8 floats */
	CPU_AVX512, /* 16 floats */
	CPU_VECTORS
};

/*
 * The vectors for a processor f, where the variable is `wanted` (NULL or empty: it is not set). -1 with e set: wanted is unknown, or the
 * processor or this build lacks it.
 */
int cpu_vectors_choose(enum cpu_vectors *v, const struct cpu_features *f, const char *wanted, struct error *e);

/* CORRMASK_CPU is "portable". */
int cpu_portable(void);

/* The vectors in use. A faulty CORRMASK_CPU is passed over here: programs refuse it when they start, by cpu_check. */
enum cpu_vectors cpu_vectors(void);

/* -1 with e set: this build needs a processor with AVX2 and this one has none, or CORRMASK_CPU is faulty. */
int cpu_check(struct error *e);

/* Can matrix products be of bfloat16 numbers? The vectors in use are AVX-512, and the processor has AVX512-BF16. */
int cpu_bf16(void);

/* "generic", "avx2", "avx512" */
const char *cpu_vectors_name(enum cpu_vectors v);
