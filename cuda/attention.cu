/*
 * Attention within each cell (ops.h). Tensor cores do bf16 with head sizes 16, 32 and 64 (attention_mma.cu); this file does everything
 * else, float for comparison with the CPU and other head sizes, in the plainest way: a warp a (query, head), its lanes first
 * on 32 keys, then on the head's channels. Backward: the same for dq, and a warp a (key, head) for dk and dv.
 */
#include "device.cuh"

enum {
	WARPS = 4,
	HEAD_MAX = 128,
};

struct heads {
	const uint32_t *offset, *pos, *cell, *key;
	uint32_t T, C, NH, D;
	float scale; /* 1 / sqrt(D) */
};

/* Keep factor of key j for query i. */
static __device__ __forceinline__ float keep_one(const struct drop &d, uint32_t head, uint32_t i, uint32_t j, uint32_t cell)
{
	uint32_t w[4];
	drop_bits(w, d, head, i, j / 8, cell);
	uint32_t x = j & 4 ? (j & 2 ? w[3] : w[2]) : (j & 2 ? w[1] : w[0]);
	return (j & 1 ? x >> 16 : x & 0xffff) < d.threshold ? 0 : d.scale;
}

template <class A> static __device__ __forceinline__ float dot(const float *a, const A *b, uint32_t D)
{
	float s = 0;
	for (uint32_t e = 0; e < D; e++)
		s += a[e] * to_float(b[e]);
	return s;
}

template <class A> static __device__ __forceinline__ void to_shared(float *to, const A *from, uint32_t lane, uint32_t D)
{
	for (uint32_t e = lane; e < D; e += 32)
		to[e] = to_float(from[e]);
}

/* Lanes' p[0..n) times rows x[j * stride], summed; lane has channels lane, lane + 32, ... */
template <int E, class A>
static __device__ __forceinline__ void add_rows(float acc[E], float p, const A *x, size_t stride, uint32_t n, uint32_t lane, uint32_t D)
{
	for (uint32_t j = 0; j < n; j++) {
		float pj = __shfl_sync(WARP_ALL, p, (int)j);
#pragma unroll
		for (int e = 0; e < E; e++)
			if (lane + 32 * e < D)
				acc[e] += pj * to_float(x[j * stride + lane + 32 * e]);
	}
}

template <int E, class A> static __device__ __forceinline__ void put_row(A *to, const float acc[E], float factor, uint32_t lane, uint32_t D)
{
#pragma unroll
	for (int e = 0; e < E; e++)
		if (lane + 32 * e < D)
			to[lane + 32 * e] = of<A>::from(acc[e] * factor);
}

template <class A, int E> static __global__ void attend_kernel(A *y, float *lse, const A *qkv, struct heads s, struct drop d)
{
	__shared__ float query[WARPS][HEAD_MAX];
	uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	size_t w = (size_t)blockIdx.x * WARPS + warp, S = 3 * (size_t)s.C;
	uint32_t t = (uint32_t)(w / s.NH), h = (uint32_t)(w % s.NH);
	if (t >= s.T)
		return;
	read_step(d);
	uint32_t b = s.cell[t], t0 = s.offset[b], len = s.offset[b + 1] - t0, i = s.pos[t], key = s.key[b];
	const A *k = qkv + t0 * S + s.C + h * s.D, *v = k + s.C;
	float m = -INFINITY, l = 0, acc[E];
	for (int e = 0; e < E; e++)
		acc[e] = 0;
	to_shared(query[warp], qkv + t * S + h * s.D, lane, s.D);
	__syncwarp();
	for (uint32_t j0 = 0; j0 < len; j0 += 32) {
		uint32_t j = j0 + lane;
		float x = j < len ? dot(query[warp], k + j * S, s.D) * s.scale : -INFINITY;
		float top = fmaxf(m, warp_max(x)), p = j < len ? expf(x - top) : 0, shrink = expf(m - top);
		l = l * shrink + warp_sum(p);
		m = top;
		if (d.threshold && j < len)
			p *= keep_one(d, h, i, j, key);
		for (int e = 0; e < E; e++)
			acc[e] *= shrink;
		add_rows<E>(acc, p, v + j0 * S, S, min(32u, len - j0), lane, s.D);
	}
	put_row<E>(y + (size_t)t * s.C + h * s.D, acc, 1 / l, lane, s.D);
	if (lane == 0)
		lse[(size_t)t * s.NH + h] = m + logf(l);
}

/* delta [T,NH] = dy . y of each head: eight lanes a head, 8 columns a lane and turn. */
template <class A> static __global__ void delta_kernel(float *delta, const A *dy, const A *y, struct heads s)
{
	uint32_t lane = threadIdx.x % 8;
	size_t w = ((size_t)blockIdx.x * 32 * WARPS + threadIdx.x) / 8; /* [T,NH,D] is [T,C] */
	bool ours = w < (size_t)s.T * s.NH;
	float x = 0;
	for (uint32_t e = lane * 8; ours && e < s.D; e += 64) {
		float a[8], b[8];
		load8(a, dy + w * s.D, e, s.D);
		load8(b, y + w * s.D, e, s.D);
#pragma unroll
		for (int i = 0; i < 8; i++)
			x += a[i] * b[i];
	}
#pragma unroll
	for (int d = 4; d; d /= 2)
		x += __shfl_xor_sync(WARP_ALL, x, d);
	if (ours && lane == 0)
		delta[w] = x;
}

/* A warp a query: dq = sum over keys of dS k, with dS = P (M (dy v) - delta) / sqrt(D). */
template <class A, int E>
static __global__ void query_kernel(A *dqkv, const A *dy, const float *delta, const float *lse, const A *qkv, struct heads s, struct drop d)
{
	__shared__ float query[WARPS][HEAD_MAX], grad[WARPS][HEAD_MAX];
	uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	size_t w = (size_t)blockIdx.x * WARPS + warp, S = 3 * (size_t)s.C;
	uint32_t t = (uint32_t)(w / s.NH), h = (uint32_t)(w % s.NH);
	if (t >= s.T)
		return;
	read_step(d);
	uint32_t b = s.cell[t], t0 = s.offset[b], len = s.offset[b + 1] - t0, i = s.pos[t], key = s.key[b];
	const A *k = qkv + t0 * S + s.C + h * s.D, *v = k + s.C;
	float ls = lse[w], del = delta[w], acc[E];
	for (int e = 0; e < E; e++)
		acc[e] = 0;
	to_shared(query[warp], qkv + t * S + h * s.D, lane, s.D);
	to_shared(grad[warp], dy + (size_t)t * s.C + h * s.D, lane, s.D);
	__syncwarp();
	for (uint32_t j0 = 0; j0 < len; j0 += 32) {
		uint32_t j = j0 + lane;
		float ds = 0;
		if (j < len) {
			float p = expf(dot(query[warp], k + j * S, s.D) * s.scale - ls), g = dot(grad[warp], v + j * S, s.D);
			ds = p * ((d.threshold ? keep_one(d, h, i, j, key) : 1) * g - del) * s.scale;
		}
		add_rows<E>(acc, ds, k + j0 * S, S, min(32u, len - j0), lane, s.D);
	}
	put_row<E>(dqkv + t * S + h * s.D, acc, 1, lane, s.D);
}

/* A warp a key: dv = sum over queries of P M dy, dk = sum of dS q. */
template <class A, int E>
static __global__ void key_kernel(A *dqkv, const A *dy, const float *delta, const float *lse, const A *qkv, struct heads s, struct drop d)
{
	__shared__ float mine[WARPS][HEAD_MAX], value[WARPS][HEAD_MAX];
	uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	size_t w = (size_t)blockIdx.x * WARPS + warp, S = 3 * (size_t)s.C;
	uint32_t t = (uint32_t)(w / s.NH), h = (uint32_t)(w % s.NH);
	if (t >= s.T)
		return;
	read_step(d);
	uint32_t b = s.cell[t], t0 = s.offset[b], len = s.offset[b + 1] - t0, j = s.pos[t], key = s.key[b];
	const A *q = qkv + t0 * S + h * s.D, *g = dy + (size_t)t0 * s.C + h * s.D;
	float dk[E], dv[E];
	for (int e = 0; e < E; e++)
		dk[e] = dv[e] = 0;
	to_shared(mine[warp], qkv + t * S + s.C + h * s.D, lane, s.D);
	to_shared(value[warp], qkv + t * S + 2 * s.C + h * s.D, lane, s.D);
	__syncwarp();
	for (uint32_t i0 = 0; i0 < len; i0 += 32) {
		uint32_t i = i0 + lane;
		float pm = 0, ds = 0;
		if (i < len) {
			size_t at = (size_t)(t0 + i) * s.NH + h;
			float p = expf(dot(mine[warp], q + i * S, s.D) * s.scale - lse[at]);
			float keep = d.threshold ? keep_one(d, h, i, j, key) : 1;
			pm = p * keep;
			ds = p * (keep * dot(value[warp], g + (size_t)i * s.C, s.D) - delta[at]) * s.scale;
		}
		uint32_t n = min(32u, len - i0);
		add_rows<E>(dv, pm, g + (size_t)i0 * s.C, s.C, n, lane, s.D);
		add_rows<E>(dk, ds, q + i0 * S, S, n, lane, s.D);
	}
	put_row<E>(dqkv + t * S + s.C + h * s.D, dk, 1, lane, s.D);
	put_row<E>(dqkv + t * S + 2 * s.C + h * s.D, dv, 1, lane, s.D);
}

static struct heads heads_of(const struct seq *s, size_t C, size_t NH)
{
	struct heads h = {s->offset, s->pos, s->cell, s->key, (uint32_t)s->T, (uint32_t)C, (uint32_t)NH, (uint32_t)(C / NH),
		(float)(1 / sqrt((double)(C / NH)))};
	return h;
}

/* Run `call` with E = 32-channel parts of a head. */
#define BY_HEAD(c, D, call) \
	do { \
		if ((D) <= 32) { \
			constexpr int E = 1; \
			call; \
		} else if ((D) <= 64) { \
			constexpr int E = 2; \
			call; \
		} else if ((D) <= HEAD_MAX) { \
			constexpr int E = 4; \
			call; \
		} else \
			cuda_unsupported(c, "attention heads of more than 128 channels"); \
	} while (0)

template <class A> static void attend(struct cuda *c, void *y, float *lse, const void *qkv, struct heads s, struct drop d)
{
	dim3 grid(blocks((size_t)s.T * s.NH, WARPS));
	BY_HEAD(c, s.D, launch(c, "attention", attend_kernel<A, E>, grid, 32 * WARPS, 0, (A *)y, lse, (const A *)qkv, s, d));
}

static int by_tensor_cores(const struct ops *o, size_t C, size_t NH)
{
	return ((const struct cuda *)o)->is_bf16 && attention_mma_head(C / NH);
}

size_t cuda_keep_bytes(const struct ops *o, size_t B, size_t T, size_t longest, size_t C, size_t NH)
{
	return by_tensor_cores(o, C, NH) ? attention_mma_keep(B, T, longest, NH) : 0;
}

void cuda_attention(struct ops *o, void *y, float *lse, const void *qkv, const struct seq *s, size_t C, size_t NH, const struct dropout *d)
{
	struct cuda *c = cuda_of(o);
	if (by_tensor_cores(o, C, NH)) {
		attention_mma(c, (bf16 *)y, lse, (const bf16 *)qkv, s, C, NH, d);
		return;
	}
	c->plain.heads = c->is_bf16 ? C / NH : 0;
	BY_TYPE(c, attend, c, y, lse, qkv, heads_of(s, C, NH), drop_of(d));
}

template <class A> static void deltas(struct cuda *c, float *delta, const void *dy, const void *y, struct heads s)
{
	launch(c, "attention_back", delta_kernel<A>, dim3(blocks((size_t)s.T * s.NH, 4 * WARPS)), 32 * WARPS, 0, delta, (const A *)dy,
		(const A *)y, s);
}

template <class A>
static void attend_back(
	struct cuda *c, void *dqkv, const void *dy, const float *delta, const float *lse, const void *qkv, struct heads s, struct drop d)
{
	dim3 grid(blocks((size_t)s.T * s.NH, WARPS));
	BY_HEAD(c, s.D,
		launch(c, "attention_back", query_kernel<A, E>, grid, 32 * WARPS, 0, (A *)dqkv, (const A *)dy, delta, lse, (const A *)qkv,
			s, d);
		launch(c, "attention_back", key_kernel<A, E>, grid, 32 * WARPS, 0, (A *)dqkv, (const A *)dy, delta, lse, (const A *)qkv, s,
			d));
}

void cuda_attention_back(struct ops *o, void *dqkv, const void *dy, const void *y, const float *lse, const void *qkv, const struct seq *s,
	size_t C, size_t NH, const struct dropout *d)
{
	struct cuda *c = cuda_of(o);
	struct heads h = heads_of(s, C, NH);
	float *delta = (float *)scratch(c, SCRATCH_DELTA, s->T * NH * sizeof(float));
	BY_TYPE(c, deltas, c, delta, dy, y, h);
	if (by_tensor_cores(o, C, NH))
		attention_mma_back(c, (bf16 *)dqkv, (const bf16 *)dy, delta, lse, (const bf16 *)qkv, s, C, NH, d);
	else
		BY_TYPE(c, attend_back, c, dqkv, dy, delta, lse, qkv, h, drop_of(d));
}
