#include "eval/contingency.h"

#include "eval/distribution.h"

#include <math.h>

/* As likely as the observed table, but for rounding */
#define TIE (1 + 1e-12)

/*
 * The probability of a table, divided by that of the likeliest, comes from its neighbour's:
 *     P(a + 1) / P(a) = b c / ((a + 1) (d + 1))
 * so sums have positive terms only, and no logarithm of a factorial loses digits. w [..] is walked in both directions from the mode.
 */
struct walk {
	double a, b, c, d; /* the table */
	double w;
};

static void up(struct walk *t)
{
	t->w *= t->b * t->c / ((t->a + 1) * (t->d + 1));
	t->a++, t->b--, t->c--, t->d++;
}

static void down(struct walk *t)
{
	t->w *= t->a * t->d / ((t->b + 1) * (t->c + 1));
	t->a--, t->b++, t->c++, t->d--;
}

static double fisher(double a, double b, double c, double d)
{
	double n = a + b + c + d, least = fmax(0, a - d), most = a + fmin(b, c);
	double mode = fmin(fmax(floor((a + b + 1) * (a + c + 1) / (n + 2)), least), most), all = 0, tail = 0, observed = 0;
	const struct walk top = {mode, a + b - mode, a + c - mode, d - a + mode, 1};
	for (int pass = 0; pass < 2; pass++) { /* first the weight of the observed table, then the sums */
		struct walk t = top;
		for (;; up(&t)) {
			observed = !pass && t.a == a ? t.w : observed;
			all += pass ? t.w : 0;
			tail += pass && t.w <= observed * TIE ? t.w : 0;
			if (t.a >= most)
				break;
		}
		for (t = top; t.a > least;) {
			down(&t);
			observed = !pass && t.a == a ? t.w : observed;
			all += pass ? t.w : 0;
			tail += pass && t.w <= observed * TIE ? t.w : 0;
		}
	}
	return fmin(1, tail / all);
}

void contingency_test(struct contingency *t, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	double A = (double)a, B = (double)b, C = (double)c, D = (double)d;
	*t = (struct contingency){.p = 1, .odds_ratio = NAN, .low = NAN, .high = NAN};
	if (!(a + b && c + d && a + c && b + d))
		return;
	t->p = fisher(A, B, C, D);
	t->odds_ratio = A * D / (B * C);
	if (!(a && b && c && d))
		return;
	double off = NORMAL_975 * sqrt(1 / A + 1 / B + 1 / C + 1 / D);
	t->low = exp(log(t->odds_ratio) - off);
	t->high = exp(log(t->odds_ratio) + off);
}
