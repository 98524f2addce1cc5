#include "nn/blas_core.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define VARIABLE "OPENBLAS_CORETYPE"
#define PORTABLE "Haswell" /* the kernels for AVX2 that every OpenBLAS has */

/* Kernels by their vectors: 1 SSE or AVX, 2 AVX2 and FMA, 3 AVX-512, 0 not known. Excavator is what its own processors are given. */
static int core_level(const char *core)
{
	static const struct {
		const char *name;
		int level;
	} cores[] = {
		{"Katmai", 1},
		{"Coppermine", 1},
		{"Northwood", 1},
		{"Prescott", 1},
		{"Banias", 1},
		{"Atom", 1},
		{"Core2", 1},
		{"Penryn", 1},
		{"Dunnington", 1},
		{"Nehalem", 1},
		{"Athlon", 1},
		{"Opteron", 1},
		{"Opteron_SSE3", 1},
		{"Barcelona", 1},
		{"Nano", 1},
		{"Sandybridge", 1},
		{"Bobcat", 1},
		{"Bulldozer", 1},
		{"Piledriver", 1},
		{"Steamroller", 1},
		{"Excavator", 2},
		{"Haswell", 2},
		{"Zen", 2},
		{"SkylakeX", 3},
		{"Cooperlake", 3},
		{"SapphireRapids", 3},
	};
	for (size_t i = 0; i < sizeof cores / sizeof *cores; i++)
		if (!strcasecmp(core, cores[i].name))
			return cores[i].level;
	return 0;
}

const char *blas_core_better(const char *core, const struct cpu_features *cpu)
{
	int level = core_level(core), best = cpu->avx512 ? 3 : cpu->avx2 ? 2 : 0;
	if (!level || level >= best)
		return NULL;
	if (best == 3)
		return cpu->bf16 ? "Cooperlake" : "SkylakeX";
	return cpu->intel ? "Haswell" : "Zen";
}

/* A function of OpenBLAS that returns a text; NULL without OpenBLAS. */
static const char *ask(const char *function)
{
	union { /* ISO C has no cast from object to function pointers */
		void *object;
		char *(*function)(void);
	} call = {.object = dlsym(RTLD_DEFAULT, function)};
	return call.object ? call.function() : NULL;
}

/* The kernels in use, and in *better those to use instead or NULL. NULL without OpenBLAS. A library that was built for one processor
 * only (no DYNAMIC_ARCH) has no others. */
static const char *look(const char **better)
{
	const char *core = ask("openblas_get_corename"), *config = ask("openblas_get_config");
	struct cpu_features cpu;
	*better = NULL;
	if (core && config && strstr(config, "DYNAMIC_ARCH")) {
		cpu_features(&cpu);
		if (cpu_portable()) {
			*better = strcasecmp(core, PORTABLE) ? PORTABLE : NULL;
			return core;
		}
		*better = blas_core_better(core, &cpu);
	}
	return core;
}

int blas_core_set(void)
{
	const char *better;
	if (getenv(VARIABLE))
		return 0;
	return look(&better) && better && !setenv(VARIABLE, better, 1);
}

int blas_core_check(struct error *e)
{
	const char *better, *core = look(&better), *set = getenv(VARIABLE);
	if (!core || !cpu_portable() || !strcasecmp(core, PORTABLE) || (better && !set))
		return 0;
	if (set && strcasecmp(set, PORTABLE))
		return error_set(e, "CORRMASK_CPU=portable is " VARIABLE "=" PORTABLE ", but it is %s here: unset it", set);
	return error_set(e, "CORRMASK_CPU=portable: OpenBLAS has the kernels %s, and cannot take those for " PORTABLE, core);
}

/* judge: say that faster kernels would be there */
static void describe_blas(char *text, size_t n, int judge)
{
	const char *better, *core = look(&better), *config = ask("openblas_get_config");
	char version[32] = "";
	if (config && sscanf(config, "OpenBLAS %30s", version + 1) == 1)
		version[0] = ' ';
	int stays = getenv(VARIABLE) != NULL;
	if (!core)
		snprintf(text, n, "%s", "");
	else if (better && stays && judge)
		snprintf(text, n, "OpenBLAS%s %s (slower than %s)", version, core, better);
	else
		snprintf(text, n, "OpenBLAS%s %s", version, better && !stays ? better : core);
}

static void describe(char *text, size_t n, int judge)
{
	describe_blas(text, n, judge);
	size_t used = strlen(text);
	snprintf(text + used, n - used, "%s%s", used ? ", " : "", cpu_vectors_name(cpu_vectors()));
}

void cpu_describe(char *text, size_t n)
{
	describe(text, n, 1);
}

void cpu_kernels(char *text, size_t n)
{
	describe(text, n, 0);
}

void cpu_variables(const char *kernels, char *text, size_t n)
{
	char core[32] = "";
	const char *vectors = strrchr(kernels, ' ');
	snprintf(text, n, "%s", "");
	if (vectors && sscanf(kernels, "OpenBLAS %*31s %31[A-Za-z0-9_]", core) == 1)
		snprintf(text, n, "CORRMASK_CPU=%s " VARIABLE "=%s", vectors + 1, core);
}
