/* The CUDA backend on emu.h's host. */
#include "device.cuh"

struct ops *cuda_new(cudaStream_t stream, int is_bf16);

extern "C" struct ops *cuda_emulated(int fp32)
{
	return cuda_new(NULL, !fp32);
}
