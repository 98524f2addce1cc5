/*
 * Sums of products of a panel of genes with the genes that are in fewer cells: the work of the screen (correlation_screen.h). It was
 * compiled for each width of vectors (Makefile). The sums within a chunk are whole numbers, so the results are the same bits for all widths.
 */
#pragma once

#include "graph/correlation_ranks.h"

struct correlation_kernel {
	uint32_t genes; /* of a panel, P */
	/*
	 * sum [nv, P] = sum over all cells of coarse q_u times q_v for the genes u0 ... u0 + nu - 1 (nu <= P) and v0 ... v0 + nv - 1. The rest of a
	 * row, if nu < P, is 0. panel [CORRELATION_CHUNK, P]: working memory, aligned as by xlarge.
	 */
	void (*products)(float *sum, uint8_t *panel, const struct correlation_ranks *k, uint32_t u0, uint32_t nu, uint32_t v0, uint32_t nv);
};

/* In the vectors of the build; on x86-64 the Makefile compiles the others. */
const struct correlation_kernel *correlation_kernel_base(void);
const struct correlation_kernel *correlation_kernel_avx2(void);
const struct correlation_kernel *correlation_kernel_avx512(void);
