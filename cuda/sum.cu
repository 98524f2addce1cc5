/*
 * Sums in a fixed order: first over chunks of rows, whose number follows from the shape alone, then over the chunks.
 */
#include "device.cuh"

enum {
	PART_ROWS = 8,    /* threads of a block that share a column, each with every eighth part */
	FLAT = 1 << 15,   /* elements of a chunk of a flat sum */
};
static constexpr size_t CHUNKS = 256;   /* chunks of rows at most */
static constexpr size_t CHUNK_MIN = 64; /* rows of a chunk at least */

/* Block: 32 columns x PART_ROWS. */
static __global__ void parts_kernel(float *out, const float *part, uint32_t n, size_t stride, uint32_t C)
{
	__shared__ float row[PART_ROWS][32];
	uint32_t lane = threadIdx.x % 32, r = threadIdx.x / 32, c = blockIdx.x * 32 + lane;
	float s = 0;
	if (c < C)
		for (uint32_t k = r; k < n; k += PART_ROWS)
			s += part[k * stride + c];
	row[r][lane] = s;
	__syncthreads();
	if (r == 0 && c < C) {
		float t = out[c];
		for (int i = 0; i < PART_ROWS; i++)
			t += row[i][lane];
		out[c] = t;
	}
}

void add_parts(struct cuda *c, float *out, const float *part, size_t n, size_t stride, size_t C)
{
	launch(c, "add_parts", parts_kernel, dim3(blocks(C, 32)), 32 * PART_ROWS, 0, out, part, n, stride, C);
}

/* ---- columns ---- */

static __device__ __forceinline__ float slope(float dy, float y, float pre, int act)
{
	if (act == ACT_RELU)
		return y > 0 ? dy : 0;
	if (act == ACT_TANH)
		return dy * (1 - y * y);
	if (act == ACT_GELU)
		return dy * (0.5f * (1 + erff(pre * 0.70710678f)) + pre * expf(-0.5f * pre * pre) * 0.39894228f);
	return dy;
}

/*
 * Block: 8 warps on 256 columns of one chunk of rows; a warp takes every eighth row, a lane 8 columns.
 * part [chunks, N]; NULL: only the activation's slope is wanted. y is read for ReLU and tanh, pre for GELU.
 */
template <class A> static __global__ void columns_kernel(float *part, A *dy, const A *y, const A *pre, uint32_t T, uint32_t N, uint32_t ld,
	uint32_t rows, int act)
{
	__shared__ float sum[8][256];
	uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, col = blockIdx.x * 256 + lane * 8;
	uint32_t t0 = blockIdx.y * rows, t1 = min(T, t0 + rows);
	uint32_t width = ld % 8 ? N : ld; /* a padded row is read to its end */
	float s[8] = { 0, 0, 0, 0, 0, 0, 0, 0 };
	for (uint32_t t = t0 + warp; t < t1; t += 8) {
		float g[8], u[8], p[8];
		load8(g, dy + (size_t)t * ld, col, width);
		if (act != ACT_NONE) {
			if (act == ACT_GELU)
				load8(p, pre + (size_t)t * ld, col, width);
			else
				load8(u, y + (size_t)t * ld, col, width);
#pragma unroll
			for (int i = 0; i < 8; i++)
				g[i] = rounded<A>(act == ACT_GELU ? slope(g[i], 0, p[i], act) : slope(g[i], u[i], 0, act));
			store8(dy + (size_t)t * ld, g, col, width);
		}
#pragma unroll
		for (int i = 0; i < 8; i++)
			s[i] += g[i];
	}
	if (!part)
		return;
#pragma unroll
	for (int i = 0; i < 8; i++)
		sum[warp][lane * 8 + i] = s[i];
	__syncthreads();
	uint32_t n = blockIdx.x * 256 + threadIdx.x;
	if (n < N) {
		float t = 0;
		for (int i = 0; i < 8; i++)
			t += sum[i][threadIdx.x];
		part[(size_t)blockIdx.y * N + n] = t;
	}
}

template <class A> static void columns(struct cuda *c, float *db, void *dy, const void *y, const void *pre, size_t T, size_t N, size_t ld,
	enum act act)
{
	size_t rows = (T + CHUNKS - 1) / CHUNKS;
	rows = rows < CHUNK_MIN ? CHUNK_MIN : rows;
	unsigned n = blocks(T, rows);
	float *part = db ? (float *)scratch(c, SCRATCH_PART, n * N * sizeof(float)) : NULL;
	launch(c, "column_sums", columns_kernel<A>, dim3(blocks(N, 256), n), 256, 0, part, (A *)dy, (const A *)y, (const A *)pre, T, N, ld, rows, act);
	if (db)
		add_parts(c, db, part, n, N, N);
}

void column_sums(struct cuda *c, float *db, void *dy, const void *y, const void *pre, size_t T, size_t N, enum act act)
{
	if (T && (db || act != ACT_NONE))
		BY_TYPE(c, columns, c, db, dy, y, pre, T, N, N, act);
}

void column_sums_ld(struct cuda *c, float *db, void *dy, size_t T, size_t N, size_t ld)
{
	BY_TYPE(c, columns, c, db, dy, NULL, NULL, T, N, ld, ACT_NONE);
}

/* ---- sum of squares ---- */

static __device__ __forceinline__ double block_sum(double x, double *shared)
{
	shared[threadIdx.x] = x;
	__syncthreads();
	for (unsigned d = blockDim.x / 2; d; d /= 2) {
		if (threadIdx.x < d)
			shared[threadIdx.x] += shared[threadIdx.x + d];
		__syncthreads();
	}
	return shared[0];
}

static __global__ void squares_kernel(double *part, const float *g, size_t n)
{
	__shared__ double sum[256];
	size_t from = (size_t)blockIdx.x * FLAT, to = from + FLAT < n ? from + FLAT : n;
	double s = 0;
	for (size_t i = from + threadIdx.x; i < to; i += 256)
		s += (double)g[i] * g[i];
	s = block_sum(s, sum);
	if (threadIdx.x == 0)
		part[blockIdx.x] = s;
}

static __global__ void doubles_kernel(double *sum, const double *part, uint32_t n)
{
	__shared__ double all[256];
	double s = 0;
	for (uint32_t i = threadIdx.x; i < n; i += 256)
		s += part[i];
	s = block_sum(s, all);
	if (threadIdx.x == 0)
		*sum += s;
}

void cuda_sumsq(struct ops *o, double *sum, const float *g, size_t n)
{
	struct cuda *c = cuda_of(o);
	unsigned k = blocks(n, FLAT);
	double *part = (double *)scratch(c, SCRATCH_PART, k * sizeof(double));
	launch(c, "sumsq", squares_kernel, dim3(k), 256, 0, part, g, n);
	launch(c, "sumsq", doubles_kernel, dim3(1), 256, 0, sum, part, k);
}
