/*
 * As much of cuBLASLt as blas.cu uses, on the host and in columns, as its manual has it: D = op(A) op(B) + beta C, then the
 * epilogue; element (i, j) of a matrix of leading dimension ld is at i + j ld. It refuses what the real one refuses most
 * often: rows of bf16 that do not start at multiples of 16 bytes.
 */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

typedef enum {
	CUBLAS_STATUS_SUCCESS,
	CUBLAS_STATUS_INVALID_VALUE,
	CUBLAS_STATUS_NOT_SUPPORTED,
	CUBLAS_STATUS_INTERNAL_ERROR
} cublasStatus_t;
typedef enum { CUDA_R_32F, CUDA_R_16BF } cudaDataType;
enum { CUBLASLT_REDUCTION_SCHEME_NONE = 0, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2 };
typedef enum { CUBLAS_OP_N, CUBLAS_OP_T } cublasOperation_t;
typedef enum { CUBLAS_COMPUTE_32F } cublasComputeType_t;
typedef enum { CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU_BIAS } cublasLtEpilogue_t;
enum {
	CUBLASLT_MATMUL_DESC_TRANSA,
	CUBLASLT_MATMUL_DESC_TRANSB,
	CUBLASLT_MATMUL_DESC_EPILOGUE,
	CUBLASLT_MATMUL_DESC_BIAS_POINTER,
	CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
	CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
	CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
	CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
	CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
	CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
};

struct emu_desc {
	cublasOperation_t op[2];
	cublasLtEpilogue_t epilogue;
	const void *bias;
};

struct emu_layout {
	cudaDataType type;
	uint64_t rows, cols;
	int64_t ld;
};

typedef struct emu_desc *cublasLtMatmulDesc_t;
typedef struct emu_layout *cublasLtMatrixLayout_t;
typedef int *cublasLtHandle_t;
typedef uint32_t *cublasLtMatmulPreference_t; /* the mask of reduction schemes */
typedef int cublasLtMatmulAlgo_t;
typedef struct {
	cublasLtMatmulAlgo_t algo;
	cublasStatus_t state;
} cublasLtMatmulHeuristicResult_t;

extern unsigned emu_products; /* done so far */
extern int emu_broken; /* the next heuristics fail */

static inline const char *cublasLtGetStatusString(cublasStatus_t r)
{
	return r == CUBLAS_STATUS_INVALID_VALUE ? "invalid value" : r == CUBLAS_STATUS_NOT_SUPPORTED ? "not supported" : "internal error";
}

static inline cublasStatus_t cublasLtCreate(cublasLtHandle_t *h)
{
	*h = (int *)malloc(sizeof **h);
	return CUBLAS_STATUS_SUCCESS;
}

#define EMU_DESTROY(name, type) \
	static inline cublasStatus_t name(type x) \
	{ \
		free(x); \
		return CUBLAS_STATUS_SUCCESS; \
	}
EMU_DESTROY(cublasLtDestroy, cublasLtHandle_t)
EMU_DESTROY(cublasLtMatmulDescDestroy, cublasLtMatmulDesc_t)
EMU_DESTROY(cublasLtMatrixLayoutDestroy, cublasLtMatrixLayout_t)
EMU_DESTROY(cublasLtMatmulPreferenceDestroy, cublasLtMatmulPreference_t)

static inline cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *d, cublasComputeType_t, cudaDataType)
{
	*d = (cublasLtMatmulDesc_t)calloc(1, sizeof **d);
	return CUBLAS_STATUS_SUCCESS;
}

static inline cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d, int what, const void *value, size_t bytes)
{
	if (what == CUBLASLT_MATMUL_DESC_TRANSA || what == CUBLASLT_MATMUL_DESC_TRANSB) {
		if (bytes != sizeof d->op[0])
			return CUBLAS_STATUS_INVALID_VALUE;
		memcpy(&d->op[what == CUBLASLT_MATMUL_DESC_TRANSB], value, bytes);
	} else if (what == CUBLASLT_MATMUL_DESC_EPILOGUE) {
		if (bytes != sizeof d->epilogue)
			return CUBLAS_STATUS_INVALID_VALUE;
		memcpy(&d->epilogue, value, bytes);
	} else {
		if (bytes != sizeof d->bias)
			return CUBLAS_STATUS_INVALID_VALUE;
		memcpy(&d->bias, value, bytes);
	}
	return CUBLAS_STATUS_SUCCESS;
}

static inline cublasStatus_t cublasLtMatrixLayoutCreate(
	cublasLtMatrixLayout_t *l, cudaDataType type, uint64_t rows, uint64_t cols, int64_t ld)
{
	*l = (cublasLtMatrixLayout_t)calloc(1, sizeof **l);
	**l = {type, rows, cols, ld};
	return ld >= (int64_t)rows ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

static inline cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *p)
{
	*p = (uint32_t *)malloc(sizeof **p);
	**p = ~0u;
	return CUBLAS_STATUS_SUCCESS;
}

static inline cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p, int what, const void *value, size_t bytes)
{
	if (what == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
		memcpy(p, value, bytes);
	return CUBLAS_STATUS_SUCCESS;
}

static inline uint64_t emu_rows(const struct emu_layout *l, cublasOperation_t op)
{
	return op == CUBLAS_OP_T ? l->cols : l->rows;
}

static inline uint64_t emu_cols(const struct emu_layout *l, cublasOperation_t op)
{
	return op == CUBLAS_OP_T ? l->rows : l->cols;
}

static inline cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a,
	cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t o, cublasLtMatmulPreference_t want, int,
	cublasLtMatmulHeuristicResult_t *r, int *n)
{
	*n = 0;
	if (emu_broken)
		return CUBLAS_STATUS_INTERNAL_ERROR;
	if (*want & ~(uint32_t)CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) /* parts would be added in bf16 */
		return CUBLAS_STATUS_INVALID_VALUE;
	if (emu_rows(a, d->op[0]) != o->rows || emu_cols(b, d->op[1]) != o->cols || emu_cols(a, d->op[0]) != emu_rows(b, d->op[1]) ||
		c != o)
		return CUBLAS_STATUS_INVALID_VALUE;
	if ((a->type == CUDA_R_16BF && (a->ld % 8 || b->ld % 8)) || (o->type == CUDA_R_16BF && o->ld % 8))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	*n = 1;
	r->algo = 7;
	r->state = CUBLAS_STATUS_SUCCESS;
	return CUBLAS_STATUS_SUCCESS;
}

static inline float emu_element(const void *p, cudaDataType t, uint64_t i)
{
	return t == CUDA_R_32F ? ((const float *)p)[i] : to_float(((const bf16 *)p)[i]);
}

static inline void emu_matmul(const emu_desc &d, float alpha, const void *A, const emu_layout &a, const void *B, const emu_layout &b,
	float beta, void *D, const emu_layout &o)
{
	const uint64_t K = emu_cols(&a, d.op[0]), M = o.rows;
	std::vector<float> left(K * M), column(M); /* [K][M] */
	for (uint64_t k = 0; k < K; k++)
		for (uint64_t i = 0; i < M; i++)
			left[k * M + i] = emu_element(A, a.type, d.op[0] == CUBLAS_OP_T ? k + i * a.ld : i + k * a.ld);
	for (uint64_t j = 0; j < o.cols; j++) {
		float *s = column.data();
		memset(s, 0, M * sizeof *s);
		for (uint64_t k = 0; k < K; k++) {
			const float x = emu_element(B, b.type, d.op[1] == CUBLAS_OP_T ? j + k * b.ld : k + j * b.ld),
				    *l = left.data() + k * M;
			for (uint64_t i = 0; i < M; i++)
				s[i] += l[i] * x;
		}
		for (uint64_t i = 0; i < M; i++) {
			uint64_t at = i + j * o.ld;
			float v = s[i] * alpha;
			if (beta != 0)
				v += beta * emu_element(D, o.type, at);
			if (d.epilogue == CUBLASLT_EPILOGUE_BIAS || d.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS)
				v += emu_element(d.bias, o.type, i);
			if ((d.epilogue == CUBLASLT_EPILOGUE_RELU || d.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS) && v < 0)
				v = 0;
			if (o.type == CUDA_R_32F)
				((float *)D)[at] = v;
			else
				((bf16 *)D)[at] = of<bf16>::from(v);
		}
	}
}

static inline cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t d, const void *alpha, const void *A,
	cublasLtMatrixLayout_t a, const void *B, cublasLtMatrixLayout_t b, const void *beta, const void *C, cublasLtMatrixLayout_t, void *D,
	cublasLtMatrixLayout_t o, const cublasLtMatmulAlgo_t *algo, void *, size_t, cudaStream_t stream)
{
	if (*algo != 7 || C != D)
		return CUBLAS_STATUS_INVALID_VALUE;
	const emu_desc dd = *d;
	const emu_layout la = *a, lb = *b, lo = *o;
	const float one = *(const float *)alpha, add = *(const float *)beta;
	emu_do(stream, [=] { emu_matmul(dd, one, A, la, B, lb, add, D, lo); });
	emu_products++;
	return CUBLAS_STATUS_SUCCESS;
}
