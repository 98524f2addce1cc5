/*
 * What the files of the CPU backend share: its threads, their scratch, and how work is cut into chunks.
 */
#pragma once

#include <omp.h>

#include "nn/cpu_keep.h"

#ifndef OPS_CPU_TILES /* tests set smaller ones, so that a small input has several tiles */
enum {
	ROWS = 256, /* rows of a chunk, when there are enough of them */
	ROWS_MIN = 32,
	QTILE = 48, /* attention tile: queries x keys, multiples of MR and of STEP */
	KTILE = 192,
	QGROUP = 4, /* tiles of queries that share a tile of keys while it is in cache */
	WTILE = 256, /* of a weight's gradient: WTILE x WTILE for each of at most WPARTS parts of WROWS tokens or more */
	WPARTS = 8,
	WROWS = 1024,
	WIDE = 1024, /* columns of a wide layer, see cut_product */
	VGROUPS = 8, /* ranges of the vocabulary with their own partial dh */
	VTILE = 512, /* logits made at once: ROWS x VTILE */
	FLAT = 1 << 16, /* elements of a chunk in elementwise ops */
};
#endif

struct cpu {
	struct ops o;
	int threads;
	real **own; /* [threads] scratch of each thread */
	size_t own_cap;
	real *shared; /* scratch that outlives a chunk: partial sums */
	size_t shared_cap;
	struct packed *packed; /* [npacked] weights in bfloat16 (ops_cpu_bf16.c) */
	size_t npacked;
	uint64_t age; /* how often parameters changed */
};

#define PARALLEL_FOR _Pragma("omp parallel for schedule(dynamic) num_threads(c->threads)")

/* Make room for n reals of scratch for every thread. own(c) gives a thread its own inside the loop. */
static inline void own_need(struct cpu *c, size_t n)
{
	if (n <= c->own_cap)
		return;
	for (int i = 0; i < c->threads; i++) {
		free(c->own[i]);
		c->own[i] = xlarge(n, sizeof(real));
	}
	c->own_cap = n;
}

static inline real *own(const struct cpu *c)
{
	return c->own[omp_get_thread_num()];
}

static inline real *shared(struct cpu *c, size_t n)
{
	if (n > c->shared_cap) {
		free(c->shared);
		c->shared = xlarge(n, sizeof(real));
		c->shared_cap = n;
	}
	return c->shared;
}

static inline size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

static inline size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

static inline size_t chunks(size_t n, size_t size)
{
	return (n + size - 1) / size;
}

/* Rows of a chunk. A small batch is cut into eight chunks if it has enough rows, so that it also uses all cores. */
static inline size_t chunk_rows(size_t T)
{
	size_t r = round_up(T / 8, 16);
	return r < ROWS_MIN ? ROWS_MIN : r > ROWS ? ROWS : r;
}

/* out [C] += the n rows of part, which are `stride` apart. */
static inline void add_parts(real *out, const real *part, size_t n, size_t stride, size_t C)
{
	for (size_t k = 0; k < n; k++)
		SIMD for (size_t i = 0; i < C; i++) out[i] += part[k * stride + i];
}

/* db [N] += the rows of dy [T,N], summed as cpu_linear_back sums them. Takes c->shared. */
void bias_back(struct cpu *c, real *db, const real *dy, size_t T, size_t N);

/*
 * The backend in the vectors of this compilation: VECTOR bytes. The Makefile compiles the same files with other instructions and names
 * theirs ops_cpu_avx2 and ops_cpu_avx512; all other names stay inside. ops_cpu_new (cpu_vectors.c) chooses.
 */
struct ops *ops_cpu_base(int threads);

/* See ops.h. */
void cpu_linear(struct ops *o, void *y, void *pre, const void *x, const real *W, const real *b, size_t T, size_t K, size_t N, enum act act);
void cpu_linear_back(struct ops *o, void *dx, real *dW, real *db, void *dy, const void *x, const real *W, const void *y, const void *pre,
	size_t T, size_t K, size_t N, enum act act, int add);
void cpu_norm(struct ops *o, void *y, void *r, real *stat, const void *a, const void *x, const real *gamma, const real *beta,
	const struct seq *s, size_t T, size_t C, double eps, const struct dropout *d);
void cpu_norm_back(struct ops *o, void *da, void *dx, real *dgamma, real *dbeta, real *dbias, const void *dy, const void *r,
	const real *stat, const real *gamma, const struct seq *s, size_t T, size_t C, const struct dropout *d);
void cpu_embed(struct ops *o, void *y, real *stat, const real *word, const real *posw, const real *type, const void *more,
	const real *gamma, const real *beta, const struct seq *s, size_t C, double eps, const struct dropout *d);
void cpu_embed_back(struct ops *o, real *dword, real *dposw, real *dtype, real *dgamma, real *dbeta, void *dy, const real *stat,
	const real *word, const real *posw, const real *type, const void *more, const real *gamma, const struct seq *s, size_t V, size_t P,
	size_t C, uint32_t pad, const struct dropout *d);
void cpu_rms_norm(
	struct ops *o, void *y, void *r, real *stat, const void *a, const void *x, const real *scale, size_t T, size_t C, double eps);
void cpu_rms_norm_back(
	struct ops *o, void *dx, real *dscale, const void *dy, const void *r, const real *stat, const real *scale, size_t T, size_t C);
void cpu_swiglu(struct ops *o, void *y, const void *z, size_t T, size_t F);
void cpu_swiglu_back(struct ops *o, void *dz, const void *dy, const void *z, size_t T, size_t F);
void cpu_value_features(struct ops *o, void *f, const real *x, const uint32_t *row, const struct value_features *v, size_t T);
void cpu_value_features_back(
	struct ops *o, real *dw, real *db, void *df, const real *x, const uint32_t *row, const struct value_features *v, size_t T);
void cpu_mlm_loss(struct ops *o, double *sum, real *lse, const void *h, const real *W, const real *b, const uint32_t *target, size_t N,
	size_t C, size_t V);
void cpu_mlm_loss_back(struct ops *o, void *dh, real *dW, real *db, const void *h, const real *W, const real *b, const uint32_t *target,
	const real *lse, const real *scale, size_t N, size_t C, size_t V);
void cpu_class_loss(struct ops *o, double *sum, void *dlogit, const void *logit, const int32_t *label, const real *weight,
	const real *scale, size_t N, size_t K);
size_t cpu_keep_bytes(const struct ops *o, size_t B, size_t T, size_t longest, size_t C, size_t NH);
void cpu_attention(struct ops *o, void *y, real *lse, const void *qkv, const struct seq *s, size_t C, size_t NH, const struct dropout *d);
void cpu_attention_presence(struct ops *o, real *presence, const void *dy, const void *y, const real *lse, const void *qkv,
	const struct seq *s, size_t C, size_t NH);
void cpu_attention_back(struct ops *o, void *dqkv, const void *dy, const void *y, const real *lse, const void *qkv, const struct seq *s,
	size_t C, size_t NH, const struct dropout *d);
void cpu_adamw(struct ops *o, real *p, const real *g, real *m, real *v, size_t n, const double *norm2, const struct adamw_args *a);
void cpu_destroy(struct ops *o);
void cpu_bag(struct ops *o, void *y, const real *W, const struct seq *s, const real *value, size_t B, size_t C, int add);
void cpu_bag_back(struct ops *o, real *dW, const void *dy, const struct seq *s, const real *value, size_t V, size_t C);
void cpu_batch_norm(struct ops *o, void *y, real *stat, const void *x, const real *gamma, const real *beta, real *run_mean, real *run_var,
	size_t N, size_t C, double eps, double momentum, int train, enum act act);
void cpu_batch_norm_back(struct ops *o, void *dx, real *dgamma, real *dbeta, const void *dy, const void *x, const void *y, const real *stat,
	const real *gamma, size_t N, size_t C, enum act act);
void cpu_nb_loss(struct ops *o, double *sum, real *lse, const void *z, const real *t, const struct seq *s, const uint32_t *count,
	const uint32_t *mask, const struct gene_weight *w, size_t B, size_t G);
void cpu_nb_loss_back(struct ops *o, void *z, real *dt, const real *t, const struct seq *s, const uint32_t *count, const uint32_t *mask,
	const real *lse, const real *scale, const real *weight, size_t B, size_t G);
void cpu_expression_loss(struct ops *o, double *sum, const void *z, const real *y, const uint32_t *in, size_t N, size_t G);
void cpu_expression_loss_back(struct ops *o, void *z, const real *y, const uint32_t *in, const real *scale, size_t N, size_t G);
