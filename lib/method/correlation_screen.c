#include "method/correlation_screen.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

/* A tile is U genes against V genes. The panel and the sums fit the second-level cache: 128 KiB each. */
enum { U = 64, V = 512 };

/* ---- candidates of one gene ---- */

struct candidate {
	uint32_t v;
	float low, high; /* bounds of |C| */
};

struct candidates {
	struct candidate *at;
	size_t n, cap;
	float least; /* a smaller |C| is not needed */
	omp_lock_t lock;
};

/* The k-th largest low bound (1-based) of n >= k candidates. Reorders the candidates (quickselect). */
static float kth_low(struct candidate *a, size_t n, size_t k)
{
	size_t lo = 0, hi = n - 1, want = k - 1;
	while (lo < hi) {
		float pivot = a[lo + (hi - lo) / 2].low;
		size_t i = lo, j = hi;
		for (;;) {
			while (a[i].low > pivot)
				i++;
			while (a[j].low < pivot)
				j--;
			if (i >= j)
				break;
			struct candidate t = a[i];
			a[i++] = a[j];
			a[j--] = t;
		}
		if (want <= j)
			hi = j;
		else
			lo = j + 1;
	}
	return a[want].low;
}

static void prune(struct candidates *c, uint32_t neighbours)
{
	if (c->n < neighbours || !neighbours)
		return;
	float t = kth_low(c->at, c->n, neighbours);
	if (t > c->least)
		c->least = t;
	size_t n = 0;
	for (size_t i = 0; i < c->n; i++)
		if (c->at[i].high >= c->least)
			c->at[n++] = c->at[i];
	c->n = n;
}

static void offer(struct candidates *c, uint32_t v, float low, float high, uint32_t neighbours)
{
	omp_set_lock(&c->lock);
	if (high >= c->least) {
		if (c->n == c->cap) {
			prune(c, neighbours);
			if (c->n * 4 >= c->cap * 3)
				grow(c->at, c->cap, c->cap + neighbours + 64);
		}
		c->at[c->n++] = (struct candidate){v, low, high};
	}
	omp_unset_lock(&c->lock);
}

/* ---- all pairs ---- */

typedef float vec8 __attribute__((vector_size(32)));

struct tile {
	vec8 panel[CORRELATION_CHUNK][U / 8]; /* y of U genes in one chunk of cells */
	vec8 sum[V][U / 8];
};

/* sum += sum over the m entries of a column in this chunk of y * panel row */
static void add_products(
	vec8 *restrict sum, const vec8 (*restrict panel)[U / 8], const uint32_t *restrict cell, const float *restrict y, uint32_t m)
{
	vec8 a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0}, a4 = {0}, a5 = {0}, a6 = {0}, a7 = {0};
	for (uint32_t i = 0; i < m; i++) {
		const vec8 *p = panel[cell[i] % CORRELATION_CHUNK];
		float s = y[i];
		vec8 v = {s, s, s, s, s, s, s, s};
		a0 += v * p[0];
		a1 += v * p[1];
		a2 += v * p[2];
		a3 += v * p[3];
		a4 += v * p[4];
		a5 += v * p[5];
		a6 += v * p[6];
		a7 += v * p[7];
	}
	sum[0] += a0;
	sum[1] += a1;
	sum[2] += a2;
	sum[3] += a3;
	sum[4] += a4;
	sum[5] += a5;
	sum[6] += a6;
	sum[7] += a7;
}

/* Entries of column j in chunk c: *from is the first; returns how many. */
static uint32_t entries(const struct correlation_columns *x, const struct correlation_ranks *k, uint32_t j, uint32_t c, uint64_t *from)
{
	const uint32_t *chunk = k->chunk + (size_t)j * (k->chunks + 1) + c;
	*from = x->offset[j] + chunk[0];
	return chunk[1] - chunk[0];
}

/* Sums of products for genes u0 ... and v0 ..., all cells. */
static void products(struct tile *t, const struct correlation_columns *x, const struct correlation_ranks *k, uint32_t u0, uint32_t nu,
	uint32_t v0, uint32_t nv)
{
	uint64_t at;
	memset(t->sum, 0, nv * sizeof *t->sum);
	for (uint32_t c = 0; c < k->chunks; c++) {
		memset(t->panel, 0, sizeof t->panel);
		for (uint32_t u = 0; u < nu; u++)
			for (uint32_t m = entries(x, k, u0 + u, c, &at); m; m--, at++)
				((float *)t->panel[x->cell[at] % CORRELATION_CHUNK])[u] = k->y[at];
		for (uint32_t v = 0; v < nv; v++) {
			uint32_t m = entries(x, k, v0 + v, c, &at);
			if (m)
				add_products(t->sum[v], (const vec8(*)[U / 8]) t->panel, x->cell + at, k->y + at, m);
		}
	}
}

static void screen_tile(struct tile *t, const struct correlation_columns *x, const struct correlation_ranks *k, uint32_t neighbours,
	float rho_min, uint32_t u0, uint32_t v0, struct candidates *list)
{
	uint32_t nu = x->genes - u0 < U ? x->genes - u0 : U, nv = x->genes - v0 < V ? x->genes - v0 : V;
	products(t, x, k, u0, nu, v0, nv);
	double gamma = (CORRELATION_CHUNK + (double)x->n / CORRELATION_CHUNK + 8) * 0x1p-24;
	for (uint32_t v = 0; v < nv; v++) {
		const float *sum = (const float *)t->sum[v];
		double M = k->M[v0 + v], wide = gamma * k->wide[v0 + v];
		for (uint32_t u = 0; u < nu && u0 + u < v0 + v; u++) {
			double c = fabs((double)sum[u] - k->M[u0 + u] * M), eps = wide * k->wide[u0 + u];
			float low = (float)(c - eps) - 1e-6f, high = (float)(c + eps) + 1e-6f;
			if (high < rho_min || k->D[u0 + u] <= 0 || k->D[v0 + v] <= 0)
				continue;
			offer(&list[u0 + u], v0 + v, low, high, neighbours);
			offer(&list[v0 + v], u0 + u, low, high, neighbours);
		}
	}
}

static void all_tiles(
	const struct correlation_columns *x, const struct correlation_ranks *k, uint32_t neighbours, float rho_min, struct candidates *list)
{
	struct {
		uint32_t u, v;
	} *job = NULL;
	size_t njob = 0, cap = 0;
	for (uint32_t u = 0; u < x->genes; u += U)
		for (uint32_t v = u / V * V; v < x->genes; v += V) {
			grow(job, cap, njob + 1);
			job[njob].u = u;
			job[njob++].v = v;
		}
#pragma omp parallel
	{
		struct tile *t = xlarge(1, sizeof *t);
#pragma omp for schedule(dynamic)
		for (size_t j = 0; j < njob; j++)
			screen_tile(t, x, k, neighbours, rho_min, job[j].u, job[j].v, list);
		free(t);
	}
	free(job);
}

/* ---- the pairs that are kept ---- */

static int by_uv(const void *a, const void *b)
{
	const struct correlation_pair *p = a, *q = b;
	return p->u != q->u ? (p->u > q->u) - (p->u < q->u) : (p->v > q->v) - (p->v < q->v);
}

/* The candidates of all genes, each pair once. */
static struct correlation_pair *unique_pairs(struct candidates *list, uint32_t genes, uint32_t neighbours, size_t *n)
{
	size_t total = 0, k = 0;
	for (uint32_t g = 0; g < genes; g++) {
		prune(&list[g], neighbours);
		total += list[g].n;
	}
	struct correlation_pair *p = xcalloc(total, sizeof *p);
	for (uint32_t g = 0; g < genes; g++)
		for (size_t i = 0; i < list[g].n; i++, k++) {
			uint32_t v = list[g].at[i].v;
			p[k].u = g < v ? g : v;
			p[k].v = g < v ? v : g;
		}
	qsort(p, total, sizeof *p, by_uv);
	for (size_t i = *n = 0; i < total; i++)
		if (!i || by_uv(&p[i], &p[i - 1]))
			p[(*n)++] = p[i];
	return p;
}

struct correlation_pair *correlation_screen(
	const struct correlation_columns *x, const struct correlation_ranks *k, uint32_t neighbours, double rho_min, size_t *n)
{
	struct candidates *list = xcalloc(x->genes, sizeof *list);
	for (uint32_t g = 0; g < x->genes; g++) {
		omp_init_lock(&list[g].lock);
		list[g].least = (float)rho_min;
	}
	all_tiles(x, k, neighbours, (float)rho_min, list);
	struct correlation_pair *pair = unique_pairs(list, x->genes, neighbours, n);
	for (uint32_t g = 0; g < x->genes; g++) {
		omp_destroy_lock(&list[g].lock);
		free(list[g].at);
	}
	free(list);
	return pair;
}
