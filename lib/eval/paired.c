#include "eval/paired.h"

#include "base/error.h"
#include "base/sort.h"
#include "eval/bootstrap.h"
#include "eval/distribution.h"
#include "eval/unit.h"

#include <float.h>

static double mean_of(const double *x, size_t n)
{
	double sum = 0, rest = 0;
	for (size_t i = 0; i < n; i++)
		sum += x[i];
	double mean = sum / (double)n;
	for (size_t i = 0; i < n; i++) /* what rounding left */
		rest += x[i] - mean;
	return mean + rest / (double)n;
}

/* sum (x - mean)^2; 0 if the differences are rounding errors of numbers as large as `size` */
static double squares_of(const double *x, size_t n, double mean, double size)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += (x[i] - mean) * (x[i] - mean);
	return sqrt(sum / (double)n) > 8 * DBL_EPSILON * size ? sum : 0;
}

/* mean, se and df are there: interval, t, p and detectable difference */
static void test(struct difference *d)
{
	if (!(d->se > 0))
		return;
	double margin = d->se * student_quantile(0.05, d->df);
	d->low = d->mean - margin;
	d->high = d->mean + margin;
	d->t = d->mean / d->se;
	d->p = student_two_sided(d->t, d->df);
	d->detectable = d->se * student_noncentrality(0.8, 0.05, d->df);
}

/* What was computed of values times `unit`, in their own unit */
static void scale_back(struct difference *d, double unit)
{
	double *const of[] = {&d->x, &d->y, &d->mean, &d->sd, &d->se, &d->low, &d->high, &d->detectable};
	for (size_t i = 0; i < sizeof of / sizeof *of; i++)
		*of[i] /= unit;
}

static void unknown(struct difference *d)
{
	*d = (struct difference){
		.x = NAN, .y = NAN, .mean = NAN, .sd = NAN, .se = NAN, .df = NAN, .low = NAN, .high = NAN, .t = NAN, .p = NAN};
	d->rank_p = d->detectable = NAN;
}

/* ---- Wilcoxon ---- */

struct rank {
	double value;
	int first; /* of x, or of a positive difference */
};

/* The sum of the ranks of the items that are `first`; equal values share their mean rank. ties: sum t^3 - t over groups of t equal values.
 * twice [n], may be NULL: the ranks times two, which are whole. */
static double rank_sum(struct rank *item, size_t n, double *ties, size_t *twice)
{
	double sum = 0;
	*ties = 0;
	qsort(item, n, sizeof *item, compare_double);
	for (size_t i = 0, j; i < n; i = j) {
		size_t first = 0;
		for (j = i; j < n && item[j].value <= item[i].value; j++)
			first += (size_t)item[j].first;
		double t = (double)(j - i), rank = (double)(i + j + 1) / 2;
		sum += rank * (double)first;
		for (size_t k = i; twice && k < j; k++)
			twice[k] = i + j + 1;
		*ties += t * t * t - t;
	}
	return sum;
}

/* 2 P(S >= s) for counts [most + 1] of equally likely outcomes; at most 1 */
static double exact_p(const double *count, size_t most, double s)
{
	double all = 0, tail = 0;
	for (size_t i = 0; i <= most; i++)
		all += count[i];
	for (size_t i = 0; i + (size_t)s <= most; i++) /* the distribution is symmetric, so the tail is added from its small end */
		tail += count[i];
	return fmin(1, 2 * tail / all);
}

static void signed_ranks(struct difference *r, const double *d, size_t n)
{
	FREED struct rank *item = xmalloc(n * sizeof *item);
	double ties;
	size_t k = 0, *twice = xmalloc((n + 1) * sizeof *twice);
	for (size_t i = 0; i < n; i++)
		if (d[i] < 0 || d[i] > 0)
			item[k++] = (struct rank){fabs(d[i]), d[i] > 0};
	double sum = rank_sum(item, k, &ties, twice), all = (double)k * (double)(k + 1) / 2;
	r->rank_exact = k && (n <= 13 || (k == n && n <= 50 && ties <= 0));
	if (r->rank_exact) { /* sums of subsets of the ranks; times two, as equal values share ranks that may end in a half */
		size_t most = k * (k + 1);
		FREED double *count = xcalloc(most + 1, sizeof *count);
		count[0] = 1;
		for (size_t i = 0; i < k; i++)
			for (size_t s = most; s >= twice[i]; s--)
				count[s] += count[s - twice[i]];
		r->rank_p = exact_p(count, most, 2 * fmax(sum, all - sum));
	} else if (k) {
		double variance = (double)k * (double)(k + 1) * (2 * (double)k + 1) / 24 - ties / 48;
		r->rank_p = normal_two_sided((sum - all / 2) / sqrt(variance));
	}
	free(twice);
}

/* The counts of Mann and Whitney's U: coefficients of prod_{i <= n} (1 - q^(m + i)) / (1 - q^i); after each i they are those of a smaller n. */
static double *u_counts(size_t n, size_t m)
{
	size_t most = n * m;
	double *count = xcalloc(most + 1, sizeof *count);
	count[0] = 1;
	for (size_t i = 1; i <= n; i++) {
		for (size_t s = most; s >= m + i; s--)
			count[s] -= count[s - m - i];
		for (size_t s = i; s <= most; s++)
			count[s] += count[s - i];
	}
	return count;
}

static void rank_sums(struct difference *r, const double *x, size_t n, const double *y, size_t m)
{
	FREED struct rank *item = xmalloc((n + m) * sizeof *item);
	double ties, N = (double)(n + m), both = (double)n * (double)m;
	for (size_t i = 0; i < n; i++)
		item[i] = (struct rank){x[i], 1};
	for (size_t i = 0; i < m; i++)
		item[n + i] = (struct rank){y[i], 0};
	double u = rank_sum(item, n + m, &ties, NULL) - (double)n * (double)(n + 1) / 2;
	u = fmax(u, both - u);
	r->rank_exact = (n <= 8 || m <= 8) && ties <= 0;
	if (r->rank_exact) {
		FREED double *count = n < m ? u_counts(n, m) : u_counts(m, n);
		r->rank_p = exact_p(count, n * m, u);
	} else {
		double variance = both / 12 * (N + 1 - ties / (N * (N - 1)));
		r->rank_p = variance > 0 ? fmin(1, erfc((u - both / 2 - 0.5) / sqrt(2 * variance))) : 1;
	}
}

/* ---- differences ---- */

/* The differences of the pairs without NaN, in d [n], and what does not depend on how they belong together, all times *unit. kept [n] may be
 * NULL: which pairs. Returns the sum of their squared deviations. */
static double pairs(struct difference *r, double *d, size_t *kept, const double *x, const double *y, size_t n, double *unit)
{
	double *a = xmalloc(n * sizeof *a), *b = xmalloc(n * sizeof *b), squares = NAN;
	size_t k = 0;
	unknown(r);
	*unit = unit_for(fmax(largest_size(x, n), y ? largest_size(y, n) : 0));
	for (size_t i = 0; i < n; i++) {
		a[k] = x[i] * *unit;
		b[k] = y ? y[i] * *unit : 0;
		d[k] = a[k] - b[k];
		if (kept)
			kept[k] = i;
		k += !isnan(d[k]);
	}
	r->n = r->m = k;
	r->dropped = n - k;
	if (k) {
		r->x = mean_of(a, k);
		r->y = mean_of(b, k);
		r->mean = mean_of(d, k);
	}
	if (k > 1) {
		squares = squares_of(d, k, r->mean, fmax(largest_size(a, k), largest_size(b, k)));
		r->sd = sqrt(squares / (double)(k - 1));
	}
	free_all(a, b);
	return squares;
}

static void paired(struct difference *r, const double *x, const double *y, size_t n, double share, int ranks)
{
	double *d = xmalloc(n * sizeof *d), unit;
	pairs(r, d, NULL, x, y, n, &unit);
	if (r->n > 1) {
		r->df = (double)(r->n - 1);
		r->se = r->sd * sqrt(1 / (double)r->n + share);
		test(r);
		if (ranks)
			signed_ranks(r, d, r->n);
	}
	scale_back(r, unit);
	free(d);
}

void difference_paired(struct difference *r, const double *x, const double *y, size_t n, double share)
{
	paired(r, x, y, n, share, 1);
}

void difference_mean(struct difference *r, const double *x, size_t n)
{
	paired(r, x, NULL, n, 0, 0);
}

void difference_clusters(struct difference *r, const double *x, const double *y, size_t n, const uint32_t *cluster, size_t clusters)
{
	double *d = xmalloc(n * sizeof *d), *sum = xcalloc(clusters, sizeof *sum), squares = 0, unit;
	size_t *kept = xmalloc(n * sizeof *kept), *size = xcalloc(clusters, sizeof *size);
	double spread = pairs(r, d, kept, x, y, n, &unit);
	for (size_t i = 0; i < r->n; i++) {
		sum[cluster[kept[i]]] += d[i] - r->mean;
		size[cluster[kept[i]]]++;
	}
	r->df = r->n ? clusters_df(size, clusters, r->n) : NAN;
	for (size_t c = 0; c < clusters; c++)
		squares += sum[c] * sum[c] / (1 - (double)size[c] / (double)r->n);
	if (!isnan(r->df))
		r->se = spread > 0 ? sqrt(squares) / (double)r->n : 0;
	if (r->df >= CLUSTERS_DF_MIN)
		test(r);
	scale_back(r, unit);
	free_all(d, sum, kept, size);
}

/* The numbers of x [n], without NaN, in to; returns how many */
static size_t numbers(double *to, const double *x, size_t n)
{
	size_t k = 0;
	for (size_t i = 0; i < n; i++)
		if (!isnan(x[i]))
			to[k++] = x[i];
	return k;
}

void difference_unpaired(struct difference *r, const double *x, size_t n, const double *y, size_t m)
{
	FREED double *a = xmalloc(n * sizeof *a), *b = xmalloc(m * sizeof *b);
	unknown(r);
	r->n = numbers(a, x, n);
	r->m = numbers(b, y, m);
	r->dropped = n + m - r->n - r->m;
	double unit = unit_for(fmax(largest_size(a, r->n), largest_size(b, r->m)));
	multiply_by(a, r->n, unit);
	multiply_by(b, r->m, unit);
	if (r->n)
		r->x = mean_of(a, r->n);
	if (r->m)
		r->y = mean_of(b, r->m);
	r->mean = r->x - r->y;
	if (r->n > 1 && r->m > 1) {
		double na = (double)r->n, nb = (double)r->m, size = fmax(largest_size(a, r->n), largest_size(b, r->m));
		double va = squares_of(a, r->n, r->x, size) / (na - 1), vb = squares_of(b, r->m, r->y, size) / (nb - 1);
		double sa = va / na, sb = vb / nb;
		r->sd = sqrt((va + vb) / 2);
		r->se = sqrt(sa + sb);
		r->df = sa + sb > 0 ? (sa + sb) * (sa + sb) / (sa * sa / (na - 1) + sb * sb / (nb - 1)) : na + nb - 2;
		test(r);
	}
	if (r->n && r->m)
		rank_sums(r, a, r->n, b, r->m);
	scale_back(r, unit);
}

void difference_draws(struct difference *r, double *d, size_t n)
{
	unknown(r);
	r->n = r->m = numbers(d, d, n);
	r->dropped = n - r->n;
	if (!r->n)
		return;
	double unit = unit_for(largest_size(d, r->n));
	multiply_by(d, r->n, unit);
	r->mean = mean_of(d, r->n);
	if (r->n > 1)
		r->sd = r->se = sqrt(squares_of(d, r->n, r->mean, largest_size(d, r->n)) / (double)(r->n - 1));
	r->low = bootstrap_quantile(d, r->n, 0.025);
	r->high = bootstrap_quantile(d, r->n, 0.975);
	scale_back(r, unit);
}

/* ---- many comparisons ---- */

/* Pointers to the n numbers, the smallest first; *k of them */
COMPARE(by_pointed, double *, ORDER(**a, **b))

static double **rising(double *p, size_t n, size_t step, size_t *k)
{
	double **order = xmalloc(n * sizeof *order);
	*k = 0;
	for (size_t i = 0; i < n; i++) {
		order[*k] = (double *)((char *)p + i * step);
		*k += !isnan(*order[*k]);
	}
	qsort(order, *k, sizeof *order, by_pointed);
	return order;
}

void correct_holm(double *p, size_t n, size_t step)
{
	size_t k;
	double **order = rising(p, n, step, &k), most = 0;
	for (size_t i = 0; i < k; i++)
		*order[i] = most = fmax(most, fmin(1, *order[i] * (double)(k - i)));
	free(order);
}

void correct_bh(double *p, size_t n, size_t step)
{
	size_t k;
	double **order = rising(p, n, step, &k), least = 1;
	for (size_t i = k; i-- > 0;)
		*order[i] = least = fmin(least, *order[i] * (double)k / (double)(i + 1));
	free(order);
}
