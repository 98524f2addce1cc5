/*
 * CUDA kernels on the host, for tests: each thread of a block is a fiber, barriers and warp operations make fibers wait for
 * each other. Slow and simple. A block's fibers run one at a time, in an order that is as bad for a wrong kernel as a GPU's may be:
 *   - a warp runs to its next block barrier before another warp starts, and the order of warps and lanes is shuffled for each block
 *   - a copy by cp.async happens at once in one half of the blocks, and as late as its wait allows in the other half
 *   - shared memory, static and dynamic, is NaN at the beginning of each block
 *   - a stream does nothing before the host waits for it or asks about it, and then no more than what it waits for
 * So it finds wrong indices, wrong fragment layouts, missing results, mismatched barriers (a deadlock is reported), missing block barriers,
 * memory that is used again too early, and reads of memory that nobody wrote. It cannot find a missing __syncwarp beside a warp operation, which is
 * a barrier of the warp here. compute-sanitizer's racecheck finds that on a GPU. tests/cuda/mutants.sh shows what is found.
 */
#pragma once

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

typedef std::vector<std::function<void()>> emu_works;
struct emu_stream; /* NULL is one too */
typedef emu_stream *cudaStream_t;

/* A stream keeps what it is asked for until the host waits for it; or, while it is recorded, for the graph. */
void emu_do(cudaStream_t s, const std::function<void()> &work);
/* Work that waits for another process: it is called until it returns 1, and the stream waits with it. For tests/cuda/fake_nccl.c. */
extern "C" __attribute__((visibility("default"))) void emu_poll(cudaStream_t s, int (*work)(void *), void *arg);
cudaStream_t emu_stream_new(void);
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
extern bool emu_early; /* copies of this block happen at once */

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
typedef struct emu_event *cudaEvent_t;
typedef emu_works *cudaGraph_t, *cudaGraphExec_t;
enum {
	cudaSuccess,
	cudaErrorMemoryAllocation,
	cudaErrorStreamCaptureUnsupported,
	cudaErrorNotReady,
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
cudaError_t cudaFree(void *p); /* waits for all streams, as on a GPU */
cudaError_t cudaFreeHost(void *p);
cudaError_t cudaStreamDestroy(cudaStream_t s);
cudaError_t cudaStreamBeginCapture(cudaStream_t s, int mode);
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *x, cudaGraph_t g, int flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t x, cudaStream_t s);
cudaError_t cudaStreamSynchronize(cudaStream_t s); /* an error while recording, as on a GPU */
cudaError_t cudaStreamQuery(cudaStream_t s); /* runs what can run without waiting for another process */
cudaError_t cudaEventCreate(cudaEvent_t *e);
cudaError_t cudaEventDestroy(cudaEvent_t e);
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s);
cudaError_t cudaEventSynchronize(cudaEvent_t e); /* what was asked for before the event was recorded, and no more */
cudaError_t cudaEventQuery(cudaEvent_t e);
cudaError_t cudaGetLastError(void); /* of the queries: "not ready" is one, until it is asked for */
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

static inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, int flags)
{
	return cudaEventCreate(e);
}

static inline cudaError_t cudaMallocHost(void **p, size_t bytes)
{
	*p = malloc(bytes);
	return *p ? cudaSuccess : cudaErrorMemoryAllocation;
}

static inline cudaError_t cudaMemsetAsync(void *p, int x, size_t bytes, cudaStream_t s)
{
	emu_do(s, [=] { memset(p, x, bytes); });
	return cudaSuccess;
}

static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind k, cudaStream_t s)
{
	emu_do(s, [=] { memcpy(to, from, bytes); });
	return cudaSuccess;
}

static inline const char *cudaGetErrorString(cudaError_t r)
{
	if (r == cudaErrorNotReady)
		return "device not ready";
	return r == cudaErrorMemoryAllocation ? "out of memory" : r ? "not while a stream is recorded" : "no error";
}
