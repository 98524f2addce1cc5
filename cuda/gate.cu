/* SwiGLU, y = silu(z_1) z_2, and its backward: a thread for 8 columns. */
#include "device.cuh"

enum {
	THREADS = 256,
};

static __device__ __forceinline__ float sigmoid(float x)
{
	float e = expf(-fabsf(x));
	return (x < 0 ? e : 1) / (1 + e);
}

/* dy NULL: forward, out is y [T,F]; else out is dz [T,2F], which may be z. */
template <class A> static __global__ void swiglu_kernel(A *out, const A *dy, const A *z, uint32_t T, uint32_t F)
{
	size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
	uint32_t groups = (F + 7) / 8, t = (uint32_t)(i / groups), c = (uint32_t)(i % groups) * 8;
	float gate[8], up[8], d[8];
	if (t >= T)
		return;
	const A *row = z + (size_t)t * 2 * F;
	load8(gate, row, c, F);
	load8(up, row + F, c, F);
	if (dy)
		load8(d, dy + (size_t)t * F, c, F);
#pragma unroll
	for (int k = 0; k < 8; k++) {
		float g = gate[k], s = sigmoid(g);
		if (dy) {
			gate[k] = d[k] * up[k] * s * (1 + g * (1 - s));
			up[k] = d[k] * g * s;
		} else {
			gate[k] = g * s * up[k];
		}
	}
	A *to = out + (size_t)t * (dy ? 2 * F : F);
	store8(to, gate, c, F);
	if (dy)
		store8(to + F, up, c, F);
}

template <class A> static void swiglu(struct cuda *c, void *out, const void *dy, const void *z, size_t T, size_t F)
{
	launch(c, dy ? "swiglu_back" : "swiglu", swiglu_kernel<A>, dim3(blocks(T * ((F + 7) / 8), THREADS)), THREADS, 0, (A *)out,
		(const A *)dy, (const A *)z, T, F);
}

void cuda_swiglu(struct ops *o, void *y, const void *z, size_t T, size_t F)
{
	struct cuda *c = cuda_of(o);
	BY_TYPE(c, swiglu, c, y, NULL, z, T, F);
}

void cuda_swiglu_back(struct ops *o, void *dz, const void *dy, const void *z, size_t T, size_t F)
{
	struct cuda *c = cuda_of(o);
	BY_TYPE(c, swiglu, c, dz, dy, z, T, F);
}
