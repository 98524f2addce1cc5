/* What the readers of outside files stand on: entries sorted through the disk, names to numbers, loops over threads. The files
 * themselves are tested in h5tok.bats and fuzz_h5ad. */
#include "pool.h"
#include "spill.h"
#include "strmap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t state = 99;

static uint32_t next(void)
{
	state = state * 1664525u + 1013904223u;
	return state >> 8;
}

/* n entries in random order through a buffer of `max`: each row comes back with its entries in the order of arrival. */
static void spill(size_t n, uint32_t rows, size_t max)
{
	struct error e;
	struct spill s;
	spill_init(&s, rows, max);
	struct spill_entry *all = xmalloc((n + 1) * sizeof *all);
	for (size_t i = 0; i < n; i++) {
		all[i] = (struct spill_entry){next() % rows, (uint32_t)i, next()};
		assert_int_equal(spill_add(&s, all[i].row, all[i].col, all[i].value, &e), 0);
	}
	assert_int_equal(spill_finish(&s, &e), 0);
	assert_int_equal(s.written > 0, n > max);
	uint32_t row = 0;
	size_t seen = 0, entries, got;
	while ((got = spill_plan(&s, 7, 50, &entries)) > 0) {
		uint64_t start[8];
		uint32_t *col = xmalloc(entries * sizeof *col), *value = xmalloc(entries * sizeof *value);
		assert_true(got == 1 || entries <= 50);
		assert_int_equal(spill_read(&s, got, start, col, value, &e), 0);
		assert_int_equal(start[got], entries);
		for (size_t i = 0; i < got; i++, row++) {
			for (uint64_t k = start[i]; k < start[i + 1]; k++, seen++) {
				assert_int_equal(all[col[k]].row, row);
				assert_int_equal(all[col[k]].value, value[k]);
				assert_true(k == start[i] || col[k] > col[k - 1]);
			}
		}
		free(col);
		free(value);
	}
	assert_int_equal(seen, n);
	assert_int_equal(row, rows);
	spill_release(&s);
	free(all);
}

static void spills(void **unused)
{
	spill(0, 5, 10);
	spill(10, 1, 10);
	spill(1000, 37, 2000);
	spill(1000, 37, 1000);
	spill(1001, 37, 1000);
	spill(20000, 5000, 64);
	spill(3000, 70000, 100);
	spill(3000, 5000000, 1000);     /* three digits of the radix sort */
}

static void maps(void **unused)
{
	struct strmap m = {0};
	char key[32];
	assert_int_equal(strmap_get(&m, "x", 1), STRMAP_NONE);
	for (uint32_t i = 0; i < 50000; i++)
		assert_int_equal(strmap_put(&m, key, (size_t)snprintf(key, sizeof key, "gene%u", i), i), i);
	assert_int_equal(strmap_put(&m, "gene7", 5, 1), 7);
	for (uint32_t i = 0; i < 50000; i++)
		assert_int_equal(strmap_get(&m, key, (size_t)snprintf(key, sizeof key, "gene%u", i)), i);
	assert_int_equal(strmap_get(&m, "gene", 4), STRMAP_NONE);
	assert_int_equal(strmap_get(&m, "", 0), STRMAP_NONE);
	strmap_put(&m, "", 0, 5);
	assert_int_equal(strmap_get(&m, "", 0), 5);
	strmap_release(&m);
}

static void ensembl_ids(void **unused)
{
	static const struct { const char *s; int yes; size_t base; } t[] = {
		{"ENSG00000141510", 1, 15}, {"ENSG00000141510.17", 1, 15}, {"ENSMUSG00000059552", 1, 18}, {"ENSGR0000182378", 1, 15},
		{"ENST00000269305", 0, 0}, {"ENSG", 0, 0}, {"ENSG00000141510.", 0, 0}, {"ENSG00000141510.x", 0, 0}, {"TP53", 0, 0},
		{"ENSG00000182378.14_PAR_Y", 0, 0}, {"ENSGABCDEFGHIJK", 0, 0}, {"", 0, 0}, {"ENSG000001415100000000", 1, 22},
	};
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		size_t base = 0;
		assert_int_equal(ensembl_id(t[i].s, strlen(t[i].s), &base), t[i].yes);
		if (t[i].yes)
			assert_int_equal(base, t[i].base);
	}
}

static atomic_int calls[1000];

static void count_call(void *arg, size_t i, int thread)
{
	if (thread < 0 || thread >= *(int *)arg)
		abort();
	atomic_fetch_add(&calls[i], 1);
}

static void loops(void **unused)
{
	int rounds = 0;
	for (int k = 0; k < 2000; k++) {
		int threads = 1 + k % 5;
		size_t n = (size_t)(k * 7 % 100);
		memset(calls, 0, sizeof calls);
		pool_for(threads, n, count_call, &threads);
		for (size_t i = 0; i < 1000; i++)
			assert_int_equal(calls[i], i < n);
		rounds++;
	}
	assert_int_equal(rounds, 2000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spills), cmocka_unit_test(maps), cmocka_unit_test(ensembl_ids), cmocka_unit_test(loops),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
