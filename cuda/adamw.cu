/*
 * AdamW over a run of parameters (ops.h: adamw_args) in one launch, the bf16 copy renewed in the same pass: 30 bytes a parameter.
 * The clipping factor comes from *norm2 on the device.
 */
#include "device.cuh"
extern "C" {
#include "nn/optim.h"
}

#include <math.h>

enum {
	THREADS = 256,
};

struct update {
	float b1, b2, one_b1, one_b2, eps, root, rate, before, pull;
	int l2;
	double gscale, max_norm;
	size_t decayed;
};

static __global__ void adamw_kernel(
	float *p, const float *g, float *m, float *v, bf16 *copy, size_t n, const double *norm2, struct update a)
{
	__shared__ float factor;
	__shared__ int sound;
	if (threadIdx.x == 0) {
		double norm = sqrt(*norm2) * fabs(a.gscale), coef = a.max_norm > 0 ? a.max_norm / (norm + 1e-6) : 1;
		factor = (float)(a.gscale * (coef < 1 ? coef : 1));
		sound = norm - norm == 0;
	}
	__syncthreads();
	const float gs = factor;
	if (!sound)
		return;
#pragma unroll
	for (int k = 0; k < 4; k++) {
		size_t i = ((size_t)blockIdx.x * 4 + k) * THREADS + threadIdx.x;
		if (i >= n)
			continue;
		float gi = a.l2 ? g[i] * gs + (i < a.decayed ? a.pull : 0) * p[i] : g[i] * gs;
		float mi = a.b1 * m[i] + a.one_b1 * gi, vi = a.b2 * v[i] + a.one_b2 * gi * gi;
		float before = i < a.decayed ? a.before : 1;
		float pi = p[i] * before - a.rate * (mi / (sqrtf(vi) * a.root + a.eps));
		m[i] = mi;
		v[i] = vi;
		p[i] = pi;
		if (copy)
			copy[i] = of<bf16>::from(pi);
	}
}

void cuda_adamw(struct ops *o, float *p, const float *g, float *m, float *v, size_t n, const double *norm2, const struct adamw_args *a)
{
	struct cuda *c = cuda_of(o);
	double c1 = 1 - pow(a->beta1, (double)a->t), c2 = 1 - pow(a->beta2, (double)a->t), decay = 1 - (double)(float)(a->lr * a->decay);
	int l2 = adamw_is_l2(a->variant);
	struct update u = {};
	u.b1 = (float)a->beta1, u.b2 = (float)a->beta2, u.one_b1 = (float)(1 - a->beta1), u.one_b2 = (float)(1 - a->beta2);
	u.eps = (float)a->eps;
	u.root = (float)(1 / sqrt(c2));
	u.rate = (float)(a->lr / c1);
	u.before = l2 ? 1 : (float)decay;
	u.pull = l2 ? (float)a->decay : 0;
	u.l2 = l2;
	u.gscale = a->gscale;
	u.max_norm = a->max_norm;
	u.decayed = a->decayed;
	launch(c, "adamw", adamw_kernel, dim3(blocks(n, 4 * THREADS)), THREADS, 0, p, g, m, v, parameter_copy(c, p, n), n, norm2, u);
}
