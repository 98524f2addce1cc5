/* Graph weights against scanpy's (tests/ref/integration.py umap), silhouettes against plain sums, small examples with known scores. */
#include "base/error.h"
#include "base/rng.h"
#include "base/tsv.h"
#include "eval/bras.h"
#include "eval/eigen.h"
#include "eval/integration.h"
#include "eval/inverted.h"
#include "eval/kbet_label.h"
#include "eval/kmeans.h"
#include "eval/mixing.h"
#include "eval/neighbours.h"
#include "eval/sbee.h"
#include "eval/silhouette.h"
#include "eval/strata.h"
#include "eval/umap.h"
#include "network/network.h"

#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct error e;

/* ---- the graph ---- */

enum { N = 60, K = 14 };

static double weight_of(const uint32_t *end, const double *weight, size_t m, uint32_t a, uint32_t b)
{
	for (size_t i = 0; i < m; i++)
		if ((end[2 * i] == a && end[2 * i + 1] == b) || (end[2 * i] == b && end[2 * i + 1] == a))
			return weight[i];
	return 0;
}

static void graph(void **state)
{
	struct tsv t;
	float x[N * 3];
	uint32_t near[N * K], end[2 * N * K];
	double far[N * K], weight[N * K];
	size_t rows = 0, pairs = 0, m = 0;
	assert_int_equal(tsv_open(&t, "tests/ref/umap_graph.tsv", &e), 0);
	while (tsv_next(&t, &e) > 0) {
		if (strcmp(t.field[0], "row") == 0)
			for (size_t j = 0; j < 3; j++)
				x[3 * rows + j] = strtof(t.field[2 + j], NULL);
		rows += strcmp(t.field[0], "row") == 0;
		if (rows == N && !m) {
			nearest_neighbours(x, N, 3, K, 1, near, far);
			m = umap_graph(end, weight, near, far, N, K, K + 1);
		}
		if (strcmp(t.field[0], "pair") != 0)
			continue;
		double want = strtod(t.field[3], NULL);
		double got = weight_of(end, weight, m, (uint32_t)atoi(t.field[1]), (uint32_t)atoi(t.field[2]));
		if (fabs(got - want) > 1e-5)
			fail_msg("pair %s %s: %.9g, scanpy has %.9g", t.field[1], t.field[2], got, want);
		pairs++;
	}
	tsv_close(&t);
	assert_true(pairs > 400);
	assert_int_equal(m, pairs);
}

/* Memberships too small for float32 are left out; a pair that is one-sided and 0 on one side is there once. */
static void no_pair_twice(void **state)
{
	uint32_t near[] = {1, 2, 0, 2, 1, 0}, end[12];
	double far[] = {1, 1e9, 1, 1, 1, 1e9}, weight[6];
	size_t m = umap_graph(end, weight, near, far, 3, 2, 2);
	for (size_t i = 0; i < m; i++)
		for (size_t j = i + 1; j < m; j++)
			assert_false((end[2 * i] == end[2 * j] && end[2 * i + 1] == end[2 * j + 1]) ||
				(end[2 * i] == end[2 * j + 1] && end[2 * i + 1] == end[2 * j]));
}

/* ---- metrics of the same rows ---- */

static void is(const char *name, double got, double tolerance)
{
	struct tsv t;
	double want = NAN;
	assert_int_equal(tsv_open(&t, "tests/ref/integration.tsv", &e), 0);
	while (tsv_next(&t, &e) > 0)
		want = strcmp(t.field[0], name) ? want : strtod(t.field[1], NULL);
	tsv_close(&t);
	if (!(fabs(got - want) <= tolerance))
		fail_msg("%s: %.12g, expected %.12g", name, got, want);
}

static double mean3(const double *v)
{
	return (v[0] + v[1] + v[2]) / 3;
}

static void metrics(void **state)
{
	enum { WIDE = 49 };
	static float x[N * 3];
	static uint32_t near[N * WIDE], row[N * K], end[2 * N * WIDE], label[N], batch[N], member[N];
	static double far[N * WIDE], least[N * K], weight[N * WIDE], score[3], again[3], value[5], vector[N * 5];
	struct tsv t;
	size_t n = 0;
	assert_int_equal(tsv_open(&t, "tests/ref/umap_graph.tsv", &e), 0);
	while (tsv_next(&t, &e) > 0)
		if (strcmp(t.field[0], "row") == 0) {
			label[n] = (uint32_t)(n % 3);
			for (size_t j = 0; j < 3; j++)
				x[3 * n + j] = strtof(t.field[2 + j], NULL);
			batch[n] = x[3 * n] > 0;
			n++;
		}
	tsv_close(&t);
	openblas_set_num_threads(1);
	bras(score, x, N, 3, label, 3, batch, 2);
	is("bras", mean3(score), 1e-9);
	nearest_neighbours(x, N, 3, 40, 1, near, far);
	sbee(score, x, N, 3, near, 40, label, 3, batch, 2, NULL, 0, 2);
	is("sbee", mean3(score), 1e-9);
	is("kmeans", kmeans(x, N, 3, 3, N, 1, 2, member), 1); /* scikit-learn begins a hundred times */
	is("kmeans", kmeans(x, N, 3, 3, N / 2, 1, 2, member), 4); /* a minimum near the least one */
	nearest_neighbours(x, N, 3, WIDE, 1, near, far);
	struct network g = {.n = N, .end = end, .m = umap_graph(end, weight, near, far, N, WIDE, WIDE + 1)};
	assert_int_equal(kbet_label(score, &g, weight, label, 3, batch, 2, &(struct search_settings){90, 0.99, 1, 1}, &e), 0);
	is("kbet_per_label", mean3(score), 1e-9);
	assert_int_equal(kbet_label(again, &g, weight, label, 3, batch, 2, &(struct search_settings){90, 0.99, 1, 2}, &e), 0);
	assert_memory_equal(again, score, sizeof score); /* with two threads */
	nearest_neighbours(x, N, 3, K, 1, row, least);
	g.m = umap_graph(end, weight, row, least, N, K, K + 1);
	assert_int_equal(eigen_largest(&g, weight, 5, value, vector, &e), 0);
	for (int i = 0; i < 5; i++)
		for (int j = i + 1; j < 5; j++)
			if (fabs(value[j]) > fabs(value[i])) {
				double v = value[i];
				value[i] = value[j];
				value[j] = v;
			}
	for (int i = 0; i < 5; i++) {
		char *name = xasprintf("eigenvalue%d", i);
		is(name, value[i], 1e-5);
		free(name);
	}
}

/* Lanczos against LAPACK: eight parts of random weights, each with the largest eigenvalue 1, and with others that are far smaller. */
static void eigenvectors(void **state)
{
	enum { PART = 100, N_ALL = 8 * PART, STEPS = 40, WANTED = 9 };
	static uint32_t end[N_ALL * STEPS * 2];
	static double weight[N_ALL * STEPS], value[WANTED], vector[N_ALL * WANTED], a[N_ALL * N_ALL], all[N_ALL], sum[N_ALL];
	struct rng r = rng_at(1, RNG_TEST, 0, 0);
	struct network g = {.n = N_ALL, .end = end};
	for (uint32_t i = 0; i < N_ALL; i++)
		for (uint32_t step = 1; step <= STEPS; step++) {
			uint32_t to = i / PART * PART + (i + step) % PART;
			end[2 * g.m] = i;
			end[2 * g.m + 1] = to;
			weight[g.m] = rng_unit(&r);
			sum[i] += weight[g.m];
			sum[to] += weight[g.m++];
		}
	for (size_t i = 0; i < g.m; i++) {
		uint32_t from = end[2 * i], to = end[2 * i + 1];
		a[from * N_ALL + to] = a[to * N_ALL + from] = weight[i] /= sqrt(sum[from] * sum[to]);
	}
	openblas_set_num_threads(1);
	assert_int_equal(eigen_largest(&g, weight, WANTED, value, vector, &e), 0);
	for (size_t p = 0; p < WANTED; p++) {
		double residual = 0;
		for (size_t i = 0; i < N_ALL; i++) {
			double off = -value[p] * vector[i * WANTED + p];
			for (size_t j = 0; j < N_ALL; j++)
				off += a[i * N_ALL + j] * vector[j * WANTED + p];
			residual += off * off;
		}
		assert_true(sqrt(residual) < 1e-8);
		for (size_t q = 0; q <= p; q++)
			assert_true(fabs(cblas_ddot(N_ALL, vector + p, WANTED, vector + q, WANTED) - (p == q)) < 1e-12);
	}
	assert_int_equal(LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'N', 'L', N_ALL, a, N_ALL, all), 0);
	for (size_t p = 0, low = 0, high = N_ALL; p < WANTED; p++)
		assert_true(fabs(value[p] - (fabs(all[low]) > fabs(all[high - 1]) ? all[low++] : all[--high])) < 1e-12);
	g.m = 0; /* zeros: any vectors will do */
	assert_int_equal(eigen_largest(&g, weight, WANTED, value, vector, &e), 0);
	assert_true(value[0] == 0 && fabs(cblas_dnrm2(N_ALL, vector, WANTED) - 1) < 1e-12);
}

/* Two strong components, one weak one. */
static void components(void **state)
{
	uint32_t end[] = {0, 1, 1, 2, 2, 0, 2, 3}, member[4], n;
	struct network g = {.n = 4, .m = 4, .end = end};
	assert_int_equal(network_members(&g, 1, member, &n, &e), 0);
	assert_true(n == 2 && member[0] == member[1] && member[1] == member[2] && member[2] != member[3]);
	assert_int_equal(network_members(&g, 0, member, &n, &e), 0);
	assert_int_equal(n, 1);
}

/* ---- silhouettes ---- */

static double value(uint32_t set, uint32_t at)
{
	uint32_t ctr[4] = {at, set}, out[4];
	rng_block(1, RNG_TEST, ctr, out);
	return out[0] / 4294967296.0;
}

/* The width of row i among the rows of `within` (NULL: all), by group. */
static double plain(const float *x, size_t n, size_t d, const uint32_t *group, const uint32_t *within, size_t i)
{
	double sum[64] = {0}, count[64] = {0}, b = INFINITY, cells = 0;
	int groups = 0;
	for (size_t k = 0; k < n; k++) {
		double square = 0;
		if (within && within[k] != within[i])
			continue;
		for (size_t j = 0; j < d; j++)
			square += pow((double)x[i * d + j] - (double)x[k * d + j], 2);
		sum[group[k]] += sqrt(square);
		groups += count[group[k]]++ == 0;
		cells++;
	}
	if (groups < 2 || (within && groups == (int)cells))
		return NAN;
	for (int g = 0; g < 64; g++)
		if (count[g] > 0 && (uint32_t)g != group[i])
			b = fmin(b, sum[g] / count[g]);
	double a = count[group[i]] > 1 ? sum[group[i]] / (count[group[i]] - 1) : 0;
	return count[group[i]] < 2 || (a <= 0 && b <= 0) ? 0 : (b - a) / fmax(a, b);
}

static void same(double got, double want)
{
	if (isnan(got) != isnan(want) || fabs(got - want) > 1e-9)
		fail_msg("%.17g, expected %.17g", got, want);
}

/* Blocks and tiles that end anywhere; few groups, many, one; equal rows, rows far from 0, one very far. */
static void widths(void **state)
{
	openblas_set_num_threads(1);
	for (uint32_t set = 0; set < 24; set++) {
		size_t n = set % 6 == 5 ? 1500 : 3 + (size_t)(value(set, 1) * 400), d = 1 + (size_t)(value(set, 2) * 40);
		float *x = xmalloc(n * d * sizeof *x);
		uint32_t *label = xmalloc(2 * n * sizeof *label), *batch = label + n;
		double *a = xmalloc(4 * n * sizeof *a);
		for (size_t i = 0; i < n; i++) {
			size_t as = set % 4 == 1 ? i / 3 : i;
			label[i] = (uint32_t)(value(set, 10 + (uint32_t)i) * (set % 3 == 2 ? 60 : 1 + set % 5));
			batch[i] = (uint32_t)(value(set, 5000 + (uint32_t)i) * (set % 7 == 3 ? 60 : 3));
			for (size_t j = 0; j < d; j++)
				x[i * d + j] = (float)(value(set, 10000 + (uint32_t)(as * d + j)) * (set % 8 == 6 ? 1e-3 : 1) +
					(set % 8 == 6 ? 1e3 : 0) + (set % 5 == 4 && i == 0 ? 1e9 : 0));
		}
		silhouettes(x, n, d, label, batch, NULL, 0, 1, a, a + n);
		silhouettes(x, n, d, label, batch, NULL, 0, 3, a + 2 * n, a + 3 * n);
		assert_memory_equal(a, a + 2 * n, 2 * n * sizeof *a);
		for (size_t i = 0; i < n; i += 1 + n / 50) {
			same(a[i], plain(x, n, d, label, NULL, i));
			same(a[n + i], plain(x, n, d, batch, label, i));
		}
		free(x);
		free(label);
		free(a);
	}
}

/* Of some rows only, and rows that stand for others. */
static void drawn(void **state)
{
	enum { ROWS = 1300, D = 7, TYPES = 5, BATCHES = 3, DRAWN = 600 };
	static float x[ROWS * D];
	static uint32_t label[ROWS], batch[ROWS], group[ROWS], of[ROWS];
	static double all[2 * ROWS], some[2 * ROWS], weight[ROWS], sum[TYPES * BATCHES], whole[TYPES * BATCHES];
	for (uint32_t i = 0; i < ROWS; i++) {
		label[i] = (uint32_t)(value(1, i) * value(2, i) * TYPES);
		batch[i] = (uint32_t)(value(3, i) * BATCHES);
		group[i] = label[i] * BATCHES + batch[i];
		whole[group[i]]++;
		for (uint32_t j = 0; j < D; j++)
			x[i * D + j] = (float)value(4, i * D + j) + (float)label[i] / 9;
	}
	size_t m = strata_sample(of, weight, group, ROWS, TYPES * BATCHES, DRAWN, 1);
	assert_in_range(m, DRAWN - TYPES * BATCHES, DRAWN);
	silhouettes(x, ROWS, D, label, batch, NULL, 0, 1, all, all + ROWS);
	silhouettes(x, ROWS, D, label, batch, of, m, 2, some, some + m);
	for (size_t i = 0; i < m; i++) {
		assert_true(i == 0 || of[i] > of[i - 1]);
		sum[group[of[i]]] += weight[i];
		same(some[i], all[of[i]]);
		same(some[m + i], all[ROWS + of[i]]);
	}
	for (int g = 0; g < TYPES * BATCHES; g++)
		same(sum[g], whole[g]);
	assert_int_equal(strata_sample(of, weight, group, ROWS, TYPES * BATCHES, ROWS, 1), ROWS);
}

/* The rows that are found are at their true distances; with equal rows, rows of size 1e30, and more rows asked for than the cells near it have. */
static void approximate(void **state)
{
	enum { MOST = 4500 };
	openblas_set_num_threads(1);
	for (uint32_t set = 0; set < 5; set++) {
		size_t n = set == 3 ? 40 : MOST, d = 12, k = set == 3 ? 39 : 20, found = 0;
		float *x = xmalloc(n * d * sizeof *x);
		uint32_t *near = xmalloc(3 * n * k * sizeof *near);
		double *far = xmalloc(3 * n * k * sizeof *far);
		for (size_t i = 0; i < n; i++)
			for (size_t j = 0; j < d; j++)
				x[i * d + j] =
					(float)((set == 1 && i % 3 ? 1 : value(set, (uint32_t)(i * d + j))) * (set == 2 ? 1e30 : 1)) +
					(set == 4 ? (float)(i % 7) : 0);
		nearest_neighbours(x, n, d, k, 1, near, far);
		double recall = inverted_neighbours(x, n, d, k, 0.95, 1, 1, near + n * k, far + n * k);
		assert_true(inverted_neighbours(x, n, d, k, 0.95, 1, 3, near + 2 * n * k, far + 2 * n * k) == recall);
		assert_memory_equal(near + n * k, near + 2 * n * k, n * k * sizeof *near);
		for (size_t i = 0; i < n; i++) {
			const double *of = far + (n + i) * k;
			for (size_t j = 0; j < k; j++) {
				const float *a = x + i * d, *b = x + near[(n + i) * k + j] * d;
				double square = 0;
				for (size_t l = 0; l < d; l++)
					square += ((double)a[l] - (double)b[l]) * ((double)a[l] - (double)b[l]);
				assert_true(fabs(of[j] - sqrt(square)) <= 1e-12 * of[j] && near[(n + i) * k + j] != i);
				found += of[j] <= far[i * k + k - 1];
			}
		}
		assert_true(recall >= 0.95 && fabs((double)found / (double)(n * k) - recall) < 0.02);
		assert_true(set != 3 || !memcmp(near, near + n * k, n * k * sizeof *near));
		free(x);
		free(near);
		free(far);
	}
}

/* By hand: two types of three cells and one of two. */
static void example(void **state)
{
	const float x[] = {0, 0, 0, 1, 1, 0, 5, 5, 5, 6, 6, 5, 10, 0, 9, 1};
	const uint32_t label[] = {0, 0, 0, 1, 1, 1, 2, 2}, cluster[] = {0, 0, 1, 1, 1, 1, 2, 0}, batch[] = {0, 1, 0, 0, 1, 1, 0, 0};
	double by_label[8], by_batch[8], mean = 0, nmi, ari;
	silhouettes(x, 8, 2, label, batch, NULL, 0, 1, by_label, by_batch);
	for (int i = 0; i < 8; i++)
		mean += by_label[i] / 8;
	same((1 + mean) / 2, 0.9081832648);
	same(1 - (fabs(by_batch[0]) + fabs(by_batch[1]) + fabs(by_batch[2])) / 3, 0.9023689271);
	same(1 - (fabs(by_batch[3]) + fabs(by_batch[4]) + fabs(by_batch[5])) / 3, 0.8047378541);
	assert_true(isnan(by_batch[6]) && isnan(by_batch[7]));
	assert_int_equal(network_agreement(label, cluster, 8, &nmi, &ari, &e), 0);
	assert_true(fabs(nmi - 0.546882891) < 1e-9 && fabs(ari - 0.304347826) < 1e-9);
}

/* ---- partitions ---- */

static void partitions(void **state)
{
	const uint32_t one[] = {1, 1, 1, 1}, own[] = {0, 1, 2, 3}, two[] = {3, 3, 2, 2}, other[] = {1, 1, 3, 3};
	double nmi, ari;
	assert_int_equal(network_agreement(one, one, 4, &nmi, &ari, &e), 0);
	assert_true(nmi == 1 && ari == 1);
	assert_int_equal(network_agreement(own, own, 4, &nmi, &ari, &e), 0);
	assert_true(fabs(nmi - 1) < 1e-12 && ari == 1);
	assert_int_equal(network_agreement(one, two, 4, &nmi, &ari, &e), 0);
	assert_true(fabs(nmi) < 1e-12 && fabs(ari) < 1e-12);
	assert_int_equal(network_agreement(two, other, 4, &nmi, &ari, &e), 0);
	assert_true(fabs(nmi - 1) < 1e-12 && fabs(ari - 1) < 1e-12);
	assert_int_equal(network_agreement(own, own, 1, &nmi, &ari, &e), 0);
	assert_true(nmi == 1 && ari == 1);
}

/*
 * Where an iteration of Leiden gains nothing, no move of one vertex gains anything [Traag et al. 2019]. The gain of a move of v from part a to b
 * is, times m, w(v, b) - w(v, a) - k_v (K_b - K_a) / 2m, with K without v. After one iteration 82 such moves are left.
 */
static void settled(void **state)
{
	enum { VERTICES = 600, EDGES = 6000 };
	static uint32_t end[2 * EDGES], member[VERTICES];
	static double weight[EDGES], to[VERTICES], degree[VERTICES], sum[VERTICES];
	struct network g = {.n = VERTICES, .m = EDGES, .end = end};
	struct rng rng = rng_at(1, RNG_TEST, 0, 0);
	double all = 0;
	int moves = 0;
	for (size_t i = 0; i < EDGES; i++) {
		uint32_t a = rng_below(&rng, VERTICES), step = 1 + rng_below(&rng, i % 3 ? VERTICES - 1 : 40);
		end[2 * i] = a;
		end[2 * i + 1] = (a + step) % VERTICES;
		weight[i] = 0.1 + rng_unit(&rng);
		degree[a] += weight[i];
		degree[end[2 * i + 1]] += weight[i];
		all += 2 * weight[i];
	}
	assert_true(network_leiden(&g, weight, 1, 5, member, &e) > 1);
	for (size_t v = 0; v < VERTICES; v++)
		sum[member[v]] += degree[v];
	for (uint32_t v = 0; v < VERTICES; v++) {
		memset(to, 0, sizeof to);
		for (size_t i = 0; i < EDGES; i++)
			if (end[2 * i] == v || end[2 * i + 1] == v)
				to[member[end[2 * i] == v ? end[2 * i + 1] : end[2 * i]]] += weight[i];
		uint32_t a = member[v];
		for (uint32_t b = 0; b < VERTICES; b++)
			moves += b != a && to[b] - to[a] - degree[v] * (sum[b] - sum[a] + degree[v]) / all > 1e-9 * all;
	}
	assert_int_equal(moves, 0);
}

/* ---- mixing ---- */

/* Neighbours at equal distances: LISI is 1 / sum of squared shares, whatever beta. */
static void mixing(void **state)
{
	const uint32_t near[] = {1, 2, 3, 0, 2, 3, 0, 1, 3, 0, 1, 2}, group[] = {0, 0, 1, 1}, alone[] = {0, 0, 0, 0};
	const double far[] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, zero[12] = {0};
	double lisi[4];
	mixing_lisi(&(struct grouping){group, 2, lisi}, 1, near, far, 4, 3, 2, 1);
	for (int i = 0; i < 4; i++)
		same(lisi[i], 9.0 / 5);
	mixing_lisi(&(struct grouping){group, 2, lisi}, 1, near, zero, 4, 3, 2, 1);
	same(lisi[0], 9.0 / 5);
	mixing_lisi(&(struct grouping){alone, 1, lisi}, 1, near, far, 4, 3, 2, 1);
	same(lisi[3], 1);
	/* k = 4 sees all cells, as expected; k = 2 sees two cells of one group in half of the cells: chi2 = 2, p = .157 */
	same(mixing_kbet(near, 4, 3, 4, group, 2), 1);
	same(mixing_kbet(near, 4, 3, 2, group, 2), 1);
}

/* ---- all metrics ---- */

static int parts, inside; /* of the progress; igraph runs */

static void said(const char *fmt, ...)
{
	parts++;
}

static void runs(const char *message)
{
	inside += message ? 1 : -1;
}

/* Widths against plain sums; PCR of all components is the share of the squares between batches. What is not known has a reason. */
static void scored(void **state)
{
	enum { CELLS = 60, D = 5, TYPES = 3 };
	static float x[CELLS * D];
	uint32_t y[CELLS], batch[CELLS];
	double mean[2][D] = {{0}}, between = 0, all = 0, label[TYPES] = {0}, widths[TYPES] = {0}, width = 0;
	uint8_t wanted[INTEGRATION_METRICS];
	struct integration_scores s;
	struct integration_cells c = {.n = CELLS,
		.k = TYPES,
		.batches = 2,
		.y = y,
		.batch = batch,
		.threads = 1,
		.seed = 1,
		.components = SIZE_MAX,
		.exact = 1000};
	memset(wanted, 1, sizeof wanted);
	for (uint32_t i = 0; i < CELLS; i++) {
		y[i] = i % TYPES;
		batch[i] = i / 3 % 2;
		for (uint32_t j = 0; j < D; j++)
			mean[batch[i]][j] += x[i * D + j] = (float)(value(77, i * D + j) + (y[i] == j) + 0.3 * batch[i]);
	}
	for (size_t j = 0; j < D; j++) {
		double whole = (mean[0][j] + mean[1][j]) / CELLS;
		for (size_t i = 0; i < CELLS; i++) {
			between += pow(mean[batch[i]][j] / (CELLS / 2.0) - whole, 2);
			all += pow((double)x[i * D + j] - whole, 2);
		}
	}
	for (size_t i = 0; i < CELLS; i++) {
		double w = plain(x, CELLS, D, y, NULL, i);
		width += (1 + w) / 2 / CELLS;
		label[y[i]] += (1 + w) / 2 / (CELLS / TYPES);
		widths[y[i]] += (1 - fabs(plain(x, CELLS, D, batch, y, i))) / (CELLS / TYPES);
	}
	c.progress = said;
	c.library = runs;
	assert_int_equal(integration_score(&s, &c, x, D, wanted, &e), 0);
	assert_true(parts > 3 && !inside);
	same(s.value[SILHOUETTE_LABEL], width);
	same(s.value[SILHOUETTE_BATCH], (widths[0] + widths[1] + widths[2]) / 3);
	same(s.value[ISOLATED_LABELS], (label[0] + label[1] + label[2]) / 3); /* all types are in two batches */
	same(s.value[PCR], between / all);
	same(s.class[SILHOUETTE_LABEL][1], label[1]);
	for (int m = 0; m < INTEGRATION_METRICS; m++)
		assert_true(m == PCR_COMPARISON || !isnan(s.value[m]) || (s.why[m] && strcmp(s.why[m], "not computed")));
	assert_true(isnan(s.value[CLISI]) && strstr(s.why[CLISI], "90"));
	assert_true(s.value[KMEANS_ARI] > 0.5 && s.value[LEIDEN_NMI] > 0.5 && s.value[CONNECTIVITY] > 0.9);
	integration_scores_release(&s);
	c.batch = NULL;
	c.progress = NULL;
	c.library = NULL;
	assert_int_equal(integration_score(&s, &c, x, D, wanted, &e), 0);
	same(s.value[SILHOUETTE_LABEL], width);
	for (int m = 0; m < INTEGRATION_METRICS; m++)
		assert_true(!integration_kind[m].needs_batches || (isnan(s.value[m]) && s.why[m]));
	integration_scores_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(graph), cmocka_unit_test(no_pair_twice), cmocka_unit_test(metrics),
		cmocka_unit_test(eigenvectors), cmocka_unit_test(components), cmocka_unit_test(widths), cmocka_unit_test(drawn),
		cmocka_unit_test(approximate), cmocka_unit_test(example), cmocka_unit_test(partitions), cmocka_unit_test(settled),
		cmocka_unit_test(mixing), cmocka_unit_test(scored)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
