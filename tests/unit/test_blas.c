/* Which kernels of OpenBLAS a processor gets, for processors that are not here. tests/blas.bats tests what programs do with it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <cblas.h>
#include <omp.h>

#include "nn/blas.h"

static const struct cpu_features emerald = {.intel = 1, .avx2 = 1, .avx512 = 1, .bf16 = 1}, skylake = {.intel = 1, .avx2 = 1, .avx512 = 1},
				 raptor = {.intel = 1, .avx2 = 1}, zen3 = {.avx2 = 1}, zen5 = {.avx2 = 1, .avx512 = 1, .bf16 = 1},
				 nehalem = {.intel = 1}, none;

static void better(void **state)
{
	static const struct {
		const char *core;
		const struct cpu_features *cpu;
		const char *want; /* NULL: core fits */
	} cases[] = {
		/* models that 0.3.21 does not know */
		{"Prescott", &emerald, "Cooperlake"},
		{"Prescott", &skylake, "SkylakeX"},
		{"Prescott", &raptor, "Haswell"},
		{"Barcelona", &zen5, "Cooperlake"},
		{"Barcelona", &zen3, "Zen"},
		/* vectors of half the width */
		{"Haswell", &emerald, "Cooperlake"},
		{"Zen", &zen5, "Cooperlake"},
		{"Haswell", &skylake, "SkylakeX"},
		{"Sandybridge", &raptor, "Haswell"},
		{"Piledriver", &zen3, "Zen"},
		/* right */
		{"Cooperlake", &emerald, NULL},
		{"SkylakeX", &emerald, NULL},
		{"SapphireRapids", &emerald, NULL},
		{"SkylakeX", &skylake, NULL},
		{"Haswell", &raptor, NULL},
		{"Zen", &zen3, NULL},
		{"Haswell", &zen3, NULL},
		{"Excavator", &zen3, NULL},
		/* more than the processor has is the user's matter */
		{"SkylakeX", &zen3, NULL},
		/* nothing to judge by */
		{"Prescott", &nehalem, NULL},
		{"Nehalem", &none, NULL},
		{"ARMV8", &none, NULL},
		{"DiamondRapids", &emerald, NULL},
		{"Unknown", &emerald, NULL},
		{"", &emerald, NULL},
		/* case does not matter in OPENBLAS_CORETYPE */
		{"PRESCOTT", &raptor, "Haswell"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *got = blas_core_better(cases[i].core, cases[i].cpu);
		if (got != cases[i].want && (!got || !cases[i].want || strcmp(got, cases[i].want)))
			fail_msg("case %zu, %s: %s, expected %s", i, cases[i].core, got ? got : "it fits",
				cases[i].want ? cases[i].want : "it fits");
		if (got)
			assert_null(blas_core_better(got, cases[i].cpu));
	}
}

/* OpenMP too, which decides where OpenBLAS is built with it. */
static void one_thread(void **state)
{
	struct error e;
	omp_set_num_threads(2);
	openblas_set_num_threads(2);
	assert_int_equal(blas_start(2, &e), 0);
	assert_int_equal(openblas_get_num_threads(), 1);
	assert_int_equal(omp_get_max_threads(), 1);
}

/* cpuid's answer holds together. */
static void this_cpu(void **state)
{
	struct cpu_features cpu;
	cpu_features(&cpu);
	assert_true(cpu.avx2 >= cpu.avx512 && cpu.avx512 >= cpu.bf16);
#ifdef __AVX2__
	assert_true(cpu.avx2);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(better),
		cmocka_unit_test(one_thread),
		cmocka_unit_test(this_cpu),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
