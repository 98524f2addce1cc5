#include "eval/hypergeometric.h"

#include "base/gamma.h"

/* log(n!) - log(sqrt(2 pi n) (n/e)^n) */
static double stirling_error(double n)
{
	double s = n * n;
	if (n < 16)
		return log_gamma(n + 1) - (n + 0.5) * log(n) + n - 0.91893853320467274178;
	return (1. / 12 - (1. / 360 - (1. / 1260 - (1. / 1680 - 1. / 1188 / s) / s) / s) / s) / n;
}

/* x log(x / m) + m - x without the loss of digits where x is near m */
static double deviance(double x, double m)
{
	double d = x - m, v = d / (x + m);
	if (fabs(d) >= 0.1 * (x + m))
		return x * log(x / m) + m - x;
	double sum = d * v, term = 2 * x * v;
	for (int j = 1; j < 1000; j++) {
		double before = sum;
		term *= v * v;
		sum += term / (2 * j + 1);
		if (sum == before) /* NOLINT: it has converged */
			break;
	}
	return sum;
}

/* log of the binomial probability of x of n at p, q = 1 - p */
static double log_binomial(double x, double n, double p, double q)
{
	if (x <= 0)
		return n <= 0 ? 0 : p < 0.1 ? -deviance(n, n * q) - n * p : n * log(q);
	if (x >= n)
		return q < 0.1 ? -deviance(n, n * p) - n * q : n * log(p);
	double c = stirling_error(n) - stirling_error(x) - stirling_error(n - x) - deviance(x, n * p) - deviance(n - x, n * q);
	return c - 0.5 * (1.83787706640934548356 + log(x) + log1p(-x / n));
}

/* log P(X = x) */
static double log_point(double x, double N, double K, double n)
{
	double p = n / N, q = (N - n) / N;
	return log_binomial(x, K, p, q) + log_binomial(n - x, N - K, p, q) - log_binomial(n, N, p, q);
}

/* The terms from x on, upwards or downwards, relative to the first. */
static double sum_from(double x, double N, double K, double n, int step)
{
	double sum = 1, term = 1;
	for (;; x += step) {
		term *= step > 0 ? (K - x) * (n - x) / ((x + 1) * (N - K - n + x + 1)) : x * (N - K - n + x) / ((K - x + 1) * (n - x + 1));
		sum += term;
		if (!(term > sum * 1e-18))
			return sum;
	}
}

double hypergeometric_tail(uint64_t x, uint64_t N, uint64_t K, uint64_t n)
{
	uint64_t low = K + n > N ? K + n - N : 0, high = K < n ? K : n;
	if (x <= low)
		return 1;
	if (x > high)
		return 0;
	double mean = (double)n * (double)K / (double)N;
	/* the smaller tail is summed */
	if ((double)x > mean)
		return exp(log_point((double)x, (double)N, (double)K, (double)n)) * sum_from((double)x, (double)N, (double)K, (double)n, 1);
	double below = (double)(x - 1);
	return 1 - exp(log_point(below, (double)N, (double)K, (double)n)) * sum_from(below, (double)N, (double)K, (double)n, -1);
}
