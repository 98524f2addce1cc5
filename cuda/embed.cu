/*
 * e = word[id] + type[0] + position[rank, or pos] + more;  y = dropout(LayerNorm(e)), a warp a token; the tables are read in float. Each of
 * the four may be NULL: the sum does without.
 *
 * The gradient of a word's row is summed over its tokens in the order of seq.order: by a warp if they are few, as of most words, else
 * by a block, whose warps take every 16th token each and are added up in order. So <mask>, one token in eight, is not one long chain. A
 * position's row is summed over the cells, by a block; if tokens share positions (seq.rank), as a word's row.
 */
#include "norm.cuh"
#include "rowsum.cuh"

template <class A, int G>
static __device__ __forceinline__ void embedding(
	float v[G][8], const float *word, const float *type, const float *posw, const A *more, uint32_t lane, uint32_t C)
{
#pragma unroll
	for (int g = 0; g < G; g++) {
		uint32_t c = (g * 32 + lane) * 8;
		float a[8], b[8];
		if (word) {
			load8(v[g], word, c, C);
		} else {
#pragma unroll
			for (int i = 0; i < 8; i++)
				v[g][i] = 0;
		}
		if (type) {
			load8(a, type, c, C);
#pragma unroll
			for (int i = 0; i < 8; i++)
				v[g][i] += a[i];
		}
		if (posw) {
			load8(b, posw, c, C);
#pragma unroll
			for (int i = 0; i < 8; i++)
				v[g][i] += b[i];
		}
		if (more) {
			load8(a, more, c, C);
#pragma unroll
			for (int i = 0; i < 8; i++)
				v[g][i] += a[i];
		}
	}
}

template <class A, int G>
static __global__ void __launch_bounds__(256) embed_kernel(A *y, float *stat, const float *word, const float *posw, const float *type,
	const A *more, const float *gamma, const float *beta, struct rows at, const uint32_t *id, const uint32_t *rank, uint32_t T,
	uint32_t C, float eps, struct drop d)
{
	uint32_t lane = threadIdx.x % 32, t = blockIdx.x * 8 + threadIdx.x / 32;
	float v[G][8];
	if (t >= T)
		return;
	read_step(d);
	uint32_t pos, cell;
	row_at(at, t, &pos, &cell);
	embedding<A, G>(v, word ? word + (size_t)id[t] * C : NULL, type, posw ? posw + (size_t)(rank ? rank[t] : pos) * C : NULL,
		more ? more + (size_t)t * C : NULL, lane, C);
	normalise<G>(v, stat + 2 * (size_t)t, gamma, beta, lane, C, eps);
#pragma unroll
	for (int g = 0; g < G; g++) {
		uint32_t c = (g * 32 + lane) * 8;
		if (d.threshold && c < C)
			drop8(v[g], d, pos, c / 8, cell);
		store8(y + (size_t)t * C, v[g], c, C);
	}
}

template <class A>
static void embed(struct cuda *c, void *y, float *stat, const float *word, const float *posw, const float *type, const void *more,
	const float *gamma, const float *beta, const struct seq *s, size_t C, double eps, struct drop d)
{
	BY_WIDTH(c, C,
		launch(c, "embed", embed_kernel<A, G>, dim3(blocks(s->T, 8)), 256, 0, (A *)y, stat, word, posw, type, (const A *)more,
			gamma, beta, rows_of(s), s->id, s->rank, s->T, C, eps, d));
}

void cuda_embed(struct ops *o, void *y, float *stat, const float *word, const float *posw, const float *type, const void *more,
	const float *gamma, const float *beta, const struct seq *s, size_t C, double eps, const struct dropout *d)
{
	struct cuda *c = cuda_of(o);
	BY_TYPE(c, embed, c, y, stat, word, posw, type, more, gamma, beta, s, C, eps, drop_of(d));
}

/* Block: 8 warps on one chunk of tokens; dy becomes the gradient of e; part [chunks, sums C] = dgamma | dbeta | with 3 sums: columns of dy. */
template <class A, int G>
static __global__ void __launch_bounds__(256) embed_back_kernel(A *dy, float *part, uint32_t sums, const float *stat, const float *word,
	const float *posw, const float *type, const A *more, const float *gamma, struct rows at, const uint32_t *id, const uint32_t *rank,
	uint32_t T, uint32_t C, uint32_t chunk, struct drop d)
{
	constexpr int S = G <= NORM_SUMS ? G : 1;
	uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	uint32_t t1 = min(T, (blockIdx.x + 1) * chunk);
	float dg[G][8], db[G][8], ds[S][8];
	read_step(d);
	zero_groups<G>(dg);
	zero_groups<G>(db);
	zero_groups<S>(ds);
	for (uint32_t t = blockIdx.x * chunk + warp; t < t1; t += 8) {
		float v[G][8], g[G][8];
		uint32_t pos, cell;
		row_at(at, t, &pos, &cell);
#pragma unroll
		for (int k = 0; k < G; k++) {
			uint32_t c = (k * 32 + lane) * 8;
			load8(g[k], dy + (size_t)t * C, c, C);
			if (d.threshold && c < C)
				drop8(g[k], d, pos, c / 8, cell);
		}
		embedding<A, G>(v, word ? word + (size_t)id[t] * C : NULL, type, posw ? posw + (size_t)(rank ? rank[t] : pos) * C : NULL,
			more ? more + (size_t)t * C : NULL, lane, C);
		normalise_back<G>(g, v, dg, db, stat + 2 * (size_t)t, gamma, lane, C);
#pragma unroll
		for (int k = 0; k < G; k++) {
			store8(dy + (size_t)t * C, g[k], (k * 32 + lane) * 8, C);
			if (S == G)
				add8(ds[k % S], g[k]);
		}
	}
	float *out = part + (size_t)blockIdx.x * sums * C;
	block_columns<G>(out, dg, C);
	block_columns<G>(out + C, db, C);
	if (S == G && sums == 3)
		block_columns<S>(out + 2 * C, ds, C);
}

static constexpr uint32_t WORD_FEW = 32; /* tokens that one warp sums */
static constexpr uint32_t CHUNK =
	128; /* tokens in the order of their words; a frequent word has many chunks, each with a block of its own */

/* Block = chunk: part[chunk] = the sum of its tokens' rows, if they are all of one word (or rank); `id` is the tokens'. */
template <class A> static __global__ void chunk_kernel(float *part, const A *de, const uint32_t *id, const uint32_t *order, uint32_t C)
{
	const uint32_t *at = order + blockIdx.x * CHUNK;
	if (id[at[0]] != id[at[CHUNK - 1]])
		return;
	for (uint32_t c0 = 0; c0 < C; c0 += 256)
		sum_rows<A>(part + (size_t)blockIdx.x * C, 0, 1, de, CHUNK, c0, C, [&](uint32_t j) { return at[j]; });
}

/* Block = as many words (or ranks) as it has warps: dword[v] += sum of its tokens' rows, but for the pad. part: of chunk_kernel. */
template <class A>
static __global__ void word_kernel(
	float *dword, const A *de, const float *part, const uint32_t *order, const uint32_t *start, uint32_t V, uint32_t C, uint32_t pad)
{
	uint32_t lane = threadIdx.x % 32, v0 = blockIdx.x * ROWSUM_WARPS, v1 = min(V, v0 + ROWSUM_WARPS), mine = v0 + threadIdx.x / 32;
	uint32_t from = mine < v1 ? start[mine] : 0, n = mine < v1 && mine != pad ? start[mine + 1] - from : 0;
	for (uint32_t c = lane * 8; n && n <= WORD_FEW && c < C; c += 256) {
		float s[8] = {0, 0, 0, 0, 0, 0, 0, 0}, x[8];
#pragma unroll 4
		for (uint32_t j = 0; j < n; j++) {
			load8(x, de + (size_t)order[from + j] * C, c, C);
#pragma unroll
			for (int i = 0; i < 8; i++)
				s[i] += x[i];
		}
		load8(x, dword + (size_t)mine * C, c, C);
#pragma unroll
		for (int i = 0; i < 8; i++)
			x[i] += s[i];
		store8(dword + (size_t)mine * C, x, c, C);
	}
	for (uint32_t v = v0; v < v1; v++) { /* the same for the whole block */
		uint32_t first = start[v], many = start[v + 1] - first, k0 = (first + CHUNK - 1) / CHUNK, k1 = start[v + 1] / CHUNK;
		k1 = k0 < k1 ? k1 : k0;
		uint32_t head = k0 < k1 ? k0 * CHUNK - first : many, whole = (k1 - k0) * CHUNK; /* before its whole chunks, and in them */
		for (uint32_t c0 = 0; many > WORD_FEW && v != pad && c0 < C; c0 += 256) {
			sum_rows<A>(dword + (size_t)v * C, 1, 1, de, many - whole, c0, C,
				[&](uint32_t j) { return order[first + (j < head ? j : j + whole)]; });
			if (whole)
				sum_rows<float>(dword + (size_t)v * C, 1, 1, part, k1 - k0, c0, C, [&](uint32_t k) { return k0 + k; });
		}
	}
}

/* dword[v] += the sum of the rows de of word v's tokens */
template <class A>
static void by_word(struct cuda *c, float *dword, const A *de, size_t T, const uint32_t *id, const uint32_t *order, const uint32_t *start,
	size_t V, size_t C, uint32_t pad)
{
	float *part = (float *)scratch(c, SCRATCH_PART, (T / CHUNK + 1) * C * sizeof(float));
	launch(c, "embed_back chunks", chunk_kernel<A>, dim3((unsigned)(T / CHUNK)), ROWSUM_THREADS, 0, part, de, id, order, C);
	launch(c, "embed_back words", word_kernel<A>, dim3(blocks(V, ROWSUM_WARPS)), ROWSUM_THREADS, 0, dword, de, part, order, start, V, C,
		pad);
}

/* Block = position p: dposw[p] += sum over the cells that are longer than p. */
template <class A> static __global__ void position_kernel(float *dposw, const A *de, const uint32_t *offset, uint32_t B, uint32_t C)
{
	uint32_t p = blockIdx.x;
	for (uint32_t c0 = 0; c0 < C; c0 += 256)
		sum_rows<A>(dposw + (size_t)p * C, 1, 1, de, B, c0, C,
			[&](uint32_t b) { return offset[b] + p < offset[b + 1] ? offset[b] + p : ROW_NONE; });
}

template <class A>
static void embed_back(struct cuda *c, float *dword, float *dposw, float *dtype, float *dgamma, float *dbeta, void *dy, const float *stat,
	const float *word, const float *posw, const float *type, const void *more, const float *gamma, const struct seq *s, size_t V,
	size_t P, size_t C, uint32_t pad, struct drop d)
{
	size_t chunk = norm_chunk(s->T), sums = dtype && C <= NORM_SUMS * 256 ? 3 : 2;
	unsigned n = blocks(s->T, chunk);
	float *part = (float *)scratch(c, SCRATCH_PART, n * sums * C * sizeof(float));
	float *const out[] = {dgamma, dbeta, sums == 3 ? dtype : NULL};
	BY_WIDTH(c, C,
		launch(c, "embed_back", embed_back_kernel<A, G>, dim3(n), 256, 0, (A *)dy, part, sums, stat, word, posw, type,
			(const A *)more, gamma, rows_of(s), s->id, s->rank, s->T, C, chunk, d));
	add_parts_each(c, out, part, n, C);
	if (sums == 2)
		column_sums(c, dtype, dy, NULL, NULL, s->T, C, ACT_NONE);
	if (dword)
		by_word(c, dword, (const A *)dy, s->T, s->id, s->order, s->start, V, C, pad);
	if (dposw && s->rank)
		by_word(c, dposw, (const A *)dy, s->T, s->rank, s->rank_order, s->rank_start, P, C, ROW_NONE);
	else if (dposw)
		launch(c, "embed_back positions", position_kernel<A>, dim3((unsigned)P), ROWSUM_THREADS, 0, dposw, (const A *)dy, s->offset,
			s->B, C);
}

void cuda_embed_back(struct ops *o, float *dword, float *dposw, float *dtype, float *dgamma, float *dbeta, void *dy, const float *stat,
	const float *word, const float *posw, const float *type, const void *more, const float *gamma, const struct seq *s, size_t V,
	size_t P, size_t C, uint32_t pad, const struct dropout *d)
{
	struct cuda *c = cuda_of(o);
	BY_TYPE(c, embed_back, c, dword, dposw, dtype, dgamma, dbeta, dy, stat, word, posw, type, more, gamma, s, V, P, C, pad, drop_of(d));
}
