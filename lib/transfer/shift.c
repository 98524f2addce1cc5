#include "transfer/shift.h"

#include "eval/distribution.h"

static void sums_init(struct sums *s, size_t k, size_t d)
{
	*s = (struct sums){k, d, xcalloc(k * d + 1, sizeof *s->x), xcalloc(k, sizeof *s->of)};
}

static void sums_clear(struct sums *s)
{
	memset(s->x, 0, s->k * s->d * sizeof *s->x);
	memset(s->of, 0, s->k * sizeof *s->of);
}

static void sums_release(struct sums *s)
{
	free_all(s->x, s->of);
}

/* Cell i of d, which was predicted to be of class c. */
static void sums_add(struct sums *s, uint32_t c, const struct embeddings *d, size_t i)
{
	double *x = s->x + c * s->d, square = 0;
	for (size_t j = 0; d->x && j < s->d; j++) {
		double v = (double)d->x[i * s->d + j];
		x[j] += v;
		square += v * v;
	}
	struct sparse_row r = {0};
	if (!d->x)
		sparse_row(&d->sparse, i, &r);
	for (size_t j = 0; j < r.n; j++) {
		double v = (double)r.value[j];
		x[r.column[j]] += v;
		square += v * v;
	}
	sparse_row_release(&r);
	s->of[c].square += square;
	s->of[c].depth += d->x ? 0 : log((double)d->depth[i]);
	s->of[c].n++;
}

/* How far the means of classes first..last of `own` are from those of the other cells, which are all less own (mine: own is among all): the
 * logarithm of the root mean square of the distances over the cells of own, less what the sampling of cells adds to the squares, of which a
 * tenth stays. NaN: no class has two cells of own and one other. */
static double group_distance(const struct sums *own, const struct sums *all, int mine, size_t first, size_t last)
{
	double n = 0, within = 0, free_cells = 0, square = 0, noise = 0;
	for (size_t c = first; c < last; c++) {
		const double *x = own->x + c * own->d, *y = all->x + c * own->d;
		double a = own->of[c].n, b = all->of[c].n - (mine ? a : 0), of_mean = 0, of_gap = 0;
		if (!(a > 0 && b > 0))
			continue;
		for (size_t j = 0; j < own->d; j++) {
			double gap = x[j] / a - (y[j] - (mine ? x[j] : 0)) / b;
			of_gap += gap * gap;
			of_mean += x[j] * x[j] / a;
		}
		square += a * of_gap;
		within += own->of[c].square - of_mean;
		free_cells += a - 1;
		noise += 1 + a / b;
		n += a;
	}
	noise *= within / free_cells;
	return free_cells > 0 && noise > 0 ? log(fmax(square - noise, noise / 10) / n) / 2 : NAN;
}

/* The mean and the spread of v [n] without NaN. */
static void spread_of(struct spread *s, const double *v, size_t n)
{
	double square = 0;
	*s = (struct spread){0};
	for (size_t i = 0; i < n; i++)
		if (!isnan(v[i])) {
			s->n++;
			s->mean += v[i];
		}
	s->mean /= (double)s->n;
	for (size_t i = 0; i < n; i++)
		if (!isnan(v[i]))
			square += (v[i] - s->mean) * (v[i] - s->mean);
	s->sd = s->n > 2 ? sqrt(square / (double)(s->n - 1)) : NAN;
}

void shift_room(struct shift *s, size_t k, size_t d)
{
	*s = (struct shift){.k = k, .of = xcalloc(k + 1, sizeof *s->of), .limit = NAN};
	sums_init(&s->reference, k, d);
	sums_init(&s->new, k, d);
}

void shift_init(struct shift *s, const struct embeddings *d, const uint32_t *row, const uint32_t *guess, const uint32_t *group, size_t n,
	size_t groups, size_t k)
{
	FREED double *far = xmalloc((k + 1) * groups * sizeof *far);
	struct sums own;
	shift_room(s, k, d->d);
	sums_init(&own, k, d->d);
	for (size_t i = 0; i < n; i++)
		sums_add(&s->reference, guess[i], d, row[i]);
	for (size_t g = 0; g < groups; g++) {
		sums_clear(&own);
		for (size_t i = 0; i < n; i++)
			if (group[i] == g)
				sums_add(&own, guess[i], d, row[i]);
		for (size_t c = 0; c <= k; c++)
			far[c * groups + g] = group_distance(&own, &s->reference, 1, c < k ? c : 0, c < k ? c + 1 : k);
	}
	for (size_t c = 0; c <= k; c++)
		spread_of(&s->of[c], far + c * groups, groups);
	for (size_t j = 0; j < k * d->d; j++)
		s->reference.x[j] = (double)(float)s->reference.x[j];
	if (s->of[k].n > 2) /* one side */
		s->limit = student_quantile(2 * SHIFT_FALSE_ALARM, (double)(s->of[k].n - 1));
	sums_release(&own);
}

void shift_add(struct shift *s, uint32_t guess, const struct embeddings *d, size_t i)
{
	sums_add(&s->new, guess, d, i);
}

double shift_unseen(const struct shift *s)
{
	const struct spread *all = &s->of[s->k];
	return exp(s->limit * all->sd * sqrt(1 + 1 / (double)all->n));
}

double shift_of(const struct shift *s, size_t c)
{
	const struct spread *of = &s->of[c];
	double far = group_distance(&s->new, &s->reference, 0, c < s->k ? c : 0, c < s->k ? c + 1 : s->k);
	return (far - of->mean) / (of->sd * sqrt(1 + 1 / (double)of->n));
}

double shift_depth_ratio(const struct shift *s, size_t c)
{
	return exp(s->new.of[c].depth / s->new.of[c].n - s->reference.of[c].depth / s->reference.of[c].n);
}

void shift_keep(struct shift *s, const uint8_t *keep, double share)
{
	for (size_t c = 0; c < s->k; c++)
		s->reference.of[c].depth += s->reference.of[c].n * log(share);
	for (size_t j = 0; j < s->k * s->reference.d; j++)
		if (!keep[j % s->reference.d])
			s->reference.x[j] = 0;
}

void shift_release(struct shift *s)
{
	if (s->of) {
		sums_release(&s->reference);
		sums_release(&s->new);
	}
	free(s->of);
	*s = (struct shift){0};
}
