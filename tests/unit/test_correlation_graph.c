/* The dependency graph against Algorithm 1 written down plainly: every pair, every cell, in doubles. Doubled ranks and their sums are
 * whole numbers far below 2^53, so the reference is exact, and edges and weights have to be the same bits. */
#include "base/cpu.h"
#include "graph/correlation_graph.h"
#include "graph/correlation_kernel.h"
#include "graph/correlation_screen.h"

#include <math.h>
#include <omp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static uint32_t state = 3;

static uint32_t next(void)
{
	state = state * 1664525u + 1013904223u;
	return state >> 8;
}

/* ---- a sample of cells ---- */

static void add_cell(struct corpus *c, const uint32_t *token, uint32_t n)
{
	grow(c->cell, c->cap, c->n + 1);
	struct corpus_cell *cell = c->cell + c->n;
	*cell = (struct corpus_cell){.cell = 1000 + c->n, .n = n < c->max_len ? n : c->max_len};
	cell->token = xmalloc((cell->n + 1) * sizeof(uint32_t));
	for (uint32_t i = 0; i < cell->n; i++)
		if (c->wide)
			((uint32_t *)cell->token)[i] = token[i];
		else
			((uint16_t *)cell->token)[i] = (uint16_t)token[i];
	c->n++;
}

/*
 * Cells in which neighbouring genes tend to come together and near each other, some of them rare, tokens 2 ... genes + 1. Many cells
 * are longer than max_len, so positions reach the last one. mirror: each cell is repeated with the upper half of the genes exchanged in
 * pairs, so a gene of the lower half correlates equally with both of a pair: ties.
 */
static struct corpus random_corpus(uint32_t cells, uint32_t genes, uint32_t max_len, int wide, int mirror)
{
	struct corpus c = {.max_len = max_len, .wide = wide};
	uint32_t *token = xcalloc(genes, sizeof *token);
	double *key = xcalloc(genes, sizeof *key);
	while (c.n < cells) {
		uint32_t n = 0, centre = next() % genes;
		for (uint32_t g = 0; g < genes; g++) {
			uint32_t far = g > centre ? g - centre : centre - g;
			if (next() % 100 < 30u + (far < genes / 4 ? 40 : 0) - (g % 7 ? 0 : 25)) {
				double k = far + next() % genes;
				uint32_t i = n++;
				for (; i && key[i - 1] > k; i--) {
					key[i] = key[i - 1];
					token[i] = token[i - 1];
				}
				key[i] = k;
				token[i] = g + 2;
			}
		}
		add_cell(&c, token, n);
		for (uint32_t i = 0; i < n && mirror; i++) {
			uint32_t g = token[i] - 2, half = genes / 2;
			if (g >= half && half + ((g - half) ^ 1) < genes)
				token[i] = 2 + half + ((g - half) ^ 1);
		}
		if (mirror && c.n < cells)
			add_cell(&c, token, n);
	}
	free(token);
	free(key);
	return c;
}

/* ---- the reference ---- */

struct reference {
	uint32_t genes;
	uint32_t *token; /* [genes] kept, ascending */
	double *c; /* [genes, genes] |C|; -1: one of the two is constant */
	float *rho; /* [genes, genes] over the cells that have both */
	uint32_t *overlap; /* [genes, genes] */
	uint32_t *before; /* [genes, genes] how many others u prefers to v */
};

/* Doubled average ranks of x [n]. */
static void rank(const double *x, uint32_t n, double *r)
{
	for (uint32_t i = 0; i < n; i++) {
		r[i] = 1;
		for (uint32_t j = 0; j < n; j++)
			r[i] += 2 * (x[j] < x[i]) + (x[j] == x[i]);
	}
}

/* Correlation of a [n] and b [n]; NaN: one is constant. */
static double correlation(const double *a, const double *b, uint32_t n)
{
	double sa = 0, sb = 0, aa = 0, bb = 0, ab = 0;
	for (uint32_t i = 0; i < n; i++) {
		sa += a[i];
		sb += b[i];
		aa += a[i] * a[i];
		bb += b[i] * b[i];
		ab += a[i] * b[i];
	}
	double da = n * aa - sa * sa, db = n * bb - sb * sb;
	return da > 0 && db > 0 ? (n * ab - sa * sb) / (sqrt(da) * sqrt(db)) : NAN;
}

static uint32_t token_at(const struct corpus *c, uint32_t cell, uint32_t token)
{
	for (uint32_t k = 0; k < c->cell[cell].n; k++)
		if (corpus_token(c, cell, k) == token)
			return k + 1;
	return 0;
}

static void count_before(struct reference *f)
{
	f->before = xcalloc((size_t)f->genes * f->genes, sizeof *f->before);
	for (size_t u = 0; u < f->genes; u++)
		for (size_t v = 0; v < f->genes; v++)
			for (size_t w = 0; w < f->genes; w++) {
				const double *row = f->c + u * f->genes;
				f->before[u * f->genes + v] += w != u && w != v && (row[w] > row[v] || (row[w] == row[v] && w < v));
			}
}

static struct reference make_reference(const struct corpus *c, uint32_t vocab, uint32_t min_cells, uint32_t top_genes)
{
	struct reference f = {.token = xcalloc(vocab, sizeof *f.token)};
	double *X = xcalloc((size_t)vocab * c->n, sizeof *X), *R = xcalloc((size_t)vocab * c->n, sizeof *R),
	       *sum = xcalloc(vocab, sizeof *sum);
	uint32_t *pos = xcalloc((size_t)vocab * c->n, sizeof *pos), *have = xcalloc(vocab, sizeof *have);
	for (uint32_t t = 0; t < vocab; t++)
		for (uint32_t i = 0; i < c->n; i++) {
			uint32_t p = pos[t * c->n + i] = token_at(c, i, t);
			X[t * c->n + i] = p ? c->max_len - p : 0;
			sum[t] += X[t * c->n + i];
			have[t] += p != 0;
		}
	for (uint32_t t = 0; t < vocab; t++) {
		uint32_t better = 0;
		for (uint32_t o = 0; o < vocab; o++)
			better += have[o] && have[o] >= min_cells && (sum[o] > sum[t] || (sum[o] == sum[t] && o < t));
		if (have[t] && have[t] >= min_cells && (!top_genes || better < top_genes)) {
			rank(X + t * c->n, c->n, R + t * c->n);
			f.token[f.genes++] = t;
		}
	}
	size_t pairs = (size_t)f.genes * f.genes;
	f.c = xcalloc(pairs, sizeof *f.c);
	f.rho = xcalloc(pairs, sizeof *f.rho);
	f.overlap = xcalloc(pairs, sizeof *f.overlap);
	double *a = xcalloc(4 * (size_t)c->n, sizeof *a), *b = a + c->n, *ra = b + c->n, *rb = ra + c->n;
	for (uint32_t u = 0; u < f.genes; u++)
		for (uint32_t v = 0; v < f.genes; v++) {
			size_t tu = (size_t)f.token[u] * c->n, tv = (size_t)f.token[v] * c->n, at = (size_t)u * f.genes + v;
			double all = correlation(R + tu, R + tv, c->n);
			uint32_t m = 0;
			for (uint32_t i = 0; i < c->n; i++)
				if (pos[tu + i] && pos[tv + i]) {
					a[m] = X[tu + i];
					b[m++] = X[tv + i];
				}
			f.c[at] = isnan(all) ? -1 : fabs(all);
			f.overlap[at] = m;
			if (u >= v) { /* the same both ways */
				f.rho[at] = f.rho[(size_t)v * f.genes + u];
				continue;
			}
			rank(a, m, ra);
			rank(b, m, rb);
			all = correlation(ra, rb, m);
			f.rho[at] = isnan(all) ? 0 : (float)all;
		}
	count_before(&f);
	free(a);
	free(X);
	free(R);
	free(sum);
	free(pos);
	free(have);
	return f;
}

static void release_reference(struct reference *f)
{
	free(f->token);
	free(f->c);
	free(f->rho);
	free(f->overlap);
	free(f->before);
}

/* Is v among the neighbours of u that pass the criteria? */
static int wants(const struct reference *f, const struct correlation_params *p, uint32_t u, uint32_t v)
{
	size_t at = (size_t)u * f->genes + v;
	return f->c[at] >= 0 && f->before[at] < p->neighbours && f->c[at] >= p->rho_min && f->overlap[at] >= p->min_overlap &&
		f->overlap[at];
}

/* The edges for these parameters are those of the reference. Returns how many. */
static size_t compare(const struct reference *f, const struct correlation_columns *x, const struct correlation_params *p)
{
	struct correlation_stats stats;
	size_t n, k = 0;
	struct edge *edge = correlation_edges(x, p, &n, &stats);
	for (uint32_t u = 0; u < f->genes; u++)
		for (uint32_t v = u + 1; v < f->genes; v++) {
			size_t at = (size_t)u * f->genes + v;
			if (!(wants(f, p, u, v) || wants(f, p, v, u)) || (p->positive && f->rho[at] < 0))
				continue;
			assert_true(k < n);
			assert_int_equal(edge[k].u, f->token[u]);
			assert_int_equal(edge[k].v, f->token[v]);
			assert_int_equal(edge[k].overlap, f->overlap[at]);
			assert_memory_equal(&edge[k].weight, &f->rho[at], sizeof(float));
			k++;
		}
	assert_int_equal(k, n);
	assert_true(stats.pairs >= n);
	free(edge);
	return n;
}

static void take_columns(struct correlation_columns *x, const struct corpus *c, uint32_t vocab, uint32_t min_cells, uint32_t top_genes)
{
	struct error e;
	if (correlation_columns_init(x, c, vocab, min_cells, top_genes, &e))
		fail_msg("%s", e.msg);
}

/* ---- tests ---- */

/* Sizes on both sides of tiles (64 or 128 x 1024 genes) and chunks (512 cells). */
static void edges_of_all_sizes(void **unused)
{
	static const struct {
		uint32_t cells, genes, max_len;
		int wide, mirror;
	} size[] = {{1, 5, 9, 0, 0}, {2, 5, 9, 0, 0}, {3, 1, 9, 1, 0}, {40, 2, 9, 0, 0}, {150, 63, 100, 0, 0}, {151, 64, 20, 1, 0},
		{200, 65, 30, 0, 1}, {511, 30, 25, 0, 1}, {512, 30, 10, 1, 0}, {513, 31, 40, 0, 1}, {1100, 17, 17, 0, 0},
		{130, 128, 60, 0, 0}, {131, 129, 60, 1, 0}, {50, 530, 200, 0, 0}};
	size_t edges = 0;
	for (size_t k = 0; k < sizeof size / sizeof *size; k++) {
		struct corpus c = random_corpus(size[k].cells, size[k].genes, size[k].max_len, size[k].wide, size[k].mirror);
		uint32_t vocab = size[k].genes + 2;
		struct reference f = make_reference(&c, vocab, 1, 0);
		struct correlation_columns x;
		take_columns(&x, &c, vocab, 1, 0);
		assert_int_equal(x.genes, f.genes);
		for (uint32_t neighbours = 1; neighbours < 2000; neighbours = neighbours * 5 + 2)
			for (int positive = 0; positive < 2; positive++)
				edges += compare(&f, &x,
					&(struct correlation_params){.neighbours = neighbours,
						.min_overlap = 1,
						.rho_min = neighbours % 2 ? 0 : 0.1,
						.positive = positive});
		correlation_columns_release(&x);
		release_reference(&f);
		corpus_release(&c);
	}
	assert_true(edges > 10000);
}

static int rising(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* A pair exactly at a limit stays, and one just below it goes. */
static void limits(void **unused)
{
	struct corpus c = random_corpus(300, 40, 30, 0, 1);
	struct reference f = make_reference(&c, 42, 1, 0);
	struct correlation_columns x;
	take_columns(&x, &c, 42, 1, 0);
	double c_of[40 * 39 / 2], overlap_of[40 * 39 / 2];
	size_t n = 0;
	for (uint32_t u = 0; u < f.genes; u++)
		for (uint32_t v = u + 1; v < f.genes; v++) {
			c_of[n] = f.c[u * f.genes + v];
			overlap_of[n++] = f.overlap[u * f.genes + v];
		}
	qsort(c_of, n, sizeof *c_of, rising);
	qsort(overlap_of, n, sizeof *overlap_of, rising);
	for (size_t i = n / 10; i < n; i += n / 10) {
		struct correlation_params p = {.neighbours = 40, .min_overlap = 1, .rho_min = c_of[i]};
		size_t with = compare(&f, &x, &p);
		p.rho_min = nextafter(c_of[i], 2);
		assert_true(compare(&f, &x, &p) < with);
		p = (struct correlation_params){.neighbours = 40, .min_overlap = (uint32_t)overlap_of[i]};
		with = compare(&f, &x, &p);
		p.min_overlap++;
		assert_true(compare(&f, &x, &p) < with);
	}
	assert_int_equal(compare(&f, &x, &(struct correlation_params){.neighbours = 40, .min_overlap = 1, .rho_min = 1}), 0);
	correlation_columns_release(&x);
	release_reference(&f);
	corpus_release(&c);
}

static void threads_do_not_matter(void **unused)
{
	int most = omp_get_max_threads();
	struct corpus c = random_corpus(600, 150, 60, 0, 1);
	struct correlation_params p = {.neighbours = 7, .min_overlap = 20, .rho_min = 0.05};
	struct correlation_stats stats;
	struct edge *first = NULL;
	size_t nfirst = 0;
	for (int threads = 1; threads < 7; threads++) {
		struct correlation_columns x;
		size_t n;
		omp_set_num_threads(threads);
		take_columns(&x, &c, 152, 1, 0);
		struct edge *edge = correlation_edges(&x, &p, &n, &stats);
		if (!first) {
			first = edge;
			nfirst = n;
			assert_true(n > 100);
		} else {
			assert_int_equal(n, nfirst);
			assert_memory_equal(edge, first, n * sizeof *edge);
			free(edge);
		}
		correlation_columns_release(&x);
	}
	omp_set_num_threads(most);
	free(first);
	corpus_release(&c);
}

/* The q of gene g in the cells of chunk c, to q [CORRELATION_CHUNK]. */
static void read_entries(uint32_t *q, const struct correlation_ranks *k, uint32_t c, uint32_t g)
{
	const uint32_t *start = k->start + (size_t)c * (k->genes + 1) + g;
	memset(q, 0, CORRELATION_CHUNK * sizeof *q);
	for (uint32_t i = start[0]; i < start[1]; i++) {
		const struct correlation_entry *e = k->entry + k->chunk[c] + i;
		q[e->cell[1]] = e->q >> 16;
		q[e->cell[0]] = e->q & 0xffff;
	}
}

/* Genes that almost all cells have at the same position: all terms of a chunk's sums are as large as can be. */
static void largest_sums(void **unused)
{
	const struct correlation_kernel *kernel = correlation_kernel_base();
	struct corpus c = {.max_len = 9};
	for (uint32_t i = 0; i < 1600; i++)
		add_cell(&c, (uint32_t[]){2, 3, 4}, i % 400 == 7 ? 1 : i % 500 == 9 ? 2 : 3);
	struct correlation_columns x;
	struct correlation_ranks k;
	take_columns(&x, &c, 5, 1, 0);
	correlation_ranks_init(&k, &x);
	float *sum = xlarge((size_t)k.genes * kernel->genes, sizeof *sum);
	uint8_t *panel = xlarge(CORRELATION_CHUNK, kernel->genes);
	kernel->products(sum, panel, &k, 0, k.genes, 0, k.genes);
	for (uint32_t u = 0; u < k.genes; u++)
		for (uint32_t v = 0; v < k.genes; v++) {
			uint64_t want = 0;
			for (uint32_t i = 0; i < k.chunks; i++) {
				uint32_t a[CORRELATION_CHUNK], b[CORRELATION_CHUNK];
				read_entries(a, &k, i, u);
				read_entries(b, &k, i, v);
				for (uint32_t j = 0; j < CORRELATION_CHUNK; j++)
					want += (uint64_t)correlation_coarse(a[j]) * b[j];
			}
			assert_true(want > 0x7fffffffu); /* of more than three chunks; one has nearly 2^31 */
			assert_float_equal(sum[v * kernel->genes + u] / (float)want, 1, 1e-6);
		}
	free(sum);
	free(panel);
	correlation_ranks_release(&k);
	correlation_columns_release(&x);
	corpus_release(&c);
}

/* The screen keeps the same pairs with all vectors and threads. */
static void screens_are_equal(void **unused)
{
	int most = omp_get_max_threads();
	state = 3;
	struct corpus c = random_corpus(1100, 300, 150, 0, 1);
	struct correlation_columns x;
	struct correlation_ranks k;
	static struct gene_pair *first;
	static size_t nfirst;
	take_columns(&x, &c, 302, 1, 0);
	correlation_ranks_init(&k, &x);
	for (int threads = 1; threads < 4; threads++) {
		size_t n;
		omp_set_num_threads(threads);
		struct gene_pair *pair = correlation_screen(&k, 20, 0.02, &n);
		assert_true(n > 1000 && n < 300 * 299 / 4);
		if (!first) {
			first = pair;
			nfirst = n;
			continue;
		}
		assert_int_equal(n, nfirst);
		assert_memory_equal(pair, first, n * sizeof *pair);
		free(pair);
	}
	omp_set_num_threads(most);
	correlation_ranks_release(&k);
	correlation_columns_release(&x);
	corpus_release(&c);
}

static void genes_that_are_taken(void **unused)
{
	struct corpus c = random_corpus(120, 50, 12, 0, 1);
	for (uint32_t min_cells = 1; min_cells < 120; min_cells += 9)
		for (uint32_t top = 0; top < 60; top += 7) {
			struct reference f = make_reference(&c, 52, min_cells, top);
			struct correlation_columns x;
			take_columns(&x, &c, 52, min_cells, top);
			assert_int_equal(x.genes, f.genes);
			for (uint32_t j = 0; j < x.genes; j++) {
				uint32_t i = 0;
				while (i < f.genes && f.token[i] != x.token[j])
					i++;
				assert_true(i < f.genes);
				uint64_t from = correlation_column(&x, j), to = correlation_column(&x, j + 1);
				assert_true(!j || to - from <= from - correlation_column(&x, j - 1));
				for (uint64_t k = from; k < to; k++)
					assert_int_equal(x.pos[k], token_at(&c, x.cell[k], x.token[j]));
			}
			correlation_columns_release(&x);
			release_reference(&f);
		}
	corpus_release(&c);
}

/* The order of the cells does not matter: with one that moves the limits of slices and parts by a third of a part, edges are the same. */
static void parts_of_cells(void **unused)
{
	static const uint32_t cells[] = {8193, CORRELATION_PART, CORRELATION_PART + 1};
	for (size_t s = 0; s < sizeof cells / sizeof *cells; s++) {
		struct corpus c = random_corpus(cells[s], 12, 9, 0, 1), moved = c;
		struct correlation_params p = {.neighbours = 12, .min_overlap = 1};
		struct correlation_stats stats;
		struct correlation_columns x, y;
		size_t n, m;
		moved.cell = xmalloc(c.n * sizeof *moved.cell);
		for (uint32_t i = 0; i < c.n; i++)
			moved.cell[(i + CORRELATION_PART / 3) % c.n] = c.cell[i];
		take_columns(&x, &c, 14, 1, 0);
		take_columns(&y, &moved, 14, 1, 0);
		for (uint32_t j = 0; j < x.genes; j++)
			for (uint32_t part = 0; part < x.parts; part++)
				for (uint64_t k = x.offset[j * x.parts + part]; k < x.offset[j * x.parts + part + 1]; k++)
					assert_int_equal(x.pos[k], token_at(&c, part * CORRELATION_PART + x.cell[k], x.token[j]));
		struct edge *a = correlation_edges(&x, &p, &n, &stats), *b = correlation_edges(&y, &p, &m, &stats);
		assert_true(n > 12);
		assert_int_equal(n, m);
		assert_memory_equal(a, b, n * sizeof *a);
		free_all(a, b, moved.cell);
		correlation_columns_release(&x);
		correlation_columns_release(&y);
		corpus_release(&c);
	}
}

static void refused(void **unused)
{
	struct error e;
	struct correlation_columns x;
	struct corpus c = {.max_len = 5}, many = {.n = CORRELATION_CELLS_MAX + 1};
	add_cell(&c, (uint32_t[]){2, 3}, 2);
	add_cell(&c, (uint32_t[]){3, 2, 3}, 3);
	assert_int_equal(correlation_columns_init(&x, &c, 4, 1, 0, &e), -1);
	assert_string_equal(e.msg, "cell 1001: token 3 twice");
	assert_int_equal(correlation_columns_init(&x, &many, 4, 1, 0, &e), -1);
	assert_string_equal(e.msg, "1000001 cells, expected at most 1000000");
	corpus_release(&c);
}

/* With all vectors of this processor. */
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(edges_of_all_sizes),
		cmocka_unit_test(limits),
		cmocka_unit_test(threads_do_not_matter),
		cmocka_unit_test(largest_sums),
		cmocka_unit_test(screens_are_equal),
		cmocka_unit_test(genes_that_are_taken),
		cmocka_unit_test(parts_of_cells),
		cmocka_unit_test(refused),
	};
	struct cpu_features f;
	cpu_features(&f);
	int failed = 0;
	for (enum cpu_vectors v = CPU_GENERIC, is; v <= CPU_AVX512; v++) {
		if (cpu_vectors_choose(&is, &f, cpu_vectors_name(v), &(struct error){0}))
			continue;
		setenv("CORRMASK_CPU", cpu_vectors_name(v), 1);
		printf("== %s\n", cpu_vectors_name(v));
		failed += cmocka_run_group_tests(tests, NULL, NULL);
	}
	return failed;
}
