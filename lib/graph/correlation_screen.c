#include "graph/correlation_screen.h"

#include "base/cpu.h"
#include "graph/correlation_kernel.h"

enum { V = 2048 }; /* a tile is a panel against so many genes; it stays in the second-level cache */

static const struct correlation_kernel *kernel(void)
{
#ifdef __x86_64__
	enum cpu_vectors vectors = cpu_vectors();
	if (vectors == CPU_AVX512)
		return correlation_kernel_avx512();
#ifndef __AVX2__
	if (vectors == CPU_AVX2)
		return correlation_kernel_avx2();
#endif
#endif
	return correlation_kernel_base();
}

/* Offer the pairs of a tile. The error is that of the rounding (correlation_ranks.h), and of the float32 that the chunks are summed in. */
static void screen_tile(const float *sum, uint32_t P, const struct correlation_ranks *k, float rho_min, uint32_t u0, uint32_t nu,
	uint32_t v0, uint32_t nv, struct candidates *to)
{
	const double rounding = (k->chunks + 8.) * 0x1p-24;
	for (uint32_t v = v0; v < v0 + nv; v++, sum += P) {
		const struct correlation_rounding b = k->fine[v];
		for (uint32_t u = u0; u < u0 + nu && u < v; u++) {
			const struct correlation_rounding a = k->coarse[u];
			double products = a.step * b.step * (double)sum[u - u0], c = fabs(products - a.mean * b.mean),
			       error = a.lost + (1 + a.lost) * b.lost + rounding * products;
			float low = (float)(c - error) - 1e-6f, high = (float)(c + error) + 1e-6f;
			if (high < rho_min || k->D[u] <= 0 || k->D[v] <= 0)
				continue;
			candidates_offer(to, u, v, low, high);
		}
	}
}

static void all_tiles(const struct correlation_ranks *k, float rho_min, struct candidates *to)
{
	const struct correlation_kernel *use = kernel();
	struct {
		uint32_t u, v;
	} *job = NULL;
	size_t njob = 0, cap = 0;
	for (uint32_t u = 0; u < k->genes; u += use->genes)
		for (uint32_t v = u; v < k->genes; v += V) {
			grow(job, cap, njob + 1);
			job[njob].u = u;
			job[njob++].v = v;
		}
#pragma omp parallel
	{
		float *sum = xlarge((size_t)V * use->genes, sizeof *sum);
		uint8_t *panel = xlarge(CORRELATION_CHUNK, use->genes);
#pragma omp for schedule(dynamic)
		for (size_t j = 0; j < njob; j++) {
			uint32_t u = job[j].u, v = job[j].v;
			uint32_t nu = k->genes - u < use->genes ? k->genes - u : use->genes, nv = k->genes - v < V ? k->genes - v : V;
			use->products(sum, panel, k, u, nu, v, nv);
			screen_tile(sum, use->genes, k, rho_min, u, nu, v, nv, to);
		}
		free_all(sum, panel);
	}
	free(job);
}

struct gene_pair *correlation_screen(const struct correlation_ranks *k, uint32_t neighbours, double rho_min, size_t *n)
{
	struct candidates c;
	candidates_init(&c, k->genes, neighbours, (float)rho_min);
	all_tiles(k, (float)rho_min, &c);
	return candidates_pairs(&c, n);
}
