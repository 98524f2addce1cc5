#include "nn/blas_memory.h"

#include <cblas.h>
#include <dlfcn.h>
#include <stddef.h>
#include <sys/mman.h>

#define BUFFER ((size_t)128 << 20)

/* Two functions that OpenBLAS exports but does not declare. Another BLAS has none. */
struct allocator {
	void *(*get)(int);
	void (*put)(void *);
};

static int find(struct allocator *a)
{
	union { /* ISO C has no cast from object to function pointers */
		void *object;
		void *(*get)(int);
		void (*put)(void *);
	} get = {.object = dlsym(RTLD_DEFAULT, "blas_memory_alloc")}, put = {.object = dlsym(RTLD_DEFAULT, "blas_memory_free")};
	*a = (struct allocator){get.get, put.put};
	return get.object && put.object;
}

static int room(void)
{
	void *p = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p != MAP_FAILED && !munmap(p, BUFFER);
}

/* Take n buffers and give them back: OpenBLAS keeps them for the next calls. */
static int take(const struct allocator *a, int n)
{
	if (!n)
		return 0;
	if (!room())
		return -1;
	void *p = a->get(0);
	int bad = take(a, n - 1);
	a->put(p);
	return bad;
}

int blas_start(int threads, struct error *e)
{
	struct allocator a;
	openblas_set_num_threads(1);
	if (blas_memory_limited() && find(&a) && take(&a, threads < 1 ? 1 : threads))
		return error_set(e,
			"the limit of memory (ulimit -v) leaves no room for OpenBLAS, which needs %d MB of addresses for each thread: raise it%s",
			(int)(BUFFER >> 20), threads > 1 ? ", or use fewer threads (-@)" : "");
	return 0;
}
