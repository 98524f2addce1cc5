/*
 * Flash attention on tensor cores for packed cells: bf16, head sizes D of 16, 32 and 64, both directions [Dao 2023, FlashAttention-2].
 *
 * A block of four warps takes 128 queries (forward, dq) or 128 keys (dk and dv) of one (cell, head), 32 a warp, and walks over the
 * cell's tiles of 64 of the other kind, the next pair of tiles being copied while this one is worked on. Rows past the cell's
 * end are zeros; only the last tile's scores are masked. dq and dk/dv are two kernels that both make the scores again: more
 * arithmetic than one kernel with atomics, but every sum has one order.
 *
 * A tile is worked on in steps of 32, as registers ask for. Forward: the scores of 32 keys (32 registers), the queries (32) and the sum
 * (64) leave room for three blocks a multiprocessor, and twelve warps hide each other's exponentials. Backward: two blocks; dq has two left
 * factors, dk and dv have two sums as well (192 registers in all), so that scores are made for 16 at a time.
 *
 * Dropout: eight keys of one query are one Philox call (ops.h): 16 bytes, and so a row of an 8 x 8 matrix of 16-bit decisions. In the
 * forward each lane makes the calls of its own query and stores them; ldmatrix then hands them out as it does any fragment. That is 8
 * instructions for 32 x 32 decisions; shuffles and selections took 48. The decisions are kept for the backward, a bit each (struct
 * decisions): its kernels bring them with the tiles.
 *
 * The three kernels are longer than our functions usually are: their inner loops keep tiles in registers, which cannot be passed to a
 * function that is not inlined, and nearly every line uses them.
 */
#include "attention.cuh"

enum { /* bytes of shared memory */
	PAIR_TERMS = PAIR + 2 * TILE * sizeof(float), /* then -lse (log2) and -delta of each of 64 queries */
	DRAWN = 4 * 32 * 16, /* a warp's 16-bit decisions: [group of eight keys][query][key] */
	KEPT = 4 * 2 * 128, /* decisions of a tile's 64 keys or queries and the block's 128 of the other, a bit each */
};

/* The warp's decisions on queries and keys `query` .. + 32 and `key` .. + 32. */
static __device__ __forceinline__ void draw(
	char *drawn, const struct drop &d, uint32_t head, uint32_t query, uint32_t key, uint32_t cell, uint32_t lane)
{
	__syncwarp();
#pragma unroll
	for (int c = 0; c < 4; c++) {
		uint32_t w[4];
		drop_bits(w, d, head, query + lane, key / 8 + c, cell);
		*(uint4 *)(drawn + (c * 32 + lane) * 16) = make_uint4(w[0], w[1], w[2], w[3]);
	}
	__syncwarp();
}

/*
 * The word of a lane on 32 queries x 32 keys has bit 8 n + 2 r + i for its element c[n][r][i] of the scores (mma.cuh); a step's words are
 * those of four warps.
 */

/*
 * From the 32 words on 32 queries x 32 keys: this lane's word on the transposed scores, bit 8 n + 2 r + e for (key g + 8 r, query 8 n + 2 q + e).
 * That element was in lane 4 (2 q + e) + g / 2, as bit 8 r + 2 n + g % 2.
 */
static __device__ __forceinline__ uint32_t transposed(const uint32_t word[32], uint32_t lane)
{
	const uint32_t at = lane % 4 * 8 + lane / 8, odd = lane / 4 % 2;
	uint32_t x = (word[at] >> odd & 0x55555555) | (word[at + 4] >> odd & 0x55555555) << 1, t; /* bit 8 r + 2 n + e */
	t = (x ^ x >> 6) & 0x00cc00cc; /* a matrix [r][n] of pairs: the corners of its 2 x 2 blocks change places */
	x ^= t ^ t << 6;
	t = (x ^ x >> 12) & 0x0000f0f0; /* and the blocks */
	x ^= t ^ t << 12;
	asm("" : "+r"(x)); /* or the compiler makes each bit of it from the words again */
	return x;
}

/* Scores of keys past the cell's end: probability 0. `in`: how many of the 8 N keys are in it. */
template <int N> static __device__ __forceinline__ void mask(float s[N][4][2], uint32_t in, uint32_t lane)
{
#pragma unroll
	for (int n = 0; n < N; n++)
#pragma unroll
		for (int i = 0; i < 2; i++)
			if (8 * n + 2 * (lane % 4) + i >= in)
				s[n][0][i] = s[n][1][i] = s[n][2][i] = s[n][3][i] = -INFINITY;
}

/*
 * Shared memory: two pairs of K and V, the second of which first holds Q; decisions.
 * Long: the fragments live in registers, and a call would pass them all.
 */
template <int D, bool DROP>
static __global__ void __launch_bounds__(TILE_THREADS, 3) attend_mma_kernel(
	bf16 *y, float *lse, const bf16 *qkv, struct cells cells, uint32_t C, uint32_t NH, struct drop d, struct decisions decisions)
{
	SHARED(shared);
	constexpr float SCALE2 = SCALE<D> * LOG2E;
	const struct where w = where_am_i(cells, NH, WARP_ROWS);
	if (w.len == 0)
		return;
	read_step(d);
	const uint32_t S = 3 * C;
	const bf16 *q = qkv + w.head * D, *k = q + C, *v = k + C;
	char *drawn = shared + 2 * PAIR + threadIdx.x / 32 * DRAWN;
	const uint32_t stage = shared_at(shared), bits = shared_at(drawn);
	uint32_t *keep = DROP ? decisions_at(decisions, w, NH, w.from, 0) + threadIdx.x : NULL;
	uint32_t qa[2][D / 16][4];
	float acc[D / 8][4][2], top[4], sum[4];
	zero<D / 8>(acc);
#pragma unroll
	for (int r = 0; r < 4; r++)
		top[r] = -INFINITY, sum[r] = 0;

	load_tile<BLOCK_ROWS, D>(stage + PAIR, q, w.t0 + w.from, S, w.len - w.from);
	load_tile<TILE, D>(stage, k, w.t0, S, w.len);
	load_tile<TILE, D>(stage + TILE_SIZE, v, w.t0, S, w.len);
	copy_commit();
	copy_wait<0>();
	__syncthreads();
	load_a<D>(qa, stage + PAIR, w.row0, w.lane);
	for (uint32_t j0 = 0, turn = 0; j0 < w.len; j0 += TILE, turn = PAIR - turn) {
		copy_wait<0>();
		__syncthreads();
		if (j0 + TILE < w.len) {
			const uint32_t next = stage + PAIR - turn;
			load_tile<TILE, D>(next, k, w.t0 + j0 + TILE, S, w.len - j0 - TILE);
			load_tile<TILE, D>(next + TILE_SIZE, v, w.t0 + j0 + TILE, S, w.len - j0 - TILE);
		}
		copy_commit();
		if (w.from + w.row0 >= w.len)
			continue;
#pragma unroll 1
		for (uint32_t j = j0; j < j0 + TILE && j < w.len; j += 32) {
			const uint32_t tile = stage + turn + (j - j0) * 128;
			if (DROP)
				draw(drawn, d, w.head, w.from + w.row0, j, w.key, w.lane);
			float s[4][4][2];
			zero<4>(s);
			mma_nt<4, D>(s, qa, tile + nt_at(w.lane));
			if (j + 32 > w.len)
				mask<4>(s, w.len - j, w.lane);

			/*
			 * What the exponents are taken relative to should be near the row's largest score so far, but need not be it: the sums
			 * are shrunk only when a score stands a factor of 2^8 above, which after the first step is rare.
			 */
			float high[4];
			bool grow = false;
#pragma unroll
			for (int r = 0; r < 4; r++) {
				high[r] = -INFINITY;
#pragma unroll
				for (int n = 0; n < 4; n++)
					high[r] = fmaxf(high[r], fmaxf(s[n][r][0], s[n][r][1]));
				grow |= high[r] > top[r] + 8 / SCALE2;
			}
			if (__any_sync(WARP_ALL, grow)) {
#pragma unroll
				for (int r = 0; r < 4; r++) {
					float up = fmaxf(top[r], quad_max(high[r])), shrink = exp2_fast((top[r] - up) * SCALE2);
					top[r] = up;
					sum[r] *= shrink;
#pragma unroll
					for (int n = 0; n < D / 8; n++)
						acc[n][r][0] *= shrink, acc[n][r][1] *= shrink;
				}
			}
#pragma unroll
			for (int n = 0; n < 4; n++)
#pragma unroll
				for (int r = 0; r < 4; r++)
#pragma unroll
					for (int i = 0; i < 2; i++) {
						s[n][r][i] = exp2_fast(s[n][r][i] * SCALE2 - top[r] * SCALE2);
						sum[r] += s[n][r][i];
					}
			if (DROP) {
				uint32_t mine = 0;
#pragma unroll
				for (int n = 0; n < 4; n++) {
					uint32_t word[4]; /* [r], two keys */
					ldmatrix(word, bits + n * 512 + w.lane * 16);
#pragma unroll
					for (int r = 0; r < 4; r++)
#pragma unroll
						for (int i = 0; i < 2; i++)
							if (kept(word[r], i, d.threshold))
								mine |= 1u << (8 * n + 2 * r + i);
							else
								s[n][r][i] = 0;
				}
				keep[j / 32 * TILE_THREADS] = mine;
			}
			uint32_t pa[2][2][4];
			to_a<4>(pa, s);
			mma_nn<2, D>(acc, pa, tile + TILE_SIZE + nn_at(w.lane));
		}
	}
	float factor[4];
#pragma unroll
	for (int r = 0; r < 4; r++) {
		float l = quad_sum(sum[r]);
		uint32_t i = w.from + w.row0 + w.lane / 4 + 8 * r;
		factor[r] = (DROP ? d.scale : 1) / l;
		if (w.lane % 4 == 0 && i < w.len)
			lse[(size_t)(w.t0 + i) * NH + w.head] = top[r] * SCALE<D> + logf(l);
	}
	to_memory<D>(y + (size_t)(w.t0 + w.from) * C + w.head * D, C, acc, factor, w.row0, w.len - w.from, w.lane);
}

/*
 * dq = ds K / sqrt(D), ds = P (M dY V^T - delta). Here and below M is 0 or 1, and delta is divided by dropout's factor, which comes in at
 * the end. The products that make dY V^T start at -delta: a dropped element is P (-delta), any other is P times what came out.
 * Shared memory: two stages of K, V and decisions, in which Q and dY come first.
 * Long: as above.
 */
template <int D, bool DROP>
static __global__ void __launch_bounds__(TILE_THREADS, 2) query_mma_kernel(bf16 *dqkv, const bf16 *dy, const float *del, const float *lse,
	const bf16 *qkv, struct cells cells, uint32_t C, uint32_t NH, float factor, struct decisions decisions)
{
	SHARED(shared);
	constexpr float SCALE2 = SCALE<D> * LOG2E;
	const struct where w = where_am_i(cells, NH, WARP_ROWS);
	if (w.len == 0)
		return;
	const uint32_t S = 3 * C, STAGE = PAIR + (DROP ? KEPT : 0), stage = shared_at(shared);
	const bf16 *q = qkv + w.head * D, *k = q + C, *v = k + C;
	const uint32_t *keep = DROP ? decisions_at(decisions, w, NH, w.from, 0) + threadIdx.x * 4 : NULL;
	const bool brings = DROP && threadIdx.x < KEPT / 16; /* decisions, 16 bytes of each tile */
	uint32_t qa[2][D / 16][4], ga[2][D / 16][4];
	float acc[D / 8][4][2], base[4], minus[4]; /* base: -lse, log2 */
	zero<D / 8>(acc);

	load_tile<BLOCK_ROWS, D>(stage, q, w.t0 + w.from, S, w.len - w.from);
	load_tile<BLOCK_ROWS, D>(stage + STAGE, dy + w.head * D, w.t0 + w.from, C, w.len - w.from);
	copy_commit();
#pragma unroll
	for (int r = 0; r < 4; r++) {
		uint32_t i = w.from + w.row0 + w.lane / 4 + 8 * r;
		size_t at = (size_t)(w.t0 + i) * NH + w.head;
		base[r] = i < w.len ? -LOG2E * lse[at] : 0;
		minus[r] = i < w.len ? -del[at] / factor : 0;
	}
	copy_wait<0>();
	__syncthreads();
	load_a<D>(qa, stage, w.row0, w.lane);
	load_a<D>(ga, stage + STAGE, w.row0, w.lane);
	__syncthreads();
	load_tile<TILE, D>(stage, k, w.t0, S, w.len);
	load_tile<TILE, D>(stage + TILE_SIZE, v, w.t0, S, w.len);
	if (brings)
		copy16(stage + PAIR + threadIdx.x * 16, keep, true);
	copy_commit();
	for (uint32_t j0 = 0, turn = 0; j0 < w.len; j0 += TILE, turn = STAGE - turn) {
		copy_wait<0>();
		__syncthreads();
		if (j0 + TILE < w.len) {
			const uint32_t next = stage + STAGE - turn;
			load_tile<TILE, D>(next, k, w.t0 + j0 + TILE, S, w.len - j0 - TILE);
			load_tile<TILE, D>(next + TILE_SIZE, v, w.t0 + j0 + TILE, S, w.len - j0 - TILE);
			if (brings)
				copy16(next + PAIR + threadIdx.x * 16, keep + (j0 + TILE) / 32 * TILE_THREADS, true);
		}
		copy_commit();
		if (w.from + w.row0 >= w.len)
			continue;
		uint32_t nt = stage + turn + nt_at(w.lane), nn = stage + turn + nn_at(w.lane);
#pragma unroll 1
		for (uint32_t j = j0; j < j0 + TILE && j < w.len; j += 32, nt += 32 * 128, nn += 32 * 128) {
			const uint32_t mine = DROP ? ((const uint32_t *)(shared + turn + PAIR))[(j - j0) * 4 + threadIdx.x] : 0;
#pragma unroll
			for (uint32_t h = 0; h < 32; h += 16) {
				float s[2][4][2], g[2][4][2];
				zero<2>(s);
				mma_nt<2, D>(s, qa, nt + h * 128);
#pragma unroll
				for (int n = 0; n < 2; n++)
#pragma unroll
					for (int r = 0; r < 4; r++)
						g[n][r][0] = g[n][r][1] = minus[r];
				mma_nt<2, D>(g, ga, nt + TILE_SIZE + h * 128);
				if (j + h + 16 > w.len)
					mask<2>(s, w.len - min(w.len, j + h), w.lane);
#pragma unroll
				for (int n = 0; n < 2; n++)
#pragma unroll
					for (int r = 0; r < 4; r++)
#pragma unroll
						for (int i = 0; i < 2; i++) {
							float p = exp2_fast(s[n][r][i] * SCALE2 + base[r]);
							bool keeps = !DROP || mine >> (h + 8 * n + 2 * r + i) & 1;
							g[n][r][i] = p * (keeps ? g[n][r][i] : minus[r]);
						}
				uint32_t a[2][1][4];
				to_a<2>(a, g);
				mma_nn<1, D>(acc, a, nn + h * 128);
			}
		}
	}
	const float last = SCALE<D> * factor, lasts[4] = {last, last, last, last};
	to_memory<D>(dqkv + (size_t)(w.t0 + w.from) * S + w.head * D, S, acc, lasts, w.row0, w.len - w.from, w.lane);
}

/*
 * dv = (M P)^T dY, dk = ds^T Q / sqrt(D). A warp owns 32 keys and makes the transposed scores K Q^T and V dY^T, which are the left
 * factors of the two sums as they come. Queries past the cell's end are rows of zeros with lse and delta 0: they add nothing.
 * Shared memory: two stages of Q, dY, their terms and decisions, in which K and V come first.
 * Long: as above.
 */
template <int D, bool DROP>
static __global__ void __launch_bounds__(TILE_THREADS, 2) key_mma_kernel(bf16 *dqkv, const bf16 *dy, const float *del, const float *lse,
	const bf16 *qkv, struct cells cells, uint32_t C, uint32_t NH, float factor, struct decisions decisions)
{
	SHARED(shared);
	constexpr float SCALE2 = SCALE<D> * LOG2E;
	const struct where w = where_am_i(cells, NH, WARP_ROWS);
	if (w.len == 0)
		return;
	const uint32_t S = 3 * C, STAGE = PAIR_TERMS + (DROP ? KEPT : 0), stage = shared_at(shared);
	const bf16 *q = qkv + w.head * D, *k = q + C, *v = k + C, *y = dy + w.head * D;
	/* Of each tile 16 bytes: 32 keys of the block are two times 32 queries, 256 bytes. */
	const bool brings = DROP && threadIdx.x < KEPT / 16;
	const uint32_t piece = threadIdx.x / 16 * TILE_THREADS + threadIdx.x % 16 * 4;
	/* Each thread brings one term of a tile. */
	const bool odd = threadIdx.x % 2;
	const float *term = (odd ? del : lse) + w.head, times = odd ? -1 / factor : -LOG2E;
	const uint32_t mine = threadIdx.x / 2;
	uint32_t ka[2][D / 16][4], va[2][D / 16][4];
	float dk[D / 8][4][2], dv[D / 8][4][2];
	zero<D / 8>(dk);
	zero<D / 8>(dv);

	load_tile<BLOCK_ROWS, D>(stage, k, w.t0 + w.from, S, w.len - w.from);
	load_tile<BLOCK_ROWS, D>(stage + STAGE, v, w.t0 + w.from, S, w.len - w.from);
	copy_commit();
	((float *)(shared + PAIR))[threadIdx.x] = mine < w.len ? term[(size_t)(w.t0 + mine) * NH] * times : 0;
	copy_wait<0>();
	__syncthreads();
	load_a<D>(ka, stage, w.row0, w.lane);
	load_a<D>(va, stage + STAGE, w.row0, w.lane);
	__syncthreads();
	load_tile<TILE, D>(stage, q, w.t0, S, w.len);
	load_tile<TILE, D>(stage + TILE_SIZE, y, w.t0, C, w.len);
	if (brings)
		copy16(stage + PAIR_TERMS + threadIdx.x * 16, decisions_at(decisions, w, NH, 0, w.from) + piece, true);
	copy_commit();
	for (uint32_t i0 = 0, turn = 0; i0 < w.len; i0 += TILE, turn = STAGE - turn) {
		copy_wait<0>();
		__syncthreads();
		float next_term = 0;
		if (i0 + TILE < w.len) {
			const uint32_t next = stage + STAGE - turn;
			load_tile<TILE, D>(next, q, w.t0 + i0 + TILE, S, w.len - i0 - TILE);
			load_tile<TILE, D>(next + TILE_SIZE, y, w.t0 + i0 + TILE, C, w.len - i0 - TILE);
			if (brings)
				copy16(next + PAIR_TERMS + threadIdx.x * 16,
					decisions_at(decisions, w, NH, i0 + TILE, w.from) + piece + (i0 + TILE) % BLOCK_ROWS, true);
			if (i0 + TILE + mine < w.len)
				next_term = term[(size_t)(w.t0 + i0 + TILE + mine) * NH] * times;
		}
		copy_commit();
		if (w.from + w.row0 < w.len) {
			uint32_t nt = stage + turn + nt_at(w.lane), nn = stage + turn + nn_at(w.lane);
			const float4 *terms = (const float4 *)(shared + turn + PAIR) + w.lane % 4;
#pragma unroll 1
			for (uint32_t i = i0; i < i0 + TILE && i < w.len; i += 32, nt += 32 * 128, nn += 32 * 128, terms += 16) {
				uint32_t mine = 0;
				if (DROP)
					mine = transposed((const uint32_t *)(shared + turn + PAIR_TERMS) + w.row0 * 2 + (i - i0), w.lane);
#pragma unroll
				for (uint32_t h = 0; h < 32; h += 16) {
					float s[2][4][2], g[2][4][2];
					zero<2>(s);
					mma_nt<2, D>(s, ka, nt + h * 128);
#pragma unroll
					for (int n = 0; n < 2; n++) {
						float4 t = terms[h / 2 + 4 * n]; /* -lse (log2) and -delta of two queries */
#pragma unroll
						for (int r = 0; r < 4; r++)
							g[n][r][0] = DROP ? 0 : t.y, g[n][r][1] = DROP ? 0 : t.w;
					}
					mma_nt<2, D>(g, va, nt + TILE_SIZE + h * 128);
#pragma unroll
					for (int n = 0; n < 2; n++) {
						float4 t = terms[h / 2 + 4 * n];
#pragma unroll
						for (int r = 0; r < 4; r++)
#pragma unroll
							for (int e = 0; e < 2; e++) {
								float p = exp2_fast(s[n][r][e] * SCALE2 + (e ? t.z : t.x));
								bool keeps = !DROP || mine >> (h + 8 * n + 2 * r + e) & 1;
								s[n][r][e] = keeps ? p : 0;
								g[n][r][e] = DROP ? s[n][r][e] * g[n][r][e] + p * (e ? t.w : t.y)
										  : p * g[n][r][e];
							}
					}
					uint32_t a[2][1][4];
					to_a<2>(a, s);
					mma_nn<1, D>(dv, a, nn + TILE_SIZE + h * 128);
					to_a<2>(a, g);
					mma_nn<1, D>(dk, a, nn + h * 128);
				}
			}
		}
		((float *)(shared + STAGE - turn + PAIR))[threadIdx.x] = next_term;
	}
	const float fv[4] = {factor, factor, factor, factor}, last = SCALE<D> * factor, fk[4] = {last, last, last, last};
	bf16 *out = dqkv + (size_t)(w.t0 + w.from) * S + w.head * D;
	to_memory<D>(out + C, S, dk, fk, w.row0, w.len - w.from, w.lane);
	to_memory<D>(out + 2 * (size_t)C, S, dv, fv, w.row0, w.len - w.from, w.lane);
}

static_assert(SEQ_TILE == BLOCK_ROWS, "where_am_i");
static_assert(PAIR_TERMS % 128 == 0 && KEPT % 128 == 0, "tile_at");

size_t attention_mma_keep(size_t B, size_t T, size_t longest, size_t NH)
{
	return seq_tiles(B, T) * NH * keep_steps(T, longest) * TILE_THREADS * sizeof(uint32_t);
}

template <int D>
static void attend(struct cuda *c, bf16 *y, float *lse, const bf16 *qkv, const struct seq *s, size_t C, size_t NH, const struct dropout *d)
{
	int on = d && d->threshold;
	launch(c, "attention", on ? attend_mma_kernel<D, true> : attend_mma_kernel<D, false>, dim3((unsigned)(s->ntile * NH)), TILE_THREADS,
		2 * PAIR + (on ? TILE_THREADS / 32 * DRAWN : 0), y, lse, qkv, cells_of(s), C, NH, drop_of(d), decisions_of(d, s->T));
}

template <int D>
static void attend_back(struct cuda *c, bf16 *dqkv, const bf16 *dy, const float *delta, const float *lse, const bf16 *qkv,
	const struct seq *s, size_t C, size_t NH, const struct dropout *d)
{
	dim3 grid((unsigned)(s->ntile * NH));
	int on = d && d->threshold;
	float factor = on ? drop_of(d).scale : 1;
	launch(c, "attention_back", on ? query_mma_kernel<D, true> : query_mma_kernel<D, false>, grid, TILE_THREADS,
		2 * (PAIR + (on ? KEPT : 0)), dqkv, dy, delta, lse, qkv, cells_of(s), C, NH, factor, decisions_of(d, s->T));
	launch(c, "attention_back", on ? key_mma_kernel<D, true> : key_mma_kernel<D, false>, grid, TILE_THREADS,
		2 * (PAIR_TERMS + (on ? KEPT : 0)), dqkv, dy, delta, lse, qkv, cells_of(s), C, NH, factor, decisions_of(d, s->T));
}

int attention_mma_head(size_t D)
{
	return D == 16 || D == 32 || D == 64;
}

void attention_mma(struct cuda *c, bf16 *y, float *lse, const bf16 *qkv, const struct seq *s, size_t C, size_t NH, const struct dropout *d)
{
	const size_t D = C / NH;
	if (D == 64 && c->wgmma) {
		attention_wgmma(c, y, lse, qkv, s, C, NH, d);
		return;
	}
	(D == 16 ? attend<16> : D == 32 ? attend<32> : attend<64>)(c, y, lse, qkv, s, C, NH, d);
}

void attention_mma_back(struct cuda *c, bf16 *dqkv, const bf16 *dy, const float *delta, const float *lse, const bf16 *qkv,
	const struct seq *s, size_t C, size_t NH, const struct dropout *d)
{
	const size_t D = C / NH;
	if (D == 64 && c->wgmma) {
		attention_wgmma_back(c, dqkv, dy, delta, lse, qkv, s, C, NH, d);
		return;
	}
	(D == 16 ? attend_back<16> : D == 32 ? attend_back<32> : attend_back<64>)(c, dqkv, dy, delta, lse, qkv, s, C, NH, d);
}
