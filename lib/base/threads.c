#include "base/threads.h"

#include <omp.h>
#include <pthread.h>
#include <stdint.h>

/* The lock is taken once for each call of a loop's work. Calls take 20 microseconds and more, so it is free nearly always. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t start, done;
	int threads; /* started, without the caller's */
	struct pool_loop *loop; /* loops that are not finished, the newest first */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .start = PTHREAD_COND_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

/* With the lock held: the newest loop that has calls left for this thread, or NULL. */
static struct pool_loop *loop_for(int thread)
{
	struct pool_loop *l = pool.loop;
	while (l && (l->next == l->n || thread >= l->threads))
		l = l->older;
	return l;
}

/* With the lock held: make the next call of l without it. */
static void call_next(struct pool_loop *l, int thread)
{
	size_t i = l->next++;
	pthread_mutex_unlock(&pool.lock);
	l->work(l->arg, i, thread);
	pthread_mutex_lock(&pool.lock);
	if (++l->done == l->n)
		pthread_cond_signal(&pool.done);
}

static void *worker(void *number)
{
	int thread = (int)(intptr_t)number;
	omp_set_num_threads(1); /* for an OpenBLAS that is built with OpenMP */
	pthread_mutex_lock(&pool.lock);
	for (;;) {
		struct pool_loop *l = loop_for(thread);
		if (l)
			call_next(l, thread);
		else
			pthread_cond_wait(&pool.start, &pool.lock);
	}
	return NULL;
}

void pool_start(struct pool_loop *l, int threads, size_t n, void (*work)(void *arg, size_t i, int thread), void *arg)
{
	int helpers = n < (size_t)threads ? (int)n : threads - 1;
	pthread_mutex_lock(&pool.lock);
	*l = (struct pool_loop){.work = work, .arg = arg, .n = n, .threads = threads, .older = pool.loop};
	pool.loop = l;
	while (pool.threads < helpers) {
		pthread_t t;
		/* not an error: the other threads do the work */
		if (pthread_create(&t, NULL, worker, (void *)(intptr_t)(pool.threads + 1)))
			break;
		pthread_detach(t);
		pool.threads++;
	}
	if (helpers > 0)
		pthread_cond_broadcast(&pool.start);
	pthread_mutex_unlock(&pool.lock);
}

void pool_finish(struct pool_loop *l)
{
	pthread_mutex_lock(&pool.lock);
	while (l->done < l->n) {
		/* the caller is thread 0 of every loop, because it started them all */
		struct pool_loop *next = l->next < l->n ? l : loop_for(0);
		if (next)
			call_next(next, 0);
		else
			pthread_cond_wait(&pool.done, &pool.lock);
	}
	struct pool_loop **at = &pool.loop;
	while (*at != l)
		at = &(*at)->older;
	*at = l->older;
	pthread_mutex_unlock(&pool.lock);
}

void pool_for(int threads, size_t n, void (*work)(void *arg, size_t i, int thread), void *arg)
{
	struct pool_loop l;
	if (threads < 2 || n < 2) {
		for (size_t i = 0; i < n; i++)
			work(arg, i, 0);
		return;
	}
	pool_start(&l, n < (size_t)threads ? (int)n : threads, n, work, arg);
	pool_finish(&l);
}
