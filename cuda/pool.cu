/* One row a cell: the mean of a range of its tokens' rows; and back. */
#include "device.cuh"
#include "rowsum.cuh"

enum {
	THREADS = 256,
};

/* Block = cell. none: what the mean of no rows is. */
template <class A, class O> static __global__ void pool_kernel(O *y, const A *x, const uint32_t *range, uint32_t C, float none)
{
	uint32_t b = blockIdx.x, t0 = range[2 * b], n = range[2 * b + 1] - t0;
	for (uint32_t c0 = 0; c0 < C; c0 += 256)
		sum_rows<A>(y + (size_t)b * C, 0, n ? 1 / (float)n : none, x, n, c0, C, [&](uint32_t j) { return t0 + j; });
}

template <class A> static void pool_rows(struct cuda *c, void *y, const void *x, const uint32_t *range, size_t B, size_t C, int as_real)
{
	if (as_real)
		launch(c, "pool", pool_kernel<A, float>, dim3((unsigned)B), ROWSUM_THREADS, 0, (float *)y, (const A *)x, range, C, NAN);
	else
		launch(c, "pool", pool_kernel<A, A>, dim3((unsigned)B), ROWSUM_THREADS, 0, (A *)y, (const A *)x, range, C, 0);
}

void cuda_pool(struct ops *o, void *y, const void *x, const uint32_t *range, size_t B, size_t C, int as_real)
{
	struct cuda *c = cuda_of(o);
	BY_TYPE(c, pool_rows, c, y, x, range, B, C, as_real);
}

template <class A>
static __global__ void pool_back_kernel(A *dx, const A *dy, const uint32_t *range, const uint32_t *cell, uint32_t T, uint32_t C)
{
	size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
	uint32_t groups = (C + 7) / 8, t = (uint32_t)(i / groups), c = (uint32_t)(i % groups) * 8;
	if (t >= T)
		return;
	uint32_t b = cell[t], from = range[2 * b], to = range[2 * b + 1];
	float v[8] = {0, 0, 0, 0, 0, 0, 0, 0};
	if (t >= from && t < to) {
		float share = 1 / (float)(to - from);
		load8(v, dy + (size_t)b * C, c, C);
#pragma unroll
		for (int k = 0; k < 8; k++)
			v[k] *= share;
	}
	store8(dx + (size_t)t * C, v, c, C);
}

template <class A>
static void pool_rows_back(struct cuda *c, void *dx, const void *dy, const uint32_t *range, const struct seq *s, size_t C)
{
	launch(c, "pool_back", pool_back_kernel<A>, dim3(blocks(s->T * ((C + 7) / 8), THREADS)), THREADS, 0, (A *)dx, (const A *)dy, range,
		s->cell, s->T, C);
}

void cuda_pool_back(struct ops *o, void *dx, const void *dy, const uint32_t *range, const struct seq *s, size_t C)
{
	struct cuda *c = cuda_of(o);
	BY_TYPE(c, pool_rows_back, c, dx, dy, range, s, C);
}
