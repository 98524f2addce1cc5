/*
 * y = act(x W^T + b). Bias and ReLU ride on the product; GELU (erf, not cuBLASLt's tanh form), tanh and leaky ReLU are a pass of their own.
 * Backward: one pass applies the activation's slope and sums the columns for the bias, then two products.
 */
#include "device.cuh"

enum {
	THREADS = 256,
};

static __device__ __forceinline__ float activated(float v, enum act act)
{
	switch (act) {
	case ACT_GELU:
		return 0.5f * v * (1 + erff(v * 0.70710678f));
	case ACT_TANH:
		return tanhf(v);
	case ACT_LEAKY:
		return leaky(v);
	case ACT_NONE:
	case ACT_RELU: /* is done */
		break;
	}
	return v;
}

template <class A> static __global__ void act_kernel(A *y, const A *x, size_t n, enum act act)
{
	size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
	if (i < n)
		y[i] = of<A>::from(activated(to_float(x[i]), act));
}

template <class A> static void activate(struct cuda *c, void *y, const void *x, size_t n, enum act act)
{
	launch(c, "activation", act_kernel<A>, dim3(blocks(n, THREADS)), THREADS, 0, (A *)y, (const A *)x, n, act);
}

void cuda_linear(
	struct ops *o, void *y, void *pre, const void *x, const float *W, const float *b, size_t T, size_t K, size_t N, enum act act)
{
	struct cuda *c = cuda_of(o);
	void *z = pre ? pre : y;
	if (!T)
		return;
	struct product p = {.form = GEMM_NT,
		.M = T,
		.N = N,
		.K = K,
		.a = x,
		.b = weights(c, W, N * K, SCRATCH_CAST),
		.lda = K,
		.ldb = K,
		.ldd = N,
		.d = z,
		.bias = b ? weights(c, b, N, SCRATCH_BIAS) : NULL,
		.relu = act == ACT_RELU};
	gemm(c, &p);
	if (act != ACT_NONE && act != ACT_RELU)
		BY_TYPE(c, activate, c, y, z, T * N, act);
	else if (z != y)
		cuda_fault(c, "linear", cudaMemcpyAsync(y, z, T * N * o->act_size, cudaMemcpyDeviceToDevice, c->stream));
}

void cuda_linear_back(struct ops *o, void *dx, float *dW, float *db, void *dy, const void *x, const float *W, const void *y,
	const void *pre, size_t T, size_t K, size_t N, enum act act, int add)
{
	struct cuda *c = cuda_of(o);
	if (!T)
		return;
	column_sums(c, dW ? db : NULL, dy, y, pre, T, N, act);
	if (dx) {
		struct product p = {.form = GEMM_NN,
			.M = T,
			.N = K,
			.K = N,
			.a = dy,
			.b = weights(c, W, N * K, SCRATCH_CAST),
			.lda = N,
			.ldb = K,
			.ldd = K,
			.d = dx,
			.add = add};
		gemm(c, &p);
	}
	if (dW) {
		struct product p = {.form = GEMM_TN,
			.M = N,
			.N = K,
			.K = T,
			.a = dy,
			.b = x,
			.lda = N,
			.ldb = K,
			.ldd = K,
			.d = dW,
			.d_float = 1,
			.add = 1};
		gemm(c, &p);
	}
}
