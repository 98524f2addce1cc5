/* Bias and activations of linear layers on the CPU, a row at a time. */
#pragma once

#include "nn/cpu_kernel.h"

static inline real gelu(real x)
{
	return (real)0.5 * x * erfc_fast(-x * (real)M_SQRT1_2);
}

static inline real gelu_slope(real x)
{
	return (real)0.5 * erfc_fast(-x * (real)M_SQRT1_2) + x * exp_fast((real)-0.5 * x * x) * (real)0.3989422804014327;
}

/* 1 / (1 + exp(-x)) */
static inline real sigmoid(real x)
{
	real e = exp_fast(x < 0 ? x : -x);
	return (x < 0 ? e : 1) / (1 + e);
}

static inline real leaky(real x)
{
	return x > 0 ? x : x * (real)0.01;
}

/* y = act(y + b), where act is not GELU: of that only y + b. b may be NULL. */
LOOP void bias_row(real *y, const real *b, size_t N, enum act act)
{
	if (act == ACT_RELU)
		SIMD for (size_t i = 0; i < N; i++)
		{
			real v = y[i] + (b ? b[i] : 0);
			y[i] = v < 0 ? 0 : v; /* so written, NaN stays NaN */
		}
	else if (b)
		SIMD for (size_t i = 0; i < N; i++) y[i] += b[i];
	if (act == ACT_TANH)
		for (size_t i = 0; i < N; i++)
			y[i] = (real)tanh(y[i]);
	if (act == ACT_LEAKY)
		SIMD for (size_t i = 0; i < N; i++) y[i] = leaky(y[i]);
}

/* dy becomes the gradient before the activation. */
LOOP void act_row_back(real *dy, const real *y, const real *pre, size_t N, enum act act)
{
	switch (act) {
	case ACT_NONE:
		break;
	case ACT_RELU:
		SIMD for (size_t i = 0; i < N; i++) dy[i] = y[i] > 0 ? dy[i] : 0;
		break;
	case ACT_GELU:
		SIMD for (size_t i = 0; i < N; i++) dy[i] *= gelu_slope(pre[i]);
		break;
	case ACT_TANH:
		SIMD for (size_t i = 0; i < N; i++) dy[i] *= 1 - y[i] * y[i];
		break;
	case ACT_LEAKY:
		SIMD for (size_t i = 0; i < N; i++) dy[i] = y[i] > 0 ? dy[i] : dy[i] * (real)0.01;
		break;
	}
}
