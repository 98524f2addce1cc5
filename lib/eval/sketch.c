#include "eval/sketch.h"

#include "base/error.h"
#include "base/sort.h"

COMPARE(by_low, struct sketch_bin, ORDER(a->low, b->low) ?: ORDER(a->high, b->high))

static void sketch_join(struct sketch_bin *to, const struct sketch_bin *x)
{
	to->high = x->high > to->high ? x->high : to->high;
	to->n[0] += x->n[0];
	to->n[1] += x->n[1];
	to->sum += x->sum;
}

/* Sort; numbers that lie in a bin become part of it, so the bins do not overlap. */
static void sketch_settle(struct sketch *s)
{
	size_t n = 0;
	if (s->n)
		qsort(s->bin, s->n, sizeof *s->bin, by_low);
	for (size_t i = 0; i < s->n; i++) {
		if (n && s->bin[i].low <= s->bin[n - 1].high)
			sketch_join(&s->bin[n - 1], &s->bin[i]);
		else
			s->bin[n++] = s->bin[i];
	}
	s->n = (uint32_t)n;
}

static void totals(const struct sketch *s, double n[2])
{
	n[0] = n[1] = 0;
	for (size_t i = 0; i < s->n; i++) {
		n[0] += s->bin[i].n[0];
		n[1] += s->bin[i].n[1];
	}
}

static double share(const struct sketch_bin *b, const double n[2])
{
	return (n[0] > 0 ? b->n[0] / n[0] : 0) + (n[1] > 0 ? b->n[1] / n[1] : 0);
}

/* Join neighbours while their share of both classes is at most 2 / bins of all. Two bins in a row have more, so at most bins + 1 are left. */
static void thin(struct sketch *s, size_t bins)
{
	double n[2], have = 0, most;
	size_t k = 0;
	totals(s, n);
	most = 2. * ((n[0] > 0) + (n[1] > 0)) / (double)bins;
	for (size_t i = 0; i < s->n; i++) {
		double more = share(&s->bin[i], n);
		if (k && have + more <= most) {
			sketch_join(&s->bin[k - 1], &s->bin[i]);
			have += more;
		} else {
			s->bin[k++] = s->bin[i];
			have = more;
		}
	}
	s->n = (uint32_t)k;
}

void sketch_add(struct sketch *s, size_t bins, float x, int class)
{
	if (s->n == 2 * bins) {
		sketch_settle(s);
		if (s->n > bins + bins / 2)
			thin(s, bins);
	}
	if (s->n == s->cap) {
		s->cap = s->cap ? 2 * s->cap : 8;
		s->cap = s->cap > 2 * bins ? (uint32_t)(2 * bins) : s->cap;
		s->bin = xrealloc(s->bin, s->cap, sizeof *s->bin);
	}
	struct sketch_bin *b = &s->bin[s->n++];
	*b = (struct sketch_bin){.low = x, .high = x, .sum = (double)x};
	b->n[class] = 1;
}

double sketch_auc(struct sketch *s, double *error)
{
	double n[2], below = 0, pairs = 0, unknown = 0;
	sketch_settle(s);
	totals(s, n);
	for (const struct sketch_bin *b = s->bin; b < s->bin + s->n; b++) {
		double tied = (double)b->n[0] * b->n[1];
		pairs += b->n[1] * below + tied / 2;
		unknown += b->low < b->high ? tied / 2 : 0;
		below += b->n[0];
	}
	*error = unknown / (n[0] * n[1]);
	return pairs / (n[0] * n[1]);
}

/* Of the numbers of bin b, low < c < high: |x - c| is convex, so its sum is at least that at their mean, and at most that at the two ends. */
static double around(const struct sketch_bin *b, double n, double c, double *error)
{
	double low = (double)b->low, high = (double)b->high, least = fabs(b->sum - n * c), ends = (b->sum - n * low) / (high - low);
	double most = ends * (high - c) + (n - ends) * (c - low);
	*error = fmax(0, most - least) / 2;
	return (least + fmax(most, least)) / 2;
}

double sketch_deviation(struct sketch *s, double c, double *error)
{
	double sum = 0;
	*error = 0;
	sketch_settle(s);
	for (const struct sketch_bin *b = s->bin; b < s->bin + s->n; b++) {
		double n = (double)b->n[0] + b->n[1];
		if ((double)b->low < c && c < (double)b->high && n > 2)
			sum += around(b, n, c, error);
		else if ((double)b->low < c && c < (double)b->high)
			sum += (double)b->high - (double)b->low;
		else
			sum += fabs(b->sum - n * c);
	}
	return sum;
}

void sketch_release(struct sketch *s)
{
	free(s->bin);
	*s = (struct sketch){0};
}
