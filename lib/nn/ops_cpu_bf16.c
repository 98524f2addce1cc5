/*
 * The CPU backend with matrix products in bfloat16: inputs are rounded when they are packed (cpu_bf16.h), sums are float. All else, and all
 * that is stored between two ops, is float. This file has the weights and linear layers, ops_cpu_bf16_*.c attention and the decoder.
 *
 * The Makefile defines BF16 in one compilation; in the others this file is empty. As in ops_cpu.c, how work is cut depends on shapes alone.
 */
#include "nn/ops_cpu_bf16.h"

#ifdef USE_BF16

#include "nn/cpu_act.h"

/* ---- weights: packed when they are first used after a change ---- */

/* A weight [N,K] as it was when c->age was `age`. */
struct packed {
	const real *W;
	size_t K, N;
	struct {
		uint64_t age;
		pair *panels;
	} across, down; /* its rows are the columns of panels; its columns are */
};

static void forget(struct cpu *c)
{
	for (size_t i = 0; i < c->npacked; i++)
		free_all(c->packed[i].across.panels, c->packed[i].down.panels);
	free(c->packed);
	c->packed = NULL;
	c->npacked = 0;
}

static struct packed *find(struct cpu *c, const real *W, size_t K, size_t N)
{
	for (size_t i = 0; i < c->npacked; i++)
		if (c->packed[i].W == W && c->packed[i].K == K && c->packed[i].N == N)
			return &c->packed[i];
	c->packed = xrealloc(c->packed, c->npacked + 1, sizeof *c->packed);
	c->packed[c->npacked] = (struct packed){.W = W, .K = K, .N = N};
	return &c->packed[c->npacked++];
}

const pair *bf16_across(struct cpu *c, const real *W, size_t K, size_t N)
{
	struct packed *w = find(c, W, K, N);
	pair *to = w->across.panels;
	if (to && w->across.age == c->age)
		return to;
	if (!to)
		to = w->across.panels = xlarge(panels_size(N, pairs_of(K), BF_N), sizeof *to);
	w->across.age = c->age;
	PARALLEL_FOR
	for (size_t n0 = 0; n0 < N; n0 += BF_N)
		pack_across(to + n0 * pairs_of(K), W + n0 * K, K, min_size(BF_N, N - n0), K, 1);
	return to;
}

const pair *bf16_down(struct cpu *c, const real *W, size_t K, size_t N)
{
	struct packed *w = find(c, W, K, N);
	pair *to = w->down.panels;
	if (to && w->down.age == c->age)
		return to;
	if (!to)
		to = w->down.panels = xlarge(panels_size(K, pairs_of(N), BF_N), sizeof *to);
	w->down.age = c->age;
	PARALLEL_FOR
	for (size_t n0 = 0; n0 < N; n0 += BF_N)
		pack_down(to, BF_N, pairs_of(N), n0 / 2, W + n0 * K, K, min_size(BF_N, N - n0), K, 1);
	return to;
}

static void params_changed(struct ops *o, const real *p, size_t n)
{
	((struct cpu *)o)->age++;
}

static void adamw(struct ops *o, real *p, const real *g, real *m, real *v, size_t n, const double *norm2, const struct adamw_args *a)
{
	cpu_adamw(o, p, g, m, v, n, norm2, a);
	((struct cpu *)o)->age++;
}

/* Other weights may come to lie where these were. */
static void free_memory(struct ops *o, void *p)
{
	if (p)
		forget((struct cpu *)o);
	free(p);
}

static void destroy(struct ops *o)
{
	forget((struct cpu *)o);
	cpu_destroy(o);
}

/* ---- linear layers ---- */

enum {
	BF_ROWS = 240, /* rows of a job, a multiple of BF_M and even */
	BF_BATCH = 16 * BF_ROWS, /* tokens whose x and dy are packed at a time for the gradient of a weight */
	BF_TILE = 8 * BF_N, /* columns of a job of that gradient, or of a wide layer on few rows */
};

/* Rows of a job: a small batch is cut into eight. */
static size_t rows_of_job(size_t T)
{
	size_t r = round_up(chunks(T, 8), BF_M);
	return r < 3 * BF_M ? 3 * BF_M : r > BF_ROWS ? BF_ROWS : r;
}

static void linear(
	struct ops *o, void *y0, void *pre0, const void *x0, const real *W, const real *b, size_t T, size_t K, size_t N, enum act act)
{
	struct cpu *c = (struct cpu *)o;
	const real *x = x0;
	real *y = y0, *pre = pre0;
	int wide = N >= WIDE && N >= 2 * T;
	size_t R = wide ? 2 * BF_ROWS : rows_of_job(T), columns = wide ? BF_TILE : N, across = chunks(N, columns), P = pairs_of(K);
	const pair *B = bf16_across(c, W, K, N);
	own_need(c, round_up(R, BF_M) * P);
	PARALLEL_FOR
	for (size_t job = 0; job < across * chunks(T, R); job++) {
		size_t t0 = job / across * R, rows = min_size(R, T - t0), n0 = job % across * columns, n = min_size(columns, N - n0);
		real *z = (pre ? pre : y) + t0 * N + n0;
		pair *A = (pair *)own(c);
		for (size_t i = 0; i < rows; i++)
			pack_row(A + i * P, x + (t0 + i) * K, K, 1);
		for (size_t g = 0; g < rows; g += BF_GROUP) {
			size_t m = min_size(BF_GROUP, rows - g);
			bf_mul(z + g * N, N, A + g * P, P, 1, B + n0 * P, BF_N * P, m, n, P, 0);
			for (size_t i = g; i < g + m; i++) {
				bias_row(z + i * N, b ? b + n0 : NULL, n, act);
				if (act == ACT_GELU)
					SIMD for (size_t j = 0; j < n; j++) y[(t0 + i) * N + n0 + j] = gelu(z[i * N + j]);
			}
		}
	}
}

/* What the backward of a linear layer works with, and its scratch. */
struct back {
	real *dx, *dy;
	const real *x, *y, *pre;
	size_t T, K, N;
	enum act act;
	int add;
	const pair *down; /* the weight */
	size_t R; /* rows of a job */
	pair *dyt, *xt; /* dy and x of a batch of tokens, tall and in panels: NULL without a gradient of the weight */
	size_t pairs; /* of that batch */
	real *bias; /* [jobs][N] sums of dy, or NULL */
};

/* A job of the batch that starts at token t0: its rows from r0. Each row of dy is read from memory once. */
static void rows_back(const struct back *k, size_t t0, size_t r0, size_t end, pair *A)
{
	size_t N = k->N, K = k->K, rows = min_size(k->R, end - t0 - r0), P = pairs_of(N), from = t0 + r0;
	real *bias = k->bias ? k->bias + from / k->R * N : NULL;
	if (bias)
		memset(bias, 0, N * sizeof *bias);
	for (size_t t = from; t < from + rows; t++) {
		real *dy = k->dy + t * N;
		act_row_back(dy, k->y ? k->y + t * N : NULL, k->pre ? k->pre + t * N : NULL, N, k->act);
		if (bias)
			add_parts(bias, dy, 1, 0, N);
		if (k->dx)
			pack_row(A + (t - from) * P, dy, N, 1);
	}
	if (k->dyt) {
		pack_down(k->dyt, BF_GROUP, k->pairs, r0 / 2, k->dy + from * N, N, rows, N, 1);
		pack_down(k->xt, BF_N, k->pairs, r0 / 2, k->x + from * K, K, rows, K, 1);
	}
	if (k->dx)
		bf_mul(k->dx + from * K, K, A, P, 1, k->down, BF_N * P, rows, K, P, k->add);
}

static void linear_back(struct ops *o, void *dx, real *dW, real *db, void *dy, const void *x, const real *W, const void *y, const void *pre,
	size_t T, size_t K, size_t N, enum act act, int add)
{
	struct cpu *c = (struct cpu *)o;
	struct back k = {.dx = dx, .dy = dy, .x = x, .y = y, .pre = pre, .T = T, .K = K, .N = N, .act = act, .add = add};
	size_t pairs = pairs_of(min_size(T, BF_BATCH)), tall = panels_size(N, pairs, BF_GROUP), wide = panels_size(K, pairs, BF_N);
	k.R = rows_of_job(T);
	k.down = dx ? bf16_down(c, W, K, N) : NULL;
	if (dW) {
		k.dyt = (pair *)shared(c, tall + wide + chunks(T, k.R) * N);
		k.xt = k.dyt + tall;
		k.bias = db ? (real *)(k.xt + wide) : NULL;
	}
	own_need(c, round_up(k.R, BF_M) * pairs_of(N));
	size_t batch = BF_BATCH / k.R * k.R, across = chunks(K, BF_TILE);
	for (size_t t0 = 0; t0 < T; t0 += batch) {
		size_t end = min_size(T, t0 + batch);
		k.pairs = pairs_of(end - t0);
		PARALLEL_FOR
		for (size_t r0 = 0; r0 < end - t0; r0 += k.R)
			rows_back(&k, t0, r0, end, (pair *)own(c));
		PARALLEL_FOR
		for (size_t job = 0; job < (dW ? chunks(N, BF_GROUP) * across : 0); job++) {
			size_t n0 = job / across * BF_GROUP, k0 = job % across * BF_TILE;
			bf_mul(dW + n0 * K + k0, K, k.dyt + n0 * k.pairs, 1, BF_GROUP, k.xt + k0 * k.pairs, BF_N * k.pairs,
				min_size(BF_GROUP, N - n0), min_size(BF_TILE, K - k0), k.pairs, 1);
		}
	}
	if (k.bias)
		add_parts(db, k.bias, chunks(T, k.R), N, N);
}

void ops_cpu_bf16(struct cpu *c)
{
	c->o.free = free_memory;
	c->o.params_changed = params_changed;
	c->o.destroy = destroy;
	c->o.adamw = adamw;
	c->o.linear = linear;
	c->o.linear_back = linear_back;
	ops_cpu_bf16_attention(&c->o);
	ops_cpu_bf16_loss(&c->o);
}

#endif
