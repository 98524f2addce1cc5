/* scale, add, gather, scatter, drop: rows in, rows out, a thread for 8 columns. */
#include "device.cuh"

enum {
	THREADS = 256,
};

/* Threads of the grid cover `rows` x ceil(C / 8) groups; n = that product. False past the end. */
static __device__ __forceinline__ bool group_at(uint32_t *row, uint32_t *c, size_t rows, uint32_t C)
{
	size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
	uint32_t groups = (C + 7) / 8;
	*row = (uint32_t)(i / groups);
	*c = (uint32_t)(i % groups) * 8;
	return i < rows * groups;
}

static dim3 group_blocks(size_t rows, size_t C)
{
	return dim3(blocks(rows * ((C + 7) / 8), THREADS));
}

template <class A> static __global__ void scale_kernel(A *y, const A *x, float a, size_t n)
{
	size_t i = ((size_t)blockIdx.x * THREADS + threadIdx.x) * 8;
	if (i + 8 <= n) {
		float v[8];
		load_vec(v, x + i);
#pragma unroll
		for (int k = 0; k < 8; k++)
			v[k] *= a;
		store_vec(y + i, v);
	} else {
		for (; i < n; i++)
			y[i] = of<A>::from(a * to_float(x[i]));
	}
}

template <class A> static void scale(struct cuda *c, void *y, const void *x, double a, size_t n)
{
	launch(c, "scale", scale_kernel<A>, dim3(blocks(n, THREADS * 8)), THREADS, 0, (A *)y, (const A *)x, (float)a, n);
}

void cuda_scale(struct ops *o, void *y, const void *x, double a, size_t n)
{
	struct cuda *c = cuda_of(o);
	BY_TYPE(c, scale, c, y, x, a, n);
}

template <class A> static __global__ void add_kernel(A *y, const A *x, const A *z, size_t n)
{
	size_t i = ((size_t)blockIdx.x * THREADS + threadIdx.x) * 8;
	if (i + 8 <= n) {
		float a[8], b[8];
		load_vec(a, x + i);
		load_vec(b, z + i);
#pragma unroll
		for (int k = 0; k < 8; k++)
			a[k] += b[k];
		store_vec(y + i, a);
	} else {
		for (; i < n; i++)
			y[i] = of<A>::from(to_float(x[i]) + to_float(z[i]));
	}
}

template <class A> static void add(struct cuda *c, void *y, const void *x, const void *z, size_t n)
{
	launch(c, "add", add_kernel<A>, dim3(blocks(n, THREADS * 8)), THREADS, 0, (A *)y, (const A *)x, (const A *)z, n);
}

void cuda_add(struct ops *o, void *y, const void *x, const void *z, size_t n)
{
	struct cuda *c = cuda_of(o);
	BY_TYPE(c, add, c, y, x, z, n);
}

/* y[to[i]] = x[from[i]]; NULL = i itself. From ROW_NONE come zeros, to ROW_NONE goes nothing. */
template <class A>
static __global__ void copy_rows_kernel(A *y, const A *x, const uint32_t *from, const uint32_t *to, uint32_t N, uint32_t C)
{
	uint32_t i, c;
	if (group_at(&i, &c, N, C)) {
		float v[8] = {0, 0, 0, 0, 0, 0, 0, 0};
		uint32_t a = from ? from[i] : i, b = to ? to[i] : i;
		if (a != ROW_NONE)
			load8(v, x + (size_t)a * C, c, C);
		if (b != ROW_NONE)
			store8(y + (size_t)b * C, v, c, C);
	}
}

template <class A>
static void copy_rows(struct cuda *c, void *y, const void *x, const uint32_t *from, const uint32_t *to, size_t N, size_t C)
{
	launch(c, "copy_rows", copy_rows_kernel<A>, group_blocks(N, C), THREADS, 0, (A *)y, (const A *)x, from, to, N, C);
}

void cuda_gather(struct ops *o, void *y, const void *x, const uint32_t *index, size_t N, size_t C)
{
	struct cuda *c = cuda_of(o);
	BY_TYPE(c, copy_rows, c, y, x, index, NULL, N, C);
}

void cuda_scatter(struct ops *o, void *dx, const void *dy, const uint32_t *index, size_t N, size_t T, size_t C)
{
	struct cuda *c = cuda_of(o);
	cuda_fault(c, "scatter", cudaMemsetAsync(dx, 0, T * C * o->act_size, c->stream));
	BY_TYPE(c, copy_rows, c, dx, dy, NULL, index, N, C);
}

template <class A> static __global__ void drop_kernel(A *y, const A *x, struct rows at, uint32_t N, uint32_t C, struct drop d)
{
	uint32_t i, c, pos, cell;
	if (group_at(&i, &c, N, C)) {
		float v[8];
		read_step(d);
		load8(v, x + (size_t)i * C, c, C);
		row_at(at, i, &pos, &cell);
		drop8(v, d, pos, c / 8, cell);
		store8(y + (size_t)i * C, v, c, C);
	}
}

template <class A> static void drop_rows(struct cuda *c, void *y, const void *x, struct rows at, size_t N, size_t C, struct drop d)
{
	launch(c, "drop", drop_kernel<A>, group_blocks(N, C), THREADS, 0, (A *)y, (const A *)x, at, N, C, d);
}

void cuda_drop(struct ops *o, void *y, const void *x, const struct seq *s, int per_cell, size_t C, const struct dropout *d)
{
	struct cuda *c = cuda_of(o);
	size_t N = per_cell ? s->B : s->T;
	struct rows at = rows_of(s);
	if (per_cell)
		at.pos = at.cell = NULL;
	if (d && d->threshold)
		BY_TYPE(c, drop_rows, c, y, x, at, N, C, drop_of(d));
	else if (x != y && N)
		cuda_fault(c, "drop", cudaMemcpyAsync(y, x, N * C * o->act_size, cudaMemcpyDeviceToDevice, c->stream));
}
