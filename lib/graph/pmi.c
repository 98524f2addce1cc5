#include "graph/pmi.h"

#include "base/threads.h"

#define COUNTS (16u << 20) /* counters of one pass */

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

/* One call of pmi_edges: passes over the corpus, each for some rows of the matrix of pair counts. */
struct pmi_job {
	const struct corpus *c;
	const struct pmi_params *p;
	uint32_t vocab, rows; /* rows of one pass */
	const uint64_t *single; /* [vocab] */
	uint64_t tokens, pairs; /* of the corpus */
	uint32_t **count; /* [threads] of [rows, vocab]; NULL until the thread's first pass */
	struct found *found; /* [passes] */
};

static void do_pass(void *arg, size_t pass, int thread)
{
	struct pmi_job *j = arg;
	struct found *f = &j->found[pass];
	uint32_t first = (uint32_t)pass * j->rows, m = j->vocab - first < j->rows ? j->vocab - first : j->rows;
	if (!j->count[thread])
		j->count[thread] = xmalloc((size_t)j->rows * j->vocab * sizeof **j->count);
	const uint32_t *count = j->count[thread];
	count_rows(j->c, first, m, j->vocab, j->count[thread]);
	for (uint32_t u = first; u < first + m; u++)
		for (uint32_t v = u + 1; v < j->vocab; v++) {
			uint32_t k = count[(size_t)(u - first) * j->vocab + v];
			if (!k || k < j->p->min_count)
				continue;
			double x = npmi(k, (double)j->pairs, (double)j->single[u], (double)j->single[v], (double)j->tokens);
			if (x < j->p->tau)
				continue;
			grow(f->edge, f->cap, f->n + 1);
			f->edge[f->n++] = (struct edge){u, v, (float)x, k};
		}
}

struct edge *pmi_edges(const struct corpus *c, uint32_t vocab, const struct pmi_params *p, size_t *n)
{
	uint64_t *single = xcalloc(vocab, sizeof *single);
	uint32_t rows = COUNTS / vocab ? COUNTS / vocab : 1, passes = (vocab + rows - 1) / rows;
	struct pmi_job j = {.c = c,
		.p = p,
		.vocab = vocab,
		.rows = rows,
		.single = single,
		.count = xcalloc((size_t)p->threads, sizeof *j.count),
		.found = xcalloc(passes, sizeof *j.found)};
	for (uint32_t i = 0; i < c->n; i++) {
		for (uint32_t k = 0; k < c->cell[i].n; k++)
			single[corpus_token(c, i, k)]++;
		j.tokens += c->cell[i].n;
		j.pairs += c->cell[i].n ? c->cell[i].n - 1 : 0;
	}
	pool_for(p->threads, passes, do_pass, &j);
	*n = 0;
	for (uint32_t i = 0; i < passes; i++)
		*n += j.found[i].n;
	struct edge *edge = xcalloc(*n, sizeof *edge);
	size_t at = 0;
	for (uint32_t i = 0; i < passes; i++) {
		if (j.found[i].n)
			memcpy(edge + at, j.found[i].edge, j.found[i].n * sizeof *edge);
		at += j.found[i].n;
		free(j.found[i].edge);
	}
	for (int i = 0; i < p->threads; i++)
		free(j.count[i]);
	free_all(j.count, j.found, single);
	return edge;
}
