/* One row a cell: the mean of its tokens' rows, or its first; and back. */
#include "device.cuh"
#include "rowsum.cuh"

enum {
	THREADS = 256,
};

/* Block = cell. */
template <class A> static __global__ void pool_kernel(A *y, const A *x, const uint32_t *offset, uint32_t C, int first)
{
	uint32_t b = blockIdx.x, t0 = offset[b], len = offset[b + 1] - t0, n = first ? min(len, 1u) : len;
	for (uint32_t c0 = 0; c0 < C; c0 += 256)
		sum_rows<A>(y + (size_t)b * C, 0, n ? 1 / (float)n : 0, x, n, c0, C, [&](uint32_t j) { return t0 + j; });
}

template <class A> static void pool_rows(struct cuda *c, void *y, const void *x, const struct seq *s, size_t C, enum pool pool)
{
	launch(c, "pool", pool_kernel<A>, dim3((unsigned)s->B), ROWSUM_THREADS, 0, (A *)y, (const A *)x, s->offset, C, pool == POOL_FIRST);
}

void cuda_pool(struct ops *o, void *y, const void *x, const struct seq *s, size_t C, enum pool pool)
{
	struct cuda *c = cuda_of(o);
	BY_TYPE(c, pool_rows, c, y, x, s, C, pool);
}

template <class A> static __global__ void pool_back_kernel(A *dx, const A *dy, const uint32_t *pos, const uint32_t *cell, const uint32_t *offset,
	uint32_t T, uint32_t C, int first)
{
	size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
	uint32_t groups = (C + 7) / 8, t = (uint32_t)(i / groups), c = (uint32_t)(i % groups) * 8;
	if (t >= T)
		return;
	uint32_t b = cell[t];
	float v[8], share = first ? (pos[t] == 0 ? 1 : 0) : 1 / (float)(offset[b + 1] - offset[b]);
	load8(v, dy + (size_t)b * C, c, C);
#pragma unroll
	for (int k = 0; k < 8; k++)
		v[k] = share == 0 ? 0 : v[k] * share;
	store8(dx + (size_t)t * C, v, c, C);
}

template <class A> static void pool_rows_back(struct cuda *c, void *dx, const void *dy, const struct seq *s, size_t C, enum pool pool)
{
	launch(c, "pool_back", pool_back_kernel<A>, dim3(blocks(s->T * ((C + 7) / 8), THREADS)), THREADS, 0, (A *)dx, (const A *)dy, s->pos,
		s->cell, s->offset, s->T, C, pool == POOL_FIRST);
}

void cuda_pool_back(struct ops *o, void *dx, const void *dy, const struct seq *s, size_t C, enum pool pool)
{
	struct cuda *c = cuda_of(o);
	BY_TYPE(c, pool_rows_back, c, dx, dy, s, C, pool);
}
