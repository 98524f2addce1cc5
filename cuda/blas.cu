/*
 * cuBLASLt for gemm.cu. It thinks in columns: a row-major matrix [R,S] with rows `ld` apart is its S x R matrix with leading
 * dimension ld. So D = A B in rows is D' = B' A' in columns, and our B is its first factor:
 *     form   D [M,N]          its A (from our b), op     its B (from our a), op      m  n  k
 *     nt     A [M,K] B[N,K]'  K x N, transposed          K x M                       N  M  K
 *     nn     A [M,K] B[K,N]   N x K                      K x M                       N  M  K
 *     tn     A [K,M]' B[K,N]  N x K                      M x K, transposed           N  M  K
 * The bias runs along our columns, which are its rows, as its bias epilogue wants.
 *
 * Float products are in float (no TF32), bf16 products sum in float, over the parts of a split K too. What its heuristic answers for a
 * shape is kept. A shape that it does not support is left to gemm.cu and counted; every other failure is a fault.
 */
#include "device.cuh"

#ifdef __CUDACC__
#include <cublasLt.h>
#else
#include "emu_cublaslt.h"
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	SLOTS = 4096, /* plans kept; a power of two */
	WORKSPACE = 32 << 20,
};

struct shape { /* all that a plan depends on; compared as bytes */
	uint64_t M, N, K, lda, ldb, ldd;
	uint32_t form, d_float, bias, relu;
};

enum plan_state {
	PLAN_EMPTY,
	PLAN_READY,
	PLAN_NONE, /* not supported: for the plain kernel */
	PLAN_FAULT,
};

struct plan {
	struct shape shape;
	enum plan_state state;
	cublasLtMatmulDesc_t desc;
	cublasLtMatrixLayout_t a, b, d;
	cublasLtMatmulAlgo_t algo;
};

struct blas {
	cublasLtHandle_t handle;
	void *workspace;
	size_t used;
	struct plan plan[SLOTS];
};

static void blas_fault(struct cuda *c, cublasStatus_t r)
{
	if (r != CUBLAS_STATUS_SUCCESS && !c->fault[0])
		snprintf(c->fault, sizeof c->fault, "cuBLASLt: %s", cublasLtGetStatusString(r));
}

static void plan_release(struct plan *p)
{
	if (p->desc)
		cublasLtMatmulDescDestroy(p->desc);
	if (p->a)
		cublasLtMatrixLayoutDestroy(p->a);
	if (p->b)
		cublasLtMatrixLayoutDestroy(p->b);
	if (p->d)
		cublasLtMatrixLayoutDestroy(p->d);
	memset(p, 0, sizeof *p);
}

void blas_free(struct cuda *c)
{
	struct blas *l = c->blas;
	if (!l)
		return;
	for (size_t i = 0; i < SLOTS; i++)
		plan_release(&l->plan[i]);
	cublasLtDestroy(l->handle);
	cudaFree(l->workspace);
	free(l);
	c->blas = NULL;
}

static struct blas *blas_open(struct cuda *c)
{
	if (c->blas)
		return c->blas;
	struct blas *l = (struct blas *)calloc(1, sizeof *l);
	if (!l)
		return NULL;
	cublasStatus_t r = cublasLtCreate(&l->handle);
	blas_fault(c, r);
	if (r != CUBLAS_STATUS_SUCCESS) {
		free(l);
		return NULL;
	}
	cuda_fault(c, "cuBLASLt's workspace", cudaMalloc(&l->workspace, WORKSPACE));
	return c->blas = l;
}

/* The largest power of two up to 256 that divides the address. */
static uint32_t alignment(const void *p)
{
	uintptr_t a = (uintptr_t)p;
	uint32_t n = 256;
	while (n > 1 && a % n)
		n /= 2;
	return n;
}

#define SET(call) \
	do { \
		if (r == CUBLAS_STATUS_SUCCESS) \
			r = (call); \
	} while (0)

/* A shape that gemm.cu does, for cuda_remarks. */
static void count_plain(struct cuda *c, const struct shape *s)
{
	static const char *const form[] = {"nt", "nn", "tn"};
	size_t n = strlen(c->plain.shapes);
	if (!c->plain.products++ || n + 40 < sizeof c->plain.shapes)
		snprintf(c->plain.shapes + n, sizeof c->plain.shapes - n, "%s%s %llux%llux%llu", n ? ", " : "", form[s->form],
			(unsigned long long)s->M, (unsigned long long)s->N, (unsigned long long)s->K);
	else if (n > 3 && strcmp(c->plain.shapes + n - 3, "..."))
		snprintf(c->plain.shapes + n, sizeof c->plain.shapes - n, ", ...");
}

static void plan_make(struct cuda *c, struct plan *q, const struct shape *s, const struct product *p)
{
	cublasStatus_t r = CUBLAS_STATUS_SUCCESS;
	cudaDataType in = c->is_bf16 ? CUDA_R_16BF : CUDA_R_32F, out = s->d_float ? CUDA_R_32F : in;
	cublasOperation_t opa = s->form == GEMM_NT ? CUBLAS_OP_T : CUBLAS_OP_N, opb = s->form == GEMM_TN ? CUBLAS_OP_T : CUBLAS_OP_N;
	cublasLtMatmulPreference_t want = NULL;
	cublasLtMatmulHeuristicResult_t found;
	int n = 0;
	size_t workspace = WORKSPACE;
	/* parts of a split K are added in float: the other schemes add them in the type of D */
	const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;

	memset(&found, 0, sizeof found);
	q->shape = *s;
	SET(cublasLtMatmulDescCreate(&q->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
	SET(cublasLtMatmulDescSetAttribute(q->desc, CUBLASLT_MATMUL_DESC_TRANSA, &opa, sizeof opa));
	SET(cublasLtMatmulDescSetAttribute(q->desc, CUBLASLT_MATMUL_DESC_TRANSB, &opb, sizeof opb));
	if (s->bias || s->relu) {
		cublasLtEpilogue_t e = !s->bias ? CUBLASLT_EPILOGUE_RELU : s->relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
		SET(cublasLtMatmulDescSetAttribute(q->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &e, sizeof e));
		if (s->bias) /* the heuristic looks at its alignment */
			SET(cublasLtMatmulDescSetAttribute(q->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p->bias, sizeof p->bias));
	}
	if (s->form == GEMM_NT)
		SET(cublasLtMatrixLayoutCreate(&q->a, in, s->K, s->N, (int64_t)s->ldb));
	else
		SET(cublasLtMatrixLayoutCreate(&q->a, in, s->N, s->K, (int64_t)s->ldb));
	if (s->form == GEMM_TN)
		SET(cublasLtMatrixLayoutCreate(&q->b, in, s->M, s->K, (int64_t)s->lda));
	else
		SET(cublasLtMatrixLayoutCreate(&q->b, in, s->K, s->M, (int64_t)s->lda));
	SET(cublasLtMatrixLayoutCreate(&q->d, out, s->N, s->M, (int64_t)s->ldd));
	SET(cublasLtMatmulPreferenceCreate(&want));
	SET(cublasLtMatmulPreferenceSetAttribute(want, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace));
	SET(cublasLtMatmulPreferenceSetAttribute(want, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes));
	const uint32_t al[3] = {alignment(p->b), alignment(p->a), alignment(p->d)};
	SET(cublasLtMatmulPreferenceSetAttribute(want, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &al[0], sizeof al[0]));
	SET(cublasLtMatmulPreferenceSetAttribute(want, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &al[1], sizeof al[1]));
	SET(cublasLtMatmulPreferenceSetAttribute(want, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &al[2], sizeof al[2]));
	SET(cublasLtMatmulPreferenceSetAttribute(want, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &al[2], sizeof al[2]));
	SET(cublasLtMatmulAlgoGetHeuristic(c->blas->handle, q->desc, q->a, q->b, q->d, q->d, want, 1, &found, &n));
	SET(n > 0 ? found.state : CUBLAS_STATUS_NOT_SUPPORTED);
	q->algo = found.algo;
	q->state = r == CUBLAS_STATUS_SUCCESS ? PLAN_READY : r == CUBLAS_STATUS_NOT_SUPPORTED ? PLAN_NONE : PLAN_FAULT;
	if (q->state == PLAN_FAULT)
		blas_fault(c, r);
	if (q->state == PLAN_NONE)
		count_plain(c, s);
	if (want)
		cublasLtMatmulPreferenceDestroy(want);
}

static struct plan *plan_of(struct cuda *c, struct blas *l, const struct product *p)
{
	struct shape s;
	uint64_t h = 0;
	memset(&s, 0, sizeof s);
	s.M = p->M, s.N = p->N, s.K = p->K, s.lda = p->lda, s.ldb = p->ldb, s.ldd = p->ldd;
	s.form = p->form, s.d_float = (uint32_t)p->d_float, s.relu = (uint32_t)p->relu;
	/* bias != NULL counts as its alignment, and the matrices' too: a plan must not meet worse ones than it was made for */
	s.bias = p->bias ? alignment(p->bias) : 0;
	s.form |= alignment(p->a) << 2 | alignment(p->b) << 11 | alignment(p->d) << 20;
	for (size_t i = 0; i < sizeof s / sizeof h; i++) {
		uint64_t w;
		memcpy(&w, (const char *)&s + i * sizeof w, sizeof w);
		h = (h ^ w) * 0x9E3779B97F4A7C15u;
		h ^= h >> 29;
	}
	if (l->used > SLOTS / 2) {
		for (size_t i = 0; i < SLOTS; i++)
			plan_release(&l->plan[i]);
		l->used = 0;
	}
	struct plan *q = &l->plan[h % SLOTS];
	while (q->state && memcmp(&q->shape, &s, sizeof s))
		q = q == &l->plan[SLOTS - 1] ? l->plan : q + 1;
	if (!q->state) {
		struct shape plain = s;
		plain.form &= 3;
		plan_make(c, q, &plain, p);
		q->shape = s;
		l->used++;
	}
	return q;
}

int blas_gemm(struct cuda *c, const struct product *p)
{
	struct blas *l = blas_open(c);
	const float one = 1, beta = p->add ? 1.0f : 0.0f;
	if (!l)
		return 1;
	struct plan *q = plan_of(c, l, p);
	if (q->state != PLAN_READY)
		return q->state == PLAN_NONE ? -1 : 1;
	if (p->bias)
		blas_fault(c, cublasLtMatmulDescSetAttribute(q->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p->bias, sizeof p->bias));
	cublasStatus_t r = cublasLtMatmul(l->handle, q->desc, &one, p->b, q->a, p->a, q->b, &beta, p->d, q->d, p->d, q->d, &q->algo,
		l->workspace, WORKSPACE, c->stream);
	blas_fault(c, r);
	return r == CUBLAS_STATUS_SUCCESS ? 0 : 1;
}
