#include "spearman.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CELLS_MAX 1000000u      /* sums of products of doubled ranks reach 4 n^3 < 2^63 */
enum { U = 64, V = 512, CHUNK = 512 };  /* panel and sums fit the second-level cache: 128 KiB each */

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- choosing genes ---- */

struct gene_sum {
	uint32_t token, cells;
	uint64_t sum;           /* of the column of X */
};

static int by_sum_down(const void *a, const void *b)
{
	const struct gene_sum *p = a, *q = b;
	if (p->sum != q->sum)
		return p->sum < q->sum ? 1 : -1;
	return (p->token > q->token) - (p->token < q->token);
}

static int by_cells_down(const void *a, const void *b)
{
	const struct gene_sum *p = a, *q = b;
	if (p->cells != q->cells)
		return p->cells < q->cells ? 1 : -1;
	return (p->token > q->token) - (p->token < q->token);
}

/* First cell of part i of n. */
static uint32_t part(const struct corpus *c, uint32_t i, uint32_t n)
{
	return (uint32_t)((uint64_t)c->n * i / n);
}

/* Kept genes first, in falling order of cells. count [parts, vocab]: cells of each part of the corpus that have the gene. */
static struct gene_sum *choose_genes(const struct corpus *c, uint32_t vocab, const struct spearman_params *p, uint32_t *count,
				     uint32_t parts, uint32_t *kept)
{
	struct gene_sum *g = xcalloc(vocab, sizeof *g);
#pragma omp parallel for schedule(static, 1)
	for (uint32_t i = 0; i < parts; i++) {
		uint64_t *sum = xcalloc(vocab, sizeof *sum);
		uint32_t *mine = count + (size_t)i * vocab;
		for (uint32_t j = part(c, i, parts); j < part(c, i + 1, parts); j++)
			for (uint32_t k = 0; k < c->cell[j].n; k++) {
				uint32_t t = corpus_token(c, j, k);
				mine[t]++;
				sum[t] += c->max_len - (k + 1);
			}
#pragma omp critical
		for (uint32_t t = 0; t < vocab; t++) {
			g[t].cells += mine[t];
			g[t].sum += sum[t];
		}
		free(sum);
	}
	uint32_t n = 0;
	for (uint32_t t = 0; t < vocab; t++) {
		g[t].token = t;
		if (g[t].cells && g[t].cells >= p->min_cells)
			g[n++] = g[t];
	}
	qsort(g, n, sizeof *g, by_sum_down);
	if (p->top_genes && n > p->top_genes)
		n = p->top_genes;
	qsort(g, n, sizeof *g, by_cells_down);
	*kept = n;
	return g;
}

int columns_init(struct columns *x, const struct corpus *c, uint32_t vocab, const struct spearman_params *p, struct error *e)
{
	if (c->n > CELLS_MAX)
		return error_set(e, "%u cells, expected at most %u", c->n, CELLS_MAX);
	*x = (struct columns){.n = c->n, .max_len = c->max_len};
	uint32_t parts = (uint32_t)omp_get_max_threads(), *count = xcalloc((size_t)parts * vocab, sizeof *count);
	struct gene_sum *g = choose_genes(c, vocab, p, count, parts, &x->genes);
	x->token = xcalloc(x->genes, sizeof *x->token);
	x->offset = xcalloc((size_t)x->genes + 1, sizeof *x->offset);
	/* at [parts, vocab]: where the next entry of a part goes; parts follow each other, so the order is that of the cells */
	uint64_t *at = xcalloc((size_t)parts * vocab, sizeof *at);
	memset(at, 0xff, (size_t)parts * vocab * sizeof *at);
	for (uint32_t j = 0; j < x->genes; j++) {
		x->token[j] = g[j].token;
		uint64_t to = x->offset[j];
		for (uint32_t i = 0; i < parts; i++) {
			at[(size_t)i * vocab + g[j].token] = to;
			to += count[(size_t)i * vocab + g[j].token];
		}
		x->offset[j + 1] = to;
	}
	free(g);
	free(count);
	x->cell = xlarge(x->offset[x->genes], sizeof *x->cell);
	x->pos = xlarge(x->offset[x->genes], sizeof *x->pos);
#pragma omp parallel for schedule(static, 1)
	for (uint32_t i = 0; i < parts; i++)
		for (uint32_t j = part(c, i, parts); j < part(c, i + 1, parts); j++)
			for (uint32_t k = 0; k < c->cell[j].n; k++) {
				uint64_t *to = &at[(size_t)i * vocab + corpus_token(c, j, k)];
				if (*to == UINT64_MAX)
					continue;
				x->cell[*to] = j;
				x->pos[(*to)++] = (uint16_t)(k + 1);
			}
	free(at);
	for (uint32_t j = 0; j < x->genes; j++)
		for (uint64_t k = x->offset[j] + 1; k < x->offset[j + 1]; k++)
			if (x->cell[k] == x->cell[k - 1]) {
				error_set(e, "cell %llu: token %u twice", (unsigned long long)c->cell[x->cell[k]].cell, x->token[j]);
				columns_release(x);
				return -1;
			}
	return 0;
}

void columns_release(struct columns *x)
{
	free(x->token);
	free(x->offset);
	free(x->cell);
	free(x->pos);
	*x = (struct columns){0};
}

/* ---- ranks ---- */

/* r' of a gene by position: doubled average rank of the value L_max - position, less that of the zeros. */
struct ranks {
	uint32_t *r;            /* [genes, max_len + 1]; r[0] = 0 stands for absent */
	double *D;              /* [genes] n sum r'^2 - S^2, exact but for the rounding to double; 0: constant */
	int64_t *S;             /* [genes] */
	double *M;              /* [genes] S / sqrt(D) */
	double *wide;           /* [genes] sqrt(1 + M^2) */
	float *y;               /* [entries] r' sqrt(n / D), what the screen multiplies */
	uint32_t *chunk;        /* [genes, chunks + 1] where each chunk of cells starts in a gene's column */
	uint32_t chunks;
};

static void rank_gene(const struct columns *x, uint32_t j, uint32_t *r, struct ranks *out)
{
	uint32_t L = x->max_len, n = x->n;
	memset(r, 0, ((size_t)L + 1) * sizeof *r);
	for (uint64_t k = x->offset[j]; k < x->offset[j + 1]; k++)
		r[x->pos[k]]++;
	uint64_t below = n - (x->offset[j + 1] - x->offset[j]) + r[L], zeros = below;   /* the last position has value 0 too */
	__int128 S = 0, Q = 0;
	r[L] = 0;
	for (uint32_t pos = L; pos-- > 1;) {
		uint64_t m = r[pos];
		/* m equal values after `below` smaller ones: ranks below + 1 ... below + m; the zeros have (zeros + 1) / 2 */
		uint64_t v = 2 * below + m + 1 - (zeros + 1);
		r[pos] = (uint32_t)v;
		S += (__int128)(m * v);
		Q += (__int128)m * v * v;
		below += m;
	}
	__int128 D = (__int128)n * Q - S * S;
	out->S[j] = (int64_t)S;
	out->D[j] = (double)D;
	out->M[j] = D > 0 ? (double)S / sqrt((double)D) : 0;
	out->wide[j] = sqrt(1 + out->M[j] * out->M[j]);
	float scale = D > 0 ? (float)sqrt((double)n / (double)D) : 0;
	uint32_t *chunk = out->chunk + (size_t)j * (out->chunks + 1), c = 0;
	uint64_t k = x->offset[j], end = x->offset[j + 1];
	for (; k < end; k++) {
		while (c <= x->cell[k] / CHUNK)
			chunk[c++] = (uint32_t)(k - x->offset[j]);
		out->y[k] = scale * (float)r[x->pos[k]];
	}
	while (c <= out->chunks)
		chunk[c++] = (uint32_t)(end - x->offset[j]);
}

static void ranks_init(struct ranks *k, const struct columns *x)
{
	size_t L = x->max_len + 1;
	uint32_t chunks = (x->n + CHUNK - 1) / CHUNK;
	*k = (struct ranks){.r = xcalloc(x->genes, L * sizeof *k->r), .D = xcalloc(x->genes, 8), .S = xcalloc(x->genes, 8),
			    .M = xcalloc(x->genes, 8), .wide = xcalloc(x->genes, 8), .y = xlarge(x->offset[x->genes], sizeof *k->y),
			    .chunk = xcalloc(x->genes, (chunks + 1) * sizeof *k->chunk), .chunks = chunks};
#pragma omp parallel for schedule(dynamic, 16)
	for (uint32_t j = 0; j < x->genes; j++)
		rank_gene(x, j, k->r + j * L, k);
}

static void ranks_release(struct ranks *k)
{
	free(k->r);
	free(k->y);
	free(k->D);
	free(k->S);
	free(k->M);
	free(k->wide);
	free(k->chunk);
}

/* ---- candidates of one gene ---- */

struct candidate {
	uint32_t v;
	float low, high;        /* bounds of |C| */
};

struct candidates {
	struct candidate *at;
	size_t n, cap;
	float least;            /* |C| below this cannot be wanted */
	omp_lock_t lock;
};

/* The k-th largest low bound (1-based) of n >= k candidates, which it reorders (quickselect). */
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

/* ---- the screen ---- */

typedef float vec8 __attribute__((vector_size(32)));

struct tile {
	vec8 panel[CHUNK][U / 8];       /* y of U genes in one chunk of cells */
	vec8 sum[V][U / 8];
};

/* sum += sum over the m entries of a column in this chunk of y * panel row */
static void add_products(vec8 *restrict sum, const vec8 (*restrict panel)[U / 8], const uint32_t *restrict cell,
			 const float *restrict y, uint32_t m)
{
	vec8 a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0}, a4 = {0}, a5 = {0}, a6 = {0}, a7 = {0};
	for (uint32_t i = 0; i < m; i++) {
		const vec8 *p = panel[cell[i] % CHUNK];
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

/* Entries of column j in chunk c: *from on, returns how many. */
static uint32_t entries(const struct columns *x, const struct ranks *k, uint32_t j, uint32_t c, uint64_t *from)
{
	const uint32_t *chunk = k->chunk + (size_t)j * (k->chunks + 1) + c;
	*from = x->offset[j] + chunk[0];
	return chunk[1] - chunk[0];
}

/* Sums of products for genes u0 ... and v0 ..., all cells. */
static void products(struct tile *t, const struct columns *x, const struct ranks *k, uint32_t u0, uint32_t nu, uint32_t v0, uint32_t nv)
{
	uint64_t at;
	memset(t->sum, 0, nv * sizeof *t->sum);
	for (uint32_t c = 0; c < k->chunks; c++) {
		memset(t->panel, 0, sizeof t->panel);
		for (uint32_t u = 0; u < nu; u++)
			for (uint32_t m = entries(x, k, u0 + u, c, &at); m; m--, at++)
				((float *)t->panel[x->cell[at] % CHUNK])[u] = k->y[at];
		for (uint32_t v = 0; v < nv; v++) {
			uint32_t m = entries(x, k, v0 + v, c, &at);
			if (m)
				add_products(t->sum[v], (const vec8(*)[U / 8])t->panel, x->cell + at, k->y + at, m);
		}
	}
}

static void screen_tile(struct tile *t, const struct columns *x, const struct ranks *k, const struct spearman_params *p, uint32_t u0,
			uint32_t v0, struct candidates *list)
{
	uint32_t nu = x->genes - u0 < U ? x->genes - u0 : U, nv = x->genes - v0 < V ? x->genes - v0 : V;
	products(t, x, k, u0, nu, v0, nv);
	double gamma = (CHUNK + (double)x->n / CHUNK + 8) * 0x1p-24;
	for (uint32_t v = 0; v < nv; v++) {
		const float *sum = (const float *)t->sum[v];
		double M = k->M[v0 + v], wide = gamma * k->wide[v0 + v];
		for (uint32_t u = 0; u < nu && u0 + u < v0 + v; u++) {
			double c = fabs((double)sum[u] - k->M[u0 + u] * M), eps = wide * k->wide[u0 + u];
			float low = (float)(c - eps) - 1e-6f, high = (float)(c + eps) + 1e-6f;
			if (high < (float)p->rho_min || k->D[u0 + u] <= 0 || k->D[v0 + v] <= 0)
				continue;
			offer(&list[u0 + u], v0 + v, low, high, p->neighbours);
			offer(&list[v0 + v], u0 + u, low, high, p->neighbours);
		}
	}
}

static void screen(const struct columns *x, const struct ranks *k, const struct spearman_params *p, struct candidates *list)
{
	struct { uint32_t u, v; } *job = NULL;
	size_t njob = 0, cap = 0;
	for (uint32_t u = 0; u < x->genes; u += U)
		for (uint32_t v = u / V * V; v < x->genes; v += V) {
			grow(job, cap, njob + 1);
			job[njob].u = u;
			job[njob++].v = v;
		}
#pragma omp parallel
	{
		struct tile *t = aligned_alloc(64, (sizeof *t + 63) / 64 * 64);
		if (!t)
			abort();
#pragma omp for schedule(dynamic)
		for (size_t j = 0; j < njob; j++)
			screen_tile(t, x, k, p, job[j].u, job[j].v, list);
		free(t);
	}
	free(job);
}

/* ---- exact scores ---- */

struct pair {
	uint32_t u, v;          /* columns, u < v: u is in at least as many cells */
	uint32_t overlap;
	float rho;              /* over those cells */
	double c;               /* |C| */
	int wanted;
};

static int by_uv(const void *a, const void *b)
{
	const struct pair *p = a, *q = b;
	return p->u != q->u ? (p->u > q->u) - (p->u < q->u) : (p->v > q->v) - (p->v < q->v);
}

static struct pair *unique_pairs(struct candidates *list, uint32_t genes, uint32_t neighbours, size_t *n)
{
	size_t total = 0, k = 0;
	for (uint32_t g = 0; g < genes; g++) {
		prune(&list[g], neighbours);
		total += list[g].n;
	}
	struct pair *p = xcalloc(total, sizeof *p);
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

struct scratch {
	uint16_t *where;        /* [cells] position of gene u, 0 absent */
	uint16_t *a, *b;        /* [cells] positions of both where both are */
	uint32_t *count, *rank; /* [2, max_len + 1] */
};

/* Doubled average ranks by position from the counts by position (one order suffices: both genes are turned round), and n Q - S^2. */
static __int128 rank_counts(const uint32_t *count, uint32_t *rank, uint32_t L, uint64_t m)
{
	uint64_t below = 0;
	__int128 Q = 0, S = (__int128)m * (m + 1);
	for (uint32_t pos = 1; pos <= L; pos++) {
		uint64_t v = 2 * below + count[pos] + 1;
		rank[pos] = (uint32_t)v;
		Q += (__int128)count[pos] * v * v;
		below += count[pos];
	}
	return (__int128)m * Q - S * S;
}

static float local_rho(struct scratch *s, uint32_t m, uint32_t L)
{
	uint32_t *ca = s->count, *cb = s->count + L + 1, *ra = s->rank, *rb = s->rank + L + 1;
	memset(s->count, 0, 2 * ((size_t)L + 1) * sizeof *s->count);
	for (uint32_t i = 0; i < m; i++) {
		ca[s->a[i]]++;
		cb[s->b[i]]++;
	}
	__int128 da = rank_counts(ca, ra, L, m), db = rank_counts(cb, rb, L, m), S = (__int128)m * ((uint64_t)m + 1);
	if (da <= 0 || db <= 0)
		return 0;
	uint64_t P = 0;
	for (uint32_t i = 0; i < m; i++)
		P += (uint64_t)ra[s->a[i]] * rb[s->b[i]];
	return (float)((double)((__int128)m * P - S * S) / (sqrt((double)da) * sqrt((double)db)));
}

static void score(struct pair *p, struct scratch *s, const struct columns *x, const struct ranks *k, const struct spearman_params *par)
{
	size_t L = x->max_len + 1;
	const uint32_t *ru = k->r + p->u * L, *rv = k->r + p->v * L;
	uint64_t P = 0;
	uint32_t m = 0;
	for (uint64_t i = x->offset[p->v]; i < x->offset[p->v + 1]; i++) {
		uint32_t a = s->where[x->cell[i]], b = x->pos[i];
		s->a[m] = (uint16_t)a;
		s->b[m] = (uint16_t)b;
		m += a != 0;
		P += (uint64_t)ru[a] * rv[b];
	}
	__int128 num = (__int128)x->n * P - (__int128)k->S[p->u] * k->S[p->v];
	p->c = fabs((double)num / (sqrt(k->D[p->u]) * sqrt(k->D[p->v])));
	p->overlap = m;
	if (m >= par->min_overlap && m && p->c >= par->rho_min)
		p->rho = local_rho(s, m, x->max_len);
}

/* Pairs in order of u: the pairs of one u share its positions by cell. */
static void score_pairs(struct pair *pair, size_t n, const struct columns *x, const struct ranks *k, const struct spearman_params *p)
{
	size_t *first = xcalloc((size_t)x->genes + 1, sizeof *first), i = 0;
	for (uint32_t u = 0; u <= x->genes; u++) {
		while (i < n && pair[i].u < u)
			i++;
		first[u] = i;
	}
#pragma omp parallel
	{
		size_t L = x->max_len + 1;
		struct scratch s = {xcalloc(x->n, 2), xcalloc((size_t)x->n + 1, 2), xcalloc((size_t)x->n + 1, 2), xcalloc(2 * L, 4), xcalloc(2 * L, 4)};
#pragma omp for schedule(dynamic)
		for (uint32_t u = 0; u < x->genes; u++) {
			if (first[u] == first[u + 1])
				continue;
			for (uint64_t c = x->offset[u]; c < x->offset[u + 1]; c++)
				s.where[x->cell[c]] = x->pos[c];
			for (size_t j = first[u]; j < first[u + 1]; j++)
				score(&pair[j], &s, x, k, p);
			for (uint64_t c = x->offset[u]; c < x->offset[u + 1]; c++)
				s.where[x->cell[c]] = 0;
		}
		free(s.where);
		free(s.a);
		free(s.b);
		free(s.count);
		free(s.rank);
	}
	free(first);
}

/* ---- choosing edges ---- */

struct scored {
	double c;
	uint32_t token;         /* of the other gene */
	struct pair *pair;
};

static int by_score_down(const void *a, const void *b)
{
	const struct scored *p = a, *q = b;
	if (p->c != q->c)
		return p->c < q->c ? 1 : -1;
	return (p->token > q->token) - (p->token < q->token);
}

/* Mark the pairs that are among the first `neighbours` of one of their genes and pass the two criteria. */
static void choose(struct pair *pair, size_t n, const struct columns *x, const struct spearman_params *p)
{
	uint64_t *offset = xcalloc((size_t)x->genes + 2, sizeof *offset);
	struct scored *s = xcalloc(2 * n, sizeof *s);
	for (size_t i = 0; i < n; i++) {
		offset[pair[i].u + 2]++;
		offset[pair[i].v + 2]++;
	}
	for (uint32_t g = 0; g < x->genes; g++)
		offset[g + 2] += offset[g + 1];
	for (size_t i = 0; i < n; i++) {
		s[offset[pair[i].u + 1]++] = (struct scored){pair[i].c, x->token[pair[i].v], &pair[i]};
		s[offset[pair[i].v + 1]++] = (struct scored){pair[i].c, x->token[pair[i].u], &pair[i]};
	}
	for (uint32_t g = 0; g < x->genes; g++) {
		struct scored *at = s + offset[g];
		size_t have = offset[g + 1] - offset[g];
		qsort(at, have, sizeof *at, by_score_down);
		for (size_t i = 0; i < have && i < p->neighbours; i++) {
			struct pair *q = at[i].pair;
			q->wanted |= q->c >= p->rho_min && q->overlap >= p->min_overlap && q->overlap;
		}
	}
	free(offset);
	free(s);
}

static int by_token(const void *a, const void *b)
{
	const struct edge *p = a, *q = b;
	return p->u != q->u ? (p->u > q->u) - (p->u < q->u) : (p->v > q->v) - (p->v < q->v);
}

struct edge *spearman_edges(const struct columns *x, const struct spearman_params *p, size_t *n, struct spearman_stats *stats)
{
	struct ranks k;
	double start = now();
	ranks_init(&k, x);
	struct candidates *list = xcalloc(x->genes, sizeof *list);
	for (uint32_t g = 0; g < x->genes; g++) {
		omp_init_lock(&list[g].lock);
		list[g].least = (float)p->rho_min;
	}
	screen(x, &k, p, list);
	size_t npair;
	struct pair *pair = unique_pairs(list, x->genes, p->neighbours, &npair);
	for (uint32_t g = 0; g < x->genes; g++) {
		omp_destroy_lock(&list[g].lock);
		free(list[g].at);
	}
	free(list);
	double screened = now();
	score_pairs(pair, npair, x, &k, p);
	choose(pair, npair, x, p);
	struct edge *edge = xcalloc(npair, sizeof *edge);
	size_t m = 0;
	for (size_t i = 0; i < npair; i++) {
		if (!pair[i].wanted || (p->positive && pair[i].rho < 0))
			continue;
		uint32_t a = x->token[pair[i].u], b = x->token[pair[i].v];
		edge[m++] = (struct edge){a < b ? a : b, a < b ? b : a, pair[i].rho, pair[i].overlap};
	}
	qsort(edge, m, sizeof *edge, by_token);
	free(pair);
	ranks_release(&k);
	*n = m;
	*stats = (struct spearman_stats){npair, screened - start, now() - screened};
	return edge;
}
