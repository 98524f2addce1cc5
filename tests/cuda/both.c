#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "both.h"

#define GUARD_VALUE 77.0f

struct ops *cpu, *gpu;
int fp32, large;

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

/* ---- the errors of the emulation, and of this run ---- */

struct rounding { /* one comparison in the file of errors */
	char test[32], name[96];
	unsigned turn; /* counted by test and name */
	double error;
};

static struct rounding *rounding;
static size_t nrounding;
static FILE *to;

static struct compared { /* all comparisons of one name in the running test */
	char name[96];
	unsigned n, judged;
	double error, share, low, high; /* largest; error over limit; ratios to the emulation's errors */
} compared[200];
static size_t ncompared;
static char running[32];
static unsigned beyond; /* comparisons of the running test that are beyond their limit */

int roundings_open(const char *path, int write)
{
	FILE *f = fopen(path, write ? "w" : "r");
	if (!f || write) {
		to = f;
		return f ? 0 : -1;
	}
	size_t cap = 0;
	int got = 4;
	while (got == 4) {
		if (nrounding == cap)
			rounding = xrealloc(rounding, cap = cap ? 2 * cap : 256, sizeof *rounding);
		struct rounding *r = &rounding[nrounding];
		got = fscanf(f, "%31[^\t]\t%95[^\t]\t%u\t%lf\n", r->test, r->name, &r->turn, &r->error);
		nrounding += got == 4;
	}
	int bad = got != EOF || ferror(f) || !nrounding;
	fclose(f);
	return bad ? -1 : 0;
}

int roundings_close(void)
{
	free(rounding);
	return to && fclose(to) ? -1 : 0;
}

void begin_test(const char *name)
{
	snprintf(running, sizeof running, "%s", name);
	ncompared = beyond = 0;
}

void end_test(void)
{
	for (size_t i = 0; i < ncompared; i++) {
		const struct compared *c = &compared[i];
		printf("  %s %s: %s: %u compared, error at most %.2g, %.2f of its limit", running, fp32 ? "float" : "bf16", c->name, c->n,
			c->error, c->share);
		if (c->judged)
			printf(", %.2f to %.2f of the roundings' (%u)", c->low, c->high, c->judged);
		printf("\n");
	}
	ncompared = 0;
	if (beyond)
		fail_msg("%s (%s): %u results beyond their limits", running, fp32 ? "float" : "bf16", beyond);
}

static double larger(double a, double b) /* NaN is the largest */
{
	return b > a || b != b ? b : a;
}

static struct compared *compared_as(const char *name)
{
	size_t i = 0;
	while (i < ncompared && strcmp(compared[i].name, name))
		i++;
	if (i == ncompared) {
		assert_true(++ncompared <= sizeof compared / sizeof *compared);
		compared[i] = (struct compared){.low = INFINITY};
		snprintf(compared[i].name, sizeof compared[i].name, "%s", name);
	}
	return &compared[i];
}

/* The rounding of comparison `turn` of this name, or the largest of all of them (ALL); NULL: none. */
#define ALL UINT_MAX
static const struct rounding *rounding_of(const char *name, unsigned turn)
{
	const struct rounding *found = NULL;
	for (size_t i = 0; i < nrounding; i++) {
		const struct rounding *r = &rounding[i];
		if ((turn == ALL || r->turn == turn) && !strcmp(r->name, name) && !strcmp(r->test, running) &&
			(!found || r->error > found->error))
			found = r;
	}
	return found;
}

static void judge(const char *name, double error, double tol_float, double tol_bf16, int sum)
{
	struct compared *c = compared_as(name);
	double limit = fp32 ? tol_float : tol_bf16;
	const struct rounding *r = fp32 ? NULL : rounding_of(name, sum ? ALL : c->n);
	if (r) { /* what is not rounded to bf16 may differ as in float mode */
		limit = ROUNDINGS * r->error + tol_float;
		double ratio = r->error > 0 ? error / r->error : 1;
		c->low = fmin(c->low, ratio);
		c->high = larger(c->high, ratio);
		c->judged++;
	}
	if (to && !fp32)
		fprintf(to, "%s\t%s\t%u\t%.9g\n", running, name, c->n, error);
	c->n++;
	c->error = larger(c->error, error);
	c->share = larger(c->share, limit > 0 ? error / limit : error <= 0 ? 0 : INFINITY);
	if (error <= limit)
		return;
	beyond++; /* the others are compared too: what is right and what is wrong together tell where to look */
	printf("  FAILED: %s %s: %s (comparison %u): error %.3g, limit %.3g\n", running, fp32 ? "float" : "bf16", name, c->n, error, limit);
}

void within(const char *name, double error, double tol_float, double tol_bf16)
{
	judge(name, error, tol_float, tol_bf16, 0);
}

void within_sum(const char *name, double error, double tol_float, double tol_bf16)
{
	judge(name, error, tol_float, tol_bf16, 1);
}

/* ---- comparisons ---- */

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
	within(a->name, distance(got, a->x, a->n), tol_float, tol_bf16);
	free(got);
}

void guarded(const struct arr *a)
{
	free(fetch(a));
}

void same_sums(const char *name, const double *got, const double *want, size_t n, double tol_float, double tol_bf16)
{
	for (size_t i = 0; i < n; i++)
		within_sum(name, fabs(got[i] - want[i]) / (fabs(want[i]) + 1e-9), tol_float, tol_bf16);
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
