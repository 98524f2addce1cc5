/*
 * Loops over several threads that sleep between loops. OpenMP's threads spin while they wait, which is right inside one
 * program that owns the machine and wrong in a pipe of programs that share it.
 */
#ifndef POOL_H
#define POOL_H

#include <stddef.h>

/*
 * Call work(arg, i, thread) once for every i in [0, n), in any order, on up to `threads` threads, the caller being one of them;
 * thread is from 0 to threads - 1. Returns when all calls have returned. One loop at a time, from one thread; work must not
 * start another. The threads live until the program ends.
 */
void pool_for(int threads, size_t n, void (*work)(void *arg, size_t i, int thread), void *arg);

#endif
