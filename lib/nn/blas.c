#include "nn/blas.h"

#include <omp.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define VARIABLE "OPENBLAS_CORETYPE"
#define PORTABLE "Haswell" /* the kernels for AVX2 that every OpenBLAS has */
#define BUFFER ((size_t)128 << 20)

/* Functions of OpenBLAS, NULL without it. It exports the last two, but no header declares them. */
extern char *openblas_get_config(void) __attribute__((weak));
extern char *openblas_get_corename(void) __attribute__((weak));
extern int openblas_get_parallel(void) __attribute__((weak));
extern void openblas_set_num_threads(int) __attribute__((weak));
extern void *blas_memory_alloc(int) __attribute__((weak));
extern void blas_memory_free(void *) __attribute__((weak));
extern void openblas_set_threads_callback_function(void *) __attribute__((weak)); /* since 0.3.27 */

/* A limit to the addresses, or to the data, of this process */
static int limited(void)
{
	struct rlimit r;
	return (!getrlimit(RLIMIT_AS, &r) && r.rlim_cur != RLIM_INFINITY) || (!getrlimit(RLIMIT_DATA, &r) && r.rlim_cur != RLIM_INFINITY);
}

static int no_room(void)
{
	void *p = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED || munmap(p, BUFFER);
}

static int room_error(int threads, struct error *e)
{
	return error_set(e,
		"the memory limit (ulimit -v) leaves no room for OpenBLAS, which needs %d MB of addresses for each thread: raise it%s",
		(int)(BUFFER >> 20), threads > 1 ? ", or use fewer threads (-@)" : "");
}

int blas_load(struct error *e)
{
	return openblas_set_threads_callback_function && limited() && no_room() ? room_error(1, e) : 0;
}

/*
 * A thread inside OpenBLAS needs a buffer of addresses. If there are none, OpenBLAS asks again, for ever (blas_memory_alloc in
 * driver/others/memory.c). So take n buffers and give them back: OpenBLAS keeps them for the next calls.
 */
static int take_buffers(int n)
{
	if (!n)
		return 0;
	if (no_room())
		return -1;
	void *p = blas_memory_alloc(0);
	int bad = take_buffers(n - 1);
	blas_memory_free(p);
	return bad;
}

int blas_start(int threads, struct error *e)
{
	omp_set_num_threads(1);
	if (openblas_set_num_threads)
		openblas_set_num_threads(1);
	if (threads > 1 && openblas_get_parallel && !openblas_get_parallel()) /* its buffers have no locks */
		return error_set(e, "this OpenBLAS was built for one thread: use -@ 1, or install libopenblas0-pthread");
	if (limited() && blas_memory_alloc && blas_memory_free && take_buffers(threads < 1 ? 1 : threads))
		return room_error(threads, e);
	return 0;
}

/* Kernels by their vectors: 1 SSE or AVX, 2 AVX2 and FMA, 3 AVX-512, 0 not known. Excavator is what its own processors are given. */
static int core_level(const char *core)
{
	static const char *const names[] = {"",
		(" Katmai Coppermine Northwood Prescott Banias Atom Core2 Penryn Dunnington Nehalem Athlon Opteron Opteron_SSE3 Barcelona"
		 " Nano Sandybridge Bobcat Bulldozer Piledriver Steamroller "),
		" Excavator Haswell Zen ", " SkylakeX Cooperlake SapphireRapids "};
	char word[32];
	snprintf(word, sizeof word, " %s ", core);
	int level = 3;
	while (level && !strcasestr(names[level], word))
		level--;
	return level;
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

/* The kernels in use, and in *better those to use instead or NULL. NULL without OpenBLAS. A library that was built for one processor
 * only (no DYNAMIC_ARCH) has no others. */
static const char *look(const char **better)
{
	*better = NULL;
	if (!openblas_get_corename || !openblas_get_config)
		return NULL;
	const char *core = openblas_get_corename();
	struct cpu_features cpu;
	cpu_features(&cpu);
	if (!strstr(openblas_get_config(), "DYNAMIC_ARCH"))
		return core;
	if (cpu_portable())
		*better = strcasecmp(core, PORTABLE) ? PORTABLE : NULL;
	else
		*better = blas_core_better(core, &cpu);
	return core;
}

int blas_core_set(void)
{
	const char *better;
	return !getenv(VARIABLE) && look(&better) && better && !setenv(VARIABLE, better, 1);
}

int blas_core_check(struct error *e)
{
	const char *better, *core = look(&better), *set = getenv(VARIABLE);
	if (!core || !cpu_portable() || !strcasecmp(core, PORTABLE))
		return 0;
	if (set && strcasecmp(set, PORTABLE))
		return error_set(e, "CORRMASK_CPU=portable is " VARIABLE "=" PORTABLE ", but it is %s here: unset it", set);
	return error_set(e, "CORRMASK_CPU=portable: OpenBLAS has the kernels %s, and cannot take those for " PORTABLE, core);
}

/* judge: say that faster kernels would be there */
static void blas_describe(char *text, size_t n, int judge)
{
	const char *better, *core = look(&better), *vectors = cpu_vectors_name(cpu_vectors());
	char version[32] = "", slower[48] = "";
	if (judge && better)
		snprintf(slower, sizeof slower, " (slower than %s)", better);
	if (core && sscanf(openblas_get_config(), "OpenBLAS %30s", version + 1) == 1)
		version[0] = ' ';
	if (core)
		snprintf(text, n, "OpenBLAS%s %s%s, %s", version, core, slower, vectors);
	else
		snprintf(text, n, "%s", vectors);
}

void cpu_describe(char *text, size_t n)
{
	blas_describe(text, n, 1);
}

void cpu_kernels(char *text, size_t n)
{
	blas_describe(text, n, 0);
}

void cpu_variables(const char *kernels, char *text, size_t n)
{
	char core[32] = "";
	const char *vectors = strrchr(kernels, ' ');
	snprintf(text, n, "%s", "");
	if (vectors && sscanf(kernels, "OpenBLAS %*31s %31[A-Za-z0-9_]", core) == 1)
		snprintf(text, n, "CORRMASK_CPU=%s " VARIABLE "=%s", vectors + 1, core);
}
