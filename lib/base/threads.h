/*
 * Parallel loops on threads that sleep between loops. (Threads of OpenMP spin while they wait, which slows down the other programs of a
 * pipe.)
 */
#pragma once

#include <stddef.h>

struct pool_loop { /* a loop that was started; for threads.c alone */
	void (*work)(void *arg, size_t i, int thread);
	void *arg;
	size_t n, next, done; /* calls: all, begun, returned */
	int threads;
	struct pool_loop *older;
};

/*
 * Call work(arg, i, thread) once for every i in [0, n), in any order, on up to `threads` threads including the caller's. `thread` is from
 * 0 to threads - 1. Returns when all calls have returned. The threads live until the program ends. work must not start a loop of more
 * than one thread, and only one thread of the program may.
 */
void pool_for(int threads, size_t n, void (*work)(void *arg, size_t i, int thread), void *arg);

/*
 * The same in two steps: pool_start returns at once, and up to threads - 1 other threads begin; pool_finish joins in and returns when all
 * calls have returned. In between the caller may run other loops. They go first, and who would have to wait for them takes a call of the older
 * loop instead. `l` must not move until pool_finish.
 */
void pool_start(struct pool_loop *l, int threads, size_t n, void (*work)(void *arg, size_t i, int thread), void *arg);
void pool_finish(struct pool_loop *l);
