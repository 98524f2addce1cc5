/* Batch normalisation: a block has 32 channels of all cells, a warp every 32nd cell. */
#include "device.cuh"

enum {
	LANES = 32, /* warps of a block */
	THREADS = 32 * LANES,
};

/* Sum of v over the block's warps, for each of its 32 channels, in the order of the warps. All threads call it and get it. */
static __device__ __forceinline__ float channel_sum(float v)
{
	__shared__ float part[LANES][33];
	uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	part[warp][lane] = v;
	__syncthreads();
	if (warp == 0) {
		float t = 0;
		for (int k = 0; k < LANES; k++)
			t += part[k][lane];
		part[0][lane] = t;
	}
	__syncthreads();
	v = part[0][lane];
	__syncthreads();
	return v;
}

template <class A>
static __global__ void __launch_bounds__(THREADS) batch_norm_kernel(A *y, float *stat, const A *x, const float *gamma, const float *beta,
	float *run_mean, float *run_var, uint32_t N, uint32_t C, float eps, float momentum, int train, int relu)
{
	uint32_t k = blockIdx.x * 32 + threadIdx.x % 32, warp = threadIdx.x / 32, n = k < C ? N : 0;
	float mean = 0, var = 0;
	if (train) {
		for (uint32_t i = warp; i < n; i += LANES)
			mean += to_float(x[(size_t)i * C + k]);
		mean = channel_sum(mean) / (float)N;
		for (uint32_t i = warp; i < n; i += LANES) {
			float d = to_float(x[(size_t)i * C + k]) - mean;
			var += d * d;
		}
		var = channel_sum(var) / (float)N;
	} else if (n) {
		mean = run_mean[k];
		var = run_var[k];
	}
	float rstd = 1 / sqrtf(var + eps);
	if (train && n && warp == 0) {
		stat[k] = mean;
		stat[C + k] = rstd;
		run_mean[k] += momentum * (mean - run_mean[k]);
		run_var[k] += momentum * (var * (float)N / (float)(N - 1) - run_var[k]);
	}
	float scale = n ? rstd * gamma[k] : 0, shift = n ? beta[k] : 0;
	for (uint32_t i = warp; i < n; i += LANES) {
		float v = (to_float(x[(size_t)i * C + k]) - mean) * scale + shift;
		y[(size_t)i * C + k] = of<A>::from(relu && v < 0 ? 0 : v); /* so written, NaN stays NaN */
	}
}

template <class A>
static void batch_norm(struct cuda *c, void *y, float *stat, const void *x, const float *gamma, const float *beta, float *run_mean,
	float *run_var, size_t N, size_t C, double eps, double momentum, int train, enum act act)
{
	launch(c, "batch_norm", batch_norm_kernel<A>, dim3(N ? blocks(C, 32) : 0), THREADS, 0, (A *)y, stat, (const A *)x, gamma, beta,
		run_mean, run_var, N, C, eps, momentum, train, act == ACT_RELU);
}

void cuda_batch_norm(struct ops *o, void *y, float *stat, const void *x, const float *gamma, const float *beta, float *run_mean,
	float *run_var, size_t N, size_t C, double eps, double momentum, int train, enum act act)
{
	struct cuda *c = cuda_of(o);
	BY_TYPE(c, batch_norm, c, y, stat, x, gamma, beta, run_mean, run_var, N, C, eps, momentum, train, act);
}

/* y NULL: no ReLU. dx may be dy: a thread reads what it writes. */
template <class A>
static __global__ void __launch_bounds__(THREADS) batch_norm_back_kernel(A *dx, float *dgamma, float *dbeta, const A *dy, const A *x,
	const A *y, const float *stat, const float *gamma, uint32_t N, uint32_t C)
{
	uint32_t k = blockIdx.x * 32 + threadIdx.x % 32, warp = threadIdx.x / 32, n = k < C ? N : 0;
	float mean = n ? stat[k] : 0, rstd = n ? stat[C + k] : 0, dg = 0, db = 0;
	for (uint32_t i = warp; i < n; i += LANES) {
		size_t at = (size_t)i * C + k;
		float g = !y || to_float(y[at]) > 0 ? to_float(dy[at]) : 0;
		dg += g * ((to_float(x[at]) - mean) * rstd);
		db += g;
	}
	dg = channel_sum(dg);
	db = channel_sum(db);
	if (n && warp == 0) {
		dgamma[k] += dg;
		dbeta[k] += db;
	}
	float scale = n ? gamma[k] * rstd : 0, dg_mean = dg / (float)N, db_mean = db / (float)N;
	for (uint32_t i = warp; i < n; i += LANES) {
		size_t at = (size_t)i * C + k;
		float g = !y || to_float(y[at]) > 0 ? to_float(dy[at]) : 0;
		dx[at] = of<A>::from(scale * (g - db_mean - (to_float(x[at]) - mean) * rstd * dg_mean));
	}
}

template <class A>
static void batch_norm_back(struct cuda *c, void *dx, float *dgamma, float *dbeta, const void *dy, const void *x, const void *y,
	const float *stat, const float *gamma, size_t N, size_t C, enum act act)
{
	launch(c, "batch_norm_back", batch_norm_back_kernel<A>, dim3(N ? blocks(C, 32) : 0), THREADS, 0, (A *)dx, dgamma, dbeta,
		(const A *)dy, (const A *)x, act == ACT_RELU ? (const A *)y : NULL, stat, gamma, N, C);
}

void cuda_batch_norm_back(struct ops *o, void *dx, float *dgamma, float *dbeta, const void *dy, const void *x, const void *y,
	const float *stat, const float *gamma, size_t N, size_t C, enum act act)
{
	struct cuda *c = cuda_of(o);
	BY_TYPE(c, batch_norm_back, c, dx, dgamma, dbeta, dy, x, y, stat, gamma, N, C, act);
}
