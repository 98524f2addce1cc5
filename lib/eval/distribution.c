#include "eval/distribution.h"

#include "base/gamma.h"

#include <float.h>

double normal_two_sided(double z)
{
	return erfc(fabs(z) / sqrt(2));
}

/* log Gamma(z) - ((z - 1/2) log z - z + log(2 pi) / 2), z >= 30 [DLMF 5.11.1] */
static double stirling_rest(double z)
{
	double y = 1 / (z * z);
	return (1. / 12 - y * (1. / 360 - y * (1. / 1260 - y / 1680))) / z;
}

/* log B(a, b). For large a, the difference of two large logarithms of Gamma would lose digits. */
static double log_beta(double a, double b)
{
	if (a < b)
		return log_beta(b, a);
	if (a < 30)
		return log_gamma(a) + log_gamma(b) - log_gamma(a + b);
	double rise = (a - 0.5) * log1p(b / a) + b * log(a + b) - b + stirling_rest(a + b) - stirling_rest(a);
	return log_gamma(b) - rise;
}

/* The continued fraction of I_x(a, b) [DLMF 8.17.22], by the method of Lentz. It converges fast for x < (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1);
	d = 1 / (fabs(d) < tiny ? tiny : d);
	double f = d;
	for (double m = 1; m < 1e5; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		double step = 1;
		for (int i = 0; i < 2; i++) {
			double k = i ? odd : even;
			d = 1 + k * d;
			d = 1 / (fabs(d) < tiny ? tiny : d);
			c = 1 + k / c;
			c = fabs(c) < tiny ? tiny : c;
			step = c * d;
			f *= step;
		}
		if (fabs(step - 1) < DBL_EPSILON)
			break;
	}
	return f;
}

/* The incomplete beta function I_x(a, b), given x and y = 1 - x */
static double beta_share(double a, double b, double x, double y)
{
	if (x <= 0 || y <= 0)
		return x > 0;
	double front = exp(a * log(x) + b * log(y) - log_beta(a, b));
	return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a : 1 - front * beta_fraction(b, a, y) / b;
}

double student_two_sided(double t, double v)
{
	if (isnan(t) || !(v > 0))
		return NAN;
	return isinf(t) ? 0 : beta_share(v / 2, 0.5, v / (v + t * t), t * t / (v + t * t));
}

/* The x where f, which falls, has the value y; f(0) >= y. By bisection until the ends are neighbours. */
static double solve(double (*f)(double, const double *), const double *with, double y)
{
	double low = 0, high = 1;
	while (f(high, with) > y && high < 1e300) {
		low = high;
		high *= 2;
	}
	for (;;) {
		double middle = low + (high - low) / 2;
		if (middle <= low || middle >= high)
			return middle;
		*(f(middle, with) > y ? &low : &high) = middle;
	}
}

static double tail_of(double t, const double *v)
{
	return student_two_sided(t, *v);
}

double student_quantile(double p, double v)
{
	return v > 0 ? solve(tail_of, &v, p) : NAN;
}

/* e^-h sum h^k / Gamma(k + 1), h = x / 2, over k = 0, 1 ... v/2 - 1; for odd v over k = 1/2, 3/2 ..., and the tail of a normal [DLMF 8.4.8,
 * 8.4.14]. */
double chi_squared_tail(double x, size_t v)
{
	double h = x / 2, sum = v % 2 ? erfc(sqrt(h)) : 0, term = exp(-h) * (v % 2 ? sqrt(h) / tgamma(1.5) : 1);
	for (double k = v % 2 ? 0.5 : 0; k <= (double)v / 2 - 1; k++) {
		sum += term;
		term *= h / (k + 1);
	}
	return sum;
}

/* with: t, v */
static double power_at(double delta, const double *with)
{
	double t = with[0], v = with[1], mean = delta * delta / 2, sum = 0, width = 40 + 12 * sqrt(mean);
	for (double j = mean > width ? floor(mean - width) : 0; j <= mean + width; j++) {
		double weight = exp((j > 0 ? j * log(mean) - log_gamma(j + 1) : 0) - mean);
		sum += weight * beta_share(v / 2, 0.5 + j, v / (v + t * t), t * t / (v + t * t));
	}
	return sum;
}

static double miss_at(double delta, const double *with)
{
	return 1 - power_at(delta, with);
}

double student_noncentrality(double power, double p, double v)
{
	return v > 0 ? solve(miss_at, (double[]){student_quantile(p, v), v}, 1 - power) : NAN;
}

double clusters_df(const size_t *size, size_t clusters, size_t n)
{
	double squares = 0, all = 0, own = 0, N = (double)n;
	for (size_t c = 0; c < clusters; c++) {
		double s = (double)size[c], q = s * s / (N - s);
		squares += s * s;
		all += q;
		own += q * q;
	}
	return N * N / (squares + all * all - own);
}
