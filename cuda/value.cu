/* Features of values: a thread for a frequency, sigmoid or unit of a token; sums over the tokens in fixed chunks, then over the chunks. */
#include "device.cuh"

enum {
	THREADS = 256,
	CHUNK = 256, /* tokens of a partial sum */
};

static __device__ __forceinline__ float slope(float x)
{
	return x > 0 ? 1 : 0.01f;
}

static __device__ __forceinline__ double phase(const struct value_features &v, uint32_t k, float x)
{
	return (double)v.w[k] * ((double)x - v.shift);
}

template <class A> static __device__ __forceinline__ void periodic(A *f, uint32_t k, float x, const struct value_features &v)
{
	if (k < v.n) {
		double at = phase(v, k, x);
		f[k] = of<A>::from((float)sin(at));
		f[v.n + k] = of<A>::from((float)cos(at));
	} else {
		uint32_t j = k - (uint32_t)v.n;
		double at = (double)v.center[j] - (double)v.orientation[j] * ((double)x - v.shift);
		f[2 * v.n + j] = of<A>::from((float)(1 / (1 + exp(at))));
	}
}

template <class A>
static __global__ void features_kernel(A *out, const float *x, const uint32_t *row, struct value_features v, uint32_t T, uint32_t F)
{
	size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
	uint32_t parts = (uint32_t)(v.b ? v.n : v.n + v.m), t = (uint32_t)(i / parts), k = (uint32_t)(i % parts);
	if (t >= T)
		return;
	A *f = out + (size_t)t * F;
	uint32_t own = row ? row[t] : ROW_NONE;
	if (v.b) {
		float u = own != ROW_NONE ? v.table[(size_t)own * v.n + k] : leaky(v.w[k] * x[t] + v.b[k]);
		f[k] = of<A>::from(v.table ? leaky(u) : u);
	} else if (own == ROW_NONE) {
		periodic(f, k, x[t], v);
	} else {
		f[k < v.n ? k : v.n + k] = of<A>::from(0);
		if (k < v.n)
			f[v.n + k] = of<A>::from(0);
	}
}

template <class A>
static void features(struct cuda *c, void *f, const float *x, const uint32_t *row, const struct value_features *v, size_t T)
{
	size_t parts = v->b ? v->n : v->n + v->m;
	launch(c, "value_features", features_kernel<A>, dim3(blocks(T * parts, THREADS)), THREADS, 0, (A *)f, x, row, *v, T,
		value_width(v));
}

void cuda_value_features(struct ops *o, void *f, const float *x, const uint32_t *row, const struct value_features *v, size_t T)
{
	struct cuda *c = cuda_of(o);
	BY_TYPE(c, features, c, f, x, row, v, T);
}

/* Block: CHUNK tokens, a thread for a unit or frequency k. part [chunks][2][n] = dw | db; NULL: not wanted. */
template <class A>
static __global__ void features_back_kernel(
	float *part, A *out, const float *x, const uint32_t *row, struct value_features v, uint32_t T, uint32_t F)
{
	uint32_t k = blockIdx.y * THREADS + threadIdx.x, t1 = min(T, (blockIdx.x + 1) * CHUNK);
	double dw = 0, db = 0;
	if (k >= v.n)
		return;
	for (uint32_t t = blockIdx.x * CHUNK; t < t1; t++) {
		A *df = out + (size_t)t * F;
		uint32_t own = row ? row[t] : ROW_NONE;
		if (v.b) {
			float z = own != ROW_NONE ? v.table[(size_t)own * v.n + k] : v.w[k] * x[t] + v.b[k];
			float d = to_float(df[k]) * (v.table ? slope(z) : 1) * (own != ROW_NONE ? 1 : slope(z));
			df[k] = of<A>::from(d);
			if (own == ROW_NONE) {
				dw += (double)d * (double)x[t];
				db += (double)d;
			}
		} else if (own == ROW_NONE) {
			double at = phase(v, k, x[t]);
			dw += ((double)x[t] - v.shift) * ((double)to_float(df[k]) * cos(at) - (double)to_float(df[v.n + k]) * sin(at));
		}
	}
	if (part) {
		part[(size_t)blockIdx.x * 2 * v.n + k] = (float)dw;
		part[(size_t)blockIdx.x * 2 * v.n + v.n + k] = (float)db;
	}
}

template <class A>
static void features_back(
	struct cuda *c, float *dw, float *db, void *df, const float *x, const uint32_t *row, const struct value_features *v, size_t T)
{
	unsigned n = blocks(T, CHUNK);
	float *part = dw ? (float *)scratch(c, SCRATCH_PART, n * 2 * v->n * sizeof(float)) : NULL;
	launch(c, "value_features_back", features_back_kernel<A>, dim3(n, blocks(v->n, THREADS)), THREADS, 0, part, (A *)df, x, row, *v, T,
		value_width(v));
	if (dw)
		add_parts(c, dw, part, n, 2 * v->n, v->n);
	if (db)
		add_parts(c, db, part + v->n, n, 2 * v->n, v->n);
}

void cuda_value_features_back(
	struct ops *o, float *dw, float *db, void *df, const float *x, const uint32_t *row, const struct value_features *v, size_t T)
{
	struct cuda *c = cuda_of(o);
	if (T)
		BY_TYPE(c, features_back, c, dw, db, df, x, row, v, T);
}
