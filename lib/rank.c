#include "rank.h"

#include "pool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void rank_table_init(struct rank_table *t, const uint32_t *token, size_t n, const double *median)
{
	uint32_t most = 0;
	double largest = 0;
	*t = (struct rank_table){.n = n};
	t->token = xmalloc(n * sizeof *t->token);
	t->median = xmalloc(n * sizeof *t->median);
	for (size_t i = 0; i < n; i++)
		most = token[i] != RANK_UNKNOWN && token[i] > most ? token[i] : most;
	unsigned char *used = xcalloc((size_t)most + 1, 1);
	for (size_t i = 0; i < n; i++) {
		t->token[i] = token[i];
		t->median[i] = 1;
		if (token[i] == RANK_UNKNOWN)
			continue;
		t->median[i] = median[token[i]];
		largest = t->median[i] > largest ? t->median[i] : largest;
		t->shared |= used[token[i]];
		used[token[i]] = 1;
	}
	free(used);
	double least = 1 / (largest > 0 ? largest : 1);
	memcpy(&t->base, &least, 8);
}

void rank_table_release(struct rank_table *t)
{
	free(t->token);
	free(t->median);
	*t = (struct rank_table){0};
}

void rank_cell_release(struct rank_cell *c)
{
	free(c->token);
	free(c->count);
	free(c->key);
	free(c->id);
	free(c->x);
	free(c->item);
	free(c->other);
	free(c->pair);
	*c = (struct rank_cell){0};
}

static void make_room(struct rank_cell *c, size_t n)
{
	if (n <= c->cap)
		return;
	rank_cell_release(c);
	c->cap = n * 2;
	c->token = xmalloc(c->cap * sizeof *c->token);
	c->count = xmalloc(c->cap * sizeof *c->count);
	c->key = xmalloc(c->cap * sizeof *c->key);
	c->id = xmalloc(c->cap * sizeof *c->id);
	c->x = xmalloc(c->cap * sizeof *c->x);
	c->item = xmalloc(c->cap * sizeof *c->item);
	c->other = xmalloc(c->cap * sizeof *c->other);
	c->pair = xmalloc(c->cap * sizeof *c->pair);
}

static int by_pair(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* Several entries can be one token: order them by token and add. c->key still holds medians. Returns the number left. */
static size_t add_shared(struct rank_cell *c, size_t n)
{
	size_t k = 0;
	for (size_t i = 0; i < n; i++)
		c->pair[i] = (uint64_t)c->id[i] << 32 | (uint32_t)i;
	qsort(c->pair, n, sizeof *c->pair, by_pair);
	for (size_t i = 0; i < n; i++)
		c->item[i] = c->x[(uint32_t)c->pair[i]];
	/* entries of one token have one median, and the first of them may be moved up, so keys go by way of c->other */
	for (size_t i = 0; i < n; i++)
		c->other[i] = (uint32_t)c->pair[i];
	double *median = (double *)c->pair;
	for (size_t i = 0; i < n; i++)
		median[i] = c->key[c->other[i]];
	for (size_t i = 0; i < n; i++)
		c->other[i] = c->id[c->other[i]];
	for (size_t i = 0; i < n; i++) {
		if (k && c->id[k - 1] == c->other[i]) {
			/* counts end below 2^31, so only a stream made by hand gets past 2^32 */
			c->x[k - 1] = c->item[i] > UINT32_MAX - c->x[k - 1] ? UINT32_MAX : c->x[k - 1] + c->item[i];
			continue;
		}
		c->id[k] = c->other[i];
		c->x[k] = c->item[i];
		c->key[k++] = median[i];
	}
	return k;
}

/* Does entry i come after entry j? Larger keys first, then lower tokens. */
static int after(const struct rank_cell *c, uint32_t i, uint32_t j)
{
	if (c->key[i] != c->key[j])
		return c->key[i] < c->key[j];
	return c->id[i] > c->id[j];
}

static int by_key(const void *a, const void *b, void *c)
{
	return after(c, *(const uint32_t *)a, *(const uint32_t *)b) ? 1 : -1;
}

/* Put a run of entries whose leading key bits agree in exact order. */
static void sort_run(struct rank_cell *c, uint32_t *item, size_t n)
{
	if (n > 24) {
		qsort_r(item, n, sizeof *item, by_key, c);
		return;
	}
	for (size_t i = 1; i < n; i++) {
		uint32_t x = item[i];
		size_t j = i;
		for (; j && after(c, item[j - 1], x); j--)
			item[j] = item[j - 1];
		item[j] = x;
	}
}

/*
 * The order of the entries, left in c->item. Positive doubles order as their bits do, and from 1 / (largest median) up, 32
 * octaves hold every key that matters. An item packs the leading bits of a key (all there is room for) above the entry's number; two
 * radix passes sort the items by them, and runs of equal leading bits are put in exact order.
 */
static void order(struct rank_cell *c, size_t n, uint64_t base)
{
	int low = 12;                           /* bits of the entry's number */
	while ((size_t)1 << low < n)
		low++;
	if (low > 16) {
		for (size_t i = 0; i < n; i++)
			c->item[i] = (uint32_t)i;
		qsort_r(c->item, n, sizeof *c->item, by_key, c);
		return;
	}
	int digit = n < 256 ? 8 : (32 - low) / 2, shift = 52 + 5 - 2 * digit;
	uint32_t mask = (1u << digit) - 1, top = (1u << 2 * digit) - 1, at[2][1026];
	memset(at[0], 0, (mask + 2) * sizeof at[0][0]);
	memset(at[1], 0, (mask + 2) * sizeof at[1][0]);
	for (size_t i = 0; i < n; i++) {
		uint64_t b;
		memcpy(&b, c->key + i, 8);
		b = b > base ? (b - base) >> shift : 0;
		uint32_t d = top - (b < top ? (uint32_t)b : top);
		c->item[i] = d << low | (uint32_t)i;
		at[0][(d & mask) + 1]++;
		at[1][(d >> digit) + 1]++;
	}
	for (uint32_t b = 0; b < mask; b++) {
		at[0][b + 1] += at[0][b];
		at[1][b + 1] += at[1][b];
	}
	for (size_t i = 0; i < n; i++)
		c->other[at[0][c->item[i] >> low & mask]++] = c->item[i];
	for (size_t i = 0; i < n; i++)
		c->item[at[1][c->other[i] >> low >> digit]++] = c->other[i];
	uint32_t number = (1u << low) - 1;
	for (size_t i = 0; i < n;) {
		size_t end = i + 1;
		uint32_t d = c->item[i] >> low;
		c->item[i] &= number;
		while (end < n && c->item[end] >> low == d)
			c->item[end++] &= number;
		if (end - i > 1)
			sort_run(c, c->item + i, end - i);
		i = end;
	}
}

uint64_t rank_encode(struct rank_cell *c, const struct rank_table *t, const uint32_t *gene, const uint32_t *count, size_t n,
		     int repeats, int counts)
{
	uint64_t sum = 0;
	size_t k = 0;
	make_room(c, n);
	for (size_t i = 0; i < n; i++) {
		uint32_t g = gene[i], x = count[i], known = t->token[g] != RANK_UNKNOWN && x;
		c->id[k] = t->token[g];
		c->x[k] = x;
		c->key[k] = t->median[g];
		k += known;
		sum += known ? x : 0;
	}
	if (repeats || t->shared)
		k = add_shared(c, k);
	for (size_t i = 0; i < k; i++)
		c->key[i] = (double)c->x[i] / c->key[i];
	order(c, k, t->base);
	for (size_t i = 0; i < k; i++)
		c->token[i] = c->id[c->item[i]];
	for (size_t i = 0; i < k && counts; i++)
		c->count[i] = c->x[c->item[i]];
	c->n = k;
	return sum;
}

#define COARSE_BASE ((1023u - 6) << 5)  /* exponent and 5 bits of the mantissa of 2^-6 */

static size_t coarse_bin(double v)
{
	uint64_t b;
	memcpy(&b, &v, 8);
	b >>= 47;
	return b <= COARSE_BASE ? 0 : b - COARSE_BASE < RANK_BINS ? b - COARSE_BASE : RANK_BINS - 1;
}

static double coarse_edge(size_t i)
{
	double v;
	uint64_t b = (uint64_t)(COARSE_BASE + i) << 47;
	memcpy(&v, &b, 8);
	return i ? v : 0;
}

void rank_fit_init(struct rank_fit *f, size_t ngene)
{
	*f = (struct rank_fit){.ngene = ngene, .left = ngene};
	f->gene = xcalloc(ngene, sizeof *f->gene);
	for (size_t i = 0; i < ngene; i++)
		f->gene[i] = (struct rank_median){.mode = RANK_COARSE, .median = NAN};
	f->coarse = xcalloc(ngene * RANK_BINS, sizeof *f->coarse);
}

void rank_fit_release(struct rank_fit *f)
{
	free(f->gene);
	free(f->coarse);
	free(f->fine);
	*f = (struct rank_fit){0};
}

static size_t fine_bin(const struct rank_median *g, double v)
{
	double at = (v - g->lo) / (g->hi - g->lo) * RANK_FINE;
	return at < RANK_FINE ? (size_t)at : RANK_FINE - 1;
}

static double fine_edge(const struct rank_median *g, size_t i)
{
	return g->lo + (g->hi - g->lo) / RANK_FINE * (double)i;
}

static void add_value(struct rank_fit *f, size_t gene, double v)
{
	struct rank_median *g = f->gene + gene;
	if (g->mode == RANK_COARSE) {
		f->coarse[gene * RANK_BINS + coarse_bin(v)]++;
		return;
	}
	if (g->mode == RANK_DONE)
		return;
	if (g->mode == RANK_EDGE) {
		if (v < g->lo)
			g->max = fmax(g->max, v);
		else
			g->min = fmin(g->min, v);
		return;
	}
	g->below += v < g->lo;
	if (v < g->lo || v > g->hi)
		return;
	g->min = fmin(g->min, v);
	g->max = fmax(g->max, v);
	double *fine = f->fine + (size_t)g->slot * RANK_FINE;
	if (g->mode == RANK_DIVIDE)
		fine[fine_bin(g, v)]++;
	else if (g->kept++ < RANK_FINE)
		fine[g->kept - 1] = v;
}

struct fit_rows {
	struct rank_fit *f;
	size_t rows, parts;
	const uint64_t *start, *total;
	const uint32_t *gene, *count, *to;
};

/* One part takes the genes of one residue class, so that parts share nothing. */
static void add_part(void *arg, size_t part, int thread)
{
	const struct fit_rows *a = arg;
	for (size_t i = 0; i < a->rows; i++) {
		double scale = (double)a->total[i];
		for (uint64_t k = a->start[i]; k < a->start[i + 1]; k++) {
			uint32_t g = a->to[a->gene[k]];
			if (g % a->parts == part && a->count[k])
				add_value(a->f, g, (double)a->count[k] / scale * 1e4);
		}
	}
}

void rank_fit_add(struct rank_fit *f, size_t rows, const uint64_t *start, const uint32_t *gene, const uint32_t *count,
		  const uint64_t *total, const uint32_t *to, int threads)
{
	struct fit_rows a = {f, rows, (size_t)threads, start, total, gene, count, to};
	pool_for(threads, (size_t)threads, add_part, &a);
}

/* Bins i <= j hold the two middle values: decide what the next pass does. lo, hi: edges of i and j. */
static void narrow(struct rank_median *g, double lo, double hi, double gap, uint64_t inside)
{
	if (gap > 0) {
		/* an empty stretch between the two middle values: they are its ends */
		*g = (struct rank_median){.n = g->n, .mode = RANK_EDGE, .lo = gap, .hi = gap, .min = INFINITY, .median = NAN};
		return;
	}
	/* the edges are rounded, so a little more than the bin: what lies below is counted again */
	lo *= 1 - 1e-14;
	hi *= 1 + 1e-14;
	enum rank_mode mode = inside <= RANK_FINE * 3 / 4 ? RANK_KEEP : RANK_DIVIDE;
	*g = (struct rank_median){.n = g->n, .mode = mode, .lo = lo, .hi = hi, .min = INFINITY, .median = NAN};
}

static void finish(struct rank_median *g, double median)
{
	g->mode = RANK_DONE;
	g->median = median;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void next_coarse(struct rank_median *g, const uint32_t *bin)
{
	g->n = 0;
	for (size_t i = 0; i < RANK_BINS; i++)
		g->n += bin[i];
	if (!g->n) {
		finish(g, NAN);
		return;
	}
	uint64_t k1 = (g->n - 1) / 2, k2 = g->n / 2, sum = 0;
	size_t i = 0, j;
	while (sum + bin[i] <= k1)
		sum += bin[i++];
	uint64_t inside = bin[i];
	for (j = i; sum + inside <= k2;)
		inside += bin[++j];
	narrow(g, coarse_edge(i), coarse_edge(j + 1), j > i + 1 ? (coarse_edge(i + 1) + coarse_edge(j)) / 2 : 0, inside);
}

static void next_divide(struct rank_median *g, const double *bin)
{
	uint64_t k1 = (g->n - 1) / 2 - g->below, k2 = g->n / 2 - g->below, sum = 0;
	if (g->min == g->max || g->hi - g->lo <= 1e-12 * g->hi) {
		finish(g, g->min);
		return;
	}
	size_t i = 0, j;
	while (sum + (uint64_t)bin[i] <= k1)
		sum += (uint64_t)bin[i++];
	uint64_t inside = (uint64_t)bin[i];
	for (j = i; sum + inside <= k2;)
		inside += (uint64_t)bin[++j];
	double lo = fine_edge(g, i), hi = fine_edge(g, j + 1);
	if (i == j && inside <= g->n / 1000 && inside > RANK_FINE)
		finish(g, lo + (hi - lo) / 2);
	else
		narrow(g, lo, hi, j > i + 1 ? fine_edge(g, i + 1) + (fine_edge(g, j) - fine_edge(g, i + 1)) / 2 : 0, inside);
}

static void next_keep(struct rank_median *g, double *kept)
{
	if (g->kept > RANK_FINE) {      /* ties at an edge: more than the bin promised */
		narrow(g, g->lo, g->hi, 0, g->kept);
		return;
	}
	qsort(kept, g->kept, sizeof *kept, by_value);
	uint64_t k1 = (g->n - 1) / 2 - g->below, k2 = g->n / 2 - g->below;
	finish(g, k1 == k2 ? kept[k1] : (kept[k1] + kept[k2]) / 2);
}

int rank_fit_next(struct rank_fit *f)
{
	f->left = 0;
	for (size_t i = 0; i < f->ngene; i++) {
		struct rank_median *g = f->gene + i;
		double *fine = f->fine + (size_t)g->slot * RANK_FINE;
		switch (g->mode) {
		case RANK_COARSE: next_coarse(g, f->coarse + i * RANK_BINS); break;
		case RANK_DIVIDE: next_divide(g, fine); break;
		case RANK_KEEP: next_keep(g, fine); break;
		case RANK_EDGE: finish(g, (g->max + g->min) / 2); break;
		case RANK_DONE: break;
		}
	}
	free(f->coarse);
	free(f->fine);
	f->coarse = NULL;
	for (size_t i = 0; i < f->ngene; i++)
		if (f->gene[i].mode != RANK_DONE)
			f->gene[i].slot = (uint32_t)f->left++;
	f->fine = xcalloc(f->left * RANK_FINE, sizeof *f->fine);
	return f->left > 0;
}
