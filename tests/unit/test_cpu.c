/* Which vectors a processor gets, for processors that are not here. tests/blas.bats tests what programs do with it. */
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "base/cpu.h"

static const struct cpu_features none, zen3 = {.avx2 = 1}, xeon = {.intel = 1, .avx2 = 1, .avx512 = 1};

static void widest(void **state)
{
	enum cpu_vectors v;
	struct error e;
#if defined(__x86_64__)
	assert_int_equal(cpu_vectors_choose(&v, &xeon, NULL, &e), 0);
	assert_int_equal(v, CPU_AVX512);
	assert_int_equal(cpu_vectors_choose(&v, &xeon, "", &e), 0);
	assert_int_equal(v, CPU_AVX512);
	assert_int_equal(cpu_vectors_choose(&v, &zen3, NULL, &e), 0);
	assert_int_equal(v, CPU_AVX2);
	assert_int_equal(cpu_vectors_choose(&v, &xeon, "avx2", &e), 0);
	assert_int_equal(v, CPU_AVX2);
	assert_int_equal(cpu_vectors_choose(&v, &xeon, "portable", &e), 0);
	assert_int_equal(v, CPU_AVX2);
	assert_int_equal(cpu_vectors_choose(&v, &none, "portable", &e), -1);
	assert_int_equal(cpu_vectors_choose(&v, &zen3, "avx512", &e), -1);
	assert_non_null(strstr(e.msg, "CORRMASK_CPU=avx512: expected "));
	assert_non_null(strstr(e.msg, "avx2 or portable on this processor"));
#endif
	assert_int_equal(cpu_vectors_choose(&v, &xeon, "AVX2", &e), -1);
	assert_int_equal(cpu_vectors_choose(&v, &none, NULL, &e), 0);
}

/* The choice of this processor is one that it can run, whatever the variable says. */
static void here(void **state)
{
	struct cpu_features f;
	enum cpu_vectors v;
	struct error e;
	cpu_features(&f);
	setenv("CORRMASK_CPU", "none", 1);
	assert_int_equal(cpu_check(&e), -1);
	assert_int_equal(cpu_vectors_choose(&v, &f, NULL, &e), 0);
	assert_int_equal(cpu_vectors(), v);
	setenv("CORRMASK_CPU", cpu_vectors_name(v), 1);
	assert_int_equal(cpu_check(&e), 0);
	unsetenv("CORRMASK_CPU");
	assert_int_equal(cpu_check(&e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(widest),
		cmocka_unit_test(here),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
