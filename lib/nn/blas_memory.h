/*
 * OpenBLAS asks for 128 MB of addresses (BUFFER_SIZE) for each thread that is inside one of its functions at the same time, and for each
 * thread that it starts itself when it is loaded. It keeps them to the end, and touches what it needs. Where it gets none it asks again,
 * for ever (blas_memory_alloc in driver/others/memory.c, to 0.3.21 at least). With a limit (ulimit -v, batch systems) a program takes these
 * addresses before its first product, and says so if they are not there. Without a limit nothing is taken.
 */
#ifndef BLAS_MEMORY_H
#define BLAS_MEMORY_H

#include "base/error.h"

#include <sys/resource.h>

/* Is there a limit to the addresses, or to the data, of this process? */
static inline int blas_memory_limited(void)
{
	struct rlimit r;
	return (!getrlimit(RLIMIT_AS, &r) && r.rlim_cur != RLIM_INFINITY) || (!getrlimit(RLIMIT_DATA, &r) && r.rlim_cur != RLIM_INFINITY);
}

/* Before the first call of BLAS: each call is to use one thread, and up to `threads` threads call at the same time. 0, or -1 with e set
 * when the limit leaves no memory for that. */
int blas_start(int threads, struct error *e);

#endif
