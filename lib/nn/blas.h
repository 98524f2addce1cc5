/*
 * OpenBLAS: one thread a call, and kernels that fit the processor. The threads of a tool call it at the same time.
 *
 * OpenBLAS chooses its kernels by the processor's model when it is loaded. A model newer than the library gets kernels for SSE: 0.3.21
 * (Debian 12) takes Prescott on a Xeon with AVX-512, a fifth of the speed. What the processor can do is known from cpuid, and
 * OPENBLAS_CORETYPE names other kernels. The library reads this variable before main begins, so a program sets it and starts itself again,
 * once, and only where the choice is wrong. A user's own OPENBLAS_CORETYPE is never changed. CORRMASK_CPU=portable asks for the kernels for
 * Haswell: the same bits on all x86-64 processors with AVX2.
 *
 * In a program without OpenBLAS, or with another BLAS, nothing happens.
 */
#pragma once

#include "base/cpu.h"

/*
 * Before the first call of BLAS: up to `threads` threads are to call it at the same time. Sets the threads of OpenMP to 1 too, which an
 * OpenBLAS built with OpenMP takes outside of parallel regions: those have to say num_threads(). -1 with e set: this OpenBLAS cannot be
 * called by several threads, or a limit of memory (ulimit -v, batch systems) leaves no addresses for its buffers.
 */
int blas_start(int threads, struct error *e);

/*
 * While OpenBLAS is loaded, for one thread: -1 with e set if it may take the thread's buffer at once (0.3.29 does), and a limit of memory
 * leaves no addresses for that. It would ask for ever.
 */
int blas_load(struct error *e);

/*
 * The OPENBLAS_CORETYPE for a processor on which OpenBLAS uses the kernels `core` (openblas_get_corename), or NULL if these use the
 * widest vectors that it has. Names are those of driver/others/dynamic.c from 0.3.21 to 0.3.29. A name that is not known is taken for a
 * newer one: NULL. Only processors with AVX2 and FMA are judged. 0.3.21 does not find the name Cooperlake, and then chooses by the
 * features of the processor: the same kernels.
 */
const char *blas_core_better(const char *core, const struct cpu_features *cpu);

/* Set OPENBLAS_CORETYPE if OpenBLAS chose kernels below the processor, or others than CORRMASK_CPU=portable wants: 1, and the program has to
 * start again. Else 0; always 0 when the variable is set already, so a program cannot start again and again. */
int blas_core_set(void);

/* -1 with e set: CORRMASK_CPU=portable, but OpenBLAS has other kernels than those for Haswell, and will have them. */
int blas_core_check(struct error *e);

/* What the CPU ops with products in bfloat16 compute with: no OpenBLAS. */
#define CPU_DESCRIBE_BF16 "avx512_bf16"

/*
 * What the CPU ops compute with, for the user: OpenBLAS and its kernels, and the vectors of the other kernels (base/cpu.h): "OpenBLAS 0.3.21
 * Zen, avx2"; "avx2" without OpenBLAS. Where the kernels are below the processor, because the user named them: "OpenBLAS 0.3.21 Prescott
 * (slower than Haswell), avx2".
 */
void cpu_describe(char *text, size_t n);

/* The same without the judgement, so that it is equal on unlike processors whose kernels are: "OpenBLAS 0.3.21 Prescott, avx2". */
void cpu_kernels(char *text, size_t n);

/* The variables that choose the kernels of such a text: "CORRMASK_CPU=avx2 OPENBLAS_CORETYPE=Zen"; empty if there are none. */
void cpu_variables(const char *kernels, char *text, size_t n);
