/*
 * The gamma function where a likelihood of counts needs it: at theta and at theta + x, x a whole number. Both differences are finite sums,
 *     log Gamma(t + x) - log Gamma(t) = sum_{i < x} log(t + i)        psi(t + x) - psi(t) = sum_{i < x} 1 / (t + i)
 * so small counts need no series, lose no digits to a difference of large numbers, and cost nothing at x = 0.
 */
#pragma once

#include <math.h>
#include <stdint.h>

#ifdef __CUDACC__
#define GAMMA_FUNCTION static __host__ __device__ inline
#else
#define GAMMA_FUNCTION static inline
#endif

enum { GAMMA_TERMS = 16 }; /* counts up to this one are summed term by term */

/*
 * psi(x) = d/dx log Gamma(x), x > 0, to about 1e-14 relative (absolute near its zero at 1.46). psi(x) = psi(x + 1) - 1/x raises x to 10;
 * there the asymptotic series  log x - 1/2x - sum B_2k / (2k x^2k)  [DLMF 5.11.2], cut after x^-12, is exact in double.
 */
GAMMA_FUNCTION double digamma(double x)
{
	double less = 0;
	for (; x < 10; x++)
		less += 1 / x;
	double y = 1 / (x * x);
	double series = y * (1. / 12 - y * (1. / 120 - y * (1. / 252 - y * (1. / 240 - y * (1. / 132 - y * (691. / 32760))))));
	return log(x) - 0.5 / x - series - less;
}

/* log Gamma(x); lgamma writes a global variable on the host. */
GAMMA_FUNCTION double log_gamma(double x)
{
#ifdef __CUDA_ARCH__
	return lgamma(x);
#else
	int sign;
	return lgamma_r(x, &sign);
#endif
}

/* log Gamma(t + x) - log Gamma(t), t > 0 */
GAMMA_FUNCTION double lgamma_rise(double t, uint32_t x)
{
	double product = 1;
	if (x > GAMMA_TERMS)
		return log_gamma(t + x) - log_gamma(t);
	for (uint32_t i = 0; i < x; i++)
		product *= t + i;
	return log(product);
}

/* psi(t + x) - psi(t), t > 0 */
GAMMA_FUNCTION double digamma_rise(double t, uint32_t x)
{
	double sum = 0;
	if (x > GAMMA_TERMS)
		return digamma(t + x) - digamma(t);
	for (uint32_t i = 0; i < x; i++)
		sum += 1 / (t + i);
	return sum;
}
