#include "rank.h"

#include "pool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RADIX 9                 /* bits of a key sorted by in one pass */

void rank_table_init(struct rank_table *t, const uint32_t *token, size_t n, const double *median)
{
	uint32_t most = 0;
	*t = (struct rank_table){.n = n, .least = INFINITY};
	t->token = xmalloc(n * sizeof *t->token);
	t->median = xmalloc(n * sizeof *t->median);
	for (size_t i = 0; i < n; i++)
		most = token[i] != RANK_UNKNOWN && token[i] > most ? token[i] : most;
	unsigned char *used = xcalloc((size_t)most + 1, 1);
	for (size_t i = 0; i < n; i++) {
		t->token[i] = token[i];
		t->median[i] = INFINITY;
		if (token[i] == RANK_UNKNOWN)
			continue;
		t->median[i] = median[token[i]];
		t->most = fmax(t->most, t->median[i]);
		t->least = fmin(t->least, t->median[i]);
		t->shared |= used[token[i]];
		used[token[i]] = 1;
	}
	free(used);
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
	free(c->gene);
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
	c->gene = xmalloc(c->cap * sizeof *c->gene);
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

/* Several entries can be one token: into c->gene and c->x, those of a token added and under one of its genes. Entries without a token
 * stay as they are. Returns their number. */
static size_t add_shared(struct rank_cell *c, const struct rank_table *t, const uint32_t *gene, const uint32_t *count, size_t n)
{
	size_t k = 0;
	for (size_t i = 0; i < n; i++)
		c->pair[i] = (uint64_t)t->token[gene[i]] << 32 | (uint32_t)i;
	qsort(c->pair, n, sizeof *c->pair, by_pair);
	for (size_t i = 0; i < n; i++) {
		uint32_t at = (uint32_t)c->pair[i], x = count[at];
		if (i && c->pair[i - 1] >> 32 == c->pair[i] >> 32 && c->pair[i] >> 32 != RANK_UNKNOWN) {
			/* counts end below 2^31, so only a stream made by hand gets past 2^32 */
			c->x[k - 1] = x > UINT32_MAX - c->x[k - 1] ? UINT32_MAX : c->x[k - 1] + x;
			continue;
		}
		c->gene[k] = gene[at];
		c->x[k++] = x;
	}
	return k;
}

struct entries {
	const struct rank_table *t;
	const uint32_t *gene, *x;
};

static double key(const struct entries *c, uint32_t i)
{
	return (double)c->x[i] / c->t->median[c->gene[i]];
}

/* Does entry i come after entry j? Larger keys first, then lower tokens. */
static int after(const struct entries *c, uint32_t i, uint32_t j)
{
	double a = key(c, i), b = key(c, j);
	return a != b ? a < b : c->t->token[c->gene[i]] > c->t->token[c->gene[j]];
}

static int by_key(const void *a, const void *b, void *c)
{
	return after(c, *(const uint32_t *)a, *(const uint32_t *)b) ? 1 : -1;
}

/* Put a run of entries whose leading key bits agree in exact order. */
static void sort_run(struct entries *c, uint32_t *item, size_t n)
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

/* Sort item [n] by `digit` bits from bit `low` up and the `digit` bits above them: two radix passes. */
static void sort_items(uint32_t *restrict item, uint32_t *restrict other, size_t n, int low, int digit)
{
	uint32_t at[2][1 << RADIX], mask = (1u << digit) - 1;
	memset(at[0], 0, sizeof at[0][0] << digit);
	memset(at[1], 0, sizeof at[1][0] << digit);
	for (size_t i = 0; i < n; i++) {
		uint32_t d = item[i] >> low;
		at[0][d & mask]++;
		at[1][d >> digit]++;
	}
	for (uint32_t b = 0, sum0 = 0, sum1 = 0; b <= mask; b++) {
		uint32_t n0 = at[0][b], n1 = at[1][b];
		at[0][b] = sum0;
		at[1][b] = sum1;
		sum0 += n0;
		sum1 += n1;
	}
	for (size_t i = 0; i < n; i++)
		other[at[0][item[i] >> low & mask]++] = item[i];
	for (size_t i = 0; i < n; i++)
		item[at[1][other[i] >> low >> digit]++] = other[i];
}

/* Item to number, and entries whose leading bits agree into exact order. */
static void settle(struct entries *c, uint32_t *restrict item, uint32_t *restrict tie, size_t n, int low)
{
	uint32_t number = (1u << low) - 1, last = n ? ~item[0] : 0;
	size_t ties = 0;
	for (size_t i = 0; i < n; i++) {
		uint32_t x = item[i];
		tie[ties] = (uint32_t)i;
		ties += (x ^ last) <= number;
		last = x;
		item[i] = x & number;
	}
	for (size_t k = 0; k < ties;) {
		size_t from = tie[k] - 1, end = from + 1;
		for (; k < ties && tie[k] == end; k++)
			end++;
		sort_run(c, item + from, end - from);
	}
}

/*
 * The order of the entries, left in c->item; returns how many have a key above 0, which come first. Positive doubles order as
 * their bits do, and the keys of a cell lie from 1 / (largest median) to (largest count) / (least median). An item packs the
 * leading bits of a key within that range, as many as there is room for, above the entry's number. Where the leading bits of
 * two are the same, they are divided again.
 */
static size_t order(struct rank_cell *c, const struct entries *in, size_t n)
{
	const uint32_t *x = in->x, *gene = in->gene;
	const double *restrict median = in->t->median;
	uint32_t most = 1, *restrict item = c->item;
	struct entries entries = *in;
	size_t known = n;
	int low = 12;                           /* bits of the entry's number */
	while ((size_t)1 << low < n)
		low++;
	if (low > 16) {
		for (size_t i = 0; i < n; i++)
			item[i] = (uint32_t)i;
		qsort_r(item, n, sizeof *item, by_key, &entries);
		while (known && key(in, item[known - 1]) == 0)
			known--;
		return known;
	}
	for (size_t i = 0; i < n; i++)
		most = x[i] > most ? x[i] : most;
	double lo = 1 / in->t->most, hi = most / in->t->least;
	int64_t base, top;
	memcpy(&base, &lo, 8);
	memcpy(&top, &hi, 8);
	int digit = n < 512 || low > 14 ? 8 : RADIX, shift = 0;
	uint32_t largest = (1u << 2 * digit) - 1;
	while ((top - base) >> shift >= largest)
		shift++;
	base -= (int64_t)1 << shift;            /* leading bits of 0 are left for key 0 */
	for (size_t i = 0; i < n; i++) {
		double k = x[i] / median[gene[i]];
		int64_t b;
		memcpy(&b, &k, 8);
		b -= base;
		b = b < 0 ? 0 : b >> shift;
		item[i] = (largest - (uint32_t)b) << low | (uint32_t)i;
	}
	sort_items(item, c->other, n, low, digit);
	while (known && item[known - 1] >> low == largest)
		known--;
	for (size_t i = known; i < n; i++)
		item[i] &= (1u << low) - 1;
	settle(&entries, item, c->other, known, low);
	return known;
}

uint64_t rank_encode(struct rank_cell *c, const struct rank_table *t, const uint32_t *gene, const uint32_t *count, size_t n,
		     int repeats, int counts)
{
	uint64_t unknown = 0;
	make_room(c, n);
	c->n = 0;
	if (repeats || t->shared) {
		n = add_shared(c, t, gene, count, n);
		gene = c->gene;
		count = c->x;
	}
	if (n && t->most > 0)
		c->n = order(c, &(struct entries){t, gene, count}, n);
	for (size_t i = c->n; i < n; i++)
		unknown += count[t->most > 0 ? c->item[i] : i];
	for (size_t i = 0; i < c->n; i++)
		c->token[i] = t->token[gene[c->item[i]]];
	for (size_t i = 0; i < c->n && counts; i++)
		c->count[i] = count[c->item[i]];
	return unknown;
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
