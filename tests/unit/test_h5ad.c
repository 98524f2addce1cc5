/* What the readers of outside files use: names to numbers, loops over threads. The files themselves are tested in h5tok.bats and
 * fuzz_h5ad. */
#include "base/threads.h"
#include "base/strmap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
		cmocka_unit_test(maps),
		cmocka_unit_test(loops),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
