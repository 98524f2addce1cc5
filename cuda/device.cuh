/*
 * What every kernel file uses: element types, eight-wide rows, sums over a warp, dropout bits, launches, the backend's state.
 *
 * Activations are `bf16` or `float` (template parameter A); everything that is summed is float or double. A row of C channels
 * is worked on in groups of 8 columns: 16 bytes of bf16, and what one Philox call decides about (ops.h).
 *
 * Sums never use atomics, and how they are cut depends on shapes alone: a result is the same bits in every run.
 */
#pragma once

#ifdef __CUDACC__
#include <cuda_runtime.h>
#else
#include "emu.h" /* tests/cuda: kernels run on the host */
#endif

#include <stddef.h>
#include <stdint.h>
#include <Random123/philox.h>

#include "base/rng.h"
extern "C" {
#include "nn/ops.h"
}

#define WARP_ALL 0xffffffffu
#ifndef CODE_SM90A /* the library has code for sm_90a: cuda.mk */
#define CODE_SM90A 0
#endif

struct alignas(2) bf16 {
	uint16_t bits;
};

/* ---- types ---- */

static __device__ __forceinline__ float to_float(float x)
{
	return x;
}

static __device__ __forceinline__ float to_float(bf16 x)
{
	return __uint_as_float((uint32_t)x.bits << 16);
}

/* Round to nearest even; NaN stays NaN. */
static __device__ __forceinline__ uint32_t bf16_bits(float x)
{
	uint32_t u = __float_as_uint(x);
	return (u & 0x7fffffff) > 0x7f800000 ? u >> 16 | 0x40 : (u + 0x7fff + (u >> 16 & 1)) >> 16;
}

/* Two values as bf16, lo in the low half. */
static __device__ __forceinline__ uint32_t pack_bf16(float lo, float hi)
{
#ifdef __CUDA_ARCH__
	uint32_t d;
	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(hi), "f"(lo));
	return d;
#else
	return bf16_bits(lo) | bf16_bits(hi) << 16;
#endif
}

template <class A> struct of;

template <> struct of<float> {
	static __device__ __forceinline__ float from(float x)
	{
		return x;
	}
};

template <> struct of<bf16> {
	static __device__ __forceinline__ bf16 from(float x)
	{
		return bf16{(uint16_t)pack_bf16(x, 0)};
	}
};

/* What a value becomes when it is stored as A. */
template <class A> static __device__ __forceinline__ float rounded(float x)
{
	return to_float(of<A>::from(x));
}

/* ---- eight columns ---- */

static __device__ __forceinline__ void load_vec(float v[8], const float *p)
{
	float4 a = ((const float4 *)p)[0], b = ((const float4 *)p)[1];
	v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w, v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
}

static __device__ __forceinline__ void load_vec(float v[8], const bf16 *p)
{
	uint4 a = *(const uint4 *)p;
	const uint32_t w[4] = {a.x, a.y, a.z, a.w};
#pragma unroll
	for (int i = 0; i < 4; i++) {
		v[2 * i] = __uint_as_float(w[i] << 16);
		v[2 * i + 1] = __uint_as_float(w[i] & 0xffff0000);
	}
}

static __device__ __forceinline__ void store_vec(float *p, const float v[8])
{
	((float4 *)p)[0] = make_float4(v[0], v[1], v[2], v[3]);
	((float4 *)p)[1] = make_float4(v[4], v[5], v[6], v[7]);
}

static __device__ __forceinline__ void store_vec(bf16 *p, const float v[8])
{
	*(uint4 *)p = make_uint4(pack_bf16(v[0], v[1]), pack_bf16(v[2], v[3]), pack_bf16(v[4], v[5]), pack_bf16(v[6], v[7]));
}

/*
 * Columns c .. c + 8 of a row of C; those past the row are 0 and not stored. Rows start at 16-byte boundaries when C is a
 * multiple of 8 (ops.align sees to the first), so the wide path is the usual one; the branch is the same for a whole launch.
 */
template <class A> static __device__ __forceinline__ void load8(float v[8], const A *row, uint32_t c, uint32_t C)
{
	if (C % 8 == 0) {
		if (c < C)
			load_vec(v, row + c);
		else
#pragma unroll
			for (int i = 0; i < 8; i++)
				v[i] = 0;
	} else {
#pragma unroll
		for (int i = 0; i < 8; i++)
			v[i] = c + i < C ? to_float(row[c + i]) : 0;
	}
}

template <class A> static __device__ __forceinline__ void store8(A *row, const float v[8], uint32_t c, uint32_t C)
{
	if (C % 8 == 0) {
		if (c < C)
			store_vec(row + c, v);
	} else {
#pragma unroll
		for (int i = 0; i < 8; i++)
			if (c + i < C)
				row[c + i] = of<A>::from(v[i]);
	}
}

static __device__ __forceinline__ float leaky(float x)
{
	return x > 0 ? x : 0.01f * x;
}

/* ---- warps ---- */

static __device__ __forceinline__ float warp_sum(float x)
{
#pragma unroll
	for (int d = 16; d; d /= 2)
		x += __shfl_xor_sync(WARP_ALL, x, d);
	return x;
}

static __device__ __forceinline__ float warp_max(float x)
{
#pragma unroll
	for (int d = 16; d; d /= 2)
		x = fmaxf(x, __shfl_xor_sync(WARP_ALL, x, d));
	return x;
}

/* ---- dropout ---- */

struct drop { /* struct dropout, for a kernel, which begins with read_step; threshold 0 = off */
	uint32_t seed, where, threshold, step;
	float scale;
	const uint32_t *at; /* the step; passed by value, every replay would have the step of the recording */
};

static __device__ __forceinline__ void read_step(struct drop &d)
{
	d.step = d.threshold ? *d.at : 0;
}

static inline struct drop drop_of(const struct dropout *d)
{
	struct drop k = {};
	if (d && d->threshold) {
		k.seed = d->seed;
		k.at = d->step;
		k.where = d->site << 28 | d->layer << 16;
		k.threshold = d->threshold;
		k.scale = (float)(65536.0 / (65536.0 - d->threshold));
	}
	return k;
}

/* a b in two halves. Left to itself, the compiler makes two multiplications of it, and an addition. */
static __device__ __forceinline__ void multiply(uint32_t *hi, uint32_t *lo, uint32_t a, uint32_t b)
{
#ifdef __CUDA_ARCH__
	asm("{ .reg .b64 ab; mul.wide.u32 ab, %2, %3; mov.b64 {%0, %1}, ab; }" : "=r"(*lo), "=r"(*hi) : "r"(a), "r"(b));
#else
	*lo = mulhilo32(a, b, hi);
#endif
}

/* The 128 bits that decide about columns 8 group .. 8 group + 8 of ops.h's counter; column i takes 16-bit piece i. */
static __device__ __forceinline__ void drop_bits(
	uint32_t w[4], const struct drop &d, uint32_t head, uint32_t pos, uint32_t group, uint32_t cell)
{
	w[0] = d.step;
	w[1] = d.where | head;
	w[2] = pos << 16 | group;
	w[3] = cell;
#pragma unroll
	for (uint32_t i = 0; i < philox4x32_rounds; i++) {
		uint32_t hi0, lo0, hi1, lo1;
		multiply(&hi0, &lo0, PHILOX_M4x32_0, w[0]);
		multiply(&hi1, &lo1, PHILOX_M4x32_1, w[2]);
		w[0] = hi1 ^ w[1] ^ (d.seed + i * PHILOX_W32_0);
		w[1] = lo1;
		w[2] = hi0 ^ w[3] ^ (RNG_DROPOUT + i * PHILOX_W32_1);
		w[3] = lo0;
	}
}

/* v *= keep factors of 8 columns */
static __device__ __forceinline__ void drop8(float v[8], const struct drop &d, uint32_t pos, uint32_t group, uint32_t cell)
{
	uint32_t w[4];
	drop_bits(w, d, 0, pos, group, cell);
#pragma unroll
	for (int i = 0; i < 4; i++) {
		v[2 * i] = (w[i] & 0xffff) < d.threshold ? 0 : v[2 * i] * d.scale;
		v[2 * i + 1] = w[i] >> 16 < d.threshold ? 0 : v[2 * i + 1] * d.scale;
	}
}

/* Where a row's dropout counters come from: token t of a batch, or (cells) row t = cell t at position 0. */
struct rows {
	const uint32_t *pos, *cell, *key;
};

static __device__ __forceinline__ void row_at(const struct rows &r, uint32_t t, uint32_t *pos, uint32_t *cell)
{
	*pos = r.pos ? r.pos[t] : 0;
	*cell = r.key[r.cell ? r.cell[t] : t];
}

static inline struct rows rows_of(const struct seq *s)
{
	return s ? (struct rows){s->pos, s->cell, s->key} : (struct rows){NULL, NULL, NULL};
}

/* ---- the backend ---- */

enum scratch {
	SCRATCH_PART, /* partial sums */
	SCRATCH_TILE, /* logits of a tile of the vocabulary */
	SCRATCH_GRAD, /* their gradient */
	SCRATCH_SUM, /* dh in float; per-row losses */
	SCRATCH_CAST, /* weights or activations in another type */
	SCRATCH_BIAS,
	SCRATCH_DELTA,
	SCRATCHES,
};

struct span { /* one allocation, and its bf16 copy where it holds parameters */
	char *base;
	size_t bytes;
	bf16 *copy;
};

/* Work under a key. The first time its ops just run, which allocates scratch memory and plans the products; the second time they are
 * captured as a graph. */
struct recording {
	uint64_t key[OPS_KEY], used; /* 0: free */
	cudaGraphExec_t graph; /* NULL: not recorded yet */
};

enum {
	RECORDINGS = 256, /* the one unused for longest makes room */
};

struct cuda {
	struct ops o;
	int is_bf16;
	int wgmma; /* the card has Hopper's instructions, and the library code that uses them */
	cudaStream_t stream;
	uint32_t device[4]; /* the card, as no other has it */
	struct group *group; /* NULL: cuda_group_find was not called, or in vain */
	struct blas *blas;
	struct recording *recording; /* [RECORDINGS] */
	struct recording *open; /* being recorded now */
	uint64_t clock;
	int graphs; /* recorded so far; negative: do not */
	size_t loss_rows, loss_vocab; /* of a tile of the decoder's logits */
	cudaEvent_t mark[OPS_MARKS];
	/* A turn is what lies between the first send and the mark after the last fetch. Two run at most: a ring of four has room. */
	struct turn {
		cudaEvent_t begun, ended;
		int after_gap;
	} turn[4];
	uint64_t turns, measured; /* ended turns, and of them those whose time is known */
	uint64_t turn_of_mark[OPS_MARKS]; /* counted from 1; 0: the mark ended none */
	int sent, fetched; /* in the turn under way */
	int gap; /* since the last turn something ran that is none */
	double busy, idle; /* seconds */
	struct span *span;
	size_t nspan, span_cap;
	struct {
		void *p;
		size_t bytes;
	} scratch[SCRATCHES];
	struct {
		size_t heads; /* channels of attention heads in bf16 that the tensor cores do not take; 0: none */
		unsigned products; /* shapes that cuBLASLt does not support */
		char shapes[200]; /* the first of them */
	} plain; /* work that plain kernels do */
	char fault[512]; /* the first thing that went wrong; "" = nothing */
};

static inline struct cuda *cuda_of(struct ops *o)
{
	return (struct cuda *)o;
}

/* Set e, as error_set of lib/base does. Returns -1. */
int cuda_error(struct error *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Remember the first failure of a CUDA call (0 = success). */
void cuda_fault(struct cuda *c, const char *where, cudaError_t r);
void cuda_unsupported(struct cuda *c, const char *what);
/* Wait for all work of the stream. What waits goes through this or cuda_wait, which notice that another device of the group is lost. */
void cuda_settle(struct cuda *c, const char *where);
/* group.cu: 0 if there is no group, or one that has failed now; else it sleeps for a moment. */
int group_lives(struct cuda *c);
void group_free(struct cuda *c);
/* Device memory of at least `bytes`, valid until a larger size of the slot is requested; the contents are not kept. */
void *scratch(struct cuda *c, enum scratch slot, size_t bytes);
/* Parameters W[n] in the activation type: the kept copy, or one made now in `slot`. */
const void *weights(struct cuda *c, const float *W, size_t n, enum scratch slot);

/* The kept bf16 copy of parameters p[n], to be renewed with them; NULL in float mode. */
bf16 *parameter_copy(struct cuda *c, const float *p, size_t n);

template <class... P, class... X>
static inline void launch(struct cuda *c, const char *name, void (*kernel)(P...), dim3 grid, unsigned threads, size_t shared, X... x)
{
	if (!grid.x || !grid.y || !grid.z)
		return;
#ifdef __CUDACC__
	if (shared > 48 << 10)
		cuda_fault(c, name, cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared));
	if (shared) /* as many blocks as fit, which the driver's own choice between cache and shared memory may not allow */
		cuda_fault(c, name,
			cudaFuncSetAttribute(
				(const void *)kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared));
	kernel<<<grid, threads, shared, c->stream>>>(static_cast<P>(x)...);
#else
	emu_do(c->stream, [=] { emu_run(grid, threads, shared, [&] { kernel(static_cast<P>(x)...); }); });
#endif
	cuda_fault(c, name, cudaGetLastError());
}

static inline unsigned blocks(size_t n, size_t per)
{
	return (unsigned)((n + per - 1) / per);
}

/* out[c] += sum over k < n of part[k * stride + c] for c < C, in the order of k within fixed lanes (sum.cu). */
void add_parts(struct cuda *c, float *out, const float *part, size_t n, size_t stride, size_t C);
/* The same for parts [n][k C], k <= 3: each out[C] gets its columns; the first NULL ends them. */
void add_parts_each(struct cuda *c, float *const out[3], const float *part, size_t n, size_t C);
/* db[N] += column sums of dy [T,N] (sum.cu). With act, dy is first multiplied in place by the activation's slope. */
void column_sums(struct cuda *c, float *db, void *dy, const void *y, const void *pre, size_t T, size_t N, enum act act);

/*
 * Products of row-major matrices (gemm.cu). Types: FLOAT or ACT (the activation type).
 *     nt: D [M,N] = A [M,K] B [N,K]^T, act(D + bias) for ACT_NONE and ACT_RELU    (bias in the type of A, or NULL)
 *     nn: D [M,N] = A [M,K] B [K,N];   tn: D [M,N] = A [K,M]^T B [K,N]            (D += with add)
 * ld* are distances between rows, in elements.
 */
enum gemm {
	GEMM_NT,
	GEMM_NN,
	GEMM_TN,
};

struct product {
	enum gemm form;
	size_t M, N, K;
	const void *a, *b; /* activation type */
	size_t lda, ldb, ldd;
	void *d;
	int d_float; /* D is float, whatever the activation type */
	int add;
	const void *bias; /* [N], activation type; not with d_float */
	int relu;
};

void gemm(struct cuda *c, const struct product *p);
/* cuBLASLt's part: 0 done, -1 it has no way to do this one, 1 it failed. */
int blas_gemm(struct cuda *c, const struct product *p);
void blas_free(struct cuda *c);

/* ---- the ops, one file each ---- */
void cuda_embed(struct ops *o, void *y, float *stat, const float *word, const float *posw, const float *type, const void *more,
	const float *gamma, const float *beta, const struct seq *s, size_t C, double eps, const struct dropout *d);
void cuda_embed_back(struct ops *o, float *dword, float *dposw, float *dtype, float *dgamma, float *dbeta, void *dy, const float *stat,
	const float *word, const float *posw, const float *type, const void *more, const float *gamma, const struct seq *s, size_t V,
	size_t P, size_t C, uint32_t pad, const struct dropout *d);
void cuda_linear(
	struct ops *o, void *y, void *pre, const void *x, const float *W, const float *b, size_t T, size_t K, size_t N, enum act act);
void cuda_linear_back(struct ops *o, void *dx, float *dW, float *db, void *dy, const void *x, const float *W, const void *y,
	const void *pre, size_t T, size_t K, size_t N, enum act act, int add);
size_t cuda_keep_bytes(const struct ops *o, size_t B, size_t T, size_t longest, size_t C, size_t NH);
void cuda_attention(struct ops *o, void *y, float *lse, const void *qkv, const struct seq *s, size_t C, size_t NH, const struct dropout *d);
void cuda_attention_back(struct ops *o, void *dqkv, const void *dy, const void *y, const float *lse, const void *qkv, const struct seq *s,
	size_t C, size_t NH, const struct dropout *d);
void cuda_norm(struct ops *o, void *y, void *r, float *stat, const void *a, const void *x, const float *gamma, const float *beta,
	const struct seq *s, size_t T, size_t C, double eps, const struct dropout *d);
void cuda_norm_back(struct ops *o, void *da, void *dx, float *dgamma, float *dbeta, float *dbias, const void *dy, const void *r,
	const float *stat, const float *gamma, const struct seq *s, size_t T, size_t C, const struct dropout *d);
void cuda_rms_norm(
	struct ops *o, void *y, void *r, float *stat, const void *a, const void *x, const float *scale, size_t T, size_t C, double eps);
void cuda_rms_norm_back(
	struct ops *o, void *dx, float *dscale, const void *dy, const void *r, const float *stat, const float *scale, size_t T, size_t C);
void cuda_swiglu(struct ops *o, void *y, const void *z, size_t T, size_t F);
void cuda_swiglu_back(struct ops *o, void *dz, const void *dy, const void *z, size_t T, size_t F);
void cuda_value_features(struct ops *o, void *f, const float *x, const uint32_t *row, const struct value_features *v, size_t T);
void cuda_value_features_back(
	struct ops *o, float *dw, float *db, void *df, const float *x, const uint32_t *row, const struct value_features *v, size_t T);
void cuda_scale(struct ops *o, void *y, const void *x, double a, size_t n);
void cuda_add(struct ops *o, void *y, const void *x, const void *z, size_t n);
void cuda_gather(struct ops *o, void *y, const void *x, const uint32_t *index, size_t N, size_t C);
void cuda_scatter(struct ops *o, void *dx, const void *dy, const uint32_t *index, size_t N, size_t T, size_t C);
void cuda_drop(struct ops *o, void *y, const void *x, const struct seq *s, int per_cell, size_t C, const struct dropout *d);
void cuda_pool(struct ops *o, void *y, const void *x, const uint32_t *range, size_t B, size_t C, int as_real);
void cuda_pool_back(struct ops *o, void *dx, const void *dy, const uint32_t *range, const struct seq *s, size_t C);
void cuda_mlm_loss(struct ops *o, double *sum, float *lse, const void *h, const float *W, const float *b, const uint32_t *target, size_t N,
	size_t C, size_t V);
void cuda_mlm_loss_back(struct ops *o, void *dh, float *dW, float *db, const void *h, const float *W, const float *b,
	const uint32_t *target, const float *lse, const float *scale, size_t N, size_t C, size_t V);
void cuda_class_loss(struct ops *o, double *sum, void *dlogit, const void *logit, const int32_t *label, const float *weight,
	const float *scale, size_t N, size_t K);
void cuda_bag(struct ops *o, void *y, const float *W, const struct seq *s, const float *value, size_t B, size_t C, int add);
void cuda_bag_back(struct ops *o, float *dW, const void *dy, const struct seq *s, const float *value, size_t V, size_t C);
void cuda_batch_norm(struct ops *o, void *y, float *stat, const void *x, const float *gamma, const float *beta, float *run_mean,
	float *run_var, size_t N, size_t C, double eps, double momentum, int train, enum act act);
void cuda_batch_norm_back(struct ops *o, void *dx, float *dgamma, float *dbeta, const void *dy, const void *x, const void *y,
	const float *stat, const float *gamma, size_t N, size_t C, enum act act);
void cuda_nb_loss(struct ops *o, double *sum, float *lse, const void *z, const float *t, const struct seq *s, const uint32_t *count,
	const uint32_t *mask, const struct gene_weight *w, size_t B, size_t G);
void cuda_nb_loss_back(struct ops *o, void *z, float *dt, const float *t, const struct seq *s, const uint32_t *count, const uint32_t *mask,
	const float *lse, const float *scale, const float *weight, size_t B, size_t G);
void cuda_expression_loss(struct ops *o, double *sum, const void *z, const float *y, const uint32_t *in, size_t N, size_t G);
void cuda_expression_loss_back(struct ops *o, void *z, const float *y, const uint32_t *in, const float *scale, size_t N, size_t G);
int cuda_group_find(struct ops *o, struct group_info *info, struct error *e);
int cuda_group_id(struct ops *o, char id[GROUP_ID], struct error *e);
int cuda_group_open(struct ops *o, const char id[GROUP_ID], int rank, int size, struct error *e);
void cuda_group_sum(struct ops *o, float *x, size_t n);
void cuda_instructions(struct ops *o, uint32_t *out, const void *in);
void cuda_sumsq(struct ops *o, double *sum, const float *g, size_t n);
void cuda_adamw(struct ops *o, float *p, const float *g, float *m, float *v, size_t n, const double *norm2, const struct adamw_args *a);

struct ops *cuda_new(cudaStream_t stream, int is_bf16); /* the table, with its memory; corrmask_cuda_open calls it */

/* Attention's second path: tensor cores (attention_mma.cu), bf16 and some head sizes; attention.cu does the rest. */
int attention_mma_head(size_t D); /* is it one of them? */
/* The same for heads of 64, if c->wgmma. */
void attention_wgmma(
	struct cuda *c, bf16 *y, float *lse, const bf16 *qkv, const struct seq *s, size_t C, size_t NH, const struct dropout *d);
void attention_wgmma_back(struct cuda *c, bf16 *dqkv, const bf16 *dy, const float *delta, const float *lse, const bf16 *qkv,
	const struct seq *s, size_t C, size_t NH, const struct dropout *d);
size_t attention_mma_keep(size_t B, size_t T, size_t longest, size_t NH);
void attention_mma(struct cuda *c, bf16 *y, float *lse, const bf16 *qkv, const struct seq *s, size_t C, size_t NH, const struct dropout *d);
void attention_mma_back(struct cuda *c, bf16 *dqkv, const bf16 *dy, const float *delta, const float *lse, const bf16 *qkv,
	const struct seq *s, size_t C, size_t NH, const struct dropout *d);

/* Call f<bf16> or f<float>. */
#define BY_TYPE(c, f, ...) ((c)->is_bf16 ? f<bf16>(__VA_ARGS__) : f<float>(__VA_ARGS__))
