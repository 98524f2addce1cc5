/*
 * CUDA kernels on the host, for tests: each thread of a block is a fiber, barriers and warp operations make fibers wait for
 * each other. Slow and simple. What it keeps to: a block's fibers run one at a time, so it finds wrong indices, wrong fragment
 * layouts, missing results, mismatched barriers (a deadlock is reported) and reads of shared memory that nobody wrote (it is
 * filled with NaN); it cannot find races between threads that happen to run in order.
 *
 * The order in which fibers run is shuffled for each block, so a kernel that leans on an order usually fails.
 */
#ifndef EMU_H
#define EMU_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <functional>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define __restrict__

struct uint4 {
	uint32_t x, y, z, w;
};
struct float4 {
	float x, y, z, w;
};
struct dim3 {
	unsigned x, y, z;
	dim3(unsigned x0 = 1, unsigned y0 = 1, unsigned z0 = 1) : x(x0), y(y0), z(z0)
	{
	}
};

static inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w)
{
	return {x, y, z, w};
}

static inline float4 make_float4(float x, float y, float z, float w)
{
	return {x, y, z, w};
}

static inline uint32_t __float_as_uint(float x)
{
	uint32_t u;
	memcpy(&u, &x, 4);
	return u;
}

static inline float __uint_as_float(uint32_t u)
{
	float x;
	memcpy(&x, &u, 4);
	return x;
}

static inline unsigned min(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

extern dim3 threadIdx, blockIdx, blockDim, gridDim;
extern char *emu_shared; /* dynamic shared memory of the block */

/* A stream does at once what it is asked for, unless it is being recorded: then `work` is kept, as a graph's node is. */
void emu_do(const std::function<void()> &work);
void emu_run(dim3 grid, unsigned threads, size_t shared, const std::function<void()> &kernel);
void emu_block_barrier(void);
void emu_warp_barrier(void);
/* Every lane puts `bytes` (<= 64) in its slot; returns the 32 slots of the warp, valid until emu_warp_barrier. */
char (*emu_exchange(const void *mine, size_t bytes))[64];

struct emu_copy { /* a copy to shared memory on its way, or the end of a group of them */
	void *to;
	const void *from; /* NULL: zeros */
	bool commit;
};
extern std::vector<emu_copy> emu_copies[1024]; /* by thread, oldest first */

static inline void __syncthreads(void)
{
	emu_block_barrier();
}

static inline void __syncwarp(void)
{
	emu_warp_barrier();
}

template <class X> static inline X __shfl_sync(unsigned mask, X x, int lane)
{
	X r;
	memcpy(&r, emu_exchange(&x, sizeof x)[lane % 32], sizeof r);
	emu_warp_barrier();
	return r;
}

template <class X> static inline X __shfl_xor_sync(unsigned mask, X x, int d)
{
	return __shfl_sync(mask, x, (int)((threadIdx.x % 32) ^ (unsigned)d));
}

/* ---- the run time ---- */

typedef int cudaError_t;
typedef void *cudaStream_t;
typedef double *cudaEvent_t;
typedef std::vector<std::function<void()>> *cudaGraph_t, *cudaGraphExec_t;
enum {
	cudaSuccess,
	cudaErrorMemoryAllocation,
	cudaErrorStreamCaptureUnsupported,
	cudaStreamCaptureModeRelaxed,
	cudaEventDisableTiming,
	cudaEventBlockingSync,
};
enum cudaMemcpyKind {
	cudaMemcpyHostToDevice,
	cudaMemcpyDeviceToHost,
	cudaMemcpyDeviceToDevice,
};

cudaError_t cudaMalloc(void **p, size_t bytes); /* filled with NaN */
cudaError_t cudaFree(void *p);
cudaError_t cudaStreamBeginCapture(cudaStream_t s, int mode);
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *x, cudaGraph_t g, int flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t x, cudaStream_t s);
cudaError_t cudaStreamSynchronize(cudaStream_t s); /* an error while recording, as on a GPU */
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b);

static inline cudaError_t cudaGraphDestroy(cudaGraph_t g)
{
	delete g;
	return cudaSuccess;
}

static inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t x)
{
	delete x;
	return cudaSuccess;
}

static inline cudaError_t cudaEventCreate(cudaEvent_t *e)
{
	*e = (double *)calloc(1, sizeof **e);
	return cudaSuccess;
}

static inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, int flags)
{
	return cudaEventCreate(e);
}

static inline cudaError_t cudaEventDestroy(cudaEvent_t e)
{
	free(e);
	return cudaSuccess;
}

static inline cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
	return cudaStreamSynchronize(NULL);
}

static inline cudaError_t cudaMallocHost(void **p, size_t bytes)
{
	*p = malloc(bytes);
	return *p ? cudaSuccess : cudaErrorMemoryAllocation;
}

static inline cudaError_t cudaFreeHost(void *p)
{
	free(p);
	return cudaSuccess;
}

static inline cudaError_t cudaMemsetAsync(void *p, int x, size_t bytes, cudaStream_t s)
{
	emu_do([=] { memset(p, x, bytes); });
	return cudaSuccess;
}

static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind k, cudaStream_t s)
{
	emu_do([=] { memcpy(to, from, bytes); });
	return cudaSuccess;
}

static inline cudaError_t cudaStreamDestroy(cudaStream_t s)
{
	return cudaSuccess;
}

static inline const char *cudaGetErrorString(cudaError_t r)
{
	return r == cudaErrorMemoryAllocation ? "out of memory" : r ? "not while a stream is recorded" : "no error";
}

#endif
