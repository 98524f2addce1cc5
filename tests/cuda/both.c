#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "both.h"

#define GUARD_VALUE 77.0f

struct ops *cpu, *gpu;
int fp32;
double worst;
char worst_name[128];

/* ---- arrays ---- */

struct arr arrays[MAX_ARRAYS];
size_t narray;
static void *others[MAX_ARRAYS];
static size_t nother;

static uint32_t drawn = 1;

void rng_start(void)
{
	drawn = 1;
}

uint32_t rng(uint32_t n)
{
	drawn = drawn * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)drawn * n >> 32);
}

/* A multiple of size / 64 in [-size, size]: exact in bf16 when size is a power of two. */
static float draw(float size)
{
	return size * ((float)rng(129) - 64) / 64;
}

void put(const struct arr *a)
{
	if (a->act)
		gpu->upload_act(gpu, a->d, a->x, a->n + GUARD);
	else
		gpu->upload(gpu, a->d, a->x, (a->n + GUARD) * 4);
}

struct arr *array(const char *name, int act, size_t n, float size)
{
	struct arr *a = &arrays[narray++];
	assert_true(narray <= MAX_ARRAYS);
	*a = (struct arr){name, n, act, xcalloc(n + GUARD, 4), gpu->alloc(gpu, (n + GUARD) * 4)};
	for (size_t i = 0; i < n + GUARD; i++)
		a->x[i] = i < n ? draw(size) : GUARD_VALUE;
	put(a);
	return a;
}

void *to_gpu(const void *x, size_t bytes)
{
	void *d = gpu->alloc(gpu, bytes ? bytes : 4);
	gpu->upload(gpu, d, x, bytes);
	assert_true(nother < MAX_ARRAYS);
	return others[nother++] = d;
}

void release(void)
{
	struct error e = {""};
	if (gpu->sync(gpu, &e))
		fail_msg("%s", e.msg);
	for (; narray; narray--) {
		free(arrays[narray - 1].x);
		gpu->free(gpu, arrays[narray - 1].d);
	}
	for (; nother; nother--)
		gpu->free(gpu, others[nother - 1]);
}

double distance(const float *got, const float *want, size_t n)
{
	double d = 0, w = 0;
	for (size_t i = 0; i < n; i++) {
		d += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
		w += (double)want[i] * want[i];
	}
	return w > 0 ? sqrt(d / w) : sqrt(d);
}

void within(const char *name, double error, double tolerance)
{
	if (error / tolerance > worst || error != error) {
		worst = error / tolerance;
		snprintf(worst_name, sizeof worst_name, "%s %.2g of %.2g", name, error, tolerance);
	}
	if (!(error <= tolerance))
		fail_msg("%s (%s): error %.3g, tolerance %.3g", name, fp32 ? "float" : "bf16", error, tolerance);
}

/* The device's array, to be freed; its guard must be whole. */
static float *fetch(const struct arr *a)
{
	struct error e = {""};
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
	return got;
}

void same(const struct arr *a, double tol_float, double tol_bf16)
{
	float *got = fetch(a);
	within(a->name, distance(got, a->x, a->n), fp32 ? tol_float : tol_bf16);
	free(got);
}

void guarded(const struct arr *a)
{
	free(fetch(a));
}

void same_sums(const char *name, const double *got, const double *want, size_t n, double tol_float, double tol_bf16)
{
	for (size_t i = 0; i < n; i++)
		within(name, fabs(got[i] - want[i]) / (fabs(want[i]) + 1e-9), fp32 ? tol_float : tol_bf16);
}

/* ---- batches ---- */

void pack(struct both *p, const uint32_t *len, size_t B, size_t V)
{
	*p = (struct both){.offset = xcalloc(B + 1, 4), .key = xcalloc(B + 1, 4)};
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
	p->c = (struct seq){B, T, L, p->offset, p->id, p->pos, p->cell, p->key, p->order, p->start, p->tile, ntile, NULL, NULL, NULL};
	p->g = (struct seq){B, T, L, to_gpu(p->offset, (B + 1) * 4), to_gpu(p->id, T * 4), to_gpu(p->pos, T * 4), to_gpu(p->cell, T * 4),
		to_gpu(p->key, B * 4), to_gpu(p->order, T * 4), to_gpu(p->start, (V + 1) * 4), to_gpu(p->tile, ntile * 4), ntile, NULL,
		NULL, NULL};
}

void unpack(struct both *p)
{
	free(p->offset), free(p->id), free(p->pos), free(p->cell), free(p->key), free(p->order), free(p->start), free(p->tile);
	release();
}

const uint32_t step = 12;
uint32_t *gpu_step;

struct dropout drop(uint32_t site, uint32_t threshold)
{
	return (struct dropout){.seed = 4711, .step = &step, .site = site, .layer = 3, .threshold = threshold};
}

const struct dropout *on_gpu(const struct dropout *d)
{
	static struct dropout g;
	if (!d)
		return NULL;
	g = *d;
	g.step = gpu_step;
	return &g;
}
