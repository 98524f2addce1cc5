#include "pmi.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNTS (16u << 20)      /* counters of one pass */

struct found {
	struct edge *edge;
	size_t n, cap;
};

/* Count the pairs whose smaller token lies in [first, first + rows), then keep the edges. count [rows, vocab]. */
static void count_rows(const struct corpus *c, uint32_t first, uint32_t rows, uint32_t vocab, uint32_t *count)
{
	memset(count, 0, (size_t)rows * vocab * sizeof *count);
	for (uint32_t i = 0; i < c->n; i++)
		for (uint32_t k = 0; k + 1 < c->cell[i].n; k++) {
			uint32_t a = corpus_token(c, i, k), b = corpus_token(c, i, k + 1), u = a < b ? a : b, v = a < b ? b : a;
			if (u - first < rows)
				count[(size_t)(u - first) * vocab + v]++;
		}
}

static double npmi(double pair, double pairs, double u, double v, double tokens)
{
	double p = pair / pairs;
	return p < 1 ? log(p * tokens * tokens / (u * v)) / -log(p) : 1;
}

struct edge *pmi_edges(const struct corpus *c, uint32_t vocab, const struct pmi_params *p, size_t *n)
{
	uint64_t *single = xcalloc(vocab, sizeof *single), tokens = 0, pairs = 0;
	for (uint32_t i = 0; i < c->n; i++) {
		for (uint32_t k = 0; k < c->cell[i].n; k++)
			single[corpus_token(c, i, k)]++;
		tokens += c->cell[i].n;
		pairs += c->cell[i].n ? c->cell[i].n - 1 : 0;
	}
	uint32_t rows = COUNTS / vocab ? COUNTS / vocab : 1, passes = (vocab + rows - 1) / rows;
	struct found *f = xcalloc(passes, sizeof *f);
#pragma omp parallel
	{
		uint32_t *count = xcalloc((size_t)rows * vocab, sizeof *count);
#pragma omp for schedule(dynamic)
		for (uint32_t pass = 0; pass < passes; pass++) {
			uint32_t first = pass * rows, m = vocab - first < rows ? vocab - first : rows;
			count_rows(c, first, m, vocab, count);
			for (uint32_t u = first; u < first + m; u++)
				for (uint32_t v = u + 1; v < vocab; v++) {
					uint32_t k = count[(size_t)(u - first) * vocab + v];
					if (!k || k < p->min_count)
						continue;
					double x = npmi(k, (double)pairs, (double)single[u], (double)single[v], (double)tokens);
					if (x < p->tau)
						continue;
					grow(f[pass].edge, f[pass].cap, f[pass].n + 1);
					f[pass].edge[f[pass].n++] = (struct edge){u, v, (float)x, k};
				}
		}
		free(count);
	}
	*n = 0;
	for (uint32_t i = 0; i < passes; i++)
		*n += f[i].n;
	struct edge *edge = xcalloc(*n, sizeof *edge);
	size_t at = 0;
	for (uint32_t i = 0; i < passes; i++) {
		if (f[i].n)
			memcpy(edge + at, f[i].edge, f[i].n * sizeof *edge);
		at += f[i].n;
		free(f[i].edge);
	}
	free(f);
	free(single);
	return edge;
}
