/* The CPU backend's gated unit, SwiGLU. */
#include "nn/cpu_act.h"
#include "nn/ops_cpu.h"

void cpu_swiglu(struct ops *o, void *y0, const void *z0, size_t T, size_t F)
{
	struct cpu *c = (struct cpu *)o;
	const real *z = z0;
	real *y = y0;
	size_t R = chunk_rows(T);
	PARALLEL_FOR
	for (size_t k = 0; k < chunks(T, R); k++) {
		for (size_t t = k * R; t < min_size(T, (k + 1) * R); t++) {
			const real *gate = z + t * 2 * F, *up = gate + F;
			SIMD for (size_t i = 0; i < F; i++) y[t * F + i] = gate[i] * sigmoid(gate[i]) * up[i];
		}
	}
}

/* With s = sigmoid(g):  d silu(g) = s (1 + g (1 - s)) */
void cpu_swiglu_back(struct ops *o, void *dz0, const void *dy0, const void *z0, size_t T, size_t F)
{
	struct cpu *c = (struct cpu *)o;
	const real *z = z0, *dy = dy0;
	real *dz = dz0;
	size_t R = chunk_rows(T);
	PARALLEL_FOR
	for (size_t k = 0; k < chunks(T, R); k++) {
		for (size_t t = k * R; t < min_size(T, (k + 1) * R); t++) {
			const real *gate = z + t * 2 * F, *up = gate + F, *d = dy + t * F;
			real *dgate = dz + t * 2 * F, *dup = dgate + F;
			SIMD for (size_t i = 0; i < F; i++)
			{
				real g = gate[i], s = sigmoid(g), u = up[i];
				dgate[i] = d[i] * u * s * (1 + g * (1 - s));
				dup[i] = d[i] * g * s;
			}
		}
	}
}
