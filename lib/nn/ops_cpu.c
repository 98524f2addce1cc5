/*
 * The CPU backend of ops.h: OpenBLAS for the products, OpenMP over fixed chunks, loops that the compiler vectorises.
 *
 * The results do not depend on the number of threads. Any thread may compute any chunk, but how work is cut into chunks depends on shapes
 * alone, and chunks are summed in a fixed order. BLAS runs single-threaded inside the loops. Work is split
 *     over rows                      forward passes, gradients of inputs
 *     over tiles of a weight         gradients of weights: each sum over tokens has one order
 *     over (cell, head)              attention
 *     over ranges of the vocabulary  the decoder of masked tokens
 * This file has memory, elementwise ops, pooling and the optimiser; ops_cpu_*.c have the other ops.
 */
#include "nn/ops_cpu.h"
#include "nn/ops_cpu_bf16.h"
#include "nn/optim.h"

#include <assert.h>

void openblas_set_num_threads(int n);

/* ---- memory ---- */

static void *cpu_alloc(struct ops *o, size_t bytes)
{
	return memset(xlarge(bytes, 1), 0, bytes);
}

static void cpu_free(struct ops *o, void *p)
{
	free(p);
}

static void cpu_zero(struct ops *o, void *p, size_t bytes)
{
	memset(p, 0, bytes);
}

static void cpu_copy(struct ops *o, void *dst, const void *src, size_t bytes)
{
	memmove(dst, src, bytes);
}

static void cpu_copy_act_out(struct ops *o, real *host, const void *dev, size_t n)
{
	memmove(host, dev, n * sizeof(real));
}

static void cpu_copy_act_in(struct ops *o, void *dev, const real *host, size_t n)
{
	memmove(dev, host, n * sizeof(real));
}

static int cpu_sync(struct ops *o, struct error *e)
{
	return 0;
}

/* The CPU has no queue: every call has finished when it returns. */

static void *cpu_host_alloc(struct ops *o, size_t bytes)
{
	return xlarge(bytes, 1);
}

static void cpu_mark(struct ops *o, unsigned i)
{
}

static int cpu_wait(struct ops *o, unsigned i, struct error *e)
{
	return 0;
}

static void cpu_usage(struct ops *o, double *busy, double *idle)
{
	*busy = *idle = 0;
}

static int cpu_replay(struct ops *o, const uint64_t key[OPS_KEY])
{
	return 0;
}

static void cpu_replay_end(struct ops *o)
{
}

static void cpu_params_changed(struct ops *o, const real *p, size_t n)
{
}

void cpu_destroy(struct ops *o)
{
	struct cpu *c = (struct cpu *)o;
	for (int i = 0; i < c->threads; i++)
		free(c->own[i]);
	free_all(c->own, c->shared, c);
}

/* ---- elementwise ---- */

static void cpu_add(struct ops *o, void *y0, const void *x0, const void *z0, size_t n)
{
	struct cpu *c = (struct cpu *)o;
	real *y = y0;
	const real *x = x0, *z = z0;
	PARALLEL_FOR
	for (size_t k = 0; k < chunks(n, FLAT); k++)
		SIMD for (size_t i = k * FLAT; i < min_size(n, (k + 1) * FLAT); i++) y[i] = x[i] + z[i];
}

static void cpu_scale(struct ops *o, void *y0, const void *x0, double a0, size_t n)
{
	struct cpu *c = (struct cpu *)o;
	real *y = y0, a = (real)a0;
	const real *x = x0;
	PARALLEL_FOR
	for (size_t k = 0; k < chunks(n, FLAT); k++)
		SIMD for (size_t i = k * FLAT; i < min_size(n, (k + 1) * FLAT); i++) y[i] = a * x[i];
}

static void cpu_gather(struct ops *o, void *y0, const void *x0, const uint32_t *index, size_t N, size_t C)
{
	real *y = y0;
	const real *x = x0;
	for (size_t i = 0; i < N; i++) {
		if (index[i] == ROW_NONE)
			memset(y + i * C, 0, C * sizeof(real));
		else
			memcpy(y + i * C, x + index[i] * C, C * sizeof(real));
	}
}

static void cpu_scatter(struct ops *o, void *dx0, const void *dy0, const uint32_t *index, size_t N, size_t T, size_t C)
{
	real *dx = dx0;
	const real *dy = dy0;
	memset(dx, 0, T * C * sizeof(real));
	for (size_t i = 0; i < N; i++)
		if (index[i] != ROW_NONE)
			memcpy(dx + index[i] * C, dy + i * C, C * sizeof(real));
}

static void cpu_drop(struct ops *o, void *y0, const void *x0, const struct seq *s, int per_cell, size_t C, const struct dropout *d)
{
	struct cpu *c = (struct cpu *)o;
	real *y = y0;
	const real *x = x0;
	size_t T = per_cell ? s->B : s->T, R = chunk_rows(T);
	if (!drop_on(d)) {
		memmove(y, x, T * C * sizeof(real));
		return;
	}
	own_need(c, KEEP_REALS(C));
	PARALLEL_FOR
	for (size_t k = 0; k < chunks(T, R); k++)
		for (size_t t = k * R; t < min_size(T, (k + 1) * R); t++)
			drop_row(y + t * C, x + t * C, own(c), C, d, per_cell ? 0 : s->pos[t], s->key[per_cell ? t : s->cell[t]]);
}

/* ---- pooling ---- */

static void cpu_pool(struct ops *o, void *y0, const void *x0, const uint32_t *range, size_t B, size_t C, int as_real)
{
	real *y = y0;
	const real *x = x0;
	for (size_t b = 0; b < B; b++, y += C, range += 2) {
		size_t n = range[1] - range[0];
		memset(y, 0, C * sizeof(real));
		add_parts(y, x + range[0] * C, n, C, C);
		for (size_t i = 0; i < C && (n || as_real); i++)
			y[i] /= (real)n; /* 0/0 is NaN */
	}
}

static void cpu_pool_back(struct ops *o, void *dx0, const void *dy0, const uint32_t *range, const struct seq *s, size_t C)
{
	real *dx = dx0;
	const real *dy = dy0;
	memset(dx, 0, s->T * C * sizeof(real));
	for (size_t b = 0; b < s->B; b++, dy += C, range += 2)
		for (size_t t = range[0]; t < range[1]; t++)
			for (size_t i = 0; i < C; i++)
				dx[t * C + i] = dy[i] / (real)(range[1] - range[0]);
}

/* ---- optimiser ---- */

static void cpu_sumsq(struct ops *o, double *sum, const real *g, size_t n)
{
	struct cpu *c = (struct cpu *)o;
	size_t parts = chunks(n, FLAT);
	double *part = (double *)shared(c, 2 * parts);
	PARALLEL_FOR
	for (size_t k = 0; k < parts; k++) {
		double s = 0;
		SIMD_SUM(s)
		for (size_t i = k * FLAT; i < min_size(n, (k + 1) * FLAT); i++)
			s += (double)g[i] * g[i];
		part[k] = s;
	}
	for (size_t k = 0; k < parts; k++)
		*sum += part[k];
}

void cpu_adamw(struct ops *o, real *p, const real *g, real *m, real *v, size_t n, const double *norm2, const struct adamw_args *a)
{
	struct cpu *c = (struct cpu *)o;
	double norm = sqrt(*norm2) * fabs(a->gscale), coef = a->max_norm > 0 ? a->max_norm / (norm + 1e-6) : 1;
	double c1 = 1 - pow(a->beta1, (double)a->t), c2 = 1 - pow(a->beta2, (double)a->t);
	const real gs = (real)(a->gscale * (coef < 1 ? coef : 1));
	const real b1 = (real)a->beta1, b2 = (real)a->beta2, one_b1 = (real)(1 - a->beta1), one_b2 = (real)(1 - a->beta2);
	const real eps = (real)a->eps, decay = (real)(a->lr * a->decay);
	const int l2 = adamw_is_l2(a->variant);
	const real root = (real)(1 / sqrt(c2)), rate = (real)(a->lr / c1);
	const real before = l2 ? 1 : 1 - decay, pull = l2 ? (real)a->decay : 0;
	if (!isfinite(norm))
		return;
	PARALLEL_FOR
	for (size_t k = 0; k < chunks(n, FLAT); k++) {
		const size_t end = min_size(n, (k + 1) * FLAT);
		for (size_t from = k * FLAT, to; from < end; from = to) { /* with decay, then without */
			const int with = from < a->decayed;
			const real first = with ? before : 1, add = with ? pull : 0;
			to = with ? min_size(end, a->decayed) : end;
			SIMD for (size_t i = from; i < to; i++)
			{
				real gi = l2 ? g[i] * gs + add * p[i] : g[i] * gs;
				m[i] = b1 * m[i] + one_b1 * gi;
				v[i] = b2 * v[i] + one_b2 * gi * gi;
				real denom = (real)(sizeof(real) == 4 ? sqrtf((float)v[i]) : sqrt(v[i])) * root + eps;
				p[i] = p[i] * first - rate * (m[i] / denom);
			}
		}
	}
}

/* Long: a table. */
struct ops *ops_cpu_base(int threads)
{
	static_assert(VTILE % STEP == 0, "rows of logits are whole steps");
	struct cpu *c = xcalloc(1, sizeof *c);
	c->threads = threads < 1 ? 1 : threads;
	c->own = xcalloc((size_t)c->threads, sizeof *c->own);
	openblas_set_num_threads(1);
	c->o = (struct ops){
		.name = "cpu",
		.host = 1,
		.act_size = sizeof(real),
		.align = 16,
		.round_tokens = 1,
		.round_rows = 1,
		.alloc = cpu_alloc,
		.free = cpu_free,
		.zero = cpu_zero,
		.upload = cpu_copy,
		.download = cpu_copy,
		.copy = cpu_copy,
		.download_act = cpu_copy_act_out,
		.upload_act = cpu_copy_act_in,
		.sync = cpu_sync,
		.params_changed = cpu_params_changed,
		.destroy = cpu_destroy,
		.host_alloc = cpu_host_alloc,
		.host_free = cpu_free,
		.send = cpu_copy,
		.fetch = cpu_copy,
		.mark = cpu_mark,
		.wait = cpu_wait,
		.usage = cpu_usage,
		.replay = cpu_replay,
		.replay_end = cpu_replay_end,
		.embed = cpu_embed,
		.embed_back = cpu_embed_back,
		.linear = cpu_linear,
		.linear_back = cpu_linear_back,
		.keep_bytes = cpu_keep_bytes,
		.attention = cpu_attention,
		.attention_back = cpu_attention_back,
		.attention_presence = cpu_attention_presence,
		.norm = cpu_norm,
		.norm_back = cpu_norm_back,
		.rms_norm = cpu_rms_norm,
		.rms_norm_back = cpu_rms_norm_back,
		.swiglu = cpu_swiglu,
		.swiglu_back = cpu_swiglu_back,
		.value_features = cpu_value_features,
		.value_features_back = cpu_value_features_back,
		.scale = cpu_scale,
		.add = cpu_add,
		.gather = cpu_gather,
		.scatter = cpu_scatter,
		.drop = cpu_drop,
		.pool = cpu_pool,
		.pool_back = cpu_pool_back,
		.mlm_loss = cpu_mlm_loss,
		.mlm_loss_back = cpu_mlm_loss_back,
		.class_loss = cpu_class_loss,
		.bag = cpu_bag,
		.bag_back = cpu_bag_back,
		.batch_norm = cpu_batch_norm,
		.batch_norm_back = cpu_batch_norm_back,
		.nb_loss = cpu_nb_loss,
		.nb_loss_back = cpu_nb_loss_back,
		.expression_loss = cpu_expression_loss,
		.expression_loss_back = cpu_expression_loss_back,
		.sumsq = cpu_sumsq,
		.adamw = cpu_adamw,
	};
#ifdef USE_BF16
	ops_cpu_bf16(c);
#endif
	return &c->o;
}
