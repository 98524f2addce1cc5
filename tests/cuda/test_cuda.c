/*
 * Every op of the CUDA backend against the CPU's, float and bf16, at odd sizes; whole training steps; equal bits in equal runs.
 *
 * Two programs come from this file. `make CUDA=1 check-cuda` runs the kernels on the first GPU (CORRMASK_CUDA picks another) and
 * skips where there is none. `make check` runs the same kernels, compiled for the host, fiber by fiber (emu.h), at smaller
 * sizes: all index arithmetic, fragment layouts and barriers, but no GPU's timing, memory model or cuBLASLt.
 *
 * Inputs are numbers that bf16 holds exactly, so both backends see the same ones. Errors are ||got - want|| / ||want|| of each
 * tensor; both.h says what they may be. Every buffer of the device has guard elements behind it, which must be left alone, and starts
 * with values that no op should keep.
 *
 *     test_cuda [-r FILE | -w FILE] [TEST...]      the tests whose names fit, as test_att*
 * -w writes the errors in bf16 (make check-cuda gives the emulation's to the GPU's run by -r). TEST_CUDA=small leaves out large sizes, for
 * tools that watch every access; TEST_CUDA=float and bf16 test one type alone.
 */
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "both.h"

#ifdef EMULATED
struct ops *cuda_emulated(int fp32, int small);
void cuda_loss_tile(const struct ops *o, size_t *rows, size_t *words);
#else
#include "nn/device.h"
#endif

static const size_t widths[] = {5, 64, 264, 1280, 256, 260, 512, 768, 776, 1032};
#define EACH_WIDTH(C) for (size_t i_ = 0, C; i_ < (large ? sizeof widths / sizeof *widths : 4) && (C = widths[i_], 1); i_++)

/* ---- ops ---- */

static void embed(void)
{
	struct both p;
	struct dropout d = drop(SITE_EMBED, 20000);
	EACH_WIDTH(C)
	{
		size_t V = 37, P = 140;
		if (i_ == 0)
			pack(&p, (uint32_t[]){140, 140, 140, 140}, 4, V); /* rank 0, below, has a whole chunk (embed.cu) */
		else
			pack(&p, cells, CELLS, V);
		size_t T = p.c.T;
		struct arr *y = ACTS("embed y", T * C), *stat = REALS("embed stat", 2 * T), *word = REALS("word", V * C),
			   *posw = REALS("posw", P * C), *type = REALS("type", 2 * C), *gamma = REALS("gamma", C), *beta = REALS("beta", C);
		cpu->embed(cpu, y->x, stat->x, word->x, posw->x, type->x, NULL, gamma->x, beta->x, &p.c, C, 1e-12, &d);
		gpu->embed(gpu, y->d, stat->d, word->d, posw->d, type->d, NULL, gamma->d, beta->d, &p.g, C, 1e-12, on_gpu(&d));
		same(y, 1e-6, 3e-3);
		same(stat, 1e-6, 1e-6);
		struct arr *dword = REALS("dword", V * C), *dposw = REALS("dposw", P * C), *dtype = REALS("dtype", 2 * C),
			   *dgamma = REALS("embed dgamma", C), *dbeta = REALS("embed dbeta", C), *dy = ACTS("embed dy", T * C);
		cpu->embed_back(cpu, dword->x, dposw->x, dtype->x, dgamma->x, dbeta->x, dy->x, stat->x, word->x, posw->x, type->x, NULL,
			gamma->x, &p.c, V, P, C, 3, &d);
		gpu->embed_back(gpu, dword->d, dposw->d, dtype->d, dgamma->d, dbeta->d, dy->d, stat->d, word->d, posw->d, type->d, NULL,
			gamma->d, &p.g, V, P, C, 3, on_gpu(&d));
		same(dword, 1e-5, 4e-3), same(dposw, 1e-5, 4e-3), same(dtype, 1e-5, 4e-3);
		same(dgamma, 1e-5, 1e-5), same(dbeta, 1e-5, 1e-5);
		/* tokens that share positions: a few have most of them, and some none */
		struct arr *dr = ACTS("embed dr", T * C);
		uint32_t *rank = xcalloc(3 * T + P + 1, 4), *order = rank + T, *start = order + T, n = 0;
		for (size_t t = 0; t < T; t++)
			rank[t] = rng(4) ? rng(2) : rng((uint32_t)P / 2);
		for (uint32_t r = 0; r < P; r++) {
			for (uint32_t t = 0; t < T; t++)
				if (rank[t] == r)
					order[n++] = t;
			start[r + 1] = n;
		}
		struct seq c = p.c, g = p.g;
		c.rank = rank, c.rank_order = order, c.rank_start = start;
		g.rank = to_gpu(rank, T * 4), g.rank_order = to_gpu(order, T * 4), g.rank_start = to_gpu(start, (P + 1) * 4);
		cpu->embed(cpu, y->x, stat->x, word->x, posw->x, type->x, NULL, gamma->x, beta->x, &c, C, 1e-12, &d);
		gpu->embed(gpu, y->d, stat->d, word->d, posw->d, type->d, NULL, gamma->d, beta->d, &g, C, 1e-12, on_gpu(&d));
		same(y, 1e-6, 3e-3);
		same(stat, 1e-6, 1e-6);
		cpu->embed_back(cpu, dword->x, dposw->x, dtype->x, dgamma->x, dbeta->x, dr->x, stat->x, word->x, posw->x, type->x, NULL,
			gamma->x, &c, V, P, C, 3, &d);
		gpu->embed_back(gpu, dword->d, dposw->d, dtype->d, dgamma->d, dbeta->d, dr->d, stat->d, word->d, posw->d, type->d, NULL,
			gamma->d, &g, V, P, C, 3, on_gpu(&d));
		same(dword, 1e-5, 6e-3), same(dposw, 1e-5, 6e-3), same(dtype, 1e-5, 6e-3);
		free(rank);
		/* without positions and types, with other vectors */
		struct arr *dz = ACTS("embed dz", T * C), *more = ACTS("embed more", T * C);
		cpu->embed(cpu, y->x, stat->x, word->x, NULL, NULL, more->x, gamma->x, beta->x, &p.c, C, 1e-12, &d);
		gpu->embed(gpu, y->d, stat->d, word->d, NULL, NULL, more->d, gamma->d, beta->d, &p.g, C, 1e-12, on_gpu(&d));
		same(y, 1e-6, 3e-3);
		cpu->embed_back(cpu, dword->x, NULL, NULL, dgamma->x, dbeta->x, dz->x, stat->x, word->x, NULL, NULL, more->x, gamma->x,
			&p.c, V, P, C, 3, &d);
		gpu->embed_back(gpu, dword->d, NULL, NULL, dgamma->d, dbeta->d, dz->d, stat->d, word->d, NULL, NULL, more->d, gamma->d,
			&p.g, V, P, C, 3, on_gpu(&d));
		same(dword, 1e-5, 6e-3), same(dgamma, 1e-5, 2e-5), same(dbeta, 1e-5, 2e-5);
		same(dz, 1e-5, 6e-3); /* the gradient of more */
		/* the vectors alone, as input.h gives them */
		cpu->embed(cpu, y->x, stat->x, NULL, posw->x, type->x, more->x, gamma->x, beta->x, &p.c, C, 1e-12, &d);
		gpu->embed(gpu, y->d, stat->d, NULL, posw->d, type->d, more->d, gamma->d, beta->d, &p.g, C, 1e-12, on_gpu(&d));
		same(y, 1e-6, 3e-3);
		cpu->embed_back(cpu, NULL, NULL, NULL, dgamma->x, dbeta->x, dz->x, stat->x, NULL, posw->x, type->x, more->x, gamma->x, &p.c,
			V, P, C, 3, &d);
		gpu->embed_back(gpu, NULL, NULL, NULL, dgamma->d, dbeta->d, dz->d, stat->d, NULL, posw->d, type->d, more->d, gamma->d, &p.g,
			V, P, C, 3, on_gpu(&d));
		same(dz, 1e-5, 6e-3);
		unpack(&p);
	}
}

static void linear_one(size_t T, size_t K, size_t N, enum act act, int add, int bias)
{
	struct arr *x = array("x", 1, T * K, 1), *W = REALS("W", N * K), *b = REALS("b", N), *y = ACTS("linear y", T * N),
		   *pre = ACTS("linear pre", T * N);
	struct arr *dy = ACTS("linear dy", T * N), *dx = ACTS("linear dx", T * K), *dW = REALS("linear dW", N * K),
		   *db = REALS("linear db", N);
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
	linear_one(37, 40, 56, ACT_LEAKY, 0, 1);
	if (large) {
		linear_one(5000, 256, 768, ACT_NONE, 1, 1);
		linear_one(4999, 256, 512, ACT_RELU, 1, 1);
		linear_one(4999, 768, 3072, ACT_GELU, 0, 1);
	}
#ifdef EMULATED /* the real cuBLASLt supports more */
	char text[256];
	gpu->remarks(gpu, text, sizeof text);
	assert_string_equal(text,
		fp32 ? ""
		     : "9 shapes of products by plain kernels: nt 1x1x1, nn 1x1x1, tn 1x1x1, nt 50x11x64, nn 50x64x11, tn 11x64x50, nt 65x37x13, "
		       "nn 65x13x37, tn 37x13x65");
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
	size_t longest = p.c.L + B % 3 * 100, bytes = threshold ? gpu->keep_bytes(gpu, B, T, longest, C, NH) : 0;
	struct arr *keep = array("attention's decisions", 0, bytes / 4, 1);
	assert_true(bytes % 4 == 0 && (bytes > 0) == (threshold && !fp32 && (D == 16 || D == 32 || D == 64)));
	struct dropout kept = d; /* each backend has an order of its own */
	kept.keep = bytes ? keep->d : NULL;
	kept.longest = longest;
	cpu->attention(cpu, y->x, lse->x, qkv->x, &p.c, C, NH, &d);
	gpu->attention(gpu, y->d, lse->d, qkv->d, &p.g, C, NH, on_gpu(&kept));
	guarded(keep);
	same(y, 3e-6, 5e-3);
	same(lse, 1e-6, 1e-6);
	cpu->attention_back(cpu, dqkv->x, dy->x, y->x, lse->x, qkv->x, &p.c, C, NH, &d);
	gpu->attention_back(gpu, dqkv->d, dy->d, y->d, lse->d, qkv->d, &p.g, C, NH, on_gpu(&kept));
	same(dqkv, 6e-6, 1.2e-2);
	unpack(&p);
}

static void attention(void)
{
	for (uint32_t threshold = SANITIZED ? 13107 : 0; threshold <= 13107; threshold += 13107) {
		attention_one(cells, CELLS, 2, 64, threshold, 2, 0);
		attention_one(cells, CELLS, 3, 16, threshold, 2, 0);
		attention_one(cells, CELLS, 2, 32, threshold, 2, 0);
		attention_one((uint32_t[]){192, 33}, 2, 1, 32, threshold, 8, 0);
		attention_one((uint32_t[]){1}, 1, 1, 64, threshold, 2, 0);
		attention_one((uint32_t[]){192, 33}, 2, 1, 64, threshold, 8, 0); /* one key takes nearly all */
		attention_one((uint32_t[]){65}, 1, 1, 100, threshold, 1, 0);
		attention_one((uint32_t[]){127, 129, 31, 128, 0, 33}, 6, 1, 64, threshold, 2,
			0); /* around a warp's rows, a tile, a block's rows */
		attention_one((uint32_t[]){129}, 1, 1, 64, 0, 2, -256); /* rows past the cell's end have larger scores: 0 */
		attention_one((uint32_t[]){144}, 1, 1, 64, 13107, 2, 256); /* further than float's exponents reach */
		attention_one((uint32_t[]){40}, 1, 1, 64, 1, 2, 0); /* the least and nearly the largest threshold */
		attention_one((uint32_t[]){40}, 1, 1, 64, 60000, 2, 0);
	}
	attention_one((uint32_t[]){129}, 1, 1, 64, 0, 2, -256); /* rows past the cell's end have larger scores: 0 */
	attention_one((uint32_t[]){144}, 1, 1, 64, 13107, 2, 256); /* further than float's exponents reach */
	attention_one((uint32_t[]){40}, 1, 1, 64, 1, 2, 0); /* the least and nearly the largest threshold */
	attention_one((uint32_t[]){40}, 1, 1, 64, 60000, 2, 0);
	for (uint32_t threshold = 0; large && threshold <= 13107; threshold += 13107)
		attention_one((uint32_t[]){2048, 1, 1000, 63, 4096}, 5, 4, 64, threshold, 2, 0);
	char text[256];
	gpu->remarks(gpu, text, sizeof text);
	assert_string_equal(text, fp32 ? "" : "attention heads of 100 channels by plain kernels, the fast ones are for 16, 32 and 64");
}

static void norm(void)
{
	struct both p;
	struct dropout d = drop(SITE_FFN, 6554), off = drop(SITE_FFN, 0);
	EACH_WIDTH(C)
	{
		for (int k = 0; k < 4; k++) { /* dropout; a plain sum; no residual; in place */
			const struct dropout *dd = k == 1 ? &off : k == 2 ? NULL : &d;
			pack(&p, cells, CELLS, 2);
			size_t T = p.c.T;
			struct arr *a = ACTS("a", T * C), *x = ACTS("x", T * C), *r = k == 3 ? a : ACTS("r", T * C),
				   *y = ACTS("norm y", T * C);
			struct arr *stat = REALS("stat", 2 * T), *gamma = REALS("gamma", C), *beta = REALS("beta", C);
			cpu->norm(cpu, y->x, r->x, stat->x, a->x, k == 2 ? NULL : x->x, gamma->x, beta->x, k == 2 ? NULL : &p.c, T, C,
				1e-12, dd);
			gpu->norm(gpu, y->d, r->d, stat->d, a->d, k == 2 ? NULL : x->d, gamma->d, beta->d, k == 2 ? NULL : &p.g, T, C,
				1e-12, on_gpu(dd));
			same(y, 1e-6, 4e-3), same(r, 1e-6, 4e-3), same(stat, 1e-6, 4e-3);
			put(r);
			if (!fp32)
				gpu->download_act(gpu, r->x, r->d, T * C);
			put(stat);
			struct arr *dy = ACTS("norm dy", T * C), *dx = k == 1 ? dy : ACTS("norm dx", T * C), *da = ACTS("norm da", T * C);
			struct arr *dgamma = REALS("dgamma", C), *dbeta = REALS("dbeta", C), *dbias = REALS("dbias", C);
			cpu->norm_back(cpu, k == 2 ? NULL : da->x, k == 3 ? NULL : dx->x, dgamma->x, dbeta->x, k == 2 ? NULL : dbias->x,
				dy->x, r->x, stat->x, gamma->x, k == 2 ? NULL : &p.c, T, C, dd);
			gpu->norm_back(gpu, k == 2 ? NULL : da->d, k == 3 ? NULL : dx->d, dgamma->d, dbeta->d, k == 2 ? NULL : dbias->d,
				dy->d, r->d, stat->d, gamma->d, k == 2 ? NULL : &p.g, T, C, on_gpu(dd));
			same(dx, 2e-6, 4e-3), same(da, 2e-6, 4e-3), same(dgamma, 3e-6, 3e-6), same(dbeta, 3e-6, 3e-6);
			same(dbias, 3e-6, 4e-3); /* wide rows: sums of rounded numbers */
			unpack(&p);
		}
	}
}

static void rms_norm(void)
{
	EACH_WIDTH(C)
	{
		size_t T = 133;
		struct arr *a = ACTS("rms a", T * C), *x = ACTS("rms x", T * C), *r = ACTS("rms r", T * C), *y = ACTS("rms y", T * C),
			   *stat = REALS("rms stat", T), *scale = REALS("scale", C);
		cpu->rms_norm(cpu, y->x, r->x, stat->x, a->x, x->x, scale->x, T, C, 1e-5);
		gpu->rms_norm(gpu, y->d, r->d, stat->d, a->d, x->d, scale->d, T, C, 1e-5);
		same(y, 2e-6, 6e-3), same(r, 1e-6, 3e-3), same(stat, 1e-6, 3e-3);
		gpu->download_act(gpu, r->x, r->d, T * C); /* go on from equal numbers; r is a now, and there is no x */
		cpu->rms_norm(cpu, y->x, r->x, stat->x, r->x, NULL, scale->x, T, C, 1e-5);
		gpu->rms_norm(gpu, y->d, r->d, stat->d, r->d, NULL, scale->d, T, C, 1e-5);
		same(y, 2e-6, 3e-3), same(r, 0, 0), same(stat, 1e-6, 1e-6);
		struct arr *dx = ACTS("rms dx", T * C), *dy = ACTS("rms dy", T * C), *ds = REALS("rms dscale", C);
		cpu->rms_norm_back(cpu, dx->x, ds->x, dy->x, r->x, stat->x, scale->x, T, C);
		gpu->rms_norm_back(gpu, dx->d, ds->d, dy->d, r->d, stat->d, scale->d, T, C);
		same(dx, 2e-6, 3e-3), same(ds, 1e-5, 1e-5);
		release();
	}
}

static void swiglu_one(size_t T, size_t F)
{
	struct arr *z = array("swiglu z", 1, T * 2 * F, 20), *y = ACTS("swiglu y", T * F), *dy = ACTS("swiglu dy", T * F);
	cpu->swiglu(cpu, y->x, z->x, T, F);
	gpu->swiglu(gpu, y->d, z->d, T, F);
	same(y, 2e-6, 4e-3);
	cpu->swiglu_back(cpu, z->x, dy->x, z->x, T, F);
	gpu->swiglu_back(gpu, z->d, dy->d, z->d, T, F);
	same(z, 2e-6, 4e-3);
	release();
}

/* units 0: periodic, 1: a layer, 2: a layer and a table */
static void values_one(size_t T, size_t n, size_t m, int units)
{
	struct arr *x = array("values", 0, T, 8), *w = REALS("w", n), *b = REALS("b", n), *table = REALS("table", 6 * n),
		   *center = REALS("center", m + 1), *orientation = REALS("orientation", m + 1);
	uint32_t *row = xcalloc(T, 4);
	for (size_t t = 0; t < T; t++)
		row[t] = units != 1 && rng(3) == 0 ? rng(6) : ROW_NONE;
	for (size_t k = 0; !units && k < n; k++) /* phases that a float has no digits for */
		w->x[k] = ldexpf(0.0628f, (int)k);
	put(w);
	const uint32_t *row_d = units == 1 ? NULL : to_gpu(row, T * 4), *row_c = units == 1 ? NULL : row;
	struct value_features v = {.n = n,
				      .m = m,
				      .shift = 0.25,
				      .w = w->x,
				      .b = units ? b->x : NULL,
				      .center = center->x,
				      .orientation = orientation->x,
				      .table = units == 2 ? table->x : NULL},
			      u = v;
	u.w = w->d, u.b = units ? b->d : NULL, u.center = center->d, u.orientation = orientation->d, u.table = units == 2 ? table->d : NULL;
	size_t F = value_width(&v);
	struct arr *f = ACTS("features", T * F), *df = ACTS("dfeatures", T * F), *dw = REALS("values dw", n), *db = REALS("values db", n);
	cpu->value_features(cpu, f->x, x->x, row_c, &v, T);
	gpu->value_features(gpu, f->d, x->d, row_d, &u, T);
	same(f, 1e-6, 3e-3);
	cpu->value_features_back(cpu, dw->x, units ? db->x : NULL, df->x, x->x, row_c, &v, T);
	gpu->value_features_back(gpu, dw->d, units ? db->d : NULL, df->d, x->d, row_d, &u, T);
	same(dw, 1e-5, 1e-5), same(db, 1e-5, 1e-5), same(df, 1e-6, 3e-3);
	free(row);
	release();
}

static void gates_and_values(void)
{
	swiglu_one(1, 1);
	swiglu_one(37, 45);
	swiglu_one(70, 256);
	values_one(3, 1, 0, 0);
	values_one(300, 48, 0, 0);
	values_one(70, 5, 3, 0);
	values_one(270, 128, 0, 1);
	values_one(520, 128, 0, 2);
	values_one(70, 300, 0, 2);
}

static void moves(void)
{
	struct both p;
	struct dropout d = drop(SITE_HEAD, 30000), off = drop(SITE_HEAD, 0);
	EACH_WIDTH(C)
	{
		pack(&p, cells, CELLS, 2);
		size_t T = p.c.T, N = 20, B = p.c.B;
		uint32_t index[20];
		for (uint32_t i = 0; i < N; i++)
			index[i] = i % 7 == 3 ? ROW_NONE : i * 6 + rng(6);
		uint32_t *at = to_gpu(index, sizeof index);
		struct arr *x = ACTS("x", T * C), *z = ACTS("z", T * C), *y = ACTS("add", T * C), *few = ACTS("gather", N * C),
			   *back = ACTS("scatter", T * C);
		cpu->scale(cpu, y->x, x->x, -0.7, T * C);
		gpu->scale(gpu, y->d, x->d, -0.7, T * C);
		same(y, 1e-7, 4e-3);
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
	double want[2] = {3, 1}, got[2] = {3, 1}, *sum = to_gpu(got, sizeof got); /* losses are added */
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
	struct arr *scale = REALS("scale", 1);
	int scaled = N % 2; /* the other half: NULL */
	cpu->mlm_loss_back(cpu, dh->x, dW->x, db->x, h->x, W->x, b->x, target, lse->x, scaled ? scale->x : NULL, N, C, V);
	gpu->mlm_loss_back(gpu, dh->d, dW->d, db->d, h->d, W->d, b->d, at, lse->d, scaled ? scale->d : NULL, N, C, V);
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
#ifdef EMULATED
	struct ops *few = gpu;
	gpu = cuda_emulated(fp32, 0); /* tiles of the size that a GPU takes, two by two of them */
	size_t rows = 0, words = 0;
	cuda_loss_tile(gpu, &rows, &words);
	mlm_one(rows + 3, 8, words + 5);
	gpu->destroy(gpu);
	gpu = few;
#endif
	if (large)
		mlm_one(5000, 256, 25426);
}

static void class_one(size_t N, size_t K, int weighted)
{
	int32_t *label = xcalloc(N, 4);
	double want[2] = {5, 1}, got[2] = {5, 1}, *sum = to_gpu(got, sizeof got);
	for (size_t i = 0; i < N; i++)
		label[i] = (int32_t)rng((uint32_t)K + 1) - 1;
	int32_t *at = to_gpu(label, N * 4);
	struct arr *z = ACTS("logits", N * K), *dz = ACTS("dlogit", N * K), *w = REALS("weight", K), *scale = REALS("scale", 1);
	cpu->class_loss(cpu, want, dz->x, z->x, label, weighted ? w->x : NULL, weighted ? scale->x : NULL, N, K);
	gpu->class_loss(gpu, sum, dz->d, z->d, at, weighted ? w->d : NULL, weighted ? scale->d : NULL, N, K);
	gpu->download(gpu, got, sum, sizeof got);
	same_sums("class loss", got, want, 2, 1e-5, 1e-5);
	same(dz, 2e-6, 4e-3);
	cpu->class_loss(cpu, want, z->x, z->x, label, NULL, NULL, N, K);
	gpu->class_loss(gpu, sum, z->d, z->d, at, NULL, NULL, N, K);
	same(z, 2e-6, 4e-3);
	cpu->class_loss(cpu, want, NULL, dz->x, label, NULL, NULL, N, K);
	gpu->class_loss(gpu, sum, NULL, dz->d, at, NULL, NULL, N, K);
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
	for (int variant = ADAMW_TORCH; variant <= ADAMW_L2; variant++) {
		for (int clip = 0; clip < 2; clip++) {
			struct arr *p = REALS("p", n), *g = REALS("g", n), *m = REALS("m", n), *v = REALS("v", n);
			struct adamw_args a = {.variant = variant,
				.lr = 1e-2,
				.beta1 = 0.9,
				.beta2 = 0.999,
				.eps = 1e-8,
				.decay = 0.1,
				.decayed = 50001,
				.t = 3,
				.gscale = 0.125,
				.max_norm = clip};
			for (size_t i = 0; i < n; i++)
				v->x[i] = 0.01f + fabsf(v->x[i]); /* near 0, rounding decides about the step */
			put(v);
			cpu->sumsq(cpu, &want, g->x, n);
			gpu->sumsq(gpu, sum, g->d, n);
			gpu->download(gpu, &got, sum, sizeof got);
			same_sums("sumsq", &got, &want, 1, 1e-12, 1e-12);
			cpu->adamw(cpu, p->x, g->x, m->x, v->x, n, &want, &a);
			gpu->adamw(gpu, p->d, g->d, m->d, v->d, n, sum, &a);
			same(p, 1e-6, 1e-6), same(m, 1e-6, 1e-6), same(v, 1e-6, 1e-6);
			put(p), put(m), put(v);
			gpu->adamw(gpu, p->d, g->d, m->d, v->d, n, to_gpu(&(double){NAN}, sizeof(double)), &a); /* changes nothing */
			same(p, 0, 0), same(m, 0, 0), same(v, 0, 0);
			release();
		}
	}
	gpu->free(gpu, sum);
}

/* ---- both types ---- */

static int open_gpu(void)
{
#ifdef EMULATED
	gpu = cuda_emulated(fp32, 1);
#else
	struct error e;
	char what[256], spec[64];
	const char *want = getenv("CORRMASK_CUDA");
	snprintf(spec, sizeof spec, "%s%s", want ? want : "cuda", fp32 ? ",float" : "");
	gpu = device_open(spec, 1, 0, what, sizeof what, &e);
	if (!gpu) {
		printf("test_cuda: skipped: %s\n", e.msg);
		return -1;
	}
	printf("test_cuda: %s\n", what);
#endif
	return 0;
}

static int wanted_type(void)
{
	const char *only = getenv("TEST_CUDA");
	return !only || strcmp(only, fp32 ? "bf16" : "float") != 0;
}

static void in_both(const char *name, void (*test)(void))
{
	for (fp32 = 1; fp32 >= 0; fp32--) {
		if (!wanted_type())
			continue;
		assert_int_equal(open_gpu(), 0);
		begin_test(name);
		rng_start();
		gpu_step = gpu->alloc(gpu, sizeof step);
		gpu->upload(gpu, gpu_step, &step, sizeof step);
		test();
		gpu->free(gpu, gpu_step);
		gpu->destroy(gpu);
		end_test();
	}
}

#define IN_BOTH(f) \
	static void test_##f(void **state) \
	{ \
		in_both(#f, f); \
	}

IN_BOTH(instructions)
IN_BOTH(embed)
IN_BOTH(linear)
IN_BOTH(attention)
IN_BOTH(norm)
IN_BOTH(rms_norm)
IN_BOTH(gates_and_values)
IN_BOTH(moves)
IN_BOTH(mlm_loss)
IN_BOTH(class_loss)
IN_BOTH(optimiser)
IN_BOTH(cell_ops)
IN_BOTH(cell_steps)
IN_BOTH(steps)
IN_BOTH(settings)
IN_BOTH(accumulation)
IN_BOTH(usage)
IN_BOTH(faults)

static int usage_error(void)
{
	fputs("usage: test_cuda [-r FILE | -w FILE] [TEST...]\n", stderr);
	return 2;
}

/* The tests that fit one of n patterns, all for none, come first. Returns their number. */
static size_t choose(struct CMUnitTest *tests, size_t all, char **pattern, int n)
{
	size_t k = 0;
	for (size_t i = 0; i < all; i++) {
		int fits = n == 0;
		for (int j = 0; j < n; j++)
			fits |= !fnmatch(pattern[j], tests[i].name, 0);
		if (fits)
			tests[k++] = tests[i];
	}
	return k;
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[] = {
		cmocka_unit_test(test_instructions),
		cmocka_unit_test(test_moves),
		cmocka_unit_test(test_embed),
		cmocka_unit_test(test_norm),
		cmocka_unit_test(test_rms_norm),
		cmocka_unit_test(test_gates_and_values),
		cmocka_unit_test(test_linear),
		cmocka_unit_test(test_attention),
		cmocka_unit_test(test_mlm_loss),
		cmocka_unit_test(test_class_loss),
		cmocka_unit_test(test_optimiser),
		cmocka_unit_test(test_cell_ops),
		cmocka_unit_test(test_cell_steps),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_settings),
		cmocka_unit_test(test_accumulation),
		cmocka_unit_test(test_usage),
		cmocka_unit_test(test_faults),
	};
	const char *path = NULL;
	int option, writes = 0;
	while ((option = getopt(argc, argv, "r:w:")) != -1) {
		if (path || option == '?')
			return usage_error();
		path = optarg;
		writes = option == 'w';
	}
	size_t n = choose(tests, sizeof tests / sizeof *tests, argv + optind, argc - optind);
	if (!n)
		return usage_error();
#ifndef EMULATED
	const char *mode = getenv("TEST_CUDA");
	large = !mode || strcmp(mode, "small") != 0;
#endif
	if (path && roundings_open(path, writes)) {
		fprintf(stderr, "test_cuda: %s: expected the errors that test_cuda -w writes\n", path);
		return 1;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (open_gpu())
		return 0;
	gpu->destroy(gpu);
	cpu = ops_cpu_new(2);
	int failed = _cmocka_run_group_tests("test_cuda", tests, n, NULL, NULL);
	cpu->destroy(cpu);
	return roundings_close() ? 1 : failed;
}
