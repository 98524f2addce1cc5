/*
 * What OpenMP's runtime orders, told to ThreadSanitizer: a library for LD_PRELOAD (tests/tsan/tsan.sh).
 *
 * GCC's libgomp is not compiled with -fsanitize=thread, and waits with futexes. So ThreadSanitizer sees neither the start nor the end of a
 * parallel region, no barrier and no lock, and reports every value that one thread writes in a region and another reads after it. To
 * suppress these reports would suppress all that happens in parallel regions. Instead, the calls that order threads are announced here:
 *     the start of a region    what the caller did before     -> every thread of the region
 *     the end of a region      what each thread did           -> the caller
 *     a barrier                what each thread did before    -> every thread behind it
 *     critical, a lock         what was done under it before  -> who gets it next
 * Everything else in a region stays without order, and a race there is reported. All barriers, and all critical sections without a name,
 * count as one: a race between two regions that run at once, both with barriers, could be missed.
 */
#include <dlfcn.h>
#include <stdlib.h>

/* of ThreadSanitizer; not there in programs without it (env, bash) */
extern void __tsan_acquire(void *) __attribute__((weak));
extern void __tsan_release(void *) __attribute__((weak));

typedef void body(void *);
struct region {
	body *f;
	void *data;
};

static char barriers, critical;

static void acquire(void *what)
{
	if (__tsan_acquire)
		__tsan_acquire(what);
}

static void release(void *what)
{
	if (__tsan_release)
		__tsan_release(what);
}

/* NEXT(f): libgomp's function of the name f */
static void *next(const char *name)
{
	void *f = dlsym(RTLD_NEXT, name);
	if (!f)
		abort();
	return f;
}
#define NEXT(f) ((__typeof__(f) *)next(#f))

static void run(void *p)
{
	struct region *r = p;
	acquire(r);
	r->f(r->data);
	release(r);
}

void GOMP_parallel(body *f, void *data, unsigned threads, unsigned flags)
{
	struct region r = {f, data};
	release(&r);
	NEXT(GOMP_parallel)(run, &r, threads, flags);
	acquire(&r);
}

void GOMP_parallel_loop_nonmonotonic_dynamic(
	body *f, void *data, unsigned threads, long from, long to, long step, long chunk, unsigned flags)
{
	struct region r = {f, data};
	release(&r);
	NEXT(GOMP_parallel_loop_nonmonotonic_dynamic)(run, &r, threads, from, to, step, chunk, flags);
	acquire(&r);
}

void GOMP_barrier(void)
{
	release(&barriers);
	NEXT(GOMP_barrier)();
	acquire(&barriers);
}

void GOMP_loop_end(void)
{
	release(&barriers);
	NEXT(GOMP_loop_end)();
	acquire(&barriers);
}

void GOMP_critical_start(void)
{
	NEXT(GOMP_critical_start)();
	acquire(&critical);
}

void GOMP_critical_end(void)
{
	release(&critical);
	NEXT(GOMP_critical_end)();
}

void omp_set_lock(void *lock)
{
	NEXT(omp_set_lock)(lock);
	acquire(lock);
}

void omp_unset_lock(void *lock)
{
	release(lock);
	NEXT(omp_unset_lock)(lock);
}
