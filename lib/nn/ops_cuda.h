/*
 * How the CUDA backend is entered. corrmask_cuda.so exports one function of this type under this name; lib/device.c opens
 * the library and calls it. NULL with e set: no driver, no such device, a card that is too old, another version.
 */
#pragma once

#include "nn/ops.h"

#define OPS_CUDA_SYMBOL "corrmask_cuda_open"

struct ops_cuda {
	size_t size; /* sizeof(struct ops), and the version, of the caller: must be the library's own */
	const char *version;
	int device;
	int fp32; /* float activations and products (no TF32), to compare with the CPU; else bf16 */
	char what[160]; /* out: "NVIDIA H100 80GB HBM3 (sm_90, 79 GiB), bf16" */
};

typedef struct ops *ops_cuda_open(struct ops_cuda *a, struct error *e);
