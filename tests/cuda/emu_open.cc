/* The CUDA backend on emu.h's host: for test_cuda.c, and as a corrmask_cuda.so for the tools (cuda.bats). */
#include "device.cuh"

#include <stdio.h>

extern "C" {
#include "nn/ops_cuda.h"
}

struct ops *cuda_new(cudaStream_t stream, int is_bf16);

extern "C" struct ops *cuda_emulated(int fp32)
{
	struct ops *o = cuda_new(NULL, !fp32);
	o->round_tokens = 80; /* small, since fibers are slow */
	o->round_rows = 64;
	return o;
}

extern "C" __attribute__((visibility("default"))) struct ops *corrmask_cuda_open(struct ops_cuda *a, struct error *e)
{
	snprintf(a->what, sizeof a->what, "emulated device %d, %s", a->device, a->fp32 ? "float" : "bf16");
	return cuda_emulated(a->fp32);
}
