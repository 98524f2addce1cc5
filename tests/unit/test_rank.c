/* Rank value encoding and medians against the plain definition. */
#include "encode/medians.h"
#include "encode/rank.h"
#include "encode/ranksort.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static uint32_t state = 12345;

static uint32_t next(void)
{
	state = state * 1664525u + 1013904223u;
	return state >> 8;
}

struct entry {
	double key;
	uint32_t token, count;
};

static int by_key(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	if (x->key != y->key)
		return x->key < y->key ? 1 : -1;
	return (x->token > y->token) - (x->token < y->token);
}

/* Encode n random genes out of `table` and compare with qsort on the exact keys. */
static void check(size_t table, size_t n, uint32_t count_max, int equal_medians, int shared)
{
	uint32_t *token = xmalloc(table * sizeof *token), *gene = xmalloc(table * sizeof *gene), *count = xmalloc(table * sizeof *count);
	double *median = xmalloc((table + 2) * sizeof *median);
	struct entry *want = xmalloc(table * sizeof *want);
	for (size_t i = 0; i < table; i++) {
		token[i] = next() % 10 == 0 ? RANK_UNKNOWN : (uint32_t)(shared ? i / 2 : table - 1 - i) + 2;
		if (next() % 50 == 0 && i)
			median[i + 2] = median[i + 1];
		else
			median[i + 2] = equal_medians ? 1.25 : exp((double)(next() % 100000) / 7000 - 9);
	}
	median[0] = median[1] = NAN;
	size_t k = 0, known = 0;
	uint64_t unknown = 0;
	for (size_t i = 0; i < table && k < n; i++) {
		if (table - i > n - k && next() % table >= n)
			continue;
		gene[k] = (uint32_t)i;
		count[k++] = next() % 4 ? 1 + next() % 3 : 1 + next() % count_max;
	}
	for (size_t i = 0; i < k; i++) {
		uint32_t t = token[gene[i]];
		if (t == RANK_UNKNOWN) {
			unknown += count[i];
			continue;
		}
		size_t j = 0;
		while (j < known && want[j].token != t)
			j++;
		if (!shared || j == known) {
			j = known++;
			want[j] = (struct entry){0, t, 0};
		}
		want[j].count += count[i];
	}
	for (size_t i = 0; i < known; i++)
		want[i].key = (double)want[i].count / median[want[i].token];
	qsort(want, known, sizeof *want, by_key);
	struct rank_table t;
	struct rank_cell c = {0};
	rank_table_init(&t, token, table, median);
	assert_int_equal(rank_encode(&c, &t, gene, count, k, 0, 1), unknown);
	assert_int_equal(c.n, known);
	for (size_t i = 0; i < known; i++) {
		assert_int_equal(c.token[i], want[i].token);
		assert_int_equal(c.count[i], want[i].count);
	}
	rank_table_release(&t);
	rank_cell_release(&c);
	free(token);
	free(gene);
	free(count);
	free(median);
	free(want);
}

static void orders_are_exact(void **unused)
{
	for (int i = 0; i < 60; i++) {
		check(3000, 1 + next() % 2900, 20, 0, 0);
		check(300, 1 + next() % 250, 500, 0, 0);
		check(5, 1 + next() % 5, 3, 0, 0);
	}
	check(9000, 8000, 2000000, 0, 0); /* more than 2^12 genes, and keys beyond 32 octaves */
	check(40000, 36000, 5, 0, 0);
	check(90000, 70000, 5, 0, 0); /* more than 2^16 */
	check(3000, 2500, 3, 1, 0); /* little but ties */
	check(20000, 20000, 2, 1, 0);
}

/* ---- ranksort alone ---- */

struct item {
	double key;
	uint32_t token, number;
};

static int by_item(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	if (x->key != y->key)
		return x->key < y->key ? 1 : -1;
	return (x->token > y->token) - (x->token < y->token);
}

enum counts { SMALL, TIES, EXTREME, ZEROS };

/* Entries of n genes with random medians, in random order, against qsort. low, high: exponents of 2 of the medians. */
static void sort(size_t n, enum counts kind, int low, int high)
{
	size_t genes = n + n / 8 + 1;
	uint32_t *gene = xmalloc(genes * sizeof *gene), *count = xmalloc(n * sizeof *count), *token = xmalloc(genes * sizeof *token);
	uint32_t *item = xmalloc(n * sizeof *item), *other = xmalloc(n * sizeof *other), *sorted = xmalloc(n * sizeof *sorted);
	double *median = xmalloc(genes * sizeof *median);
	struct item *want = xmalloc(n * sizeof *want);
	struct ranksort_entries in = {.gene = gene, .count = count, .token = token, .median = median, .least = INFINITY};
	for (size_t i = 0; i < genes; i++) {
		gene[i] = (uint32_t)i;
		token[i] = (uint32_t)(genes - i);
		/* a few medians are infinite: the key is 0 */
		median[i] = kind == TIES ? ldexp(1, low + (int)(next() % 3))
					 : ldexp(1 + (double)(next() % 100000) / 1e5, low + (int)(next() % (uint32_t)(high - low + 1)));
		if (i && next() % 20 == 0) {
			median[i] = INFINITY;
			continue;
		}
		in.least = fmin(in.least, median[i]);
		in.most = fmax(in.most, median[i]);
	}
	for (size_t i = genes; i > 1; i--) {
		size_t j = next() % i;
		uint32_t g = gene[j];
		gene[j] = gene[i - 1];
		gene[i - 1] = g;
	}
	for (size_t i = 0; i < n; i++) {
		count[i] = kind == TIES ? 1u << next() % 3 : 1 + next() % 50;
		if (kind == EXTREME && next() % 4 == 0)
			count[i] = next() % 2 ? UINT32_MAX - next() % 3 : 1;
		if (kind == ZEROS && next() % 3)
			count[i] = 0;
		want[i] = (struct item){(double)count[i] / median[gene[i]], token[gene[i]], (uint32_t)i};
	}
	qsort(want, n, sizeof *want, by_item);
	size_t known = ranksort(&in, n, item, sorted, other), above = 0;
	while (above < n && want[above].key > 0)
		above++;
	assert_int_equal(known, above);
	for (size_t i = 0; i < known; i++)
		assert_true(item[i] == want[i].number && sorted[i] == want[i].token);
	unsigned char *seen = xcalloc(n, 1);
	for (size_t i = 0; i < n; i++) { /* then the other entries, each once */
		assert_true(item[i] < n && !seen[item[i]]);
		seen[item[i]] = 1;
	}
	free(seen);
	free(gene);
	free(count);
	free(token);
	free(item);
	free(other);
	free(sorted);
	free(median);
	free(want);
}

static void sorted_as_by_qsort(void **unused)
{
	/* around each number of entries at which the layout of an item changes */
	static const size_t n[] = {1, 2, 3, 24, 25, 26, 100, 511, 512, 513, 4095, 4096, 4097, 16384, 16385, 32768, 32769, 65536, 65537};
	for (enum counts kind = SMALL; kind <= ZEROS; kind++)
		for (size_t k = 0; k < sizeof n / sizeof *n; k++)
			for (int i = 0; i < (n[k] < 1000 ? 20 : 1); i++) {
				sort(n[k], kind, -4, 6);
				sort(n[k], kind, 0, 0);
				sort(n[k], kind, -900, 900); /* keys over nearly all exponents of a double */
			}
}

static void shared_tokens_are_added(void **unused)
{
	for (int i = 0; i < 20; i++)
		check(400, 1 + next() % 390, 50, 0, 1);
}

static void empty_and_unknown(void **unused)
{
	uint32_t token[2] = {RANK_UNKNOWN, 1}, gene[2] = {0, 1}, count[2] = {5, 0};
	double median[2] = {NAN, 2};
	struct rank_table t;
	struct rank_cell c = {0};
	rank_table_init(&t, token, 2, median);
	assert_int_equal(rank_encode(&c, &t, gene, count, 0, 0, 1), 0);
	assert_int_equal(c.n, 0);
	assert_int_equal(rank_encode(&c, &t, gene, count, 2, 0, 1), 5);
	assert_int_equal(c.n, 0);
	rank_table_release(&t);
	rank_cell_release(&c);
}

/* The sum of two counts of a token does not wrap. */
static void sums_end_at_32_bits(void **unused)
{
	uint32_t token[3] = {1, 1, 2}, gene[3] = {0, 1, 2}, count[3] = {4000000000u, 4000000000u, 4200000000u};
	double median[3] = {NAN, 1, 1};
	struct rank_table t;
	struct rank_cell c = {0};
	rank_table_init(&t, token, 3, median);
	assert_int_equal(rank_encode(&c, &t, gene, count, 3, 0, 1), 0);
	assert_int_equal(c.n, 2);
	assert_int_equal(c.token[0], 1);
	assert_int_equal(c.count[0], UINT32_MAX);
	assert_int_equal(c.count[1], 4200000000u);
	rank_table_release(&t);
	rank_cell_release(&c);
}

static int rising(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* One gene a column; kind decides how its values are made. Compare with the sorted values. */
static void fit(size_t cells, int kind)
{
	enum { GENES = 4 };
	uint64_t *start = xmalloc((cells + 1) * sizeof *start), *total = xmalloc(cells * sizeof *total);
	uint32_t *gene = xmalloc(cells * GENES * sizeof *gene), *count = xmalloc(cells * GENES * sizeof *count), to[GENES] = {2, 0, 3, 1};
	double *v[GENES];
	size_t n[GENES] = {0};
	for (int g = 0; g < GENES; g++)
		v[g] = xmalloc(cells * sizeof *v[g]);
	start[0] = 0;
	for (size_t i = 0; i < cells; i++) {
		/* totals: random; all the same; sorted; two far apart */
		total[i] = kind == 0 ? 1000 + next() % 9000 : kind == 1 ? 10000 : kind == 2 ? 1000 + i : i % 2 ? 1000 : 900000;
		uint64_t k = start[i];
		for (uint32_t g = 0; g < GENES; g++) {
			if (g == 3 && i)
				continue; /* found in one cell only */
			if (next() % 3 == 0 && i > 1)
				continue;
			gene[k] = g;
			count[k] = g == 1 ? 7 : 1 + next() % (g ? 900 : 3);
			v[g][n[g]++] = (double)count[k] / (double)total[i] * 1e4;
			k++;
		}
		start[i + 1] = k;
	}
	struct medians f;
	int passes = 0;
	medians_init(&f, GENES);
	do {
		for (size_t i = 0; i < cells; i += 100)
			medians_add(&f, cells - i < 100 ? cells - i : 100, start + i, gene, count, total + i, to, 1 + kind % 3);
		assert_true(++passes < 12);
	} while (medians_next(&f));
	for (int g = 0; g < GENES; g++) {
		qsort(v[g], n[g], sizeof *v[g], rising);
		double got = f.gene[to[g]].median, want = (v[g][(n[g] - 1) / 2] + v[g][n[g] / 2]) / 2;
		size_t below = 0, above = 0;
		for (size_t i = 0; i < n[g]; i++) {
			below += v[g][i] < got;
			above += v[g][i] > got;
		}
		assert_int_equal(f.gene[to[g]].n, n[g]);
		if (n[g] <= 1000)
			assert_true(fabs(got - want) <= 1e-12 * want);
		assert_true((double)below <= 0.501 * (double)n[g] && (double)above <= 0.501 * (double)n[g]);
	}
	medians_release(&f);
	for (int g = 0; g < GENES; g++)
		free(v[g]);
	free(start);
	free(total);
	free(gene);
	free(count);
}

static void medians(void **unused)
{
	const size_t cells[] = {1, 2, 3, 10, 500, 5000, 200000};
	for (int kind = 0; kind < 4; kind++)
		for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
			fit(cells[i], kind);
}

static void no_values(void **unused)
{
	struct medians f;
	medians_init(&f, 3);
	assert_int_equal(medians_next(&f), 0);
	assert_true(isnan(f.gene[1].median));
	medians_release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(orders_are_exact),
		cmocka_unit_test(sorted_as_by_qsort),
		cmocka_unit_test(shared_tokens_are_added),
		cmocka_unit_test(empty_and_unknown),
		cmocka_unit_test(sums_end_at_32_bits),
		cmocka_unit_test(medians),
		cmocka_unit_test(no_values),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
