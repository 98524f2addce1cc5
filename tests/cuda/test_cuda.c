/*
 * Every op of the CUDA backend against the CPU's, float and bf16, at odd sizes; whole training steps; equal bits in equal runs.
 *
 * Two programs come from this file. `make check-cuda` runs the kernels on the first GPU (CORRMASK_CUDA picks another) and
 * skips where there is none. `make check` runs the same kernels, compiled for the host, fiber by fiber (emu.h), at smaller
 * sizes: all index arithmetic, fragment layouts and barriers, but no GPU's timing, memory model or cuBLASLt.
 *
 * Inputs are numbers that bf16 holds exactly, so both backends see the same ones. Errors are ||got - want|| / ||want|| of each
 * tensor; the tolerances are a little above what the emulated run gives, which rounds as the GPU does. Every buffer of
 * the device has guard elements behind it, which must be left alone, and starts with values that no op should keep.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "model.h"
#include "ops.h"

#ifdef __SANITIZE_ADDRESS__ /* which makes fibers ten times slower: fewer cases */
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#ifdef EMULATED
struct ops *cuda_emulated(int fp32);
extern unsigned emu_replays;
#else
#include "device.h"
#endif

enum {
	GUARD = 64,
	MAX_ARRAYS = 64,
};
#define GUARD_VALUE 77.0f

static struct ops *cpu, *gpu;
static int fp32;
static double worst; /* error over tolerance, of the running test */
static char worst_name[128];

/* ---- arrays on both sides ---- */

struct arr {
	const char *name;
	size_t n;
	int act;
	float *x; /* what the CPU op sees */
	void *d;
};

static struct arr arrays[MAX_ARRAYS];
static size_t narray;
static void *others[MAX_ARRAYS];
static size_t nother;

static uint32_t rng(uint32_t n)
{
	static uint32_t x = 1;
	x = x * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)x * n >> 32);
}

/* A multiple of size / 64 in [-size, size]: exact in bf16 when size is a power of two. */
static float draw(float size)
{
	return size * ((float)rng(129) - 64) / 64;
}

static void put(const struct arr *a)
{
	if (a->act)
		gpu->upload_act(gpu, a->d, a->x, a->n + GUARD);
	else
		gpu->upload(gpu, a->d, a->x, (a->n + GUARD) * 4);
}

static struct arr *array(const char *name, int act, size_t n, float size)
{
	struct arr *a = &arrays[narray++];
	assert_true(narray <= MAX_ARRAYS);
	*a = (struct arr){ name, n, act, xcalloc(n + GUARD, 4), gpu->alloc(gpu, (n + GUARD) * 4) };
	for (size_t i = 0; i < n + GUARD; i++)
		a->x[i] = i < n ? draw(size) : GUARD_VALUE;
	put(a);
	return a;
}

#define ACTS(name, n) array(name, 1, n, 2)
#define REALS(name, n) array(name, 0, n, 0.5f)

static void *to_gpu(const void *x, size_t bytes)
{
	void *d = gpu->alloc(gpu, bytes ? bytes : 4);
	gpu->upload(gpu, d, x, bytes);
	assert_true(nother < MAX_ARRAYS);
	return others[nother++] = d;
}

static void release(void)
{
	struct error e = { "" };
	if (gpu->sync(gpu, &e))
		fail_msg("%s", e.msg);
	for (; narray; narray--) {
		free(arrays[narray - 1].x);
		gpu->free(gpu, arrays[narray - 1].d);
	}
	for (; nother; nother--)
		gpu->free(gpu, others[nother - 1]);
}

static double distance(const float *got, const float *want, size_t n)
{
	double d = 0, w = 0;
	for (size_t i = 0; i < n; i++) {
		d += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
		w += (double)want[i] * want[i];
	}
	return w > 0 ? sqrt(d / w) : sqrt(d);
}

static void within(const char *name, double error, double tolerance)
{
	if (error / tolerance > worst || error != error) {
		worst = error / tolerance;
		snprintf(worst_name, sizeof worst_name, "%s %.2g of %.2g", name, error, tolerance);
	}
	if (!(error <= tolerance))
		fail_msg("%s (%s): error %.3g, tolerance %.3g", name, fp32 ? "float" : "bf16", error, tolerance);
}

/* The device's array against the CPU's. */
static void same(const struct arr *a, double tol_float, double tol_bf16)
{
	struct error e = { "" };
	float *got = xcalloc(a->n + GUARD, 4);
	if (gpu->sync(gpu, &e))
		fail_msg("%s: %s", a->name, e.msg);
	if (a->act)
		gpu->download_act(gpu, got, a->d, a->n + GUARD);
	else
		gpu->download(gpu, got, a->d, (a->n + GUARD) * 4);
	for (size_t i = a->n; i < a->n + GUARD; i++)
		if (got[i] != GUARD_VALUE)
			fail_msg("%s: element %zu, behind its %zu, was written", a->name, i, a->n);
	within(a->name, distance(got, a->x, a->n), fp32 ? tol_float : tol_bf16);
	free(got);
}

static void same_sums(const char *name, const double *got, const double *want, size_t n, double tol_float, double tol_bf16)
{
	for (size_t i = 0; i < n; i++)
		within(name, fabs(got[i] - want[i]) / (fabs(want[i]) + 1e-9), fp32 ? tol_float : tol_bf16);
}

/* ---- batches ---- */

struct both {
	struct seq c, g;
	uint32_t *offset, *id, *pos, *cell, *key, *order, *start, *tile;
};

static void pack(struct both *p, const uint32_t *len, size_t B, size_t V)
{
	*p = (struct both){ .offset = xcalloc(B + 1, 4), .key = xcalloc(B + 1, 4) };
	size_t L = 0;
	for (size_t b = 0; b < B; b++) {
		p->offset[b + 1] = p->offset[b] + len[b];
		p->key[b] = 1000 + 7 * (uint32_t)b;
		L = len[b] > L ? len[b] : L;
	}
	size_t T = p->offset[B], n = 0;
	p->id = xcalloc(T, 4), p->pos = xcalloc(T, 4), p->cell = xcalloc(T, 4), p->order = xcalloc(T, 4), p->start = xcalloc(V + 1, 4);
	for (uint32_t b = 0; b < B; b++) {
		for (uint32_t t = 0; t < len[b]; t++) {
			p->pos[p->offset[b] + t] = t;
			p->cell[p->offset[b] + t] = b;
			p->id[p->offset[b] + t] = rng(3) ? rng((uint32_t)V) : 1; /* one word is frequent */
		}
	}
	for (size_t v = 0; v < V; v++) {
		for (uint32_t t = 0; t < T; t++)
			if (p->id[t] == v)
				p->order[n++] = t;
		p->start[v + 1] = (uint32_t)n;
	}
	size_t ntile = seq_tiles(B, T), k = 0;
	p->tile = xcalloc(ntile, 4);
	for (uint32_t t = 0; t < T; t++)
		if (p->pos[t] % SEQ_TILE == 0)
			p->tile[k++] = t;
	assert_true(k <= ntile);
	for (; k < ntile; k++)
		p->tile[k] = ROW_NONE;
	p->c = (struct seq){ B, T, L, p->offset, p->id, p->pos, p->cell, p->key, p->order, p->start, p->tile, ntile };
	p->g = (struct seq){ B, T, L, to_gpu(p->offset, (B + 1) * 4), to_gpu(p->id, T * 4), to_gpu(p->pos, T * 4), to_gpu(p->cell, T * 4),
		to_gpu(p->key, B * 4), to_gpu(p->order, T * 4), to_gpu(p->start, (V + 1) * 4), to_gpu(p->tile, ntile * 4), ntile };
}

static void unpack(struct both *p)
{
	free(p->offset), free(p->id), free(p->pos), free(p->cell), free(p->key), free(p->order), free(p->start), free(p->tile);
	release();
}

#ifdef EMULATED
static const uint32_t cells[] = { 9, 1, 64, 0, 70, 3 };
enum { STEPS = 3, WORDS = 97, POSITIONS = 80 };
#else
static const uint32_t cells[] = { 9, 1, 64, 0, 70, 130, 3 };
enum { STEPS = 4, WORDS = 301, POSITIONS = 160 };
#endif
#define CELLS (sizeof cells / sizeof *cells)
#ifdef EMULATED
static const size_t widths[] = { 5, 64, 264, 1280 };
#else
static const size_t widths[] = { 5, 64, 256, 260, 512, 768, 776, 1032, 1280 };
#endif
#define EACH_WIDTH(C) for (size_t i_ = 0, C; i_ < sizeof widths / sizeof *widths && (C = widths[i_], 1); i_++)

static const uint32_t step = 12;
static uint32_t *gpu_step; /* the same, on the device */

static struct dropout drop(uint32_t site, uint32_t threshold)
{
	return (struct dropout){ .seed = 4711, .step = &step, .site = site, .layer = 3, .threshold = threshold };
}

static const struct dropout *on_gpu(const struct dropout *d)
{
	static struct dropout g;
	if (!d)
		return NULL;
	g = *d;
	g.step = gpu_step;
	return &g;
}

/* ---- ops ---- */

static void embed(void)
{
	struct both p;
	struct dropout d = drop(SITE_EMBED, 20000);
	EACH_WIDTH(C) {
		size_t V = 37, P = 140;
		pack(&p, cells, CELLS, V);
		size_t T = p.c.T;
		struct arr *y = ACTS("embed y", T * C), *stat = REALS("embed stat", 2 * T), *word = REALS("word", V * C), *posw = REALS("posw", P * C),
			   *type = REALS("type", 2 * C), *gamma = REALS("gamma", C), *beta = REALS("beta", C);
		cpu->embed(cpu, y->x, stat->x, word->x, posw->x, type->x, gamma->x, beta->x, &p.c, C, 1e-12, &d);
		gpu->embed(gpu, y->d, stat->d, word->d, posw->d, type->d, gamma->d, beta->d, &p.g, C, 1e-12, on_gpu(&d));
		same(y, 1e-6, 3e-3);
		same(stat, 1e-6, 1e-6);
		struct arr *dword = REALS("dword", V * C), *dposw = REALS("dposw", P * C), *dtype = REALS("dtype", 2 * C),
			   *dgamma = REALS("embed dgamma", C), *dbeta = REALS("embed dbeta", C), *dy = ACTS("embed dy", T * C);
		cpu->embed_back(cpu, dword->x, dposw->x, dtype->x, dgamma->x, dbeta->x, dy->x, stat->x, word->x, posw->x, type->x, gamma->x, &p.c, V, P,
			C, 3, &d);
		gpu->embed_back(gpu, dword->d, dposw->d, dtype->d, dgamma->d, dbeta->d, dy->d, stat->d, word->d, posw->d, type->d, gamma->d, &p.g, V, P,
			C, 3, on_gpu(&d));
		same(dword, 1e-5, 4e-3), same(dposw, 1e-5, 4e-3), same(dtype, 1e-5, 4e-3);
		same(dgamma, 1e-5, 1e-5), same(dbeta, 1e-5, 1e-5);
		unpack(&p);
	}
}

static void linear_one(size_t T, size_t K, size_t N, enum act act, int add, int bias)
{
	struct arr *x = array("x", 1, T * K, 1), *W = REALS("W", N * K), *b = REALS("b", N), *y = ACTS("linear y", T * N), *pre = ACTS("linear pre", T * N);
	struct arr *dy = ACTS("linear dy", T * N), *dx = ACTS("linear dx", T * K), *dW = REALS("linear dW", N * K), *db = REALS("linear db", N);
	int gelu = act == ACT_GELU;
	gpu->params_changed(gpu, W->d, N * K);
	cpu->linear(cpu, y->x, gelu ? pre->x : NULL, x->x, W->x, bias ? b->x : NULL, T, K, N, act);
	gpu->linear(gpu, y->d, gelu ? pre->d : NULL, x->d, W->d, bias ? b->d : NULL, T, K, N, act);
	same(y, 2e-6, 4e-3);
	if (gelu)
		same(pre, 2e-6, 4e-3);
	put(y); /* go on from equal numbers */
	put(pre);
	if (!fp32) {
		gpu->download_act(gpu, y->x, y->d, T * N);
		gpu->download_act(gpu, pre->x, pre->d, T * N);
	}
	cpu->linear_back(cpu, dx->x, dW->x, bias ? db->x : NULL, dy->x, x->x, W->x, y->x, gelu ? pre->x : NULL, T, K, N, act, add);
	gpu->linear_back(gpu, dx->d, dW->d, bias ? db->d : NULL, dy->d, x->d, W->d, y->d, gelu ? pre->d : NULL, T, K, N, act, add);
	same(dy, 2e-6, 4e-3);
	same(dx, 2e-6, 5e-3);
	same(dW, 2e-6, 4e-3);
	same(db, 2e-6, 4e-3);
	release();
}

static void linear(void)
{
	linear_one(1, 1, 1, ACT_NONE, 0, 1);
	linear_one(67, 64, 192, ACT_NONE, 1, 1);
	linear_one(131, 64, 128, ACT_RELU, 1, 1);
	linear_one(33, 40, 24, ACT_RELU, 0, 0);
	linear_one(50, 64, 11, ACT_NONE, 0, 1);
	linear_one(65, 13, 37, ACT_GELU, 0, 1);
	linear_one(40, 64, 72, ACT_GELU, 1, 1);
	linear_one(7, 64, 64, ACT_TANH, 0, 1);
#ifndef EMULATED
	linear_one(5000, 256, 768, ACT_NONE, 1, 1);
	linear_one(4999, 256, 512, ACT_RELU, 1, 1);
	linear_one(4999, 768, 3072, ACT_GELU, 0, 1);
#endif
}

/* far < 0: all scores lie about there. far > 0: they rise from about 0 to there in 144 keys. */
static void attention_one(const uint32_t *len, size_t B, size_t NH, size_t D, uint32_t threshold, float size, float far)
{
	struct both p;
	struct dropout d = drop(SITE_PROB, threshold);
	size_t C = NH * D;
	pack(&p, len, B, 2);
	size_t T = p.c.T;
	struct arr *qkv = array("qkv", 1, T * 3 * C, size), *y = ACTS("attention y", T * C), *lse = REALS("lse", T * NH);
	for (size_t i = 0; far != 0 && i < T * 3 * C; i += D) /* the first channel of each query (32) and key */
		if (i % (3 * C) < 2 * C)
			qkv->x[i] = i % (3 * C) < C ? 32 : (far < 0 ? 8 : (float)(i / (3 * C) / 16)) * far * sqrtf((float)D) / 256;
	put(qkv);
	struct arr *dy = ACTS("attention dy", T * C), *dqkv = ACTS("dqkv", T * 3 * C);
	cpu->attention(cpu, y->x, lse->x, qkv->x, &p.c, C, NH, &d);
	gpu->attention(gpu, y->d, lse->d, qkv->d, &p.g, C, NH, on_gpu(&d));
	same(y, 3e-6, 5e-3);
	same(lse, 1e-6, 1e-6);
	cpu->attention_back(cpu, dqkv->x, dy->x, y->x, lse->x, qkv->x, &p.c, C, NH, &d);
	gpu->attention_back(gpu, dqkv->d, dy->d, y->d, lse->d, qkv->d, &p.g, C, NH, on_gpu(&d));
	same(dqkv, 6e-6, 1.2e-2);
	unpack(&p);
}

static void attention(void)
{
	for (uint32_t threshold = SANITIZED ? 13107 : 0; threshold <= 13107; threshold += 13107) {
		attention_one(cells, CELLS, 2, 64, threshold, 2, 0);
		attention_one(cells, CELLS, 3, 16, threshold, 2, 0);
		attention_one((uint32_t[]){ 1 }, 1, 1, 64, threshold, 2, 0);
		attention_one((uint32_t[]){ 192, 33 }, 2, 1, 64, threshold, 8, 0); /* one key takes nearly all */
		attention_one((uint32_t[]){ 65 }, 1, 1, 100, threshold, 1, 0);
		attention_one((uint32_t[]){ 127, 129, 31, 128, 0, 33 }, 6, 1, 64, threshold, 2, 0); /* around a warp's rows, a tile, a block's rows */
#ifndef EMULATED
		attention_one((uint32_t[]){ 2048, 1, 1000, 63, 4096 }, 5, 4, 64, threshold, 2, 0);
#endif
	}
	attention_one((uint32_t[]){ 129 }, 1, 1, 64, 0, 2, -256); /* rows past the cell's end have larger scores: 0 */
	attention_one((uint32_t[]){ 144 }, 1, 1, 64, 13107, 2, 256); /* further than float's exponents reach */
	attention_one((uint32_t[]){ 40 }, 1, 1, 64, 1, 2, 0); /* the least and nearly the largest threshold */
	attention_one((uint32_t[]){ 40 }, 1, 1, 64, 60000, 2, 0);
}

static void norm(void)
{
	struct both p;
	struct dropout d = drop(SITE_FFN, 6554), off = drop(SITE_FFN, 0);
	EACH_WIDTH(C) {
		for (int k = 0; k < 4; k++) { /* dropout; a plain sum; no residual; in place */
			const struct dropout *dd = k == 1 ? &off : k == 2 ? NULL : &d;
			pack(&p, cells, CELLS, 2);
			size_t T = p.c.T;
			struct arr *a = ACTS("a", T * C), *x = ACTS("x", T * C), *r = k == 3 ? a : ACTS("r", T * C), *y = ACTS("norm y", T * C);
			struct arr *stat = REALS("stat", 2 * T), *gamma = REALS("gamma", C), *beta = REALS("beta", C);
			cpu->norm(cpu, y->x, r->x, stat->x, a->x, k == 2 ? NULL : x->x, gamma->x, beta->x, k == 2 ? NULL : &p.c, T, C, 1e-12, dd);
			gpu->norm(gpu, y->d, r->d, stat->d, a->d, k == 2 ? NULL : x->d, gamma->d, beta->d, k == 2 ? NULL : &p.g, T, C, 1e-12, on_gpu(dd));
			same(y, 1e-6, 4e-3), same(r, 1e-6, 4e-3), same(stat, 1e-6, 4e-3);
			put(r);
			if (!fp32)
				gpu->download_act(gpu, r->x, r->d, T * C);
			put(stat);
			struct arr *dy = ACTS("norm dy", T * C), *dx = k == 1 ? dy : ACTS("norm dx", T * C), *da = ACTS("norm da", T * C);
			struct arr *dgamma = REALS("dgamma", C), *dbeta = REALS("dbeta", C);
			cpu->norm_back(cpu, k == 2 ? NULL : da->x, k == 3 ? NULL : dx->x, dgamma->x, dbeta->x, dy->x, r->x, stat->x, gamma->x,
				k == 2 ? NULL : &p.c, T, C, dd);
			gpu->norm_back(gpu, k == 2 ? NULL : da->d, k == 3 ? NULL : dx->d, dgamma->d, dbeta->d, dy->d, r->d, stat->d, gamma->d,
				k == 2 ? NULL : &p.g, T, C, on_gpu(dd));
			same(dx, 2e-6, 4e-3), same(da, 2e-6, 4e-3), same(dgamma, 3e-6, 3e-6), same(dbeta, 3e-6, 3e-6);
			unpack(&p);
		}
	}
}

static void moves(void)
{
	struct both p;
	struct dropout d = drop(SITE_HEAD, 30000), off = drop(SITE_HEAD, 0);
	EACH_WIDTH(C) {
		pack(&p, cells, CELLS, 2);
		size_t T = p.c.T, N = 20, B = p.c.B;
		uint32_t index[20];
		for (uint32_t i = 0; i < N; i++)
			index[i] = i % 7 == 3 ? ROW_NONE : i * 6 + rng(6);
		uint32_t *at = to_gpu(index, sizeof index);
		struct arr *x = ACTS("x", T * C), *z = ACTS("z", T * C), *y = ACTS("add", T * C), *few = ACTS("gather", N * C), *back = ACTS("scatter", T * C);
		cpu->add(cpu, y->x, x->x, z->x, T * C);
		gpu->add(gpu, y->d, x->d, z->d, T * C);
		same(y, 0, 4e-3);
		cpu->gather(cpu, few->x, x->x, index, N, C);
		gpu->gather(gpu, few->d, x->d, at, N, C);
		same(few, 1e-12, 1e-12);
		cpu->scatter(cpu, back->x, few->x, index, N, T, C);
		gpu->scatter(gpu, back->d, few->d, at, N, T, C);
		same(back, 1e-12, 1e-12);
		y->name = "drop";
		cpu->drop(cpu, y->x, x->x, &p.c, 0, C, &d);
		gpu->drop(gpu, y->d, x->d, &p.g, 0, C, on_gpu(&d));
		same(y, 1e-7, 4e-3);
		cpu->drop(cpu, y->x, x->x, &p.c, 0, C, &off);
		gpu->drop(gpu, y->d, x->d, &p.g, 0, C, on_gpu(&off));
		same(y, 1e-12, 1e-12);
		for (int k = 0; k < 3; k++) { /* whole cells; the first token; all but the first */
			uint32_t range[2 * CELLS];
			for (size_t i = 0; i < B; i++) {
				uint32_t from = p.offset[i], to = p.offset[i + 1];
				range[2 * i] = k == 2 && from < to ? from + 1 : from;
				range[2 * i + 1] = k == 1 && from < to ? from + 1 : to;
			}
			uint32_t *r = to_gpu(range, sizeof range);
			struct arr *c = ACTS("pool", B * C), *dx = ACTS("pool dx", T * C), *f = REALS("pool as real", B * C);
			cpu->pool(cpu, f->x, x->x, range, B, C, 1);
			gpu->pool(gpu, f->d, x->d, r, B, C, 1);
			for (size_t i = 0; i < B; i++) { /* the mean of nothing */
				float nothing;
				if (range[2 * i] < range[2 * i + 1])
					continue;
				gpu->download(gpu, &nothing, (float *)f->d + i * C, sizeof nothing);
				assert_true(isnan(nothing) && isnan(f->x[i * C]));
				memset(f->x + i * C, 0, C * sizeof *f->x);
				gpu->zero(gpu, (float *)f->d + i * C, C * sizeof *f->x);
			}
			same(f, 1e-6, 1e-6);
			cpu->pool(cpu, c->x, x->x, range, B, C, 0);
			gpu->pool(gpu, c->d, x->d, r, B, C, 0);
			same(c, 1e-6, 4e-3);
			put(c);
			if (!fp32)
				gpu->download_act(gpu, c->x, c->d, B * C);
			cpu->pool_back(cpu, dx->x, c->x, range, &p.c, C);
			gpu->pool_back(gpu, dx->d, c->d, r, &p.g, C);
			same(dx, 1e-6, 4e-3);
			c->name = "drop per cell";
			cpu->drop(cpu, c->x, c->x, &p.c, 1, C, &d);
			gpu->drop(gpu, c->d, c->d, &p.g, 1, C, on_gpu(&d));
			same(c, 1e-7, 4e-3);
		}
		unpack(&p);
	}
}

static void mlm_one(size_t N, size_t C, size_t V)
{
	uint32_t *target = xcalloc(N, 4);
	double want[2] = { 3, 1 }, got[2] = { 3, 1 }, *sum = to_gpu(got, sizeof got); /* losses are added */
	for (size_t i = 0; i < N; i++)
		target[i] = i % 9 == 4 ? ROW_NONE : rng((uint32_t)V);
	uint32_t *at = to_gpu(target, N * 4);
	struct arr *h = ACTS("h", N * C), *W = REALS("W", V * C), *b = REALS("b", V), *lse = REALS("mlm lse", N);
	struct arr *dh = ACTS("mlm dh", N * C), *dW = REALS("mlm dW", V * C), *db = REALS("mlm db", V);
	for (size_t c = 0; c < C; c++) /* one row hits its target */
		h->x[c] = W->x[target[0] * C + c] > 0 ? 2 : -2;
	put(h);
	gpu->params_changed(gpu, W->d, V * C);
	cpu->mlm_loss(cpu, want, lse->x, h->x, W->x, b->x, target, N, C, V);
	gpu->mlm_loss(gpu, sum, lse->d, h->d, W->d, b->d, at, N, C, V);
	gpu->download(gpu, got, sum, sizeof got);
	same_sums("mlm loss", got, want, 2, 1e-6, 1e-6);
	same(lse, 2e-6, 2e-6);
	cpu->mlm_loss_back(cpu, dh->x, dW->x, db->x, h->x, W->x, b->x, target, lse->x, N, C, V);
	gpu->mlm_loss_back(gpu, dh->d, dW->d, db->d, h->d, W->d, b->d, at, lse->d, N, C, V);
	same(dh, 1e-5, 5e-3), same(dW, 1e-5, 4e-3), same(db, 1e-5, 4e-3);
	free(target);
	release();
}

static void mlm_loss(void)
{
	mlm_one(1, 3, 1);
	mlm_one(5, 64, 17);
	mlm_one(70, 64, 301);
	mlm_one(33, 15, 64);
#ifndef EMULATED
	mlm_one(5000, 256, 25426);
#endif
}

static void class_one(size_t N, size_t K, int weighted)
{
	int32_t *label = xcalloc(N, 4);
	double want[3] = { 5, 1, 2 }, got[3] = { 5, 1, 2 }, *sum = to_gpu(got, sizeof got);
	for (size_t i = 0; i < N; i++)
		label[i] = (int32_t)rng((uint32_t)K + 1) - 1;
	int32_t *at = to_gpu(label, N * 4);
	struct arr *z = ACTS("logits", N * K), *dz = ACTS("dlogit", N * K), *w = REALS("weight", K);
	cpu->class_loss(cpu, want, dz->x, z->x, label, weighted ? w->x : NULL, N, K);
	gpu->class_loss(gpu, sum, dz->d, z->d, at, weighted ? w->d : NULL, N, K);
	gpu->download(gpu, got, sum, sizeof got);
	same_sums("class loss", got, want, 3, 1e-5, 1e-5);
	same(dz, 2e-6, 4e-3);
	cpu->class_loss(cpu, want, z->x, z->x, label, NULL, N, K);
	gpu->class_loss(gpu, sum, z->d, z->d, at, NULL, N, K);
	same(z, 2e-6, 4e-3);
	cpu->class_loss(cpu, want, NULL, dz->x, label, NULL, N, K);
	gpu->class_loss(gpu, sum, NULL, dz->d, at, NULL, N, K);
	free(label);
	release();
}

static void class_loss(void)
{
	class_one(1, 2, 0);
	class_one(50, 2, 1);
	class_one(77, 33, 1);
	class_one(1100, 5, 0);
}

static void optimiser(void)
{
	const size_t n = 70001;
	double want = 0.25, got = 0.25, *sum = gpu->alloc(gpu, sizeof got);
	gpu->upload(gpu, sum, &got, sizeof got);
	for (int variant = ADAMW_TORCH; variant <= ADAMW_HF46; variant++) {
		for (int clip = 0; clip < 2; clip++) {
			struct arr *p = REALS("p", n), *g = REALS("g", n), *m = REALS("m", n), *v = REALS("v", n);
			struct adamw_args a = { .variant = variant, .lr = 1e-2, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .decay = 0.1, .decayed = 50001, .t = 3,
				.gscale = 0.125, .max_norm = clip };
			for (size_t i = 0; i < n; i++)
				v->x[i] = fabsf(v->x[i]);
			put(v);
			cpu->sumsq(cpu, &want, g->x, n);
			gpu->sumsq(gpu, sum, g->d, n);
			gpu->download(gpu, &got, sum, sizeof got);
			same_sums("sumsq", &got, &want, 1, 1e-12, 1e-12);
			cpu->adamw(cpu, p->x, g->x, m->x, v->x, n, &want, &a);
			gpu->adamw(gpu, p->d, g->d, m->d, v->d, n, sum, &a);
			same(p, 1e-6, 1e-6), same(m, 1e-6, 1e-6), same(v, 1e-6, 1e-6);
			put(p), put(m), put(v);
			gpu->adamw(gpu, p->d, g->d, m->d, v->d, n, to_gpu(&(double){ NAN }, sizeof(double)), &a); /* changes nothing */
			same(p, 0, 0), same(m, 0, 0), same(v, 0, 0);
			release();
		}
	}
	gpu->free(gpu, sum);
}

/* ---- whole steps ---- */

struct run {
	struct batch b;
	uint32_t *offset, *id, *mask, *target;
	int32_t *label;
};

static void make_run(struct run *r, const uint32_t *len, size_t B, uint32_t V, uint32_t K)
{
	r->offset = xcalloc(B + 1, 4);
	for (size_t i = 0; i < B; i++)
		r->offset[i + 1] = r->offset[i] + len[i];
	size_t T = r->offset[B], n = 0;
	r->id = xcalloc(T, 4), r->mask = xcalloc(T, 4), r->target = xcalloc(T, 4), r->label = xcalloc(T, 4);
	for (uint32_t t = 0; t < T; t++) {
		r->id[t] = 2 + rng(V - 2);
		r->label[t] = (int32_t)rng(K);
		if (rng(100) < 15) {
			r->mask[n] = t;
			r->target[n++] = r->id[t];
			r->id[t] = 1;
		}
	}
	r->b = (struct batch){ .ncell = B, .offset = r->offset, .id = r->id, .nmask = n, .mask = r->mask, .target = r->target, .label = r->label };
}

static void free_run(struct run *r)
{
	free(r->offset), free(r->id), free(r->mask), free(r->target), free(r->label);
}

static struct model *model_on(struct ops *o, const struct model_config *c, enum task task, const float *class_weight)
{
	struct error e;
	struct model *m = model_new(c, task, o, 5, &e);
	if (!m)
		fail_msg("%s", e.msg);
	model_class_weight(m, class_weight);
	return m;
}

/* One step; with `later` only asked for. */
static void one_step(struct model *m, const struct run *r, uint64_t k, struct loss *l, int later)
{
	struct error e;
	struct optim opt;
	optim_init(&opt);
	opt.total = 10;
	model_zero_grad(m);
	if (model_forward(m, &r->b, &(struct forward){ .train = 1, .step = k, .later = later }, l, &e) || model_backward(m, &e))
		fail_msg("%s", e.msg);
	if (later)
		model_step_later(m, &opt, k, l->count);
	else if (model_step(m, &opt, k, l->count, NULL, &e))
		fail_msg("%s", e.msg);
}

/* Means of hidden states, of all tokens but a cell's first. */
static void embed_one(struct model *a, struct model *b, const struct run *r)
{
	struct error e;
	size_t B = r->b.ncell, n = B * model_config(a)->hidden_size;
	uint32_t range[2 * CELLS];
	float *x = xcalloc(n, 4), *y = xcalloc(n, 4);
	for (size_t i = 0; i < B; i++) {
		range[2 * i + 1] = r->offset[i + 1];
		range[2 * i] = r->offset[i] < r->offset[i + 1] ? r->offset[i] + 1 : r->offset[i];
	}
	if (model_embed(a, &r->b, -1, range, &e) || model_embed(b, &r->b, -1, range, &e) || model_embed(b, &r->b, -1, range, &e) ||
		model_embedded(a, x, &e) || model_embedded(b, y, &e) || model_embedded(b, y, &e))
		fail_msg("%s", e.msg);
	for (size_t i = 0; i < n; i++) {
		size_t cell = i / model_config(a)->hidden_size;
		if (range[2 * cell] < range[2 * cell + 1])
			continue;
		assert_true(isnan(x[i]) && isnan(y[i]));
		x[i] = y[i] = 0;
	}
	within("embedding", distance(y, x, n), fp32 ? 1e-2 : 0.2);
	range[1]++;
	assert_int_equal(model_embed(b, &r->b, -1, range, &e), -1);
	free(x), free(y);
}

/*
 * A few steps on both, of batches that differ but have one size: losses, every tensor's gradient in the first step, parameters at the
 * end. And the same once more, asked for one step ahead: equal bits. The first step runs as it comes, the second is recorded, the
 * others are replayed.
 */
static void steps_one(const uint32_t *len, size_t B, enum task task, enum act act, uint32_t C, uint32_t NH, double tol_float, double tol_bf16)
{
	struct model_config c = { .vocab_size = WORDS, .hidden_size = C, .num_hidden_layers = 2, .num_attention_heads = NH,
		.intermediate_size = 2 * C, .max_position_embeddings = POSITIONS, .type_vocab_size = 2, .num_labels = 3, .hidden_act = act,
		.hidden_dropout_prob = 0.1, .attention_probs_dropout_prob = 0.1, .classifier_dropout = -1, .layer_norm_eps = 1e-12,
		.initializer_range = 0.05 };
	const float class_weight[] = { 1, 0.5f, 2 };
	struct run all[2], r;
	uint32_t turned[CELLS];
	for (size_t i = 0; i < B; i++)
		turned[i] = len[B - 1 - i];
	make_run(&all[0], len, B, c.vocab_size, c.num_labels);
	make_run(&all[1], turned, B, c.vocab_size, c.num_labels);
	for (size_t i = 0; task == TASK_CELLS && i < B; i++) { /* the empty cell has none */
		all[0].label[i] = len[i] ? all[0].label[i] : -1;
		all[1].label[i] = turned[i] ? all[1].label[i] : -1;
	}
	struct model *a = model_on(cpu, &c, task, class_weight), *b = model_on(gpu, &c, task, class_weight), *again = model_on(gpu, &c, task, class_weight);
	size_t n = model_size(a);
	float *x = xcalloc(n, 4), *y = xcalloc(n, 4), *z = xcalloc(n, 4), *start = xcalloc(n, 4);
	model_read_all(a, PARAM, start);
	/* the layouts differ (ops.align): tensors are compared by name */
	struct loss lb[STEPS], lc;
	double norm;
#ifdef EMULATED
	unsigned replays = emu_replays;
#endif
	for (uint64_t k = 0; k < STEPS; k++) {
		struct loss la;
		r = all[k % 2];
		one_step(a, &r, k, &la, 0);
		one_step(b, &r, k, &lb[k], 0);
		one_step(again, &r, k, &lc, 1);
		within("loss", fabs(la.sum - lb[k].sum) / la.sum, fp32 ? 2e-4 : 2e-2);
		assert_true(la.count == lb[k].count && la.count == lc.count);
		if (k > 0) {
			struct error e;
			if (model_collect(again, &lc, &norm, &e))
				fail_msg("%s", e.msg);
			assert_memory_equal(&lb[k - 1], &lc, sizeof lc);
		}
		for (size_t i = 0; k == 0 && i < model_ntensor(a); i++) {
			const struct tensor *t = model_tensor(a, i), *u = model_find(b, t->name);
			model_read(a, GRAD, t, x);
			model_read(b, GRAD, u, y);
			double size = 0;
			for (size_t j = 0; j < t->n; j++)
				size += (double)x[j] * x[j];
			if (strstr(t->name, "key.bias")) /* its gradient is 0 but for rounding */
				continue;
			within(t->name, size > 0 ? distance(y, x, t->n) : distance(y, x, t->n) * 1e3, fp32 ? tol_float : tol_bf16);
		}
	}
#ifdef EMULATED
	assert_true(emu_replays - replays >= 2 * 2 * (STEPS - 1)); /* forward and backward of both models, in all steps but the first */
#endif
	struct error e;
	assert_int_equal(model_collect(again, &lc, &norm, &e), 0);
	assert_memory_equal(&lb[STEPS - 1], &lc, sizeof lc);
	assert_true(norm > 0);
	embed_one(a, b, &r);
	for (size_t i = 0; i < model_ntensor(a); i++) {
		const struct tensor *t = model_tensor(a, i), *u = model_find(b, t->name);
		model_read(b, PARAM, u, y);
		model_read(again, PARAM, u, z);
		assert_memory_equal(y, z, t->n * 4);
		model_read(a, PARAM, t, x);
		if (t->ndim == 2) /* a bias is what AdamW made of the sign of its gradients, however small */
			within("parameters", distance(y, x, t->n), fp32 ? 1e-3 : 0.1);
	}
	free(x), free(y), free(z), free(start);
	model_free(a), model_free(b), model_free(again);
	free_run(&all[0]), free_run(&all[1]);
}

static void steps(void)
{
	/* with ReLU, rounding turns a few units on or off: half a percent of them is 7 % of the gradient */
	const uint32_t few[] = { 9, 1, 0, 33 };
	steps_one(few, 4, TASK_MLM, ACT_GELU, 64, 1, 2e-5, 0.04);
	if (SANITIZED)
		return;
	steps_one(cells, CELLS, TASK_MLM, ACT_RELU, 128, 2, 2e-5, 0.2);
	steps_one(few, 4, TASK_CELLS, ACT_GELU, 64, 4, 1e-4, 0.3); /* only the first token's gradient: small differences of rounded numbers */
	steps_one(few, 4, TASK_GENES, ACT_GELU, 64, 1, 2e-5, 0.04);
}

/* A fault sticks and is named. */
static void faults(void)
{
	struct error e = { "" };
	size_t C = 1288;
	struct arr *x = ACTS("x", C), *stat = REALS("stat", 2), *gamma = REALS("gamma", C);
	gpu->norm(gpu, x->d, x->d, stat->d, x->d, NULL, gamma->d, gamma->d, NULL, 1, C, 1e-12, NULL);
	assert_int_equal(gpu->sync(gpu, &e), -1);
	assert_non_null(strstr(e.msg, "1280"));
	assert_int_equal(gpu->sync(gpu, &e), -1);
	while (narray) {
		free(arrays[--narray].x);
		gpu->free(gpu, arrays[narray].d);
	}
}

/* ---- both types ---- */

static int open_gpu(void)
{
#ifdef EMULATED
	gpu = cuda_emulated(fp32);
#else
	struct error e;
	char what[256], spec[64];
	const char *want = getenv("CORRMASK_CUDA");
	snprintf(spec, sizeof spec, "%s%s", want ? want : "cuda", fp32 ? ",float" : "");
	gpu = device_open(spec, 1, what, sizeof what, &e);
	if (!gpu) {
		printf("test_cuda: skipped: %s\n", e.msg);
		return -1;
	}
	printf("test_cuda: %s\n", what);
#endif
	return 0;
}

#define IN_BOTH(f) \
	static void test_##f(void **state) \
	{ \
		for (fp32 = 1; fp32 >= 0; fp32--) { \
			assert_int_equal(open_gpu(), 0); \
			worst = 0; \
			gpu_step = gpu->alloc(gpu, sizeof step); \
			gpu->upload(gpu, gpu_step, &step, sizeof step); \
			f(); \
			gpu->free(gpu, gpu_step); \
			gpu->destroy(gpu); \
			print_message("  %s: closest to its tolerance: %s\n", fp32 ? "float" : "bf16", worst_name); \
		} \
	}

IN_BOTH(embed)
IN_BOTH(linear)
IN_BOTH(attention)
IN_BOTH(norm)
IN_BOTH(moves)
IN_BOTH(mlm_loss)
IN_BOTH(class_loss)
IN_BOTH(optimiser)
IN_BOTH(steps)
IN_BOTH(faults)

int main(void)
{
	if (open_gpu())
		return 0;
	gpu->destroy(gpu);
	cpu = ops_cpu_new(2);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moves), cmocka_unit_test(test_embed), cmocka_unit_test(test_norm), cmocka_unit_test(test_linear),
		cmocka_unit_test(test_attention), cmocka_unit_test(test_mlm_loss), cmocka_unit_test(test_class_loss),
		cmocka_unit_test(test_optimiser), cmocka_unit_test(test_steps), cmocka_unit_test(test_faults),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);
	cpu->destroy(cpu);
	return r;
}
