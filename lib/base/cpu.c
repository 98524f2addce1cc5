#include "base/cpu.h"

#define VARIABLE "CORRMASK_CPU"
#define PORTABLE "portable" /* another name of avx2, which OpenBLAS follows */

static const char *const names[] = {[CPU_GENERIC] = "generic", [CPU_AVX2] = "avx2", [CPU_AVX512] = "avx512"};
EVERY_ROW(names, CPU_VECTORS);

void cpu_features(struct cpu_features *f)
{
	*f = (struct cpu_features){0};
#ifdef __x86_64__
	__builtin_cpu_init();
	f->intel = !!__builtin_cpu_is("intel");
	f->avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
	f->avx512 = f->avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
		__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
	f->bf16 = f->avx512 && __builtin_cpu_supports("avx512bf16");
#endif
}

/* Is there such a version in this build? */
static int built(enum cpu_vectors v)
{
#if defined(__x86_64__) && defined(__AVX2__)
	return v != CPU_GENERIC;
#elif defined(__x86_64__)
	return 1;
#else
	return v == CPU_GENERIC;
#endif
}

static int usable(enum cpu_vectors v, const struct cpu_features *f)
{
	return built(v) && (v == CPU_GENERIC || (v == CPU_AVX2 ? f->avx2 : f->avx512));
}

int cpu_vectors_choose(enum cpu_vectors *v, const struct cpu_features *f, const char *wanted, struct error *e)
{
	char list[60] = "";
	*v = built(CPU_GENERIC) ? CPU_GENERIC : CPU_AVX2;
	for (enum cpu_vectors i = CPU_GENERIC; i < CPU_VECTORS; i++) {
		if (!usable(i, f))
			continue;
		*v = i;
		strcat(strcat(list, *list ? " or " : ""), names[i]);
		if (wanted && (!strcmp(wanted, names[i]) || (i == CPU_AVX2 && !strcmp(wanted, PORTABLE))))
			return 0;
	}
	if (usable(CPU_AVX2, f))
		strcat(list, " or " PORTABLE);
	if (wanted && *wanted)
		return error_set(e, VARIABLE "=%s: expected %s on this processor", wanted, list);
	return 0;
}

int cpu_portable(void)
{
	const char *wanted = getenv(VARIABLE);
	return wanted && !strcmp(wanted, PORTABLE);
}

int cpu_check(struct error *e)
{
	struct cpu_features f;
	enum cpu_vectors v;
	cpu_features(&f);
	if (!built(CPU_GENERIC) && !f.avx2)
		return error_set(e, "this build needs a processor with AVX2 and FMA; rebuild with MARCH=-march=native");
	return cpu_vectors_choose(&v, &f, getenv(VARIABLE), e);
}

enum cpu_vectors cpu_vectors(void)
{
	struct error e;
	struct cpu_features f;
	enum cpu_vectors v;
	cpu_features(&f);
	cpu_vectors_choose(&v, &f, getenv(VARIABLE), &e);
	return v;
}

int cpu_bf16(void)
{
	struct cpu_features f;
	cpu_features(&f);
	return f.bf16 && cpu_vectors() == CPU_AVX512;
}

const char *cpu_vectors_name(enum cpu_vectors v)
{
	return names[v];
}
