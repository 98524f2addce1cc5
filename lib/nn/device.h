/*
 * The device a program computes on, from its --device option. The CUDA backend is a library of its own, corrmask_cuda.so,
 * opened here at run time, so the same program runs where there is no GPU.
 */
#pragma once

#include "nn/ops.h"

/*
 * spec      cpu                 this machine's processor
 *           cuda[:N][,float]    CUDA device N (0), activations in bf16, or in float with plain float products
 *           auto[:N][,float]    cuda where its library loads and device N (0) answers, else cpu
 * threads   of the CPU backend, >= 1
 * bf16      the CPU's matrix products in bfloat16; a GPU does not look at it
 * what      out [n]: what was taken, for the user: "cpu, 8 threads, OpenBLAS 0.3.21 Zen, avx2", with bf16
 *           "cpu, 8 threads, avx512_bf16", or "NVIDIA H100 80GB HBM3 (sm_90, 79 GiB),
 *           bf16"; with auto on the CPU also why: "cpu, 8 threads, OpenBLAS 0.3.21 Zen, avx2 (no CUDA: no NVIDIA driver)"
 * NULL with e set: the spec is malformed, or the GPU asked for cannot be had: no library, no driver, no such device, a card older
 * than sm_80; or bf16 on a CPU without AVX512-BF16. The library is looked for beside the program, then in ../lib/corrmask, and nowhere
 * else. Free the result by its destroy().
 */
struct ops *device_open(const char *spec, int threads, int bf16, char *what, size_t n, struct error *e);

/*
 * What a GPU has to say at the end of the work: ", GPU idle 0.4 %, padding 1.2 %" and its remarks (ops.h), for a report to people; "" for
 * the CPU. padding: model_padding. Idle is the share of time between two batches in which it had nothing to do.
 */
void device_report(struct ops *o, double padding, char *text, size_t n);

/* Takes a spec apart: 0, or -1 with e set. *cuda: -1 auto, 0 no, 1 yes. */
int device_parse(const char *spec, int *cuda, int *index, int *fp32, struct error *e);
