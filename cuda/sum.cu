/*
 * Sums in a fixed order: first over chunks of rows, whose number follows from the shape alone, then over the chunks.
 */
#include "device.cuh"

enum {
	PART_ROWS = 32, /* threads of a block that share a column, each with every 32nd part */
	FLAT = 1 << 15, /* elements of a chunk of a flat sum */
};
static constexpr size_t WAVE = 132; /* multiprocessors of an H100 or H200; the chunks are the same on every card, and so are the bits */
static constexpr size_t CHUNK_MIN = 64; /* rows of a chunk at least */

/* Block: 32 columns x PART_ROWS. The first C columns are those of `out`, the next C those of `second`, the rest those of `third`. */
static __global__ void parts_kernel(
	float *out, float *second, float *third, const float *part, uint32_t n, size_t stride, uint32_t C, uint32_t all)
{
	__shared__ float row[PART_ROWS][32];
	uint32_t lane = threadIdx.x % 32, r = threadIdx.x / 32, c = blockIdx.x * 32 + lane;
	float s = 0;
	if (c < all)
#pragma unroll 4
		for (uint32_t k = r; k < n; k += PART_ROWS)
			s += part[k * stride + c];
	row[r][lane] = s;
	__syncthreads();
	if (r == 0 && c < all) {
		float *to = c < C ? out + c : c - C < C ? second + (c - C) : third + (c - C - C), t = *to;
		for (int i = 0; i < PART_ROWS; i++)
			t += row[i][lane];
		*to = t;
	}
}

void add_parts(struct cuda *c, float *out, const float *part, size_t n, size_t stride, size_t C)
{
	launch(c, "add_parts", parts_kernel, dim3(blocks(C, 32)), 32 * PART_ROWS, 0, out, out, out, part, n, stride, C, C);
}

void add_parts_each(struct cuda *c, float *const out[3], const float *part, size_t n, size_t C)
{
	size_t all = (out[1] ? out[2] ? 3 : 2 : 1) * C;
	launch(c, "add_parts", parts_kernel, dim3(blocks(all, 32)), 32 * PART_ROWS, 0, out[0], out[1], out[2], part, n, all, C, all);
}

/* ---- columns ---- */

/* x: the activation's value, of GELU its argument. */
template <int ACT> static __device__ __forceinline__ float slope(float dy, float x)
{
	switch ((enum act)ACT) {
	case ACT_RELU:
		return x > 0 ? dy : 0;
	case ACT_TANH:
		return dy * (1 - x * x);
	case ACT_GELU:
		return dy * (0.5f * (1 + erff(x * 0.70710678f)) + x * expf(-0.5f * x * x) * 0.39894228f);
	case ACT_LEAKY:
		return x > 0 ? dy : 0.01f * dy;
	case ACT_NONE:
		break;
	}
	return dy;
}

/* Rows t, t + 8, ... of K: their slope, and their sum. All are read before any is written, so no read waits for another. */
template <int K, int ACT, class A>
static __device__ __forceinline__ void column_rows(float s[8], A *dy, const A *x, uint32_t t, uint32_t N, uint32_t col)
{
	float g[K][8], u[K][8];
#pragma unroll
	for (int k = 0; k < K; k++) {
		size_t row = (size_t)(t + 8 * k) * N;
		load8(g[k], dy + row, col, N);
		if (ACT != ACT_NONE)
			load8(u[k], x + row, col, N);
	}
#pragma unroll
	for (int k = 0; k < K; k++) {
		if (ACT != ACT_NONE) {
#pragma unroll
			for (int i = 0; i < 8; i++)
				g[k][i] = rounded<A>(slope<ACT>(g[k][i], u[k][i]));
			store8(dy + (size_t)(t + 8 * k) * N, g[k], col, N);
		}
#pragma unroll
		for (int i = 0; i < 8; i++)
			s[i] += g[k][i];
	}
}

/*
 * Block: 8 warps on 256 columns of one chunk of rows; a warp takes every eighth row, a lane 8 columns.
 * part [chunks, N]; NULL: only the activation's slope is wanted. x: see slope.
 */
template <class A, int ACT>
static __global__ void __launch_bounds__(256, 3) columns_kernel(float *part, A *dy, const A *x, uint32_t T, uint32_t N, uint32_t rows)
{
	__shared__ float sum[8][256];
	uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, col = blockIdx.x * 256 + lane * 8;
	uint32_t t0 = blockIdx.y * rows, t1 = min(T, t0 + rows);
	float s[8] = {0, 0, 0, 0, 0, 0, 0, 0};
	constexpr uint32_t AHEAD = ACT == ACT_NONE ? 4 : 2; /* four loads of 16 bytes are under way; more would spill registers */
	uint32_t t = t0 + warp;
	for (; t + 8 * (AHEAD - 1) < t1; t += 8 * AHEAD)
		column_rows<AHEAD, ACT>(s, dy, x, t, N, col);
	for (; t < t1; t += 8)
		column_rows<1, ACT>(s, dy, x, t, N, col);
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

template <class A>
static void columns(struct cuda *c, float *db, void *dy, const void *y, const void *pre, size_t T, size_t N, enum act act)
{
	void (*kernel)(float *, A *, const A *, uint32_t, uint32_t, uint32_t) = columns_kernel<A, ACT_NONE>;
	const void *x = y;
	size_t each = 4;
	switch (act) {
	case ACT_NONE:
		break;
	case ACT_RELU:
		kernel = columns_kernel<A, ACT_RELU>;
		break;
	case ACT_GELU:
		kernel = columns_kernel<A, ACT_GELU>;
		x = pre;
		each = 3; /* it has more registers */
		break;
	case ACT_TANH:
		kernel = columns_kernel<A, ACT_TANH>;
		break;
	case ACT_LEAKY:
		kernel = columns_kernel<A, ACT_LEAKY>;
		break;
	}
	/* all blocks run at once: so many a multiprocessor */
	const size_t wide = blocks(N, 256), slots = each * WAVE, chunks = wide < slots ? slots / wide : 1;
	size_t rows = (T + chunks - 1) / chunks;
	rows = rows < CHUNK_MIN ? CHUNK_MIN : rows;
	unsigned n = blocks(T, rows);
	float *part = db ? (float *)scratch(c, SCRATCH_PART, n * N * sizeof(float)) : NULL;
	launch(c, "column_sums", kernel, dim3(blocks(N, 256), n), 256, 0, part, (A *)dy, (const A *)x, T, N, rows);
	if (db)
		add_parts(c, db, part, n, N, N);
}

void column_sums(struct cuda *c, float *db, void *dy, const void *y, const void *pre, size_t T, size_t N, enum act act)
{
	if (T && (db || act != ACT_NONE))
		BY_TYPE(c, columns, c, db, dy, y, pre, T, N, act);
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
