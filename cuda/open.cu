/* Opening the CUDA backend: the device, what is said where there is none, and the backend's table. Not in the emulation. */
#include "device.cuh"

#ifdef __CUDACC__
#include <stdio.h>
#include <string.h>

extern "C" {
#include "nn/ops_cuda.h"
}

/* Is there code for this device? */
static __global__ void nothing_kernel()
{
}

/* Open the device that a names: its properties, and a stream. -1 with e set. */
static int open_device(struct ops_cuda *a, cudaDeviceProp *p, cudaStream_t *stream, struct error *e)
{
	int n = 0, driver = 0, runtime = 0;
	cudaFuncAttributes f;
	if (a->size != sizeof(struct ops) || strcmp(a->version, CORRMASK_VERSION))
		return cuda_error(e, "corrmask_cuda.so is of version %s, this program of %s: they must be built together", CORRMASK_VERSION,
			a->version);
	cudaError_t r = cudaGetDeviceCount(&n);
	if (r == cudaErrorInsufficientDriver) {
		cudaDriverGetVersion(&driver);
		cudaRuntimeGetVersion(&runtime);
		if (driver)
			return cuda_error(e, "the NVIDIA driver is for CUDA %d.%d, this program needs %d.%d", driver / 1000,
				driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
		return cuda_error(e, "no NVIDIA driver");
	}
	if (r != cudaSuccess || n == 0)
		return cuda_error(e, "no CUDA device: %s", r == cudaSuccess ? "the driver lists none" : cudaGetErrorString(r));
	if (a->device < 0 || a->device >= n)
		return cuda_error(e, "no CUDA device %d: there %s %d", a->device, n == 1 ? "is" : "are", n);
	if ((r = cudaGetDeviceProperties(p, a->device)) != cudaSuccess)
		return cuda_error(e, "CUDA device %d: %s", a->device, cudaGetErrorString(r));
	if (p->major < 8)
		return cuda_error(
			e, "CUDA device %d, %s, is sm_%d%d: sm_80 (Ampere) or later is needed", a->device, p->name, p->major, p->minor);
	r = cudaSetDevice(a->device);
	if (r == cudaSuccess)
		r = cudaFuncGetAttributes(&f, (const void *)nothing_kernel);
	if (r == cudaSuccess)
		r = cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking);
	if (r != cudaSuccess)
		return cuda_error(e, "CUDA device %d, %s (sm_%d%d): %s", a->device, p->name, p->major, p->minor, cudaGetErrorString(r));
	return 0;
}

extern "C" __attribute__((visibility("default"))) struct ops *corrmask_cuda_open(struct ops_cuda *a, struct error *e)
{
	cudaDeviceProp p;
	cudaStream_t stream;
	if (open_device(a, &p, &stream, e))
		return NULL;
	snprintf(a->what, sizeof a->what, "%.100s (sm_%d%d, %zu GiB), %s", p.name, p.major, p.minor, p.totalGlobalMem >> 30,
		a->fp32 ? "float" : "bf16");
	struct ops *o = cuda_new(stream, !a->fp32);
	cuda_of(o)->wgmma &= CODE_SM90A && p.major == 9;
	memcpy(cuda_of(o)->device, p.uuid.bytes, sizeof p.uuid.bytes);
	return o;
}
#endif
