/*
 * Parallel loops on threads that sleep between loops. (Threads of OpenMP spin while they wait, which slows down the other programs of a
 * pipe.)
 */
#ifndef THREADS_H
#define THREADS_H

#include <stddef.h>

/*
 * Call work(arg, i, thread) once for every i in [0, n), in any order, on up to `threads` threads including the caller's. `thread` is from
 * 0 to threads - 1. Returns when all calls have returned. Only one loop runs at a time: work must not start another one. The threads
 * live until the program ends.
 */
void pool_for(int threads, size_t n, void (*work)(void *arg, size_t i, int thread), void *arg);

#endif
