#include "graph/correlation_screen.h"

#include "base/cpu.h"
#include "base/sort.h"
#include "graph/correlation_kernel.h"

#include <math.h>
#include <omp.h>

enum { V = 2048 }; /* a tile is a panel against so many genes; it stays in the second-level cache */

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

static const struct correlation_kernel *kernel(void)
{
#ifdef __x86_64__
	enum cpu_vectors vectors = cpu_vectors();
	if (vectors == CPU_AVX512)
		return correlation_kernel_avx512();
#ifndef __AVX2__
	if (vectors == CPU_AVX2)
		return correlation_kernel_avx2();
#endif
#endif
	return correlation_kernel_base();
}

/* Offer the pairs of a tile. The error is that of the rounding (correlation_ranks.h), and of the float32 that the chunks are summed in. */
static void screen_tile(const float *sum, uint32_t P, const struct correlation_ranks *k, uint32_t neighbours, float rho_min, uint32_t u0,
	uint32_t nu, uint32_t v0, uint32_t nv, struct candidates *list)
{
	const double rounding = (k->chunks + 8.) * 0x1p-24;
	for (uint32_t v = v0; v < v0 + nv; v++, sum += P) {
		const struct correlation_rounding b = k->fine[v];
		for (uint32_t u = u0; u < u0 + nu && u < v; u++) {
			const struct correlation_rounding a = k->coarse[u];
			double products = a.step * b.step * (double)sum[u - u0], c = fabs(products - a.mean * b.mean),
			       error = a.lost + (1 + a.lost) * b.lost + rounding * products;
			float low = (float)(c - error) - 1e-6f, high = (float)(c + error) + 1e-6f;
			if (high < rho_min || k->D[u] <= 0 || k->D[v] <= 0)
				continue;
			offer(&list[u], v, low, high, neighbours);
			offer(&list[v], u, low, high, neighbours);
		}
	}
}

static void all_tiles(const struct correlation_ranks *k, uint32_t neighbours, float rho_min, struct candidates *list)
{
	const struct correlation_kernel *use = kernel();
	struct {
		uint32_t u, v;
	} *job = NULL;
	size_t njob = 0, cap = 0;
	for (uint32_t u = 0; u < k->genes; u += use->genes)
		for (uint32_t v = u; v < k->genes; v += V) {
			grow(job, cap, njob + 1);
			job[njob].u = u;
			job[njob++].v = v;
		}
#pragma omp parallel
	{
		float *sum = xlarge((size_t)V * use->genes, sizeof *sum);
		uint8_t *panel = xlarge(CORRELATION_CHUNK, use->genes);
#pragma omp for schedule(dynamic)
		for (size_t j = 0; j < njob; j++) {
			uint32_t u = job[j].u, v = job[j].v;
			uint32_t nu = k->genes - u < use->genes ? k->genes - u : use->genes, nv = k->genes - v < V ? k->genes - v : V;
			use->products(sum, panel, k, u, nu, v, nv);
			screen_tile(sum, use->genes, k, neighbours, rho_min, u, nu, v, nv, list);
		}
		free_all(sum, panel);
	}
	free(job);
}

/* ---- the pairs that are kept ---- */

COMPARE(by_uv, struct correlation_pair, ORDER(a->u, b->u) ?: ORDER(a->v, b->v))

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

struct correlation_pair *correlation_screen(const struct correlation_ranks *k, uint32_t neighbours, double rho_min, size_t *n)
{
	FREED struct candidates *list = xcalloc(k->genes, sizeof *list);
	for (uint32_t g = 0; g < k->genes; g++) {
		omp_init_lock(&list[g].lock);
		list[g].least = (float)rho_min;
	}
	all_tiles(k, neighbours, (float)rho_min, list);
	struct correlation_pair *pair = unique_pairs(list, k->genes, neighbours, n);
	for (uint32_t g = 0; g < k->genes; g++) {
		omp_destroy_lock(&list[g].lock);
		free(list[g].at);
	}
	return pair;
}
