/* Entries in any order come back by rows, from memory and from the disk. */
#include "anndata/spill.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static void in_memory(void **unused)
{
	spill(0, 5, 10);
	spill(1, 1, 10);
	spill(10, 1, 10); /* the buffer is full, but nothing comes after */
	spill(1000, 37, 2000);
	spill(1000, 37, 1000);
	spill(3000, 2048, 3000); /* the largest number of rows that one digit of the radix sort takes, and one more */
	spill(3000, 2049, 3000);
}

static void on_disk(void **unused)
{
	spill(11, 1, 10);
	spill(1001, 37, 1000);
	spill(20000, 5000, 64);
	spill(20000, 3, 64); /* rows longer than what is read ahead from a run */
	spill(3000, 70000, 100);
	spill(3000, 5000000, 1000); /* three digits of the radix sort */
	spill(50, 7, 1);
}

/* The last row is an extreme of every digit. */
static void rows_at_the_ends(void **unused)
{
	struct error e;
	struct spill s;
	uint64_t start[3];
	uint32_t col[4], value[4];
	size_t entries;
	for (size_t max = 1; max < 6; max++) {
		spill_init(&s, 1u << 22, max);
		assert_int_equal(spill_add(&s, (1u << 22) - 1, 1, UINT32_MAX, &e), 0);
		assert_int_equal(spill_add(&s, 0, 2, 5, &e), 0);
		assert_int_equal(spill_add(&s, (1u << 22) - 1, 0, 6, &e), 0);
		assert_int_equal(spill_finish(&s, &e), 0);
		assert_int_equal(spill_plan(&s, 1, 100, &entries), 1);
		assert_int_equal(entries, 1);
		assert_int_equal(spill_read(&s, 1, start, col, value, &e), 0);
		assert_true(start[1] == 1 && col[0] == 2 && value[0] == 5);
		while (spill_plan(&s, 2, 1, &entries) == 2)
			assert_int_equal(spill_read(&s, 2, start, col, value, &e), 0);
		assert_int_equal(entries, 2); /* one row always fits, whatever the limit of entries */
		assert_int_equal(spill_read(&s, 1, start, col, value, &e), 0);
		assert_true(start[1] == 2 && col[0] == 1 && value[0] == UINT32_MAX && col[1] == 0 && value[1] == 6);
		assert_int_equal(spill_plan(&s, 2, 1, &entries), 0);
		spill_release(&s);
	}
}

static void errors(void **unused)
{
	struct error e;
	struct spill s;
	char *old = getenv("TMPDIR"), *saved = old ? xstrdup(old) : NULL;
	setenv("TMPDIR", "/dev/null/none", 1);
	spill_init(&s, 10, 2);
	assert_int_equal(spill_add(&s, 1, 1, 1, &e), 0);
	assert_int_equal(spill_add(&s, 2, 1, 1, &e), 0);
	assert_int_equal(spill_add(&s, 3, 1, 1, &e), -1);
	assert_non_null(strstr(e.msg, "/dev/null/none"));
	spill_release(&s);
	if (saved)
		setenv("TMPDIR", saved, 1);
	else
		unsetenv("TMPDIR");
	free(saved);
	/* a file that has lost its end */
	spill_init(&s, 10, 2);
	for (uint32_t i = 0; i < 9; i++)
		assert_int_equal(spill_add(&s, i, i, i, &e), 0);
	assert_int_equal(spill_finish(&s, &e), 0);
	assert_int_equal(ftruncate(s.fd, 30), 0);
	uint64_t start[11];
	uint32_t col[9], value[9];
	assert_int_equal(spill_read(&s, 10, start, col, value, &e), -1);
	assert_string_equal(e.msg, "reading a temporary file: it is too short");
	spill_release(&s);
	spill_release(&s); /* a zeroed struct */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_memory),
		cmocka_unit_test(on_disk),
		cmocka_unit_test(rows_at_the_ends),
		cmocka_unit_test(errors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
