/* The CUDA backend on emu.h's host: for test_cuda.c, and as a corrmask_cuda.so for the tools (cuda.bats). */
#include "device.cuh"

#include <stdio.h>

extern "C" {
#include "nn/ops_cuda.h"
}

/* small: batches are filled up to few tokens and the loss has small tiles, since fibers are slow */
extern "C" struct ops *cuda_emulated(int fp32, int small)
{
	struct ops *o = cuda_new(NULL, !fp32);
	if (small) {
		o->round_tokens = 80;
		o->round_rows = 64;
		((struct cuda *)o)->loss_rows = 32;
		((struct cuda *)o)->loss_vocab = 64;
	}
	return o;
}

extern "C" void cuda_loss_tile(const struct ops *o, size_t *rows, size_t *words)
{
	*rows = ((const struct cuda *)o)->loss_rows;
	*words = ((const struct cuda *)o)->loss_vocab;
}

extern "C" __attribute__((visibility("default"))) struct ops *corrmask_cuda_open(struct ops_cuda *a, struct error *e)
{
	snprintf(a->what, sizeof a->what, "emulated device %d, %s", a->device, a->fp32 ? "float" : "bf16");
	struct ops *o = cuda_emulated(a->fp32, 1);
	((struct cuda *)o)->stream = emu_stream_new();
	((struct cuda *)o)->device[0] = (uint32_t)a->device;
	return o;
}
