/*
 * The losses of expression (ops.h): every number of the targets is apart from the others, so a block takes PER_BLOCK of them, and its sums are
 * added up in the order of the blocks.
 */
#include "device.cuh"

enum {
	THREADS = 256,
	PER_BLOCK = 16 * THREADS,
	KINDS = 2, /* zero, value */
	SUMS = 3 * KINDS * 2, /* of all, of those with a bit, of the others: loss, right */
};

/* Over the block's threads, in a fixed order; thread 0 gets it. */
static __device__ __forceinline__ double block_sum(double v)
{
	__shared__ double part[THREADS];
	part[threadIdx.x] = v;
	__syncthreads();
	for (unsigned d = THREADS / 2; d; d /= 2) {
		if (threadIdx.x < d)
			part[threadIdx.x] += part[threadIdx.x + d];
		__syncthreads();
	}
	v = part[0];
	__syncthreads();
	return v;
}

/* Has number i of the targets a bit? */
static __device__ __forceinline__ int has_bit(const uint32_t *in, uint64_t i, uint32_t G, uint32_t words)
{
	uint32_t g = (uint32_t)(i % G);
	return in[i / G * words + g / 32] >> g % 32 & 1;
}

/* part [blocks, sums] */
template <class A>
static __global__ void __launch_bounds__(THREADS)
	expression_kernel(double *part, const A *z, const float *y, const uint32_t *in, uint64_t n, uint32_t G, uint32_t words)
{
	double sum[SUMS] = {0};
	uint64_t from = (uint64_t)blockIdx.x * PER_BLOCK;
	for (uint64_t i = from + threadIdx.x; i < from + PER_BLOCK && i < n; i += THREADS) {
		float v = y[i], a = to_float(z[2 * i + 1]), off = to_float(z[2 * i]) - v;
		if (isnan(v))
			continue;
		double zero = (double)(fmaxf(a, 0) + log1pf(expf(-fabsf(a))) - (v == 0 ? a : 0)), value = v == 0 ? 0 : (double)(off * off);
		double right = (a > 0) == (v == 0);
		int also = in && has_bit(in, i, G, words) ? 4 : 8;
		sum[0] += zero;
		sum[1] += right;
		sum[2] += value;
		sum[also] += zero;
		sum[also + 1] += right;
		sum[also + 2] += value;
	}
	uint32_t sums = in ? SUMS : KINDS * 2;
	for (uint32_t k = 0; k < sums; k++) {
		double all = block_sum(sum[k]);
		if (threadIdx.x == 0)
			part[(uint64_t)blockIdx.x * sums + k] = all;
	}
}

/* A block for each sum. */
static __global__ void expression_done_kernel(double *sum, const double *part, uint32_t blocks)
{
	double s = 0;
	for (uint32_t b = threadIdx.x; b < blocks; b += THREADS)
		s += part[(uint64_t)b * gridDim.x + blockIdx.x];
	s = block_sum(s);
	if (threadIdx.x == 0)
		sum[blockIdx.x] += s;
}

template <class A>
static void expression_loss(struct cuda *c, double *sum, const void *z, const float *y, const uint32_t *in, size_t N, size_t G)
{
	uint64_t n = (uint64_t)N * G;
	unsigned grid = (unsigned)((n + PER_BLOCK - 1) / PER_BLOCK), sums = in ? SUMS : KINDS * 2;
	if (!n)
		return;
	double *part = (double *)scratch(c, SCRATCH_PART, (size_t)grid * sums * sizeof *part);
	launch(c, "expression_loss", expression_kernel<A>, dim3(grid), THREADS, 0, part, (const A *)z, y, in, n, G, nb_words(G));
	launch(c, "expression_loss", expression_done_kernel, dim3(sums), THREADS, 0, sum, part, grid);
}

void cuda_expression_loss(struct ops *o, double *sum, const void *z, const float *y, const uint32_t *in, size_t N, size_t G)
{
	struct cuda *c = cuda_of(o);
	BY_TYPE(c, expression_loss, c, sum, z, y, in, N, G);
}

template <class A>
static __global__ void __launch_bounds__(THREADS)
	expression_back_kernel(A *z, const float *y, const uint32_t *in, const float *scale, uint64_t n, uint32_t G, uint32_t words)
{
	uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
	if (i >= n)
		return;
	float v = y[i], a = to_float(z[2 * i + 1]), off = to_float(z[2 * i]) - v, zero = scale[0], value = scale[1];
	if (in) {
		int also = has_bit(in, i, G, words) ? 2 : 4;
		zero += scale[also];
		value += scale[also + 1];
	}
	float e = expf(-fabsf(a)), d = (a < 0 ? e : 1) / (1 + e) - (v == 0 ? 1 : 0);
	z[2 * i] = of<A>::from(isnan(v) || v == 0 ? 0 : 2 * off * value);
	z[2 * i + 1] = of<A>::from(isnan(v) ? 0 : d * zero);
}

template <class A>
static void expression_back(struct cuda *c, void *z, const float *y, const uint32_t *in, const float *scale, size_t N, size_t G)
{
	uint64_t n = (uint64_t)N * G;
	if (n)
		launch(c, "expression_loss_back", expression_back_kernel<A>, dim3((unsigned)((n + THREADS - 1) / THREADS)), THREADS, 0,
			(A *)z, y, in, scale, n, G, nb_words(G));
}

void cuda_expression_loss_back(struct ops *o, void *z, const float *y, const uint32_t *in, const float *scale, size_t N, size_t G)
{
	struct cuda *c = cuda_of(o);
	BY_TYPE(c, expression_back, c, z, y, in, scale, N, G);
}
