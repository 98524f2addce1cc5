#include "method/correlation_screen.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

/* A tile is U genes against V genes. The panel (64 KiB) stays in the second-level cache; the sums are read in order. */
enum { U = 64, V = 1024 };

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
typedef uint32_t bits8 __attribute__((vector_size(32), may_alias)); /* the panel is filled by halves */

struct tile {
	/* y of U genes in one chunk of cells, as bfloat16. Lane l of vector k: gene 16 k + l in the low half, gene 16 k + 8 + l in the high one */
	bits8 panel[CORRELATION_CHUNK][U / 16];
	vec8 sum[V][U / 8];
};

/* sum += sum over the m entries of a gene in this chunk of y * panel row */
static void add_products(vec8 *restrict sum, const bits8 (*restrict panel)[U / 16], const uint32_t *restrict entry, uint32_t m)
{
	const bits8 high = {~0xffffu, ~0xffffu, ~0xffffu, ~0xffffu, ~0xffffu, ~0xffffu, ~0xffffu, ~0xffffu};
	vec8 a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0}, a4 = {0}, a5 = {0}, a6 = {0}, a7 = {0};
	for (uint32_t i = 0; i < m; i++) {
		const bits8 *p = panel[entry[i] % CORRELATION_CHUNK];
		float s = correlation_y(entry[i]);
		vec8 v = {s, s, s, s, s, s, s, s};
		a0 += v * (vec8)(p[0] << 16);
		a1 += v * (vec8)(p[0] & high);
		a2 += v * (vec8)(p[1] << 16);
		a3 += v * (vec8)(p[1] & high);
		a4 += v * (vec8)(p[2] << 16);
		a5 += v * (vec8)(p[2] & high);
		a6 += v * (vec8)(p[3] << 16);
		a7 += v * (vec8)(p[3] & high);
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

/* Sums of products for genes u0 ... and v0 ..., all cells. */
static void products(struct tile *t, const struct correlation_ranks *k, uint32_t genes, uint32_t u0, uint32_t nu, uint32_t v0, uint32_t nv)
{
	memset(t->sum, 0, nv * sizeof *t->sum);
	for (uint32_t c = 0; c < k->chunks; c++) {
		const uint32_t *start = k->start + (size_t)c * (genes + 1), *entry = k->entry + k->chunk[c];
		memset(t->panel, 0, sizeof t->panel);
		for (uint32_t u = 0; u < nu; u++)
			for (uint32_t i = start[u0 + u]; i < start[u0 + u + 1]; i++) {
				uint16_t *row = (uint16_t *)t->panel[entry[i] % CORRELATION_CHUNK];
				row[u / 16 * 16 + u % 8 * 2 + u / 8 % 2] = correlation_half(entry[i]);
			}
		for (uint32_t v = 0; v < nv; v++) {
			uint32_t from = start[v0 + v], m = start[v0 + v + 1] - from;
			if (m)
				add_products(t->sum[v], (const bits8(*)[U / 16]) t->panel, entry + from, m);
		}
	}
}

static void screen_tile(struct tile *t, const struct correlation_columns *x, const struct correlation_ranks *k, uint32_t neighbours,
	float rho_min, uint32_t u0, uint32_t v0, struct candidates *list)
{
	uint32_t nu = x->genes - u0 < U ? x->genes - u0 : U, nv = x->genes - v0 < V ? x->genes - v0 : V;
	products(t, k, x->genes, u0, nu, v0, nv);
	double gamma = (CORRELATION_CHUNK + (double)x->n / CORRELATION_CHUNK + 8) * 0x1p-24 + 0x1.1p-15;
	for (uint32_t v = 0; v < nv; v++) {
		const float *sum = (const float *)t->sum[v];
		double M = k->M[v0 + v], wide = gamma * k->wide[v0 + v];
		for (uint32_t u = 0; u < nu && u0 + u < v0 + v; u++) {
			double c = fabs((double)sum[u] - k->M[u0 + u] * M),
			       eps = wide * k->wide[u0 + u] + k->lost[u0 + u] * k->wide[v0 + v];
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
