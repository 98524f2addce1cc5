/*
 * Matrix products: cuBLASLt, or, for the odd shapes that it has no way to do (rows that are not multiples of 16 bytes), a
 * plain tiled kernel.
 */
#include "device.cuh"

enum {
	TILE = 32,
};

/* Element (i, k) of the left and (k, j) of the right factor in each form. */
template <int FORM, class A> static __device__ __forceinline__ float left(const A *a, size_t ld, size_t i, size_t k)
{
	return to_float(FORM == GEMM_TN ? a[k * ld + i] : a[i * ld + k]);
}

template <int FORM, class A> static __device__ __forceinline__ float right(const A *b, size_t ld, size_t k, size_t j)
{
	return to_float(FORM == GEMM_NT ? b[j * ld + k] : b[k * ld + j]);
}

/* Block: 256 threads make TILE x TILE of D, 4 rows of one column each. */
template <int FORM, class A, class O>
static __global__ void gemm_kernel(O *d, const A *a, const A *b, const A *bias, uint32_t M, uint32_t N, uint32_t K, size_t lda, size_t ldb,
	size_t ldd, int add, int relu)
{
	__shared__ float at[TILE][TILE + 1], bt[TILE][TILE + 1];
	uint32_t x = threadIdx.x % TILE, y = threadIdx.x / TILE, i0 = blockIdx.x * TILE, j0 = blockIdx.y * TILE;
	float s[4] = {0, 0, 0, 0};
	for (uint32_t k0 = 0; k0 < K; k0 += TILE) {
		for (uint32_t r = y; r < TILE; r += 8) {
			/* the fast index runs along memory: at[i][k], bt[k][j] */
			uint32_t i = FORM == GEMM_TN ? x : r, k = FORM == GEMM_TN ? r : x;
			at[i][k] = i0 + i < M && k0 + k < K ? left<FORM>(a, lda, i0 + i, k0 + k) : 0;
			uint32_t j = FORM == GEMM_NT ? r : x, l = FORM == GEMM_NT ? x : r;
			bt[l][j] = j0 + j < N && k0 + l < K ? right<FORM>(b, ldb, k0 + l, j0 + j) : 0;
		}
		__syncthreads();
		for (uint32_t k = 0; k < TILE; k++)
#pragma unroll
			for (int r = 0; r < 4; r++)
				s[r] += at[y + 8 * r][k] * bt[k][x];
		__syncthreads();
	}
#pragma unroll
	for (int r = 0; r < 4; r++) {
		uint32_t i = i0 + y + 8 * r, j = j0 + x;
		if (i < M && j < N) {
			float v = s[r] + (bias ? to_float(bias[j]) : 0) + (add ? to_float(d[i * ldd + j]) : 0);
			d[i * ldd + j] = of<O>::from(relu && v < 0 ? 0 : v);
		}
	}
}

template <int FORM, class A, class O> static void plain_run(struct cuda *c, const struct product *p)
{
	launch(c, "gemm", gemm_kernel<FORM, A, O>, dim3(blocks(p->M, TILE), blocks(p->N, TILE)), 256, 0, (O *)p->d, (const A *)p->a,
		(const A *)p->b, (const A *)p->bias, p->M, p->N, p->K, p->lda, p->ldb, p->ldd, p->add, p->relu);
}

template <class A> static void plain(struct cuda *c, const struct product *p)
{
	if (p->form == GEMM_NT)
		p->d_float ? plain_run<GEMM_NT, A, float>(c, p) : plain_run<GEMM_NT, A, A>(c, p);
	else if (p->form == GEMM_NN)
		p->d_float ? plain_run<GEMM_NN, A, float>(c, p) : plain_run<GEMM_NN, A, A>(c, p);
	else
		p->d_float ? plain_run<GEMM_TN, A, float>(c, p) : plain_run<GEMM_TN, A, A>(c, p);
}

void gemm(struct cuda *c, const struct product *p)
{
	if (p->M && p->N && blas_gemm(c, p) < 0)
		BY_TYPE(c, plain, c, p);
}
