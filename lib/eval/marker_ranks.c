#include "eval/marker_ranks.h"

#include "base/error.h"
#include "base/sort.h"

enum { MARKERS = 10 }; /* of a class against another */

/* The n largest of m values, the others 0, become their ranks less the mean of all; equal ones share theirs. Returns the norm of all m. */
static double centred_ranks(struct marker_rank *e, size_t n, size_t m)
{
	double zero = -(double)n / 2, square = zero * zero * (double)(m - n);
	qsort(e, n, sizeof *e, compare_double);
	for (size_t from = 0, to; from < n; from = to) {
		for (to = from + 1; to < n && e[to].value <= e[from].value; to++)
			;
		double rank = (double)(m - n) + (double)(from + to) / 2 - (double)m / 2;
		square += rank * rank * (double)(to - from);
		for (size_t j = from; j < to; j++)
			e[j].value = rank;
	}
	return sqrt(square);
}

void class_moments(const struct sparse *x, const uint32_t *row, size_t n, const uint32_t *y, const float *weight, size_t k, double *mean,
	double *variance, double *cells)
{
	memset(cells, 0, k * sizeof *cells);
	RELEASED(sparse_row_release) struct sparse_row r = {0};
	for (size_t i = 0; i < n; i++) {
		size_t at = row ? row[i] : i;
		uint32_t c = y ? y[at] : 0;
		double own = weight ? (double)weight[at] : 1;
		if (c >= k)
			continue;
		cells[c] += own;
		sparse_row(x, at, &r);
		for (size_t j = 0; j < r.n; j++) {
			double v = (double)r.value[j];
			mean[c * x->d + r.column[j]] += own * v;
			variance[c * x->d + r.column[j]] += own * v * v;
		}
	}
	for (size_t c = 0; c < k; c++)
		for (size_t j = c * x->d; j < (c + 1) * x->d; j++) {
			mean[j] /= cells[c];
			variance[j] = fmax(variance[j] / cells[c] - mean[j] * mean[j], 0);
		}
}

/* Feature j, with this square of d, is among the best if it is better than the last of them. */
static void keep_best(struct marker_rank *best, double square, size_t j)
{
	size_t i = MARKERS - 1;
	for (; i > 0 && best[i - 1].value < square; i--)
		best[i] = best[i - 1];
	best[i] = (struct marker_rank){square, j};
}

/* Mark the features that are higher in one of two classes by the most standard deviations, of both classes: in [d] of that class. */
static void marker_ranks_choose(
	const float *a, const float *va, uint8_t *marked_a, const float *b, const float *vb, uint8_t *marked_b, size_t d)
{
	struct marker_rank best[2][MARKERS] = {{{0}}};
	for (size_t j = 0; j < d; j++) {
		double difference = (double)(a[j] - b[j]), square = difference * difference, variance = (double)(va[j] + vb[j]) / 2 + 1e-6;
		struct marker_rank *of = best[difference > 0];
		if (square > of[MARKERS - 1].value * variance)
			keep_best(of, square / variance, j);
	}
	for (size_t s = 0; s < 2; s++)
		for (size_t i = 0; i < MARKERS && best[s][i].value > 0; i++)
			(s ? marked_a : marked_b)[best[s][i].at] = 1;
}

void marker_ranks_settle(struct marker_ranks *r)
{
	size_t k = r->k, d = r->d, m = 0;
	const float *mean = r->mean, *variance = r->variance;
	free_all(r->at, r->type, r->marker);
	uint8_t *marker = r->marker = xcalloc(k * d + 1, 1);
	for (size_t a = 0; a < k; a++)
		for (size_t b = 0; b < a; b++)
			marker_ranks_choose(
				mean + a * d, variance + a * d, marker + a * d, mean + b * d, variance + b * d, marker + b * d, d);
	r->at = xcalloc(d + 1, sizeof *r->at);
	for (size_t j = 0; j < k * d; j++)
		r->at[j % d] |= r->marker[j];
	for (size_t j = 0; j < d; j++)
		m += r->at[j];
	for (size_t j = 0, i = 0; j < d; j++)
		r->at[j] = (uint32_t)(r->at[j] ? i++ : m);
	r->m = m;
	r->type = xcalloc(k * m + 1, sizeof *r->type);
	FREED struct marker_rank *e = xmalloc((m + 1) * sizeof *e);
	for (size_t c = 0; c < k; c++) {
		for (size_t j = 0; j < d; j++)
			if (r->at[j] < m)
				e[r->at[j]] = (struct marker_rank){(double)r->mean[c * d + j], r->at[j]};
		double norm = centred_ranks(e, m, m);
		for (size_t j = 0; j < m && norm > 0; j++)
			r->type[e[j].at * k + c] = e[j].value / norm;
	}
}

void marker_ranks_fit(
	struct marker_ranks *r, const struct sparse *x, const uint32_t *row, size_t n, const uint32_t *y, const float *weight, size_t k)
{
	size_t d = x->d;
	double *mean = xcalloc(2 * k * d + 1, sizeof *mean), *variance = mean + k * d;
	FREED double *cells = xmalloc(k * sizeof *cells);
	class_moments(x, row, n, y, weight, k, mean, variance, cells);
	*r = (struct marker_ranks){.k = k, .d = d, .mean = xmalloc((2 * k * d + 1) * sizeof *r->mean), .sd = xcalloc(d + 1, sizeof *r->sd)};
	r->variance = r->mean + k * d;
	for (size_t j = 0; j < 2 * k * d; j++)
		r->mean[j] = (float)mean[j];
	double all = 0;
	for (size_t c = 0; c < k; c++)
		all += cells[c];
	for (size_t j = 0; j < d; j++) {
		double within = 0;
		for (size_t c = 0; c < k; c++)
			within += cells[c] / all * variance[c * d + j];
		r->sd[j] = (float)sqrt(within);
	}
	free(mean);
	marker_ranks_settle(r);
}

void marker_ranks_keep(struct marker_ranks *r, const uint8_t *keep)
{
	for (size_t j = 0; j < r->k * r->d; j++)
		if (!keep[j % r->d])
			r->mean[j] = 0;
	marker_ranks_settle(r);
}

void marker_ranks_release(struct marker_ranks *r)
{
	free_all(r->at, r->type, r->mean, r->sd, r->marker);
	*r = (struct marker_ranks){0};
}

void marker_ranks_correlation(const struct marker_ranks *r, const struct sparse_row *x, struct marker_rank *own, double *correlation)
{
	size_t n = 0;
	for (size_t j = 0; j < x->n; j++)
		if (r->at[x->column[j]] < r->m)
			own[n++] = (struct marker_rank){(double)x->value[j], r->at[x->column[j]]};
	double norm = centred_ranks(own, n, r->m), zero = -(double)n / 2;
	memset(correlation, 0, r->k * sizeof *correlation);
	/* the ranks of a class sum to 0: zeros may be left out if their rank is taken from all */
	for (size_t j = 0; j < n && norm > 0; j++) {
		const double *type = r->type + own[j].at * r->k;
		double rank = (own[j].value - zero) / norm;
		for (size_t c = 0; c < r->k; c++)
			correlation[c] += rank * type[c];
	}
}
