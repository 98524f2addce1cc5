#include "encode/medians.h"

#include "base/sort.h"
#include "base/threads.h"

/*
 * The bin of a value in pass 1 is made of bits of the double: the exponent and the first 5 bits of the mantissa, 32 bins an octave.
 *     | sign | exponent (11 bits) | 5 bits | 47 bits |
 *            |<---- number of the bin ---->|            less that of 2^-6
 */
#define DROPPED_BITS 47
#define COARSE_BASE ((1023u - 6) << 5)

static size_t coarse_bin(double v)
{
	uint64_t b;
	memcpy(&b, &v, 8);
	b >>= DROPPED_BITS;
	return b <= COARSE_BASE ? 0 : b - COARSE_BASE < MEDIANS_BINS ? b - COARSE_BASE : MEDIANS_BINS - 1;
}

static double coarse_edge(size_t i)
{
	double v;
	uint64_t b = (uint64_t)(COARSE_BASE + i) << DROPPED_BITS;
	memcpy(&v, &b, 8);
	return i ? v : 0;
}

void medians_init(struct medians *m, size_t ngene)
{
	*m = (struct medians){.ngene = ngene, .left = ngene};
	m->gene = xcalloc(ngene, sizeof *m->gene);
	for (size_t i = 0; i < ngene; i++)
		m->gene[i] = (struct medians_gene){.mode = MEDIANS_COARSE, .median = NAN};
	m->coarse = xcalloc(ngene * MEDIANS_BINS, sizeof *m->coarse);
}

void medians_release(struct medians *m)
{
	free_all(m->gene, m->coarse, m->fine);
	*m = (struct medians){0};
}

static size_t fine_bin(const struct medians_gene *g, double v)
{
	double at = (v - g->lo) / (g->hi - g->lo) * MEDIANS_FINE;
	return at < MEDIANS_FINE ? (size_t)at : MEDIANS_FINE - 1;
}

static double fine_edge(const struct medians_gene *g, size_t i)
{
	return g->lo + (g->hi - g->lo) / MEDIANS_FINE * (double)i;
}

static void add_value(struct medians *m, size_t gene, double v)
{
	struct medians_gene *g = m->gene + gene;
	if (g->mode == MEDIANS_COARSE) {
		m->coarse[gene * MEDIANS_BINS + coarse_bin(v)]++;
		return;
	}
	if (g->mode == MEDIANS_DONE)
		return;
	if (g->mode == MEDIANS_EDGE) {
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
	double *fine = m->fine + (size_t)g->slot * MEDIANS_FINE;
	if (g->mode == MEDIANS_DIVIDE)
		fine[fine_bin(g, v)]++;
	else if (g->kept++ < MEDIANS_FINE)
		fine[g->kept - 1] = v;
}

struct added_rows {
	struct medians *m;
	size_t rows, parts;
	const uint64_t *start, *total;
	const uint32_t *gene, *count, *to;
};

/* Part p has the genes with number % parts = p, so no two parts change the same gene. */
static void add_part(void *arg, size_t part, int thread)
{
	const struct added_rows *a = arg;
	for (size_t i = 0; i < a->rows; i++) {
		double scale = (double)a->total[i];
		for (uint64_t k = a->start[i]; k < a->start[i + 1]; k++) {
			uint32_t g = a->to[a->gene[k]];
			if (g % a->parts == part && a->count[k])
				add_value(a->m, g, (double)a->count[k] / scale * 1e4);
		}
	}
}

void medians_add(struct medians *m, size_t rows, const uint64_t *start, const uint32_t *gene, const uint32_t *count, const uint64_t *total,
	const uint32_t *to, int threads)
{
	struct added_rows a = {m, rows, (size_t)threads, start, total, gene, count, to};
	pool_for(threads, (size_t)threads, add_part, &a);
}

/* The two middle values lie in bins i <= j. Decide what the next pass does. lo, hi: lower edge of i and upper edge of j. gap: the middle of
 * the empty bins between i and j, 0 if there are none. inside: values in the bins. */
static void narrow(struct medians_gene *g, double lo, double hi, double gap, uint64_t inside)
{
	if (gap > 0) {
		/* empty bins separate the two middle values: find the nearest values on both sides of the gap */
		*g = (struct medians_gene){.n = g->n, .mode = MEDIANS_EDGE, .lo = gap, .hi = gap, .min = INFINITY, .median = NAN};
		return;
	}
	/* the edges are rounded, so use a slightly larger interval; the next pass counts the values below it again */
	lo *= 1 - 1e-14;
	hi *= 1 + 1e-14;
	enum medians_mode mode = inside <= MEDIANS_FINE * 3 / 4 ? MEDIANS_KEEP : MEDIANS_DIVIDE;
	*g = (struct medians_gene){.n = g->n, .mode = mode, .lo = lo, .hi = hi, .min = INFINITY, .median = NAN};
}

static void medians_finish(struct medians_gene *g, double median)
{
	g->mode = MEDIANS_DONE;
	g->median = median;
}

static void next_coarse(struct medians_gene *g, const uint32_t *bin)
{
	g->n = 0;
	for (size_t i = 0; i < MEDIANS_BINS; i++)
		g->n += bin[i];
	if (!g->n) {
		medians_finish(g, NAN);
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

static void next_divide(struct medians_gene *g, const double *bin)
{
	uint64_t k1 = (g->n - 1) / 2 - g->below, k2 = g->n / 2 - g->below, sum = 0;
	if (g->min == g->max || g->hi - g->lo <= 1e-12 * g->hi) {
		medians_finish(g, g->min);
		return;
	}
	size_t i = 0, j;
	while (sum + (uint64_t)bin[i] <= k1)
		sum += (uint64_t)bin[i++];
	uint64_t inside = (uint64_t)bin[i];
	for (j = i; sum + inside <= k2;)
		inside += (uint64_t)bin[++j];
	double lo = fine_edge(g, i), hi = fine_edge(g, j + 1);
	if (i == j && inside <= g->n / 1000 && inside > MEDIANS_FINE)
		medians_finish(g, lo + (hi - lo) / 2);
	else
		narrow(g, lo, hi, j > i + 1 ? fine_edge(g, i + 1) + (fine_edge(g, j) - fine_edge(g, i + 1)) / 2 : 0, inside);
}

static void next_keep(struct medians_gene *g, double *kept)
{
	if (g->kept > MEDIANS_FINE) { /* values equal to an edge: more than were in the bin */
		narrow(g, g->lo, g->hi, 0, g->kept);
		return;
	}
	qsort(kept, g->kept, sizeof *kept, compare_double);
	uint64_t k1 = (g->n - 1) / 2 - g->below, k2 = g->n / 2 - g->below;
	medians_finish(g, k1 == k2 ? kept[k1] : (kept[k1] + kept[k2]) / 2);
}

int medians_next(struct medians *m)
{
	m->left = 0;
	for (size_t i = 0; i < m->ngene; i++) {
		struct medians_gene *g = m->gene + i;
		double *fine = m->fine ? m->fine + (size_t)g->slot * MEDIANS_FINE : NULL; /* none in pass 1 */
		switch (g->mode) {
		case MEDIANS_COARSE:
			next_coarse(g, m->coarse + i * MEDIANS_BINS);
			break;
		case MEDIANS_DIVIDE:
			next_divide(g, fine);
			break;
		case MEDIANS_KEEP:
			next_keep(g, fine);
			break;
		case MEDIANS_EDGE:
			medians_finish(g, (g->max + g->min) / 2);
			break;
		case MEDIANS_DONE:
		case MEDIANS_MODES:
			break;
		}
	}
	free_all(m->coarse, m->fine);
	m->coarse = NULL;
	for (size_t i = 0; i < m->ngene; i++)
		if (m->gene[i].mode != MEDIANS_DONE)
			m->gene[i].slot = (uint32_t)m->left++;
	m->fine = xcalloc(m->left * MEDIANS_FINE, sizeof *m->fine);
	return m->left > 0;
}
