#include "cells/hvg.h"

#include "base/sort.h"

#include "cells/loess.h"

#define TARGET 1e4 /* counts a cell after normalisation */
#define BINS 20 /* seurat */
#define SPAN 0.3 /* seurat_v3 */
#define FITTED_MIN 10 /* genes that a local regression needs */
#define ROUNDING 1e-12 /* a variance below this part of the squared mean is 0 */
#define NO_MEAN 1e-12 /* stands for a mean of 0 */
#define MAD_SCALE 0.6744897501960817 /* median absolute deviation of a standard normal distribution */

static const struct flavor {
	int counts; /* as they are, else normalised */
	int logs; /* of 1 + these */
	int fitted; /* scored by a curve, in two passes, and ordered by ranks; else by dispersions in bins */
	int wide; /* bins: of equal width, of logs, with mean and deviation; else of percentiles, with medians */
} flavors[] = {
	[HVG_SEURAT] = {.wide = 1},
	[HVG_SEURAT_V3] = {.counts = 1, .fitted = 1},
	[HVG_CELL_RANGER] = {.logs = 1},
};
EVERY_ROW(flavors, HVG_FLAVORS);

struct hvg_batch {
	uint64_t cells;
	double *sum, *square; /* [genes] of the values; in the second pass of the clipped ones */
	double *mean, *var; /* [genes] */
	double *clip, *expected; /* [genes] seurat_v3: largest value, expected variance */
	double *score; /* [genes] NaN: none */
};

void hvg_init(struct hvg *h, enum hvg_flavor flavor, size_t genes, size_t top)
{
	*h = (struct hvg){.flavor = flavor, .genes = genes, .top = top};
}

static struct hvg_batch *batch_at(struct hvg *h, size_t batch)
{
	grow(h->batch, h->cap, batch + 1);
	for (; h->batches <= batch; h->batches++)
		h->batch[h->batches] =
			(struct hvg_batch){.sum = xcalloc(h->genes, sizeof(double)), .square = xcalloc(h->genes, sizeof(double))};
	return &h->batch[batch];
}

void hvg_release(struct hvg *h)
{
	for (size_t b = 0; b < h->batches; b++) {
		free_all(h->batch[b].sum, h->batch[b].square, h->batch[b].mean, h->batch[b].var, h->batch[b].clip, h->batch[b].expected,
			h->batch[b].score);
	}
	free(h->batch);
	*h = (struct hvg){0};
}

void hvg_add(struct hvg *h, size_t batch, const uint32_t *gene, const uint32_t *count, size_t n)
{
	const struct flavor *f = &flavors[h->flavor];
	struct hvg_batch *b = batch_at(h, batch);
	double total = 0;
	for (size_t i = 0; i < n; i++)
		total += count[i];
	b->cells += !h->pass;
	for (size_t i = 0; i < n; i++) {
		double v = f->counts ? count[i] : count[i] * (TARGET / total);
		v = f->logs ? log1p(v) : v;
		if (b->clip)
			v = fmin(v, b->clip[gene[i]]);
		b->sum[gene[i]] += v;
		b->square[gene[i]] += v * v;
	}
}

/* ---- scores in one batch ---- */

static void hvg_moments(struct hvg_batch *b, size_t genes)
{
	double n = (double)b->cells;
	b->mean = xmalloc(genes * sizeof *b->mean);
	b->var = xmalloc(genes * sizeof *b->var);
	b->score = xmalloc(genes * sizeof *b->score);
	for (size_t g = 0; g < genes; g++) {
		b->mean[g] = b->sum[g] / n;
		b->var[g] = (b->square[g] - b->sum[g] * b->sum[g] / n) / (n - 1);
		if (b->var[g] < ROUNDING * b->mean[g] * b->mean[g])
			b->var[g] = 0;
	}
}

/* The p-th quantile of n sorted numbers, linear between them. */
static double quantile(const double *sorted, size_t n, double p)
{
	double at = p * (double)(n - 1);
	size_t k = (size_t)at;
	return k + 1 < n ? sorted[k] + (at - (double)k) * (sorted[k + 1] - sorted[k]) : sorted[n - 1];
}

/* Centre and scale of the n dispersions of a bin; d is sorted or not, and changed. */
static void bin_scale(int wide, double *d, size_t n, double *centre, double *scale)
{
	if (wide) {
		double sum = 0, square = 0;
		for (size_t i = 0; i < n; i++)
			sum += d[i];
		*centre = sum / (double)n;
		for (size_t i = 0; i < n; i++)
			square += (d[i] - *centre) * (d[i] - *centre);
		*scale = sqrt(square / (double)(n - 1));
		if (n == 1) { /* the score is 1 */
			*scale = *centre;
			*centre = 0;
		}
		return;
	}
	qsort(d, n, sizeof *d, compare_double);
	*centre = quantile(d, n, 0.5);
	for (size_t i = 0; i < n; i++)
		d[i] = fabs(d[i] - *centre);
	qsort(d, n, sizeof *d, compare_double);
	*scale = quantile(d, n, 0.5) / MAD_SCALE;
}

static void score_dispersions(struct hvg_batch *b, int wide, const uint32_t *gene, size_t m)
{
	double *mean = xmalloc(m * sizeof *mean), *disp = xmalloc(m * sizeof *disp), *in = xmalloc(m * sizeof *in), edge[BINS];
	uint8_t *bin = xmalloc(m);
	for (size_t i = 0; i < m; i++) {
		double x = b->mean[gene[i]] > 0 ? b->mean[gene[i]] : NO_MEAN, d = b->var[gene[i]] / x;
		in[i] = mean[i] = wide ? log1p(x) : x;
		disp[i] = !wide ? d : d > 0 ? log(d) : NAN;
	}
	qsort(in, m, sizeof *in, compare_double);
	for (size_t k = 0; k < BINS - 1; k++) /* upper ends of the bins */
		edge[k] = wide ? in[0] + (double)(k + 1) * ((in[m - 1] - in[0]) / BINS) : quantile(in, m, 0.1 + 0.05 * (double)k);
	edge[BINS - 1] = INFINITY;
	for (size_t i = 0; i < m; i++)
		for (bin[i] = 0; mean[i] > edge[bin[i]]; bin[i]++)
			;
	for (size_t k = 0; k < BINS; k++) {
		size_t n = 0;
		double centre, scale;
		for (size_t i = 0; i < m; i++)
			if (bin[i] == k && !isnan(disp[i]))
				in[n++] = disp[i];
		if (!n)
			continue;
		bin_scale(wide, in, n, &centre, &scale);
		for (size_t i = 0; i < m; i++)
			if (bin[i] == k)
				b->score[gene[i]] = (disp[i] - centre) / scale;
	}
	free_all(mean, disp, in, bin);
}

/*
 * Of a single batch, all genes take part in the bins, as in scanpy; of several, those with a count in the batch. The score of the others is
 * NaN then, which counts as 0.
 */
static void score_batch(struct hvg *h, struct hvg_batch *b)
{
	FREED uint32_t *gene = xmalloc(h->genes * sizeof *gene);
	size_t m = 0;
	for (size_t g = 0; g < h->genes; g++) {
		b->score[g] = NAN;
		if (h->batches == 1 || b->sum[g] > 0)
			gene[m++] = (uint32_t)g;
	}
	if (m)
		score_dispersions(b, flavors[h->flavor].wide, gene, m);
}

/* seurat_v3, between the passes: the expected variance, and from it the largest value of each gene. */
static int expect(struct hvg_batch *b, size_t genes, struct error *e)
{
	FREED double *x = xmalloc(genes * sizeof *x), *y = xmalloc(genes * sizeof *y), *fitted = xmalloc(genes * sizeof *fitted);
	size_t m = 0;
	for (size_t g = 0; g < genes; g++)
		if (b->var[g] > 0) {
			x[m] = log10(b->mean[g]);
			y[m++] = log10(b->var[g]);
		}
	if (m >= FITTED_MIN) {
		loess(x, y, m, SPAN, fitted);
		b->clip = xmalloc(genes * sizeof *b->clip);
		b->expected = xmalloc(genes * sizeof *b->expected);
		m = 0;
		for (size_t g = 0; g < genes; g++) {
			b->expected[g] = b->var[g] > 0 ? pow(10, fitted[m++]) : 1;
			b->clip[g] = sqrt(b->expected[g]) * sqrt((double)b->cells) + b->mean[g];
		}
		memset(b->sum, 0, genes * sizeof *b->sum);
		memset(b->square, 0, genes * sizeof *b->square);
	}
	return m >= FITTED_MIN ? 0 : error_set(e, "%zu genes vary, but seurat_v3 needs at least %d", m, FITTED_MIN);
}

static void score_clipped(struct hvg_batch *b, size_t genes)
{
	double n = (double)b->cells;
	for (size_t g = 0; g < genes; g++)
		b->score[g] = (n * b->mean[g] * b->mean[g] + b->square[g] - 2 * b->sum[g] * b->mean[g]) / ((n - 1) * b->expected[g]);
}

int hvg_again(struct hvg *h, size_t *bad, struct error *e)
{
	for (size_t k = 0; k < h->batches; k++) {
		struct hvg_batch *b = &h->batch[k];
		*bad = k;
		if (h->pass) {
			score_clipped(b, h->genes);
			continue;
		}
		if (b->cells < 2)
			return error_set(
				e, "%llu cell%s, but a variance needs at least 2", (unsigned long long)b->cells, b->cells == 1 ? "" : "s");
		hvg_moments(b, h->genes);
		if (!flavors[h->flavor].fitted)
			score_batch(h, b);
		else if (expect(b, h->genes, e))
			return -1;
	}
	return flavors[h->flavor].fitted && !h->pass++;
}

/* ---- choice ---- */

struct candidate {
	double first, second; /* larger is better */
	uint32_t gene;
	uint8_t varies;
};

COMPARE(best_first, struct candidate,
	ORDER(b->varies, a->varies) ?: ORDER(b->first, a->first) ?: ORDER(b->second, a->second) ?: ORDER(a->gene, b->gene))

/* Genes by falling score of one batch. */
static struct candidate *rank_batch(const struct hvg *h, const struct hvg_batch *b)
{
	struct candidate *c = xmalloc(h->genes * sizeof *c);
	for (size_t g = 0; g < h->genes; g++)
		c[g] = (struct candidate){isnan(b->score[g]) ? -INFINITY : b->score[g], 0, (uint32_t)g, 1};
	qsort(c, h->genes, sizeof *c, best_first);
	return c;
}

/* seurat, cell_ranger: in how many batches a gene is chosen, then the mean score. A single batch: the score alone. */
static void order_by_score(const struct hvg *h, struct candidate *all)
{
	FREED double *scored = xcalloc(h->genes, sizeof *scored);
	for (size_t k = 0; k < h->batches; k++) {
		const struct hvg_batch *b = &h->batch[k];
		FREED struct candidate *c = rank_batch(h, b);
		for (size_t i = 0; i < h->genes && i < h->top && c[i].first > -INFINITY && h->batches > 1; i++)
			all[c[i].gene].first++;
		for (size_t g = 0; g < h->genes; g++) {
			int absent = h->batches > 1 && !(b->sum[g] > 0); /* scores 0 */
			all[g].second += isnan(b->score[g]) ? 0 : b->score[g];
			scored[g] += absent || !isnan(b->score[g]);
		}
	}
	for (size_t g = 0; g < h->genes; g++)
		all[g].second = scored[g] > 0 ? all[g].second / scored[g] : -INFINITY;
}

/* seurat_v3: the median of the ranks among the first `top`, then their number. */
static void order_by_rank(const struct hvg *h, struct candidate *all)
{
	FREED double *rank = xmalloc(h->genes * h->batches * sizeof *rank), *n = xcalloc(h->genes, sizeof *n);
	for (size_t k = 0; k < h->batches; k++) {
		FREED struct candidate *c = rank_batch(h, &h->batch[k]);
		for (size_t i = 0; i < h->genes && i < h->top; i++)
			rank[c[i].gene * h->batches + (size_t)n[c[i].gene]++] = (double)i;
	}
	for (size_t g = 0; g < h->genes; g++) {
		qsort(rank + g * h->batches, (size_t)n[g], sizeof *rank, compare_double);
		all[g].first = n[g] > 0 ? -quantile(rank + g * h->batches, (size_t)n[g], 0.5) : -INFINITY;
		all[g].second = n[g];
	}
}

size_t hvg_choose(struct hvg *h, uint8_t *take)
{
	FREED struct candidate *all = xcalloc(h->genes, sizeof *all);
	size_t n = 0;
	for (size_t g = 0; g < h->genes; g++) {
		all[g].gene = (uint32_t)g;
		for (size_t k = 0; k < h->batches; k++)
			all[g].varies |= h->batch[k].var[g] > 0;
	}
	if (flavors[h->flavor].fitted)
		order_by_rank(h, all);
	else
		order_by_score(h, all);
	qsort(all, h->genes, sizeof *all, best_first);
	memset(take, 0, h->genes);
	for (; n < h->genes && n < h->top && all[n].varies; n++)
		take[all[n].gene] = 1;
	return n;
}
