/*
 * Negative binomial of masked genes: a block is a cell. As on the CPU (lib/nn/ops_cpu_nb.c has the formulas), all masked genes are first
 * taken as count 0, and the listed genes are corrected.
 */
#include "device.cuh"

#include "base/gamma.h"

enum {
	THREADS = 256,
};

/* Over the block's threads, in a fixed order; all threads call it and get it. */
template <class T, class F> static __device__ __forceinline__ T reduce(T v, F both)
{
	__shared__ T part[THREADS];
	part[threadIdx.x] = v;
	__syncthreads();
	for (unsigned d = THREADS / 2; d; d /= 2) {
		if (threadIdx.x < d)
			part[threadIdx.x] = both(part[threadIdx.x], part[threadIdx.x + d]);
		__syncthreads();
	}
	v = part[0];
	__syncthreads();
	return v;
}

template <class T> static __device__ __forceinline__ T block_sum(T v)
{
	return reduce(v, [](T a, T b) { return a + b; });
}

static __device__ __forceinline__ int is_masked(const uint32_t *mask, uint32_t g)
{
	return mask[g / 32] >> g % 32 & 1;
}

static __device__ __forceinline__ float library(const uint32_t *count, uint32_t from, uint32_t to)
{
	double sum = 0;
	for (uint32_t k = from + threadIdx.x; k < to; k += THREADS)
		sum += count[k];
	return (float)block_sum(sum);
}

template <class A>
static __global__ void __launch_bounds__(THREADS)
	nb_kernel(double *part, float *gene, float *lse, const A *z, const float *t, const float *weight, const uint32_t *offset,
		const uint32_t *id, const uint32_t *count, const uint32_t *mask, uint32_t G, uint32_t words)
{
	uint32_t b = blockIdx.x, from = offset[b], to = offset[b + 1];
	float top = -INFINITY, sum = 0, L = library(count, from, to);
	double loss = 0;
	z += (size_t)b * G;
	mask += (size_t)b * words;
	for (uint32_t g = threadIdx.x; g < G; g += THREADS)
		top = fmaxf(top, to_float(z[g]));
	top = reduce(top, [](float x, float y) { return fmaxf(x, y); });
	for (uint32_t g = threadIdx.x; g < G; g += THREADS)
		sum += expf(to_float(z[g]) - top);
	float l = top + logf(block_sum(sum)), logL = logf(L);
	for (uint32_t g = threadIdx.x; g < G; g += THREADS) {
		float theta = expf(t[g]), zero = 0;
		if (is_masked(mask, g))
			zero = theta * log1pf(L * expf(to_float(z[g]) - l) / theta);
		loss += (double)(weight ? weight[g] * zero : zero);
		if (weight)
			gene[(size_t)b * G + g] = zero;
	}
	__syncthreads();
	for (uint32_t k = from + threadIdx.x; k < to; k += THREADS) {
		uint32_t g = id[k], x = count[k];
		if (!is_masked(mask, g) || !x)
			continue;
		float theta = expf(t[g]), logmu = logL + to_float(z[g]) - l;
		double more = (double)x * (double)(logf(theta + expf(logmu)) - logmu) + lgamma_rise(1, x) - lgamma_rise((double)theta, x);
		loss += weight ? (double)weight[g] * more : more;
		if (weight)
			gene[(size_t)b * G + g] += (float)more;
	}
	loss = block_sum(loss);
	if (threadIdx.x == 0) {
		lse[b] = l;
		part[b] = loss;
	}
}

static __global__ void nb_done_kernel(double *sum, const double *part, uint32_t B)
{
	double s = 0;
	for (uint32_t b = threadIdx.x; b < B; b += THREADS)
		s += part[b];
	s = block_sum(s);
	if (threadIdx.x == 0)
		*sum += s;
}

template <class A>
static void nb_loss(struct cuda *c, double *sum, float *lse, const void *z, const float *t, const struct seq *s, const uint32_t *count,
	const uint32_t *mask, const struct gene_weight *w, size_t B, size_t G)
{
	double *part = (double *)scratch(c, SCRATCH_PART, B * sizeof *part);
	float *gene = w ? (float *)scratch(c, SCRATCH_GRAD, B * G * sizeof *gene) : NULL;
	launch(c, "nb_loss", nb_kernel<A>, dim3((unsigned)B), THREADS, 0, part, gene, lse, (const A *)z, t, w ? w->weight : NULL, s->offset,
		s->id, count, mask, G, nb_words(G));
	launch(c, "nb_loss", nb_done_kernel, dim3(1), THREADS, 0, sum, part, B);
	if (!w)
		return;
	c->o.zero(&c->o, w->loss, G * sizeof *w->loss);
	add_parts(c, w->loss, gene, B, G, G);
}

void cuda_nb_loss(struct ops *o, double *sum, float *lse, const void *z, const float *t, const struct seq *s, const uint32_t *count,
	const uint32_t *mask, const struct gene_weight *w, size_t B, size_t G)
{
	struct cuda *c = cuda_of(o);
	BY_TYPE(c, nb_loss, c, sum, lse, z, t, s, count, mask, w, B, G);
}

/* e [B,G] scratch: the gradient of log mu. part [B,G]: the gradient of t. */
template <class A>
static __global__ void __launch_bounds__(THREADS)
	nb_back_kernel(A *z, float *e, float *part, const float *t, const uint32_t *offset, const uint32_t *id, const uint32_t *count,
		const uint32_t *mask, const float *lse, const float *scale, const float *weight, uint32_t G, uint32_t words)
{
	uint32_t b = blockIdx.x, from = offset[b], to = offset[b + 1];
	float l = lse[b], factor = scale ? *scale : 1, L = library(count, from, to), all = 0;
	z += (size_t)b * G;
	e += (size_t)b * G;
	part += (size_t)b * G;
	mask += (size_t)b * words;
	for (uint32_t g = threadIdx.x; g < G; g += THREADS) {
		float theta = expf(t[g]), mu = L * expf(to_float(z[g]) - l), r = mu / theta;
		float own = weight ? weight[g] : 1;
		int on = is_masked(mask, g);
		e[g] = on ? own * (mu / (1 + r)) : 0;
		part[g] = on ? own * factor * theta * (log1pf(r) - r / (1 + r)) : 0;
		all += e[g];
	}
	__syncthreads();
	for (uint32_t k = from + threadIdx.x; k < to; k += THREADS) {
		uint32_t g = id[k], x = count[k];
		if (!is_masked(mask, g) || !x)
			continue;
		float theta = expf(t[g]), mu = L * expf(to_float(z[g]) - l), own = weight ? weight[g] : 1,
		      less = own * ((float)x * theta / (theta + mu));
		e[g] -= less;
		all -= less;
		part[g] -= own * factor * theta * (float)(digamma_rise((double)theta, x) - (double)((float)x / (theta + mu)));
	}
	all = block_sum(all); /* and all threads see e */
	for (uint32_t g = threadIdx.x; g < G; g += THREADS)
		z[g] = of<A>::from(factor * (e[g] - expf(to_float(z[g]) - l) * all));
}

template <class A>
static void nb_back(struct cuda *c, void *z, float *dt, const float *t, const struct seq *s, const uint32_t *count, const uint32_t *mask,
	const float *lse, const float *scale, const float *weight, size_t B, size_t G)
{
	float *e = (float *)scratch(c, SCRATCH_GRAD, B * G * sizeof *e), *part = (float *)scratch(c, SCRATCH_PART, B * G * sizeof *part);
	launch(c, "nb_loss_back", nb_back_kernel<A>, dim3((unsigned)B), THREADS, 0, (A *)z, e, part, t, s->offset, s->id, count, mask, lse,
		scale, weight, G, nb_words(G));
	add_parts(c, dt, part, B, G, G);
}

void cuda_nb_loss_back(struct ops *o, void *z, float *dt, const float *t, const struct seq *s, const uint32_t *count, const uint32_t *mask,
	const float *lse, const float *scale, const float *weight, size_t B, size_t G)
{
	struct cuda *c = cuda_of(o);
	BY_TYPE(c, nb_back, c, z, dt, t, s, count, mask, lse, scale, weight, B, G);
}
