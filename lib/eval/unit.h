/* Powers of two that bring numbers near 1, so that their squares neither overflow nor vanish. Multiplying by them rounds nothing. */
#pragma once

#include <math.h>
#include <stddef.h>

/* The largest absolute value of x [n]; NaN is passed over. */
static inline double largest_size(const double *x, size_t n)
{
	double most = 0;
	for (size_t i = 0; i < n; i++)
		most = fmax(most, fabs(x[i]));
	return most;
}

/* What brings `most` into [1/2, 1), or near it if it is tiny; 1 for 0. */
static inline double unit_for(double most)
{
	int e;
	frexp(most, &e);
	return ldexp(1, e < -1000 ? 1000 : -e);
}

static inline void multiply_by(double *x, size_t n, double unit)
{
	for (size_t i = 0; i < n; i++)
		x[i] *= unit;
}
