#include "nn/device.h"

#include <dlfcn.h>
#include <limits.h>
#include <unistd.h>

#include "nn/blas.h"
#include "nn/ops_cuda.h"

#define LIBRARY "corrmask_cuda.so"

int device_parse(const char *spec, int *cuda, int *index, int *fp32, struct error *e)
{
	const char *p = spec;
	*cuda = *index = *fp32 = 0;
	if (!strncmp(p, "cpu", 3)) {
		p += 3;
	} else if (!strncmp(p, "auto", 4)) {
		*cuda = -1;
		p += 4;
	} else if (!strncmp(p, "cuda", 4)) {
		*cuda = 1;
		p += 4;
	}
	if (*cuda && *p == ':') {
		char *end;
		long k = p[1] >= '0' && p[1] <= '9' ? strtol(p + 1, &end, 10) : -1;
		if (k < 0 || k > 1023)
			return error_set(e, "--device %s: the number after the colon must be 0 to 1023", spec);
		*index = (int)k;
		p = end;
	}
	if (p != spec && *cuda && !strcmp(p, ",float")) {
		*fp32 = 1;
		p += 6;
	}
	if (p == spec || *p)
		return error_set(e, "--device: unknown device '%s': expected auto, cpu or cuda[:N][,float]", spec);
	return 0;
}

/* A file beside the program, or at a path relative to it. NULL when it is not there. */
static void *open_near(const char *relative, int *found, struct error *e)
{
	char path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);
	if (n <= 0)
		return NULL;
	path[n] = '\0';
	char *name = strrchr(path, '/') + 1;
	snprintf(name, sizeof path - (size_t)(name - path), "%s" LIBRARY, relative);
	if (access(path, F_OK))
		return NULL;
	*found = 1;
	void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!h)
		error_set(e, "%s", dlerror());
	return h;
}

/* Only in these two places: a search by name would look where LD_LIBRARY_PATH says, and in the current folder if that has an empty part.
 * A library that is there but does not load (no cuBLAS, say) is reported, not passed over. It stays open to the end. */
static void *open_library(struct error *e)
{
	static const char *const near[] = {"", "../lib/corrmask/"};
	int found = 0;
	for (size_t i = 0; i < sizeof near / sizeof *near; i++) {
		void *h = open_near(near[i], &found, e);
		if (h || found)
			return h;
	}
	error_set(e, "%s is not installed (a build with CUDA=1 makes it)", LIBRARY);
	return NULL;
}

static struct ops *open_cuda(int index, int fp32, char *what, size_t n, struct error *e)
{
	union { /* ISO C has no cast from object to function pointers */
		void *object;
		ops_cuda_open *function;
	} open;
	/* the driver first: without one there is no point in loading some 100 MB of CUDA libraries */
	if (!dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {
		error_set(e, "no NVIDIA driver on this machine (libcuda.so.1)");
		return NULL;
	}
	void *h = open_library(e);
	if (!h)
		return NULL;
	open.object = dlsym(h, OPS_CUDA_SYMBOL);
	if (!open.object) {
		error_set(e, "%s", dlerror());
		return NULL;
	}
	struct ops_cuda a = {.size = sizeof(struct ops), .version = CORRMASK_VERSION, .device = index, .fp32 = fp32};
	struct ops *o = open.function(&a, e);
	if (o)
		snprintf(what, n, "%s", a.what);
	return o;
}

struct ops *device_open(const char *spec, int threads, int bf16, char *what, size_t n, struct error *e)
{
	int cuda, index, fp32;
	struct error why = {""};
	if (device_parse(spec, &cuda, &index, &fp32, e))
		return NULL;
	if (cuda) {
		struct ops *o = open_cuda(index, fp32, what, n, &why);
		if (o)
			return o;
		if (cuda > 0) {
			error_set(e, "--device %s: %s", spec, why.msg);
			return NULL;
		}
	}
	if (blas_start(threads, e))
		return NULL;
	struct ops *o = bf16 ? ops_cpu_new_bf16(threads) : ops_cpu_new(threads);
	if (!o) {
		const char *limit = getenv("CORRMASK_CPU");
		if (limit && *limit && strcmp(limit, "avx512"))
			error_set(
				e, "--precision bf16: CORRMASK_CPU=%s excludes it; unset the variable, or use --precision float32", limit);
		else
			error_set(e, "--precision bf16: this processor has no AVX512-BF16; use --precision float32");
		return NULL;
	}
	char kernels[128] = CPU_DESCRIBE_BF16;
	if (!bf16)
		cpu_describe(kernels, sizeof kernels);
	snprintf(what, n, "cpu, %d thread%s, %s%s%s%s", threads, threads == 1 ? "" : "s", kernels, cuda ? " (no CUDA: " : "", why.msg,
		cuda ? ")" : "");
	return o;
}

void device_report(struct ops *o, double padding, char *text, size_t n)
{
	double busy, idle;
	o->usage(o, &busy, &idle);
	*text = '\0';
	char remarks[320] = "";
	if (o->remarks)
		o->remarks(o, remarks, sizeof remarks);
	if (busy > 0)
		snprintf(text, n, ", GPU idle %.1f %%, padding %.1f %%%s%s", 100 * idle / (busy + idle), 100 * padding,
			*remarks ? "; " : "", remarks);
}
