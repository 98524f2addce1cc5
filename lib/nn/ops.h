/*
 * The operations a model is trained with, as one table of functions over opaque device buffers. The network
 * (model.c) is written once against this table; a backend fills it: ops_cpu.c (OpenBLAS, OpenMP, SIMD) is linked in,
 * CUDA is a library opened at run time.
 *
 * Buffers. A pointer from alloc() is device memory: the caller adds offsets to it and hands it back, and never reads
 * through it. Three kinds of content:
 *   real      parameters, their gradients, Adam moments, LayerNorm statistics, log-sum-exp: `real` on every backend
 *   act       activations and their gradients, act_size bytes an element: real on the CPU, may be bf16 elsewhere
 *   u32, i32  token ids, offsets, labels
 * Matrices are row-major; a linear weight is [out, in] as in Hugging Face files.
 *
 * Packing. A batch is B cells laid end to end without padding, T tokens in all (struct seq). Attention is per cell.
 *
 * Gradients of parameters are added to what is there (zero them once a step); gradients of activations are written,
 * unless an argument says otherwise. A NULL bias, or NULL gradient of it, means that there is none.
 *
 * Dropout decides by 16 bits. One Philox4x32-10 call gives the decisions of 8 neighbouring columns:
 *     key     = (seed, RNG_DROPOUT)      [rng.h]
 *     counter = (*step, site << 28 | layer << 16 | head, position << 16 | column / 8, cell)
 *     bits(column) = 16-bit piece column % 8 of the result, low half of word 0 first;  dropped if bits < threshold
 * column is the channel, or for attention the key's position in its cell; position is the (query) token's place in its
 * cell; `cell` is the number in seq.key, by which shards and micro-batches of one global batch see the same masks as the
 * whole batch would. Nothing depends on tiling or threads. Kept values are scaled by 65536 / (65536 - threshold).
 *
 * Every result is the same bits for any number of threads: sums go over fixed chunks in a fixed order.
 *
 * A device may run behind the caller: ops are queued and run in the order of their calls. Only download, download_act, sync and
 * wait wait for it. Device faults are sticky and reported by sync and wait.
 */
#pragma once

#include "base/error.h"

/* The tests build the CPU kernels and the model with real = double, for central differences. */
#ifndef real
#define real float
#endif

enum act {
	ACT_NONE,
	ACT_RELU,
	ACT_GELU, /* x (1 + erf(x / sqrt 2)) / 2, the "gelu" of a config.json */
	ACT_TANH,
	ACT_LEAKY, /* x > 0 ? x : x / 100 [torch.nn.LeakyReLU] */
};

/* Where dropout happens; part of the counter, so the numbers are fixed for good. */
enum site {
	SITE_EMBED = 1,
	SITE_PROB = 2, /* attention probabilities */
	SITE_ATTN = 3, /* attention output, before the residual */
	SITE_FFN = 4, /* feed-forward output, before the residual */
	SITE_HEAD = 5, /* input of a classifier */
};

struct dropout {
	uint32_t seed;
	uint32_t site, layer;
	const uint32_t *step; /* [1], on the device */
	uint32_t threshold; /* of 65536; 0 = off */
	void *keep; /* attention only: keep_bytes of memory for its decisions; NULL if that is 0 */
	size_t longest; /* the number of tokens that keep_bytes was asked with */
};

/* A packed batch on the device. Cell b holds tokens offset[b] .. offset[b+1]. */
struct seq {
	size_t B, T, L; /* cells, tokens, tokens of the longest cell */
	const uint32_t *offset; /* [B+1] */
	const uint32_t *id; /* [T] token ids */
	const uint32_t *pos; /* [T] place in the cell */
	const uint32_t *cell; /* [T] cell index b */
	const uint32_t *key; /* [B] the cell's number for dropout */
	const uint32_t *order; /* [T] tokens sorted by (id, token): the embedding gradient sums in this order */
	const uint32_t *start; /* [V+1] the tokens of id v are order[start[v]] .. order[start[v+1]] */
	const uint32_t
		*tile; /* [ntile] first tokens of the cells' stretches of SEQ_TILE tokens, the longest cells' first; then UINT32_MAX */
	size_t ntile; /* seq_tiles(B, T) */
	/* Tokens may share a position of the model; where they do not, all three are NULL, and the position is pos. */
	const uint32_t *rank; /* [T] position of each token */
	const uint32_t *rank_order; /* [T] tokens sorted by (rank, token), for the gradient */
	const uint32_t *rank_start; /* [P+1] the tokens of rank p are rank_order[rank_start[p]] .. rank_order[rank_start[p+1]] */
};

#define SEQ_TILE 128

/* Room for the tiles of any B cells of T tokens in all. */
static inline size_t seq_tiles(size_t B, size_t T)
{
	return T / SEQ_TILE + B;
}

/* Words of a cell's mask over G genes. */
static inline size_t nb_words(size_t G)
{
	return (G + 31) / 32;
}

/*
 * How the value of a token becomes features. Without b, periodic: n frequencies and m sigmoids. With b: a layer of n units.
 *     periodic  sin(w_k (x - shift)) | cos(w_k (x - shift)) | 1 / (1 + exp(center_j - orientation_j (x - shift)))    2 n + m features
 *     units     u_k = leaky(w_k x + b_k);  u, or with a table leaky(u)                                       n features
 * Phases are double: at the frequency 2^25 a float has no digit of the sine left. A token with a row has no number: its features are 0, or with
 * a table leaky(table[row]).
 */
struct value_features {
	size_t n, m;
	double shift;
	const real *w, *b; /* [n] each */
	const real *center, *orientation; /* [m] each */
	const real *table; /* [rows, n] or NULL */
};

static inline size_t value_width(const struct value_features *v)
{
	return v->b ? v->n : 2 * v->n + v->m;
}

/* Weights of the genes in nb_loss, on the device. */
struct gene_weight {
	const real *weight; /* [G] */
	real *loss; /* [G] out: the losses of each gene, without its weight, summed over the cells */
};

#define ROW_NONE UINT32_MAX /* no index, no target: a row of padding */

enum adamw {
	ADAMW_TORCH, /* p *= 1 - lr wd;  p -= lr / (1 - b1^t) m / (sqrt(v) / sqrt(1 - b2^t) + eps) */
	ADAMW_L2, /* torch's Adam: g += wd p (after clipping), then as ADAMW_TORCH without decay */
};

struct adamw_args {
	enum adamw variant;
	double lr, beta1, beta2, eps, decay;
	size_t decayed; /* decay (wd) is for p[0 .. decayed), 0 for the rest */
	uint64_t t; /* this update's number, from 1 */
	double gscale; /* gradient factor, e.g. 1 / masked tokens of the global batch */
	double max_norm; /* clip the scaled gradient to this L2 norm; 0 = do not */
};

enum { OPS_MARKS = 4, OPS_KEY = 24, GROUP_ID = 128, INSTRUCTION_WORDS = 48 };

/* Properties of a device, exchanged before it joins a group. */
struct group_info {
	uint32_t device[4]; /* no other device has these numbers */
	char library[32]; /* that makes the sums: "NCCL 2.27.3" */
};

struct ops {
	const char *name; /* "cpu", "cuda"; for messages */
	int host; /* computes on the processor: --precision is for it, and its kernels depend on the processor */
	int queued; /* runs behind the caller */
	size_t act_size; /* bytes of one activation element */
	size_t align; /* activations and tensors start at multiples of this many elements */
	size_t round_tokens, round_rows; /* batches are padded to multiples of these: tokens, and predicted positions */

	/* Memory. Out of memory is fatal, as xmalloc. alloc() gives zeroed memory; free() takes NULL. */
	void *(*alloc)(struct ops *o, size_t bytes);
	void (*free)(struct ops *o, void *p);
	void (*zero)(struct ops *o, void *p, size_t bytes);
	void (*upload)(struct ops *o, void *dev, const void *host, size_t bytes);
	void (*download)(struct ops *o, void *host, const void *dev, size_t bytes);
	void (*copy)(struct ops *o, void *dst, const void *src, size_t bytes);
	/* Activations as real, on the host: n elements. */
	void (*download_act)(struct ops *o, real *host, const void *dev, size_t n);
	void (*upload_act)(struct ops *o, void *dev, const real *host, size_t n);
	/* Wait until all queued ops are done; -1 with e set after a device fault. */
	int (*sync)(struct ops *o, struct error *e);

	/*
	 * Copies that the caller does not wait for, between the device and memory from host_alloc. Only send and fetch need such memory. The
	 * caller does not touch it until it has waited for a mark that was set after the copy. mark(i) sets mark i < OPS_MARKS again.
	 */
	void *(*host_alloc)(struct ops *o, size_t bytes);
	void (*host_free)(struct ops *o, void *p);
	void (*send)(struct ops *o, void *dev, const void *host, size_t bytes);
	void (*fetch)(struct ops *o, void *host, const void *dev, size_t bytes);
	void (*mark)(struct ops *o, unsigned i);
	int (*wait)(struct ops *o, unsigned i, struct error *e);
	/*
	 * Between the first send and the last mark: the seconds in which the device had work, and those in which it had none. 0, 0: not
	 * known. Work that the caller waits for by sync (an evaluation) and the gaps around it count as neither.
	 */
	void (*usage)(struct ops *o, double *busy, double *idle);
	/* A sentence for the user about work that took a slow path; "": none did. NULL: the backend has no slow paths. */
	void (*remarks)(struct ops *o, char *text, size_t n);

	/*
	 * Ops that are called again with equal arguments can be recorded and replayed. What changes between the calls is in device memory.
	 *     if (!o->replay(o, key)) { ops ...;  o->replay_end(o); }
	 * replay returns 1 if it has queued the ops that were recorded under this key. The key holds everything on which their arguments
	 * depend. Between replay and replay_end only ops may be called: nothing that waits, no alloc, no free, no send. A free deletes all
	 * recordings.
	 */
	int (*replay)(struct ops *o, const uint64_t key[OPS_KEY]);
	void (*replay_end)(struct ops *o);
	/* Parameters p[n] (one allocation) were changed from outside adamw: a backend with bf16 copies renews them. */
	void (*params_changed)(struct ops *o, const real *p, size_t n);
	void (*destroy)(struct ops *o);

	/*
	 * A group: the devices of several processes, one each, which add up arrays without the hosts. NULL: the backend has no groups.
	 * group_find: can this device join one? -1 with e set: it cannot, and why.
	 * group_id: one process makes the id of a new group. All others get a copy of it.
	 * group_open: join as `rank` of `size`. It waits for all ranks. Two of them must not have the same device. destroy leaves the group.
	 * group_sum: x[n] becomes its sum over all devices, the same bits on each of them. All ranks queue the same sums in the same order. A
	 * device waits there for the others; if one is lost, that is a fault of this device.
	 */
	int (*group_find)(struct ops *o, struct group_info *info, struct error *e);
	int (*group_id)(struct ops *o, char id[GROUP_ID], struct error *e);
	int (*group_open)(struct ops *o, const char id[GROUP_ID], int rank, int size, struct error *e);
	void (*group_sum)(struct ops *o, real *x, size_t n);

	/*
	 * Embedding: e_t = word[id_t] + type[0] + posw[rank_t, or pos_t] + more_t;  y = dropout(LayerNorm(e))
	 * word [V,C], posw [P,C], type [>=1,C], gamma/beta [C]; more act [T,C]; y act [T,C]; stat real [T,2] = mean and 1/std of e.
	 * word, posw, type or more NULL: the sum does without.
	 * backward recomputes e; dy becomes the gradient of e, which is that of more. No gradient goes to word row `pad` through the lookup.
	 * dword, dposw or dtype NULL: not wanted; dgamma and dbeta always are.
	 */
	void (*embed)(struct ops *o, void *y, real *stat, const real *word, const real *posw, const real *type, const void *more,
		const real *gamma, const real *beta, const struct seq *s, size_t C, double eps, const struct dropout *d);
	void (*embed_back)(struct ops *o, real *dword, real *dposw, real *dtype, real *dgamma, real *dbeta, void *dy, const real *stat,
		const real *word, const real *posw, const real *type, const void *more, const real *gamma, const struct seq *s, size_t V,
		size_t P, size_t C, uint32_t pad, const struct dropout *d);

	/*
	 * y = act(x W^T + b): x act [T,K], W real [N,K], b real [N], y act [T,N].
	 * pre act [T,N]: the value before the activation, wanted by the backward of GELU, NULL for the others.
	 * backward overwrites dy [T,N] by the gradient before the activation; dx [T,K] is written, or added to if `add`;
	 * dx NULL: not wanted. dW NULL: the weights are frozen.
	 */
	void (*linear)(
		struct ops *o, void *y, void *pre, const void *x, const real *W, const real *b, size_t T, size_t K, size_t N, enum act act);
	void (*linear_back)(struct ops *o, void *dx, real *dW, real *db, void *dy, const void *x, const real *W, const void *y,
		const void *pre, size_t T, size_t K, size_t N, enum act act, int add);

	/*
	 * Attention within each cell: qkv act [T,3C] (query | key | value, head h at columns h D .. (h+1) D of each, D = C / NH)
	 *     P = dropout(softmax(q k^T / sqrt(D)));  y = P v
	 * y act [T,C]; lse real [T,NH] = log sum exp of the scaled scores. No number is stored for each pair of tokens.
	 * keep_bytes: what the forward needs to store its dropout decisions for the backward (dropout.keep), for any B cells of T tokens in
	 * all, each of at most `longest`. keep_bytes NULL, or 0 bytes: the backward computes the decisions again.
	 */
	size_t (*keep_bytes)(const struct ops *o, size_t B, size_t T, size_t longest, size_t C, size_t NH);
	void (*attention)(
		struct ops *o, void *y, real *lse, const void *qkv, const struct seq *s, size_t C, size_t NH, const struct dropout *d);
	void (*attention_back)(struct ops *o, void *dqkv, const void *dy, const void *y, const real *lse, const void *qkv,
		const struct seq *s, size_t C, size_t NH, const struct dropout *d);
	/*
	 * The same without dropout, if each key j counts as g_j keys: P_ij = g_j exp(s_ij) / sum_j g_j exp(s_ij). presence real [T] is added to:
	 * the derivative by g_j at 1, sum over queries i and heads of P_ij (dy_i . v_j - dy_i . y_i). NULL: the backend has no such op.
	 */
	void (*attention_presence)(struct ops *o, real *presence, const void *dy, const void *y, const real *lse, const void *qkv,
		const struct seq *s, size_t C, size_t NH);

	/*
	 * r = x + dropout(a);  y = LayerNorm(r) gamma + beta. a, x, r, y act [T,C]; x may be NULL (0); r may be a.
	 * stat real [T,2]. s gives the tokens' cells and positions for dropout; it may be NULL when d is NULL or off.
	 * backward: dr = gradient of r, written to dx; da = dr through dropout. dx may be dy; da or dx may be NULL. dbias [C]: the columns of
	 * da are added to it (a = a product + bias); NULL: not wanted.
	 */
	void (*norm)(struct ops *o, void *y, void *r, real *stat, const void *a, const void *x, const real *gamma, const real *beta,
		const struct seq *s, size_t T, size_t C, double eps, const struct dropout *d);
	void (*norm_back)(struct ops *o, void *da, void *dx, real *dgamma, real *dbeta, real *dbias, const void *dy, const void *r,
		const real *stat, const real *gamma, const struct seq *s, size_t T, size_t C, const struct dropout *d);

	/*
	 * r = x + a;  y = r scale / sqrt(mean(r^2) + eps)      [Zhang & Sennrich 2019, RMSNorm]
	 * a, x, r, y act [T,C]; x may be NULL (0); r may be a or x. scale [C]; stat real [T] = 1 / sqrt(mean(r^2) + eps).
	 * backward: the gradient of r through y is added to dx.
	 */
	void (*rms_norm)(struct ops *o, void *y, void *r, real *stat, const void *a, const void *x, const real *scale, size_t T, size_t C,
		double eps);
	void (*rms_norm_back)(struct ops *o, void *dx, real *dscale, const void *dy, const void *r, const real *stat, const real *scale,
		size_t T, size_t C);

	/*
	 * y = silu(z_1) z_2, silu(x) = x / (1 + exp(-x)), of z act [T,2F], its halves z_1 | z_2; y act [T,F]      [Shazeer 2020, SwiGLU]
	 * backward: dz is written, and may be z.
	 */
	void (*swiglu)(struct ops *o, void *y, const void *z, size_t T, size_t F);
	void (*swiglu_back)(struct ops *o, void *dz, const void *dy, const void *z, size_t T, size_t F);

	/*
	 * Features of the values x real [T] (struct value_features): f act [T, value_width]. row u32 [T]: a row of the table, or ROW_NONE: a
	 * number; NULL: all are numbers.
	 * backward: dw and db [n] are added to; dw NULL: not wanted. With b, df becomes the gradient before leaky: of tokens with a row, that of
	 * the row.
	 */
	void (*value_features)(struct ops *o, void *f, const real *x, const uint32_t *row, const struct value_features *v, size_t T);
	void (*value_features_back)(
		struct ops *o, real *dw, real *db, void *df, const real *x, const uint32_t *row, const struct value_features *v, size_t T);

	/* y = a x over n act elements; y may be x. */
	void (*scale)(struct ops *o, void *y, const void *x, double a, size_t n);
	/* y = x + z over n act elements; any may alias. */
	void (*add)(struct ops *o, void *y, const void *x, const void *z, size_t n);
	/*
	 * y[i] = x[index[i]] for N rows, 0 for ROW_NONE; scatter is its backward: dx [T,C] = 0, then dx[index[i]] = dy[i] (no repeats but
	 * of ROW_NONE, which goes nowhere).
	 */
	void (*gather)(struct ops *o, void *y, const void *x, const uint32_t *index, size_t N, size_t C);
	void (*scatter)(struct ops *o, void *dx, const void *dy, const uint32_t *index, size_t N, size_t T, size_t C);
	/* y = dropout(x), rows = tokens of s, or with per_cell its B cells (position 0). y may be x. Also its own backward. */
	void (*drop)(struct ops *o, void *y, const void *x, const struct seq *s, int per_cell, size_t C, const struct dropout *d);

	/*
	 * y[b] = mean of rows range[2b] .. range[2b+1] of x act [T,C]; y act [B,C], 0 for no rows, or with as_real real [B,C], NaN for no rows.
	 * backward: dx [T,C] of s; the ranges lie in their cells.
	 */
	void (*pool)(struct ops *o, void *y, const void *x, const uint32_t *range, size_t B, size_t C, int as_real);
	void (*pool_back)(struct ops *o, void *dx, const void *dy, const uint32_t *range, const struct seq *s, size_t C);

	/*
	 * Cross-entropy of the decoder's logits h W^T + b against target, streamed by vocabulary tile.
	 * h act [N,C], W real [V,C], b real [V], target u32 [N] < V, or ROW_NONE: no loss, no gradient. lse real [N] is kept for the backward.
	 * sum double [2] on the device: to it are added the losses, and the number of rows whose target has the largest logit.
	 * backward is of the summed loss times *scale (device; NULL: 1): dh is written, dW and db added to.
	 */
	void (*mlm_loss)(struct ops *o, double *sum, real *lse, const void *h, const real *W, const real *b, const uint32_t *target,
		size_t N, size_t C, size_t V);
	void (*mlm_loss_back)(struct ops *o, void *dh, real *dW, real *db, const void *h, const real *W, const real *b,
		const uint32_t *target, const real *lse, const real *scale, size_t N, size_t C, size_t V);

	/*
	 * Cross-entropy of ready logits act [N,K] against label i32 [N] (negative = no label, no gradient).
	 * weight real [K] scales each class, or NULL. dlogit [N,K] = gradient of the summed loss times *scale (device; NULL: 1); dlogit
	 * NULL: not wanted; it may be logit.
	 * sum double [2], added to: weighted losses, rows with argmax = label.
	 */
	void (*class_loss)(struct ops *o, double *sum, void *dlogit, const void *logit, const int32_t *label, const real *weight,
		const real *scale, size_t N, size_t K);

	/*
	 * Weighted sums of rows: a first layer on sparse counts, a one-hot covariate [torch.nn.EmbeddingBag, mode sum].
	 *     y[b] = (add ? y[b] : 0) + sum over tokens t of cell b of value[t] W[id_t],   b < B <= s->B
	 * W real [V,C]; y act [B,C]; value real [T], NULL: all 1. backward: dW[id_t] += value[t] dy[b]; it needs s->order and s->start.
	 */
	void (*bag)(struct ops *o, void *y, const real *W, const struct seq *s, const real *value, size_t B, size_t C, int add);
	void (*bag_back)(struct ops *o, real *dW, const void *dy, const struct seq *s, const real *value, size_t V, size_t C);

	/*
	 * Batch normalisation of each channel over N cells, then act: none or ReLU [Ioffe & Szegedy 2015; torch.nn.BatchNorm1d].
	 *     y = act((x - mean) / sqrt(var + eps) gamma + beta)         x, y act [N,C], y may be x if there is no backward
	 * train: mean and var are those of the N >= 2 rows. stat real [2,C] = mean | 1/std is kept for the backward, and the buffers move:
	 *     run_mean += momentum (mean - run_mean);   run_var += momentum (var N / (N - 1) - run_var)          real [C] each
	 * else mean and var are run_mean and run_var. backward: of a training forward; dx is written and may be dy.
	 */
	void (*batch_norm)(struct ops *o, void *y, real *stat, const void *x, const real *gamma, const real *beta, real *run_mean,
		real *run_var, size_t N, size_t C, double eps, double momentum, int train, enum act act);
	void (*batch_norm_back)(struct ops *o, void *dx, real *dgamma, real *dbeta, const void *dy, const void *x, const void *y,
		const real *stat, const real *gamma, size_t N, size_t C, enum act act);

	/*
	 * Negative binomial likelihood of the counts of masked genes, summed over B cells.
	 *     mu_bg = L_b softmax(z_b)_g;   theta_g = exp(t_g);   L_b = sum of the counts of cell b
	 *     loss_bg = -log NB(x; mu, theta) = lgamma(theta) - lgamma(x + theta) + lgamma(x + 1)
	 *             + theta log((theta + mu) / theta) + x log((theta + mu) / mu)
	 * z act [B,G], t real [G]. The tokens of s are genes < G, each at most once a cell, with their counts u32 [T]; genes that a cell does
	 * not list have count 0. mask u32 [B, nb_words(G)]: bit g % 32 of word g / 32 says that gene g of the cell is masked.
	 * w: each loss_bg is multiplied by the weight of gene g; NULL: all weights are 1.
	 * sum double [1], added to; lse real [B] = log sum exp of z_b, kept for the backward.
	 * backward: z becomes the gradient of the summed loss times *scale (device; NULL: 1); dt real [G] is added to. weight: w->weight or NULL.
	 */
	void (*nb_loss)(struct ops *o, double *sum, real *lse, const void *z, const real *t, const struct seq *s, const uint32_t *count,
		const uint32_t *mask, const struct gene_weight *w, size_t B, size_t G);
	void (*nb_loss_back)(struct ops *o, void *z, real *dt, const real *t, const struct seq *s, const uint32_t *count,
		const uint32_t *mask, const real *lse, const real *scale, const real *weight, size_t B, size_t G);

	/*
	 * Expression: is a gene at 0, and what is its value if not [BMFM-RNA]. z act [N,2G] has for gene g the value m = z[2g] and the logit
	 * a = z[2g+1] that it is 0; y real [N,G] is its value, NaN: no loss. Two losses:
	 *     zero  = log(1 + exp(a)) - (y = 0 ? a : 0)   of all genes        value = (m - y)^2   of those that are not at 0
	 * in u32 [N, nb_words(G)] or NULL: bits of some genes; the losses are then summed of all genes, of those with a bit, of the others.
	 * sum double [2 losses] on the device, added to, in the order zero, value, or zero, value of all, zero, value of those with a bit, ...:
	 * each the losses, and how many genes are right ((a > 0) = (y = 0); 0 for values).
	 * backward: z becomes the gradient of the sum of scale[i] times loss i; scale real [losses] on the device.
	 */
	void (*expression_loss)(struct ops *o, double *sum, const void *z, const real *y, const uint32_t *in, size_t N, size_t G);
	void (*expression_loss_back)(struct ops *o, void *z, const real *y, const uint32_t *in, const real *scale, size_t N, size_t G);

	/* sum double [1] on the device += sum of g[i]^2. */
	void (*sumsq)(struct ops *o, double *sum, const real *g, size_t n);
	/*
	 * For tests: what each special instruction of the backend's kernels gives, in [32, 64] bf16, out [32, INSTRUCTION_WORDS] by lane, as
	 * tests/cuda/test_cuda_instructions.c lists it. NULL: there are none.
	 */
	void (*instructions)(struct ops *o, uint32_t *out, const void *in);
	/* One AdamW update of p[n]. norm2 double [1] on the device: sum of squares of all gradients, before gscale; not finite: no update. */
	void (*adamw)(struct ops *o, real *p, const real *g, real *m, real *v, size_t n, const double *norm2, const struct adamw_args *a);
};

/* The CPU backend. threads >= 1 is the number of OpenMP threads it runs on. Freed by o->destroy(o). */
struct ops *ops_cpu_new(int threads);
/* The same with matrix products of bfloat16 numbers, summed in float. NULL: the processor has no AVX512-BF16, or CORRMASK_CPU excludes it. */
struct ops *ops_cpu_new_bf16(int threads);
