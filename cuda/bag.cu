/* Weighted sums of rows: a block has 256 columns of one cell, or on the way back of one row of W. */
#include "device.cuh"
#include "rowsum.cuh"

template <class A>
static __global__ void bag_kernel(A *y, const float *W, const uint32_t *offset, const uint32_t *id, const float *value, uint32_t C, int add)
{
	uint32_t b = blockIdx.x, t0 = offset[b], n = offset[b + 1] - t0;
	sum_weighted_rows<float>(
		y + (size_t)b * C, add, 1, W, n, blockIdx.y * 256, C,
		[&](uint32_t j) { return value && value[t0 + j] == 0 ? ROW_NONE : id[t0 + j]; },
		[&](uint32_t j) { return value ? value[t0 + j] : 1.0f; });
}

template <class A>
static void bag(struct cuda *c, void *y, const float *W, const struct seq *s, const float *value, size_t B, size_t C, int add)
{
	launch(c, "bag", bag_kernel<A>, dim3((unsigned)B, blocks(C, 256)), ROWSUM_THREADS, 0, (A *)y, W, s->offset, s->id, value, C, add);
}

void cuda_bag(struct ops *o, void *y, const float *W, const struct seq *s, const float *value, size_t B, size_t C, int add)
{
	struct cuda *c = cuda_of(o);
	BY_TYPE(c, bag, c, y, W, s, value, B, C, add);
}

template <class A>
static __global__ void bag_back_kernel(
	float *dW, const A *dy, const uint32_t *start, const uint32_t *order, const uint32_t *cell, const float *value, uint32_t C)
{
	uint32_t v = blockIdx.x, j0 = start[v], n = start[v + 1] - j0;
	if (n == 0)
		return;
	sum_weighted_rows<A>(
		dW + (size_t)v * C, 1, 1, dy, n, blockIdx.y * 256, C,
		[&](uint32_t j) {
			uint32_t t = order[j0 + j];
			return value && value[t] == 0 ? ROW_NONE : cell[t];
		},
		[&](uint32_t j) { return value ? value[order[j0 + j]] : 1.0f; });
}

template <class A>
static void bag_back(struct cuda *c, float *dW, const void *dy, const struct seq *s, const float *value, size_t V, size_t C)
{
	launch(c, "bag_back", bag_back_kernel<A>, dim3((unsigned)V, blocks(C, 256)), ROWSUM_THREADS, 0, dW, (const A *)dy, s->start,
		s->order, s->cell, value, C);
}

void cuda_bag_back(struct ops *o, float *dW, const void *dy, const struct seq *s, const float *value, size_t V, size_t C)
{
	struct cuda *c = cuda_of(o);
	BY_TYPE(c, bag_back, c, dW, dy, s, value, V, C);
}
