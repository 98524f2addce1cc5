/*
 * Flash attention by Hopper's own instructions (wgmma.cuh), for heads of 64 channels: what attention_mma.cu does, for the same arguments, where
 * the card is an sm_90.
 *
 * A block of two groups of four warps takes 128 queries (forward, dq) or 128 keys (dk and dv), 64 a group and 16 a warp. Factors come from
 * shared memory, so that registers hold nothing but scores (32 a lane), their gradient (32) and sums (32 each): two blocks a multiprocessor
 * for forward and dq, one for dk and dv. While products run, lanes draw decisions or make exponentials.
 *
 * Decisions of dropout in memory: a word a lane of the forward, on the warp's 16 queries and 64 keys; bit 4 n + 2 r + i for d[n][r][i], 1
 * to keep.
 */
#include "attention.cuh"
#include "wgmma.cuh"

enum {
	D = 64,
	GROUP = 128, /* threads */
	GROUP_ROWS = 64,
	THREADS = 2 * GROUP,
	ROWS = 16, /* of a warp */
	ALIGN = 1024,
	/* bytes of shared memory */
	DRAWN = 8 * ROWS * 16, /* a warp's 16-bit decisions: [group of eight keys][query][key] */
	TERMS = 2 * TILE * sizeof(float), /* -lse (log2) and -delta of each of 64 queries */
	KEPT = THREADS * sizeof(uint32_t), /* decisions on a tile's 64 queries and the block's 128 keys */
};

#define SCALE2 (SCALE<D> * LOG2E)

/* The warp's decisions on queries and keys `query` .. + 16 and `key` .. + 64. */
static __device__ __forceinline__ void draw(
	char *drawn, const struct drop &d, uint32_t head, uint32_t query, uint32_t key, uint32_t cell, uint32_t lane)
{
	__syncwarp();
#pragma unroll
	for (uint32_t c = 0; c < 4; c++) {
		uint32_t w[4];
		drop_bits(w, d, head, query + lane % 16, key / 8 + lane / 16 + 2 * c, cell);
		*(uint4 *)(drawn + (c * 32 + lane) * 16) = make_uint4(w[0], w[1], w[2], w[3]);
	}
	__syncwarp();
}

/* Scores of keys past the cell's end: probability 0. `in`: how many of the tile's are in it. */
static __device__ __forceinline__ void mask(float s[8][2][2], uint32_t in, uint32_t lane)
{
#pragma unroll
	for (int n = 0; n < 8; n++)
#pragma unroll
		for (int i = 0; i < 2; i++)
			if (8 * n + 2 * (lane % 4) + i >= in)
				s[n][0][i] = s[n][1][i] = -INFINITY;
}

/* The rows below n of a result times factor[r] to memory; row0 is the warp's first. */
static __device__ __forceinline__ void to_rows(
	bf16 *to, size_t stride, const float d[8][2][2], const float factor[2], uint32_t row0, uint32_t n, uint32_t lane)
{
#pragma unroll
	for (int r = 0; r < 2; r++) {
		uint32_t row = row0 + lane / 4 + 8 * r;
		if (row < n)
#pragma unroll
			for (int k = 0; k < 8; k++)
				*(uint32_t *)(to + row * stride + 8 * k + 2 * (lane % 4)) =
					pack_bf16(d[k][r][0] * factor[r], d[k][r][1] * factor[r]);
	}
}

static __device__ __forceinline__ void zeros(float d[8][2][2])
{
#pragma unroll
	for (int n = 0; n < 8; n++)
		d[n][0][0] = d[n][0][1] = d[n][1][0] = d[n][1][1] = 0;
}

/*
 * The forward's softmax of one tile: s becomes exp(s - top), unnormalised; top and sum are the rows' so far, and acc shrinks where top grows.
 * What the exponents are taken relative to should be near the row's largest score so far, but need not be it: the sums are shrunk only
 * when a score stands a factor of 2^8 above, which after the first tile is rare.
 */
static __device__ __forceinline__ void soften(float s[8][2][2], float acc[8][2][2], float top[2], float sum[2])
{
	float high[2];
	bool grow = false;
#pragma unroll
	for (int r = 0; r < 2; r++) {
		high[r] = -INFINITY;
#pragma unroll
		for (int n = 0; n < 8; n++)
			high[r] = fmaxf(high[r], fmaxf(s[n][r][0], s[n][r][1]));
		grow |= high[r] > top[r] + 8 / SCALE2;
	}
	if (__any_sync(WARP_ALL, grow)) {
#pragma unroll
		for (int r = 0; r < 2; r++) {
			float up = fmaxf(top[r], quad_max(high[r])), shrink = exp2_fast((top[r] - up) * SCALE2);
			top[r] = up;
			sum[r] *= shrink;
#pragma unroll
			for (int n = 0; n < 8; n++)
				acc[n][r][0] *= shrink, acc[n][r][1] *= shrink;
		}
	}
#pragma unroll
	for (int n = 0; n < 8; n++)
#pragma unroll
		for (int r = 0; r < 2; r++)
#pragma unroll
			for (int i = 0; i < 2; i++) {
				s[n][r][i] = exp2_fast(s[n][r][i] * SCALE2 - top[r] * SCALE2);
				sum[r] += s[n][r][i];
			}
}

/* s is 0 where the decisions drawn say so. Returns them. */
static __device__ __forceinline__ uint32_t drop_scores(float s[8][2][2], uint32_t bits, uint32_t threshold)
{
	uint32_t mine = 0;
#pragma unroll
	for (int n = 0; n < 8; n += 2) {
		uint32_t word[4]; /* [n, n + 1][r], two keys */
		ldmatrix(word, bits + n * 256);
#pragma unroll
		for (int k = 0; k < 4; k++)
#pragma unroll
			for (int i = 0; i < 2; i++)
				if (kept(word[k], i, threshold))
					mine |= 1u << (4 * n + 2 * k + i);
				else
					s[n + k / 2][k % 2][i] = 0;
	}
	return mine;
}

/* Shared memory: Q, two pairs of K and V, decisions. */
template <bool DROP>
static __global__ void __launch_bounds__(THREADS, 2) attend_wgmma_kernel(
	bf16 *y, float *lse, const bf16 *qkv, struct cells cells, uint32_t C, uint32_t NH, struct drop d, struct decisions decisions)
{
	SHARED(raw);
	char *shared = raw + (-shared_at(raw) & (ALIGN - 1));
	const struct where w = where_am_i(cells, NH, ROWS);
	if (w.len == 0)
		return;
	read_step(d);
	const uint32_t S = 3 * C, group = threadIdx.x / GROUP, first = shared_at(shared), stage = first + PAIR;
	const bf16 *q = qkv + w.head * D, *k = q + C, *v = k + C;
	char *drawn = shared + 3 * PAIR + threadIdx.x / 32 * DRAWN;
	uint32_t *keep = DROP ? decisions_at(decisions, w, NH, w.from, 0) + threadIdx.x : NULL;
	const uint64_t query = wgmma_tile(first + group * TILE_SIZE);
	float acc[8][2][2], top[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
	zeros(acc);

	load_tile<BLOCK_ROWS, D, THREADS>(first, q, w.t0 + w.from, S, w.len - w.from);
	load_tile<TILE, D, THREADS>(stage, k, w.t0, S, w.len);
	load_tile<TILE, D, THREADS>(stage + TILE_SIZE, v, w.t0, S, w.len);
	copy_commit();
	for (uint32_t j = 0, turn = 0; j < w.len; j += TILE, turn = PAIR - turn) {
		copy_wait<0>();
		wgmma_wait<0>(acc);
		wgmma_tiles_written();
		__syncthreads();
		if (j + TILE < w.len) {
			const uint32_t next = stage + PAIR - turn;
			load_tile<TILE, D, THREADS>(next, k, w.t0 + j + TILE, S, w.len - j - TILE);
			load_tile<TILE, D, THREADS>(next + TILE_SIZE, v, w.t0 + j + TILE, S, w.len - j - TILE);
		}
		copy_commit();
		if (w.from + group * GROUP_ROWS >= w.len)
			continue;
		float s[8][2][2];
		wgmma_fence();
		wgmma_nt(s, query, wgmma_tile(stage + turn));
		wgmma_commit();
		if (DROP)
			draw(drawn, d, w.head, w.from + w.row0, j, w.key, w.lane);
		wgmma_wait<0>(s);
		if (j + TILE > w.len)
			mask(s, w.len - j, w.lane);
		soften(s, acc, top, sum);
		if (DROP)
			keep[j / 32 * TILE_THREADS] = drop_scores(s, shared_at(drawn) + w.lane * 16, d.threshold);
		uint32_t a[4][4];
		wgmma_left(a, s);
		wgmma_fence();
		wgmma_nn(acc, a, wgmma_tile(stage + turn + TILE_SIZE));
		wgmma_commit();
	}
	wgmma_wait<0>(acc);
	float factor[2];
#pragma unroll
	for (int r = 0; r < 2; r++) {
		float l = quad_sum(sum[r]);
		uint32_t i = w.from + w.row0 + w.lane / 4 + 8 * r;
		factor[r] = (DROP ? d.scale : 1) / l;
		if (w.lane % 4 == 0 && i < w.len)
			lse[(size_t)(w.t0 + i) * NH + w.head] = top[r] * SCALE<D> + logf(l);
	}
	to_rows(y + (size_t)(w.t0 + w.from) * C + w.head * D, C, acc, factor, w.row0, w.len - w.from, w.lane);
}

/*
 * dq, as query_mma_kernel has it. Shared memory: Q and dY, two pairs of K and V.
 * Long: scores and sums live in registers.
 */
template <bool DROP>
static __global__ void __launch_bounds__(THREADS, 2) query_wgmma_kernel(bf16 *dqkv, const bf16 *dy, const float *del, const float *lse,
	const bf16 *qkv, struct cells cells, uint32_t C, uint32_t NH, float factor, struct decisions decisions)
{
	SHARED(raw);
	char *shared = raw + (-shared_at(raw) & (ALIGN - 1));
	const struct where w = where_am_i(cells, NH, ROWS);
	if (w.len == 0)
		return;
	const uint32_t S = 3 * C, group = threadIdx.x / GROUP, first = shared_at(shared), stage = first + 2 * PAIR;
	const bf16 *q = qkv + w.head * D, *k = q + C, *v = k + C;
	const uint32_t *keep = DROP ? decisions_at(decisions, w, NH, w.from, 0) + threadIdx.x : NULL;
	const uint64_t query = wgmma_tile(first + group * TILE_SIZE), grad = wgmma_tile(first + PAIR + group * TILE_SIZE);
	const bool idle = w.from + group * GROUP_ROWS >= w.len;
	float acc[8][2][2], base[2], minus[2]; /* base: -lse, log2 */
	zeros(acc);

	load_tile<BLOCK_ROWS, D, THREADS>(first, q, w.t0 + w.from, S, w.len - w.from);
	load_tile<BLOCK_ROWS, D, THREADS>(first + PAIR, dy + w.head * D, w.t0 + w.from, C, w.len - w.from);
	load_tile<TILE, D, THREADS>(stage, k, w.t0, S, w.len);
	load_tile<TILE, D, THREADS>(stage + TILE_SIZE, v, w.t0, S, w.len);
	copy_commit();
#pragma unroll
	for (int r = 0; r < 2; r++) {
		uint32_t i = w.from + w.row0 + w.lane / 4 + 8 * r;
		size_t at = (size_t)(w.t0 + i) * NH + w.head;
		base[r] = i < w.len ? -LOG2E * lse[at] : 0;
		minus[r] = i < w.len ? -del[at] / factor : 0;
	}
	uint32_t next_kept = DROP && !idle ? keep[0] : 0;
	for (uint32_t j = 0, turn = 0; j < w.len; j += TILE, turn = PAIR - turn) {
		copy_wait<0>();
		wgmma_wait<0>(acc);
		wgmma_tiles_written();
		__syncthreads();
		const uint32_t mine = next_kept;
		if (j + TILE < w.len) {
			const uint32_t next = stage + PAIR - turn;
			load_tile<TILE, D, THREADS>(next, k, w.t0 + j + TILE, S, w.len - j - TILE);
			load_tile<TILE, D, THREADS>(next + TILE_SIZE, v, w.t0 + j + TILE, S, w.len - j - TILE);
			if (DROP && !idle)
				next_kept = keep[(j + TILE) / 32 * TILE_THREADS];
		}
		copy_commit();
		if (idle)
			continue;
		const uint64_t key = wgmma_tile(stage + turn), value = wgmma_tile(stage + turn + TILE_SIZE);
		float s[8][2][2], g[8][2][2];
		wgmma_fence();
		wgmma_nt(s, query, key);
		wgmma_commit();
		wgmma_nt(g, grad, value);
		wgmma_commit();
		wgmma_wait<1>(s);
		if (j + TILE > w.len)
			mask(s, w.len - j, w.lane);
#pragma unroll
		for (int n = 0; n < 8; n++)
#pragma unroll
			for (int r = 0; r < 2; r++)
#pragma unroll
				for (int i = 0; i < 2; i++)
					s[n][r][i] = exp2_fast(s[n][r][i] * SCALE2 + base[r]);
		wgmma_wait<0>(g);
#pragma unroll
		for (int n = 0; n < 8; n++)
#pragma unroll
			for (int r = 0; r < 2; r++)
#pragma unroll
				for (int i = 0; i < 2; i++) {
					bool keeps = !DROP || mine >> (4 * n + 2 * r + i) & 1;
					g[n][r][i] = s[n][r][i] * ((keeps ? g[n][r][i] : 0) + minus[r]);
				}
		uint32_t a[4][4];
		wgmma_left(a, g);
		wgmma_fence();
		wgmma_nn(acc, a, key);
		wgmma_commit();
	}
	wgmma_wait<0>(acc);
	const float last = SCALE<D> * factor, lasts[2] = {last, last};
	to_rows(dqkv + (size_t)(w.t0 + w.from) * S + w.head * D, S, acc, lasts, w.row0, w.len - w.from, w.lane);
}

/*
 * From the words on 64 queries x 64 keys, four warps of the forward: this lane's word on the transposed scores of keys 16 `warp` onwards, bit
 * 8 (n / 2) + 4 r + 2 (n % 2) + e for (key g + 8 r, query 8 n + 2 q + e). That element was in lane 4 (2 q + e) + g / 2 of warp n / 2,
 * in byte `warp` as bit 4 r + 2 (n % 2) + g % 2.
 */
static __device__ __forceinline__ uint32_t transposed(const uint32_t word[GROUP], uint32_t warp, uint32_t lane)
{
	const uint8_t *byte = (const uint8_t *)(word + lane % 4 * 8 + lane / 8) + warp;
	const uint32_t odd = lane / 4 % 2;
	uint32_t x = 0;
#pragma unroll
	for (int f = 0; f < 4; f++)
#pragma unroll
		for (int e = 0; e < 2; e++)
			x |= (byte[(f * 32 + 4 * e) * 4] >> odd & 0x55u) << (8 * f + e);
	return x;
}

/*
 * dk and dv, as key_mma_kernel has them. Shared memory: K and V, two pairs of Q and dY; two times terms and decisions.
 * Long: as above.
 */
template <bool DROP>
static __global__ void __launch_bounds__(THREADS, 1) key_wgmma_kernel(bf16 *dqkv, const bf16 *dy, const float *del, const float *lse,
	const bf16 *qkv, struct cells cells, uint32_t C, uint32_t NH, float factor, struct decisions decisions)
{
	SHARED(raw);
	char *shared = raw + (-shared_at(raw) & (ALIGN - 1));
	const struct where w = where_am_i(cells, NH, ROWS);
	if (w.len == 0)
		return;
	const uint32_t S = 3 * C, group = threadIdx.x / GROUP, first = shared_at(shared), stage = first + 2 * PAIR;
	const bf16 *q = qkv + w.head * D, *k = q + C, *v = k + C, *y = dy + w.head * D;
	const uint64_t key = wgmma_tile(first + group * TILE_SIZE), value = wgmma_tile(first + PAIR + group * TILE_SIZE);
	const bool idle = w.from + group * GROUP_ROWS >= w.len;
	char *terms = shared + 4 * PAIR, *words = terms + 2 * TERMS; /* two of each */
	/* Each of 64 threads brings 16 bytes of decisions: 64 queries are half of what lies together for 64 keys. */
	const bool brings = DROP && threadIdx.x < KEPT / 16;
	const uint32_t piece = threadIdx.x / 32 * THREADS + threadIdx.x % 32 * 4;
	/* Each thread of the first group brings one term of a tile. */
	const bool odd = threadIdx.x % 2;
	const float *term = (odd ? del : lse) + w.head, times = odd ? -1 / factor : -LOG2E;
	const uint32_t mine = threadIdx.x / 2;
	float dk[8][2][2], dv[8][2][2];
	zeros(dk);
	zeros(dv);

	load_tile<BLOCK_ROWS, D, THREADS>(first, k, w.t0 + w.from, S, w.len - w.from);
	load_tile<BLOCK_ROWS, D, THREADS>(first + PAIR, v, w.t0 + w.from, S, w.len - w.from);
	load_tile<TILE, D, THREADS>(stage, q, w.t0, S, w.len);
	load_tile<TILE, D, THREADS>(stage + TILE_SIZE, y, w.t0, C, w.len);
	if (brings)
		copy16(shared_at(words) + threadIdx.x * 16, decisions_at(decisions, w, NH, 0, w.from) + piece, true);
	copy_commit();
	float next_term = group == 0 && mine < w.len ? term[(size_t)(w.t0 + mine) * NH] * times : 0;
	for (uint32_t i = 0, turn = 0; i < w.len; i += TILE, turn = 1 - turn) {
		copy_wait<0>();
		wgmma_wait<0>(dv);
		wgmma_wait<0>(dk);
		if (group == 0)
			((float *)(terms + turn * TERMS))[threadIdx.x] = next_term;
		wgmma_tiles_written();
		__syncthreads();
		if (i + TILE < w.len) {
			const uint32_t next = stage + (1 - turn) * PAIR;
			load_tile<TILE, D, THREADS>(next, q, w.t0 + i + TILE, S, w.len - i - TILE);
			load_tile<TILE, D, THREADS>(next + TILE_SIZE, y, w.t0 + i + TILE, C, w.len - i - TILE);
			if (brings)
				copy16(shared_at(words) + (1 - turn) * KEPT + threadIdx.x * 16,
					decisions_at(decisions, w, NH, i + TILE, w.from) + piece + (i + TILE) % BLOCK_ROWS / TILE * GROUP,
					true);
			if (group == 0)
				next_term = i + TILE + mine < w.len ? term[(size_t)(w.t0 + i + TILE + mine) * NH] * times : 0;
		}
		copy_commit();
		if (idle)
			continue;
		const uint64_t query = wgmma_tile(stage + turn * PAIR), grad = wgmma_tile(stage + turn * PAIR + TILE_SIZE);
		const float4 *term4 = (const float4 *)(terms + turn * TERMS) + w.lane % 4; /* -lse (log2) and -delta of two queries */
		float s[8][2][2], g[8][2][2];
		wgmma_fence();
		wgmma_nt(s, key, query);
		wgmma_commit();
		wgmma_nt(g, value, grad);
		wgmma_commit();
		const uint32_t keep =
			DROP ? transposed((const uint32_t *)(words + turn * KEPT) + group * GROUP, threadIdx.x / 32 % 4, w.lane) : 0;
		wgmma_wait<1>(s);
		uint32_t a[4][4], b[4][4];
#pragma unroll
		for (int n = 0; n < 8; n++) {
			const float4 t = term4[4 * n];
#pragma unroll
			for (int r = 0; r < 2; r++) {
				float p[2];
#pragma unroll
				for (int e = 0; e < 2; e++) {
					s[n][r][e] = exp2_fast(s[n][r][e] * SCALE2 + (e ? t.z : t.x));
					p[e] = !DROP || keep >> (8 * (n / 2) + 4 * r + 2 * (n % 2) + e) & 1 ? s[n][r][e] : 0;
				}
				a[n / 2][n % 2 * 2 + r] = pack_bf16(p[0], p[1]);
			}
		}
		wgmma_fence();
		wgmma_nn(dv, a, grad);
		wgmma_commit();
		wgmma_wait<1>(g);
#pragma unroll
		for (int n = 0; n < 8; n++) {
			const float4 t = term4[4 * n];
#pragma unroll
			for (int r = 0; r < 2; r++)
#pragma unroll
				for (int e = 0; e < 2; e++) {
					bool keeps = !DROP || keep >> (8 * (n / 2) + 4 * r + 2 * (n % 2) + e) & 1;
					g[n][r][e] = s[n][r][e] * ((keeps ? g[n][r][e] : 0) + (e ? t.w : t.y));
				}
		}
		wgmma_left(b, g);
		wgmma_fence();
		wgmma_nn(dk, b, query);
		wgmma_commit();
	}
	wgmma_wait<0>(dv);
	wgmma_wait<0>(dk);
	const float fv[2] = {factor, factor}, last = SCALE<D> * factor, fk[2] = {last, last};
	bf16 *out = dqkv + (size_t)(w.t0 + w.from) * S + w.head * D;
	to_rows(out + C, S, dk, fk, w.row0, w.len - w.from, w.lane);
	to_rows(out + 2 * (size_t)C, S, dv, fv, w.row0, w.len - w.from, w.lane);
}

static_assert((int)BLOCK_ROWS == 2 * GROUP_ROWS && (int)TILE_THREADS == GROUP && GROUP_ROWS == (int)TILE, "decisions_at");

void attention_wgmma(
	struct cuda *c, bf16 *y, float *lse, const bf16 *qkv, const struct seq *s, size_t C, size_t NH, const struct dropout *d)
{
	int on = d && d->threshold;
	launch(c, "attention", on ? attend_wgmma_kernel<true> : attend_wgmma_kernel<false>, dim3((unsigned)(s->ntile * NH)), THREADS,
		ALIGN + 3 * PAIR + (on ? THREADS / 32 * DRAWN : 0), y, lse, qkv, cells_of(s), C, NH, drop_of(d), decisions_of(d, s->T));
}

void attention_wgmma_back(struct cuda *c, bf16 *dqkv, const bf16 *dy, const float *delta, const float *lse, const bf16 *qkv,
	const struct seq *s, size_t C, size_t NH, const struct dropout *d)
{
	dim3 grid((unsigned)(s->ntile * NH));
	int on = d && d->threshold;
	float factor = on ? drop_of(d).scale : 1;
	launch(c, "attention_back", on ? query_wgmma_kernel<true> : query_wgmma_kernel<false>, grid, THREADS, ALIGN + 4 * PAIR, dqkv, dy,
		delta, lse, qkv, cells_of(s), C, NH, factor, decisions_of(d, s->T));
	launch(c, "attention_back", on ? key_wgmma_kernel<true> : key_wgmma_kernel<false>, grid, THREADS,
		ALIGN + 4 * PAIR + 2 * (TERMS + KEPT), dqkv, dy, delta, lse, qkv, cells_of(s), C, NH, factor, decisions_of(d, s->T));
}
