/*
 * Flash attention on tensor cores for packed cells: bf16, head size 64, both directions [Dao 2023, FlashAttention-2].
 *
 * A block of four warps takes 64 queries (forward, dq) or 64 keys (dk and dv) of one (cell, head) and walks over the cell's
 * tiles of the other kind, the next pair of tiles being copied while this one is worked on. Rows past the cell's end are
 * zeros, their probabilities 0. dq and dk/dv are two kernels that both make the scores again: more arithmetic than one
 * kernel with atomics, but every sum has one order.
 *
 * Dropout: a C fragment has 8 keys side by side, which is one Philox call (ops.h), shared by the four lanes of a quad; lane q
 * needs word q of it. A tile has 8 such fragments for each of a lane's 2 rows, so each lane makes four calls, not sixteen,
 * and the quad swaps words.
 */
#include "mma.cuh"

#define LOG2E 1.44269504f

/* 4 x 4 transpose within a quad: lane i's x[j] becomes lane j's x[i]. */
static __device__ __forceinline__ void quad_transpose(uint32_t x[4], uint32_t q)
{
#pragma unroll
	for (int p = 0; p < 2; p++) { /* bit 0: pairs (0,1), (2,3) */
		uint32_t got = __shfl_xor_sync(WARP_ALL, q & 1 ? x[2 * p] : x[2 * p + 1], 1);
		if (q & 1)
			x[2 * p] = got;
		else
			x[2 * p + 1] = got;
	}
#pragma unroll
	for (int p = 0; p < 2; p++) { /* bit 1: pairs (0,2), (1,3) */
		uint32_t got = __shfl_xor_sync(WARP_ALL, q & 2 ? x[p] : x[p + 2], 2);
		if (q & 2)
			x[p] = got;
		else
			x[p + 2] = got;
	}
}

/*
 * bits[r][n]: the decisions on keys j0 + 8 n + 2 q (low half) and + 1 (high half) for query i + 8 r; i is lane g's own row.
 */
static __device__ __forceinline__ void tile_bits(uint32_t bits[2][8], const struct drop &d, uint32_t head, uint32_t i, uint32_t j0, uint32_t cell,
	uint32_t q)
{
#pragma unroll
	for (int r = 0; r < 2; r++) {
#pragma unroll
		for (int half = 0; half < 2; half++) {
			drop_bits(&bits[r][4 * half], d, head, i + 8 * r, j0 / 8 + 4 * half + q, cell);
			quad_transpose(&bits[r][4 * half], q);
		}
	}
}

static __device__ __forceinline__ bool dropped(uint32_t word, int high, uint32_t threshold)
{
	return (high ? word >> 16 : word & 0xffff) < threshold;
}

static __device__ __forceinline__ float quad_max(float x)
{
	x = fmaxf(x, __shfl_xor_sync(WARP_ALL, x, 1));
	return fmaxf(x, __shfl_xor_sync(WARP_ALL, x, 2));
}

static __device__ __forceinline__ float quad_sum(float x)
{
	x += __shfl_xor_sync(WARP_ALL, x, 1);
	return x + __shfl_xor_sync(WARP_ALL, x, 2);
}

struct where { /* what a block works on */
	uint32_t t0, len; /* the cell */
	uint32_t from;    /* the block's first row in it */
	uint32_t key, head, lane, row0; /* row0: the warp's first of the block's 64 rows */
};

struct cells { /* of struct seq */
	const uint32_t *tile, *offset, *pos, *cell, *key;
};

/* Blocks 2i and 2i + 1 share tile i of the list: SEQ_TILE is twice TILE. Past the cell's end, or the list's: from >= len. */
static __device__ __forceinline__ struct where where_am_i(const struct cells &c)
{
	struct where w = {};
	uint32_t t = c.tile[blockIdx.x / 2];
	if (t == ROW_NONE)
		return w;
	uint32_t b = c.cell[t];
	w.t0 = c.offset[b];
	w.len = c.offset[b + 1] - w.t0;
	w.from = c.pos[t] + blockIdx.x % 2 * TILE;
	w.key = c.key[b];
	w.head = blockIdx.y;
	w.lane = threadIdx.x % 32;
	w.row0 = threadIdx.x / 32 * 16;
	return w;
}

/* Shared memory: Q, then two pairs of K and V. */
template <bool DROP> static __global__ void __launch_bounds__(TILE_THREADS) attend_kernel(bf16 *y, float *lse, const bf16 *qkv,
	struct cells cells, uint32_t C, uint32_t NH, float scale, struct drop d)
{
	SHARED_TILES(sq);
	bf16 *sk = sq + TILE_SIZE, *sv = sk + 2 * TILE_SIZE;
	const struct where w = where_am_i(cells);
	if (w.from >= w.len)
		return;
	read_step(d);
	const size_t S = 3 * (size_t)C;
	const bf16 *q = qkv + w.t0 * S + w.head * TILE, *k = q + C, *v = k + C;
	const uint32_t row = w.row0 + w.lane / 4, quad = w.lane % 4;
	const float scale2 = scale * LOG2E;
	uint32_t qa[4][4];
	float acc[8][4], top[2] = { -INFINITY, -INFINITY }, sum[2] = { 0, 0 };
	zero_tile(acc);

	load_tile(sq, q + w.from * S, S, w.len - w.from);
	load_tile(sk, k, S, w.len);
	load_tile(sv, v, S, w.len);
	copy_commit();
	for (uint32_t j0 = 0, turn = 0; j0 < w.len; j0 += TILE, turn ^= 1) {
		if (j0 + TILE < w.len) {
			load_tile(sk + (turn ^ 1) * TILE_SIZE, k + (j0 + TILE) * S, S, w.len - j0 - TILE);
			load_tile(sv + (turn ^ 1) * TILE_SIZE, v + (j0 + TILE) * S, S, w.len - j0 - TILE);
		}
		copy_commit();
		copy_wait<1>();
		__syncthreads();
		if (j0 == 0)
			load_a(qa, sq, w.row0, w.lane);

		float s[8][4];
		zero_tile(s);
		mma_nt(s, qa, sk + turn * TILE_SIZE, w.lane);
		if (j0 + TILE > w.len)
#pragma unroll
			for (int n = 0; n < 8; n++)
#pragma unroll
				for (int i = 0; i < 4; i++)
					if (j0 + 8 * n + 2 * quad + i % 2 >= w.len)
						s[n][i] = -INFINITY;
#pragma unroll
		for (int r = 0; r < 2; r++) {
			float up = top[r];
#pragma unroll
			for (int n = 0; n < 8; n++)
				up = fmaxf(up, fmaxf(s[n][2 * r], s[n][2 * r + 1]));
			up = quad_max(up);
			float shrink = exp2f((top[r] - up) * scale2), base = up * scale2, l = 0;
			top[r] = up;
#pragma unroll
			for (int n = 0; n < 8; n++) {
#pragma unroll
				for (int i = 2 * r; i < 2 * r + 2; i++) {
					s[n][i] = exp2f(s[n][i] * scale2 - base);
					l += s[n][i];
					acc[n][i] *= shrink;
				}
			}
			sum[r] = sum[r] * shrink + l;
		}
		if (DROP) {
			uint32_t bits[2][8];
			tile_bits(bits, d, w.head, w.from + row, j0, w.key, quad);
#pragma unroll
			for (int n = 0; n < 8; n++)
#pragma unroll
				for (int i = 0; i < 4; i++)
					if (dropped(bits[i / 2][n], i % 2, d.threshold))
						s[n][i] = 0;
		}
		uint32_t pa[4][4];
		to_a(pa, s);
		mma_nn(acc, pa, sv + turn * TILE_SIZE, w.lane);
		__syncthreads();
	}
	float factor[2];
#pragma unroll
	for (int r = 0; r < 2; r++) {
		float l = quad_sum(sum[r]);
		uint32_t i = w.from + row + 8 * r;
		factor[r] = (DROP ? d.scale : 1) / l;
		if (quad == 0 && i < w.len)
			lse[(size_t)(w.t0 + i) * NH + w.head] = top[r] * scale + logf(l);
	}
	to_memory(y + (size_t)(w.t0 + w.from) * C + w.head * TILE, C, acc, factor, w.row0, w.len - w.from, w.lane);
}

/*
 * From scores s and g = dY V^T of a tile: p = M P (what multiplied v) and ds = P (M g - delta), both 16 x 64 of the warp, in
 * place. Queries i0 + row (+ 8), keys j0 + ...; both beyond the cell's end give 0.
 */
template <bool DROP> static __device__ __forceinline__ void score_back(float s[8][4], float g[8][4], const struct where &w, uint32_t i, uint32_t j0,
	const float lse2[2], const float delta[2], float scale2, const struct drop &d)
{
	const uint32_t quad = w.lane % 4;
	uint32_t bits[2][8];
	if (DROP)
		tile_bits(bits, d, w.head, i, j0, w.key, quad);
#pragma unroll
	for (int n = 0; n < 8; n++) {
#pragma unroll
		for (int k = 0; k < 4; k++) {
			int r = k / 2;
			bool in = i + 8 * r < w.len && j0 + 8 * n + 2 * quad + k % 2 < w.len;
			float p = in ? exp2f(s[n][k] * scale2 - lse2[r]) : 0, keep = 1;
			if (DROP)
				keep = dropped(bits[r][n], k % 2, d.threshold) ? 0 : d.scale;
			s[n][k] = p * keep;
			g[n][k] = p * (keep * g[n][k] - delta[r]);
		}
	}
}

/* lse (times log2 e) and delta of a lane's two queries. */
static __device__ __forceinline__ void row_terms(float lse2[2], float delta[2], const float *lse, const float *del, const struct where &w, uint32_t i,
	uint32_t NH)
{
#pragma unroll
	for (int r = 0; r < 2; r++) {
		bool in = i + 8 * r < w.len;
		size_t at = (size_t)(w.t0 + i + 8 * r) * NH + w.head;
		lse2[r] = in ? lse[at] * LOG2E : 0;
		delta[r] = in ? del[at] : 0;
	}
}

/* dq = ds K / sqrt(D). Shared memory: Q, dY, then two pairs of K and V. */
template <bool DROP> static __global__ void __launch_bounds__(TILE_THREADS) query_kernel(bf16 *dqkv, const bf16 *dy, const float *del,
	const float *lse, const bf16 *qkv, struct cells cells, uint32_t C, uint32_t NH, float scale,
	struct drop d)
{
	SHARED_TILES(sq);
	bf16 *sg = sq + TILE_SIZE, *sk = sg + TILE_SIZE, *sv = sk + 2 * TILE_SIZE;
	const struct where w = where_am_i(cells);
	if (w.from >= w.len)
		return;
	read_step(d);
	const size_t S = 3 * (size_t)C;
	const bf16 *q = qkv + w.t0 * S + w.head * TILE, *k = q + C, *v = k + C;
	const uint32_t i = w.from + w.row0 + w.lane / 4;
	uint32_t qa[4][4], ga[4][4];
	float acc[8][4], lse2[2], delta[2];
	zero_tile(acc);
	row_terms(lse2, delta, lse, del, w, i, NH);

	load_tile(sq, q + w.from * S, S, w.len - w.from);
	load_tile(sg, dy + (size_t)(w.t0 + w.from) * C + w.head * TILE, C, w.len - w.from);
	load_tile(sk, k, S, w.len);
	load_tile(sv, v, S, w.len);
	copy_commit();
	for (uint32_t j0 = 0, turn = 0; j0 < w.len; j0 += TILE, turn ^= 1) {
		if (j0 + TILE < w.len) {
			load_tile(sk + (turn ^ 1) * TILE_SIZE, k + (j0 + TILE) * S, S, w.len - j0 - TILE);
			load_tile(sv + (turn ^ 1) * TILE_SIZE, v + (j0 + TILE) * S, S, w.len - j0 - TILE);
		}
		copy_commit();
		copy_wait<1>();
		__syncthreads();
		if (j0 == 0) {
			load_a(qa, sq, w.row0, w.lane);
			load_a(ga, sg, w.row0, w.lane);
		}
		float s[8][4], g[8][4];
		zero_tile(s);
		zero_tile(g);
		mma_nt(s, qa, sk + turn * TILE_SIZE, w.lane);
		mma_nt(g, ga, sv + turn * TILE_SIZE, w.lane);
		score_back<DROP>(s, g, w, i, j0, lse2, delta, scale * LOG2E, d);
		uint32_t a[4][4];
		to_a(a, g);
		mma_nn(acc, a, sk + turn * TILE_SIZE, w.lane);
		__syncthreads();
	}
	const float factor[2] = { scale, scale };
	to_memory(dqkv + (size_t)(w.t0 + w.from) * S + w.head * TILE, S, acc, factor, w.row0, w.len - w.from, w.lane);
}

/* dv = (M P)^T dY, dk = ds^T Q / sqrt(D). Shared memory: K, V, M P, ds, then two pairs of Q and dY. */
template <bool DROP> static __global__ void __launch_bounds__(TILE_THREADS) key_kernel(bf16 *dqkv, const bf16 *dy, const float *del,
	const float *lse, const bf16 *qkv, struct cells cells, uint32_t C, uint32_t NH, float scale,
	struct drop d)
{
	SHARED_TILES(sk);
	bf16 *sv = sk + TILE_SIZE, *sp = sv + TILE_SIZE, *sd = sp + TILE_SIZE, *sq = sd + TILE_SIZE, *sg = sq + 2 * TILE_SIZE;
	const struct where w = where_am_i(cells);
	if (w.from >= w.len)
		return;
	read_step(d);
	const size_t S = 3 * (size_t)C;
	const bf16 *q = qkv + w.t0 * S + w.head * TILE, *k = q + C, *v = k + C, *y = dy + (size_t)w.t0 * C + w.head * TILE;
	float dk[8][4], dv[8][4];
	zero_tile(dk);
	zero_tile(dv);

	load_tile(sk, k + w.from * S, S, w.len - w.from);
	load_tile(sv, v + w.from * S, S, w.len - w.from);
	load_tile(sq, q, S, w.len);
	load_tile(sg, y, C, w.len);
	copy_commit();
	for (uint32_t i0 = 0, turn = 0; i0 < w.len; i0 += TILE, turn ^= 1) {
		const bf16 *tq = sq + turn * TILE_SIZE, *tg = sg + turn * TILE_SIZE;
		const uint32_t i = i0 + w.row0 + w.lane / 4;
		float lse2[2], delta[2];
		row_terms(lse2, delta, lse, del, w, i, NH);
		if (i0 + TILE < w.len) {
			load_tile(sq + (turn ^ 1) * TILE_SIZE, q + (i0 + TILE) * S, S, w.len - i0 - TILE);
			load_tile(sg + (turn ^ 1) * TILE_SIZE, y + (size_t)(i0 + TILE) * C, C, w.len - i0 - TILE);
		}
		copy_commit();
		copy_wait<1>();
		__syncthreads();

		float s[8][4], g[8][4];
		uint32_t a[4][4];
		zero_tile(s);
		zero_tile(g);
		load_a(a, tq, w.row0, w.lane);
		mma_nt(s, a, sk, w.lane);
		load_a(a, tg, w.row0, w.lane);
		mma_nt(g, a, sv, w.lane);
		score_back<DROP>(s, g, w, i, w.from, lse2, delta, scale * LOG2E, d);
		to_tile(sp, s, w.row0, w.lane);
		to_tile(sd, g, w.row0, w.lane);
		__syncthreads();
		load_a_trans(a, sp, w.row0, w.lane);
		mma_nn(dv, a, tg, w.lane);
		load_a_trans(a, sd, w.row0, w.lane);
		mma_nn(dk, a, tq, w.lane);
		__syncthreads();
	}
	const float one[2] = { 1, 1 }, factor[2] = { scale, scale };
	bf16 *out = dqkv + (size_t)(w.t0 + w.from) * S + w.head * TILE;
	to_memory(out + C, S, dk, factor, w.row0, w.len - w.from, w.lane);
	to_memory(out + 2 * (size_t)C, S, dv, one, w.row0, w.len - w.from, w.lane);
}

static_assert(SEQ_TILE == 2 * TILE, "where_am_i");

static struct cells cells_of(const struct seq *s)
{
	return (struct cells){ s->tile, s->offset, s->pos, s->cell, s->key };
}

void attention_mma(struct cuda *c, bf16 *y, float *lse, const bf16 *qkv, const struct seq *s, size_t C, size_t NH, const struct dropout *d)
{
	launch(c, "attention", d && d->threshold ? attend_kernel<true> : attend_kernel<false>, dim3(2 * (unsigned)s->ntile, (unsigned)NH),
		TILE_THREADS, 5 * TILE_SIZE * sizeof(bf16), y, lse, qkv, cells_of(s), C, NH, 0.125f, drop_of(d));
}

void attention_mma_back(struct cuda *c, bf16 *dqkv, const bf16 *dy, const float *delta, const float *lse, const bf16 *qkv,
	const struct seq *s, size_t C, size_t NH, const struct dropout *d)
{
	dim3 grid(2 * (unsigned)s->ntile, (unsigned)NH);
	int on = d && d->threshold;
	launch(c, "attention_back", on ? query_kernel<true> : query_kernel<false>, grid, TILE_THREADS, 6 * TILE_SIZE * sizeof(bf16), dqkv, dy, delta,
		lse, qkv, cells_of(s), C, NH, 0.125f, drop_of(d));
	launch(c, "attention_back", on ? key_kernel<true> : key_kernel<false>, grid, TILE_THREADS, 8 * TILE_SIZE * sizeof(bf16), dqkv, dy, delta,
		lse, qkv, cells_of(s), C, NH, 0.125f, drop_of(d));
}
